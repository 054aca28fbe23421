//! Rules of workqueues.

use super::choice::choice;

choice! {
    /// Which CPUs have a pool of workers together for unbound workqueues (`wq_affn_dfl`).
    pub enum Pods {
        /// Those of a NUMA node (before 6.6).
        Node = "node",
        /// Those under a last-level cache.
        Cache = "cache",
    }
}
