//! Runs of bytes of a block group, as the audit compares them: first byte, size, and what they are.

use crate::filesystems::btrfs::tree::key::NODE_SIZE;

/// Puts blocks into holes of a block's size; how many.
pub fn fill_holes(runs: &mut Vec<(u64, u64, &'static str)>, start: u64, end: u64) -> usize {
    runs.sort_unstable();
    let (mut holes, mut next) = (Vec::new(), start);
    for &(place, bytes, _) in runs.iter().chain(&[(end, 0, "")]) {
        let blocks = (next..place).step_by(NODE_SIZE as usize);
        holes.extend(blocks.map(|hole| (hole, u64::from(NODE_SIZE), "a block")));
        next = place + bytes;
    }
    let count = holes.len();
    runs.append(&mut holes);
    count
}

/// Whether runs lie one behind the other from `start` to `end`.
pub fn tiles(mut runs: Vec<(u64, u64, &'static str)>, start: u64, end: u64) -> Result<(), String> {
    runs.sort_unstable();
    let mut next = start;
    for (place, bytes, what) in runs {
        if place != next {
            return Err(format!("{what} begins at {place}, what is before it ends at {next}"));
        }
        next = place + bytes;
    }
    if next == end {
        Ok(())
    } else {
        Err(format!("a block group ends at {end}, what is in it at {next}"))
    }
}
