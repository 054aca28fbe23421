//! When a timer of the wheel rings.

use crate::kernel::time::Wheel;
use crate::waist::time::Time;

/// Each level has granules eight times as long as the one below, and 64 of them; the last is for all longer timeouts.
const SHIFT: u64 = 3;
const LAST: u64 = 8;

/// When a timer rings that is armed `now` for so many jiffies (ticks of this length).
///
/// Levels: the granule in which it expires has to be over (`calc_wheel_index`, `calc_index`, Linux 4.8 to 6.18), so that one
/// jiffy ends with the second tick. Cascading: the tick at which it expires (`internal_add_timer`, Linux 3.6), which for none
/// is the next one too; the slack of `mod_timer`, 0.4 % of timeouts of 256 jiffies and more, is left out.
pub fn rings(wheel: Wheel, now: Time, jiffies: u64, tick: Time) -> Time {
    let this = now / tick;
    let expires = this + jiffies;
    let rings = match wheel {
        Wheel::Cascading => expires.max(this + 1),
        Wheel::Levels => {
            let level = (0..LAST).find(|level| jiffies < 63 << (SHIFT * level)).unwrap_or(LAST);
            ((expires >> (SHIFT * level)) + 1) << (SHIFT * level)
        }
    };
    rings * tick
}
