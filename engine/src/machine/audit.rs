//! The end of a run for the structures that programs built: no operation begins any more, those that are under way end, and what
//! is there then is compared with what should be. Statistics are taken before.

use super::native::Native;
use super::trace::Object;
use crate::waist::time::Time;
use crate::waist::Witness;
use std::rc::Rc;

/// The law of what filesystems leave behind.
pub const AUDIT: &str = "structures fit the files";

/// How long everything may take to come to rest (ps): 100 s, many commits of a journal or transaction.
const PATIENCE: Time = 100_000_000_000_000;

/// How long it is let go on before the first look; later looks are ten times further apart.
const FIRST_LOOK: Time = 10_000_000;

impl Native {
    /// What is wrong with the structures, if somebody can tell. Time goes on until everything is at rest.
    pub fn audit(&mut self) -> Option<Result<(), String>> {
        let witness = self.witness.clone()?;
        witness.close();
        let resting = self.come_to_rest(&witness);
        Some(resting.and_then(|()| witness.verdict()))
    }

    fn come_to_rest(&mut self, witness: &Rc<dyn Witness>) -> Result<(), String> {
        let begin = self.state().now;
        let mut step = FIRST_LOOK;
        while let Some(what) = witness.under_way().or_else(|| self.held()) {
            let now = self.state().now;
            if now > begin + PATIENCE {
                return Err(format!("100 s after the last operation began there is still under way: {what}"));
            }
            self.run_until(now + step);
            step = (step * 10).min(PATIENCE / 1000);
        }
        Ok(())
    }

    /// A hold of a lock.
    fn held(&self) -> Option<String> {
        let s = self.state();
        let locks = s.locks.iter().enumerate().filter(|(_, lock)| lock.is_held());
        let held = locks.min_by_key(|(_, lock)| lock.number);
        held.map(|(lock, _)| format!("a hold of {}", s.name_of(Object::Lock(lock as u32))))
    }
}
