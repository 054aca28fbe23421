//! A disk: one arm over turning platters. Of the requests that it has it serves the one that it reaches first, as disks with
//! a command queue do, which know where their platters are (Seltzer, Chen, Ousterhout, USENIX Winter 1990: shortest access time
//! first). Not modelled: that it prefers requests that have grown old.

use crate::waist::time::Time;
use crate::waist::{Disk, Io, Span};
use std::collections::VecDeque;

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

    /// How long what is read or written passes the head.
    pub(super) fn passes(&self, span: Option<Span>) -> Time {
        let bytes = u128::from(span.map_or(0, |span| span.bytes));
        (bytes * u128::from(self.revolution) / u128::from(self.track)) as Time
    }
}

/// What a disk's cache has: writes whose submitters go on, and which the arm takes to the platters as it takes reads.
#[derive(Debug)]
pub(super) struct Cache {
    bytes: u64,
    used: u64,
    /// Requests whose writes wait for the arm, the oldest first.
    pub waiting: VecDeque<u32>,
    /// Requests that wait until it is empty.
    pub flushes: Vec<u32>,
}

impl Cache {
    /// That of a disk, if it has one.
    pub fn of(disk: &Disk) -> Option<Self> {
        let (used, waiting, flushes) = (0, VecDeque::new(), Vec::new());
        (disk.cache > 0).then_some(Self { bytes: disk.cache, used, waiting, flushes })
    }

    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Whether there is room for a write; one that is larger than the cache has it to itself.
    pub fn has_room(&self, io: &Io) -> bool {
        self.is_empty() || self.used + size(io) <= self.bytes
    }

    /// Room is given to a write.
    pub fn take(&mut self, io: &Io) {
        self.used += size(io);
    }

    /// A write is on the platters.
    pub fn is_out(&mut self, io: &Io) {
        self.used -= size(io);
    }

    /// Takes the flushes that are done, if any is.
    pub fn take_flushes(&mut self) -> Vec<u32> {
        if self.is_empty() {
            std::mem::take(&mut self.flushes)
        } else {
            Vec::new()
        }
    }
}

/// What a request takes of a cache.
fn size(io: &Io) -> u64 {
    io.span.filter(|span| span.write).map_or(0, |span| u64::from(span.bytes))
}
