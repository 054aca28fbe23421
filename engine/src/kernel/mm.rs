//! Rules of memory.

use super::choice::choice;

choice! {
    /// How the pages of a process that ends are taken off their list and freed.
    pub enum PageRelease {
        /// A batch of the size that CPUs collect, which is then free (`folios_put_refs`; before 3.18 `free_pages_and_swap_cache`).
        Batches = "batches",
        /// 32 at a time, one time after the other; then all that were gathered are freed (`release_pages`).
        Runs = "runs",
    }
}
