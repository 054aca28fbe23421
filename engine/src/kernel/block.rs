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

choice! {
    /// When a plug is flushed before it takes another request (`blk_add_rq_to_plug`).
    pub enum PlugLimit {
        /// It holds 16 (`BLK_MAX_REQUEST_COUNT`).
        Sixteen = "16-requests",
        /// It holds 16, or the last one has 128 KiB (`BLK_PLUG_FLUSH_SIZE`, since 4.10).
        SixteenOrLarge = "16-requests-or-128-kib",
        /// It holds 32, or the last one has 128 KiB (since 5.16).
        ThirtyTwoOrLarge = "32-requests-or-128-kib",
    }
}

impl PlugLimit {
    /// How many requests a plug holds at most.
    pub fn requests(self) -> usize {
        if self == Self::ThirtyTwoOrLarge {
            32
        } else {
            16
        }
    }

    /// Bytes of a last request that no other joins in the plug.
    pub fn bytes(self) -> u32 {
        if self == Self::Sixteen {
            u32::MAX
        } else {
            128 << 10
        }
    }
}
