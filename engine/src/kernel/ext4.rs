//! Rules of ext4.

use super::choice::choice;

choice! {
    /// What a direct write holds.
    pub enum DioWrites {
        /// `i_rwsem` for itself, until the data are on the device.
        Exclusive = "exclusive",
        /// The same, but not while the device works.
        Relocked = "relocked",
        /// `i_rwsem` shared.
        Shared = "shared",
    }
}
