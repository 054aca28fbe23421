//! Loads that depend on each other, over as much memory as asked for.

use crate::pinned::{chunks, on};
use crate::Series;
use std::hint::black_box;
use std::time::Duration;

/// A line that tells which one comes next.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(u32);

const LINE: u64 = 64;
const LINES_OF_A_PAGE: usize = 64;
const MOST_BYTES: u64 = 1 << 34;

/// ns of a load in random order of all lines, or `by_page`: then a page is finished before the next, and its address is looked up once.
pub fn random(cpu: usize, bytes: u64, time: Duration, by_page: bool) -> Result<Series, String> {
    let lines = (bytes.min(MOST_BYTES) / LINE) as usize;
    if lines < LINES_OF_A_PAGE {
        return Err(format!("memory: {bytes} bytes are less than a page"));
    }
    let each = on(cpu, || {
        let (ring, mut at) = (ring(lines, by_page), 0);
        for _ in 0..lines.min(1 << 19) {
            at = ring[at as usize].0; // as warm as it gets
        }
        chunks(time, 2000, || at = black_box(ring[at as usize].0))
    })?;
    Ok(vec![("each", each)])
}

fn ring(lines: usize, by_page: bool) -> Vec<Line> {
    let mut order: Vec<u32> = (0..lines as u32).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    if by_page {
        let mut pages: Vec<usize> = (0..lines / LINES_OF_A_PAGE).collect();
        shuffle(&mut pages, &mut state);
        order = pages.iter().flat_map(|page| lines_of(*page, &mut state)).collect();
    } else {
        shuffle(&mut order, &mut state);
    }
    let mut ring = vec![Line(0); lines];
    for (here, next) in order.iter().zip(order.iter().cycle().skip(1)) {
        ring[*here as usize] = Line(*next);
    }
    ring
}

fn lines_of(page: usize, state: &mut u64) -> Vec<u32> {
    let first = page * LINES_OF_A_PAGE;
    let mut lines: Vec<u32> = (first as u32..(first + LINES_OF_A_PAGE) as u32).collect();
    shuffle(&mut lines, state);
    lines
}

/// Fisher and Yates, drawn by xorshift (Marsaglia 2003).
fn shuffle<T>(items: &mut [T], state: &mut u64) {
    for last in (1..items.len()).rev() {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        items.swap(last, (*state % (last as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::ring;
    use std::collections::BTreeSet;

    #[test]
    fn a_ring_visits_every_line_once() {
        for by_page in [false, true] {
            let (ring, mut at, mut visited) = (ring(640, by_page), 0, BTreeSet::new());
            for _ in 0..640 {
                visited.insert(at);
                at = ring[at as usize].0;
            }
            assert_eq!((visited.len(), at), (640, 0));
        }
    }
}
