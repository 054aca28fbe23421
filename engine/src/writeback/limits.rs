//! How much may be dirty, how fast the device takes it, and how long whoever writes has to pause for that (`mm/page-writeback.c` of
//! Linux 5.10 to 6.12). Counts are pages, rates pages a second, times seconds.

/// Pages that may be written before a task asks again how many are dirty (`DIRTY_POLL_THRESH`: 128 KiB).
const POLL_PAGES: f64 = 32.0;
/// No pause is longer (`MAX_PAUSE`).
const MAX_PAUSE: f64 = 0.2;
/// Time between two estimates of the rates (`BANDWIDTH_INTERVAL`), and over which that of the device is averaged.
const INTERVAL: f64 = 0.2;
const AVERAGED: f64 = 3.0;

/// Dirty pages from which on the flusher works (`bg_thresh`), and which there must not be more of (`thresh`).
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// `vm.dirty_background_ratio` of the memory.
    pub background: u64,
    /// `vm.dirty_ratio` of it.
    pub most: u64,
}

impl Limits {
    /// Up to here nobody pauses (`dirty_freerun_ceiling`).
    pub fn freerun(&self) -> u64 {
        self.background.midpoint(self.most)
    }

    /// How many more pages a task may write before it asks again (`dirty_poll_interval`).
    pub fn poll_interval(&self, dirty: u64) -> u64 {
        self.most.saturating_sub(dirty).checked_ilog2().map_or(1, |bits| 1 << (bits / 2))
    }

    /// How many dirty pages there should be.
    fn setpoint(&self) -> u64 {
        self.freerun().midpoint(self.most)
    }

    /// Factor on the rate of tasks: 1 at the set point, 0 at the limit (`pos_ratio_polynom`; the second control line, by device, is
    /// left out, since there is one device).
    pub fn position_ratio(&self, dirty: u64) -> f64 {
        if dirty >= self.most {
            return 0.0;
        }
        let setpoint = self.setpoint() as f64;
        let x = (setpoint - dirty as f64) / (self.most as f64 - setpoint).max(1.0);
        (1.0 + x.powi(3)).clamp(0.0, 2.0)
    }
}

/// What was counted since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Pages that became dirty.
    pub dirtied: u64,
    /// Pages that got to the device.
    pub written: u64,
}

/// Estimates of how fast the device writes and of how fast each task may.
#[derive(Clone, Debug)]
pub struct Rates {
    /// `avg_write_bandwidth`.
    pub write: f64,
    /// `dirty_ratelimit`.
    pub task: f64,
    balanced: f64,
    at: f64,
    then: Counts,
}

impl Rates {
    /// The device writes so fast, and so many tasks share it.
    pub fn new(write: f64, tasks: u32) -> Self {
        let task = write / f64::from(tasks.max(1));
        Self { write, task, balanced: task, at: 0.0, then: Counts::default() }
    }

    /// `__wb_update_bandwidth`: estimates anew if the last time is long enough ago. A device that wrote nothing meanwhile keeps its rate.
    pub fn update(&mut self, now: f64, counts: Counts, dirty: u64, limits: &Limits) {
        let elapsed = now - self.at;
        if elapsed < INTERVAL {
            return;
        }
        let rate = |now: u64, then: u64| (now - then) as f64 / elapsed;
        let (written, dirtied) = (rate(counts.written, self.then.written), rate(counts.dirtied, self.then.dirtied));
        if elapsed < 5.0 * INTERVAL && written > 0.0 {
            self.balance(dirtied, dirty, limits);
            self.write += (written - self.write) * (elapsed / AVERAGED).min(1.0);
        }
        (self.at, self.then) = (now, counts);
    }

    /// `wb_update_dirty_ratelimit`: a step towards the rate at which as much gets dirty as is written.
    fn balance(&mut self, dirtied: f64, dirty: u64, limits: &Limits) {
        let task = self.task * limits.position_ratio(dirty) + 1.0;
        let balanced = (task * self.write / dirtied.max(1.0)).min(self.write);
        let step = if dirty < limits.setpoint() {
            (self.balanced.min(balanced).min(task) - self.task).max(0.0)
        } else {
            (self.balanced.max(balanced).max(task) - self.task).min(0.0)
        };
        let shift = (self.task / (2.0 * step.abs() + 1.0)).floor();
        self.task = (self.task + (step * (-shift).exp2() / 8.0)).max(1.0);
        self.balanced = balanced;
    }

    /// `wb_max_pause`: an eighth of the time that it takes to write all that is dirty.
    pub fn max_pause(&self, dirty: u64, tick: f64) -> f64 {
        (dirty as f64 / self.write.max(1.0) / 8.0 + tick).min(MAX_PAUSE)
    }

    /// `wb_min_pause`: no pause is shorter, and after how many pages the next one is due.
    pub fn min_pause(&self, max_pause: f64, task: f64, tick: f64) -> (f64, u64) {
        let others = (self.write.log2().floor() - self.task.log2().floor()).max(0.0);
        let mut time = (0.01 + others * 10.0 / 1024.0).max(tick).min(tick + max_pause / 2.0);
        let mut pages = self.task * time;
        if pages < POLL_PAGES {
            time = max_pause;
            pages = self.task * time;
            if pages > POLL_PAGES {
                (pages, time) = (POLL_PAGES, POLL_PAGES / self.task);
            }
        }
        if pages / (task + 1.0) > max_pause {
            (time, pages) = (max_pause, task * max_pause);
        }
        (if pages >= POLL_PAGES { tick + time / 2.0 } else { time }, (pages as u64).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { background: 1000, most: 2000 };

    #[test]
    fn the_factor_is_two_where_nobody_pauses_one_at_the_set_point_and_nothing_at_the_limit() {
        assert_eq!(LIMITS.freerun(), 1500);
        assert!(LIMITS.position_ratio(1500) > 1.99);
        assert!((LIMITS.position_ratio(1750) - 1.0).abs() < 1e-9);
        assert_eq!(LIMITS.position_ratio(2000), 0.0);
    }

    #[test]
    fn who_is_far_from_the_limit_asks_after_its_root() {
        assert_eq!(LIMITS.poll_interval(2000 - 1024), 32);
        assert_eq!(LIMITS.poll_interval(2000), 1);
    }

    #[test]
    fn what_gets_dirty_becomes_as_much_as_is_written_and_stays_under_the_limit() {
        let (mut rates, mut counts) = (Rates::new(100.0, 1), Counts::default());
        for turn in 1..400_u64 {
            let dirty = 1500 + counts.dirtied - counts.written;
            let task = rates.task * LIMITS.position_ratio(dirty);
            counts.dirtied += (4.0 * task * INTERVAL) as u64; // four tasks, each at its rate
            counts.written += (100.0 * INTERVAL) as u64;
            rates.update(turn as f64 * INTERVAL, counts, dirty, &LIMITS);
            assert!(dirty < LIMITS.most);
        }
        let task = rates.task * LIMITS.position_ratio(1500 + counts.dirtied - counts.written);
        assert!((20.0..30.0).contains(&task), "a quarter of the device each: {task}");
    }

    #[test]
    fn a_pause_is_short_while_little_is_dirty_and_never_longer_than_a_fifth_of_a_second() {
        let rates = Rates::new(25_600.0, 1);
        assert!(rates.max_pause(256, 0.004) < 0.006);
        assert_eq!(rates.max_pause(1 << 20, 0.004), MAX_PAUSE);
        let (pause, pages) = rates.min_pause(MAX_PAUSE, 25_600.0, 0.004);
        assert!((0.008..0.010).contains(&pause) && pages == 256, "10 ms of one dd: {pause} {pages}");
    }
}
