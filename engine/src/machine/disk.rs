//! A disk: one arm over turning platters. Of the requests that it has it serves the one that it reaches first, as disks with
//! a command queue do, which know where their platters are (Seltzer, Chen, Ousterhout, USENIX Winter 1990: shortest access time
//! first). Not modelled: that it prefers requests that have grown old.

use crate::waist::time::Time;
use crate::waist::Disk;

impl Disk {
    /// From `now` until the head, which is at `head`, is at `place` (bytes from the disk's beginning): a seek whose time grows
    /// with the root of the distance (Ruemmler and Wilkes, IEEE Computer, March 1994, for all but long seeks), and the turn to
    /// the sector.
    pub(super) fn reaches(&self, head: u64, place: u64, now: Time) -> Time {
        let distance = head.abs_diff(place);
        let seek = match distance < self.track {
            true => 0,
            false => {
                let part = (distance as f64 / self.capacity as f64).sqrt();
                self.seek_track + ((self.seek_full - self.seek_track) as f64 * part) as Time
            }
        };
        let sector = (u128::from(place % self.track) * u128::from(self.revolution) / u128::from(self.track)) as Time;
        seek + (sector + self.revolution - (now + seek) % self.revolution) % self.revolution
    }
}
