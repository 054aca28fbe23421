//! A disk: one arm over turning platters. Of the requests that it has it serves the one that it reaches first, as disks with
//! a command queue do, which know where their platters are (Seltzer, Chen, Ousterhout, USENIX Winter 1990: shortest access time
//! first). Not modelled: that it prefers requests that have grown old.

use super::time::Time;

/// What a disk is like.
#[derive(Clone, Copy, Debug)]
pub struct Disk {
    /// Time of one turn.
    pub revolution: Time,
    /// A seek to the next track.
    pub seek_track: Time,
    /// A seek over the whole disk.
    pub seek_full: Time,
    /// Bytes on the disk.
    pub capacity: u64,
    /// Bytes that pass under the head in one turn.
    pub track: u64,
}

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
