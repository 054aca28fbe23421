//! Rules of the block layer and its drivers.

use super::choice::choice;

choice! {
    /// How an md array passes a flush on to its members (`md_flush_request`).
    pub enum MdFlush {
        /// A worker does, one flush at a time (before 5.2).
        Alone = "alone",
        /// The same; a flush does for all who asked before it was sent.
        Joined = "joined",
        /// Each task sends its own (since 6.12).
        Inline = "inline",
    }
}
