//! Rules of time keeping.

use super::choice::choice;

choice! {
    /// How exact the timers of the wheel are (`kernel/time/timer.c`).
    pub enum Wheel {
        /// To the tick: far ones cascade down to wheels of shorter ticks.
        Cascading = "cascading",
        /// To the granule of their level, and never early: the next granule begins.
        Levels = "levels",
    }
}
