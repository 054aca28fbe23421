//! The loads that have asked for a line, where a load may take a modified line from its owner.

use crate::waist::time::Time;
use crate::waist::CpuId;

/// A load that has asked for the line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub to: CpuId,
    /// When it has it.
    pub at: Time,
    /// It takes the line, so that the next instruction may write to it.
    pub takes: bool,
}

/// Those of one line, in the order in which it comes to them.
#[derive(Clone, Debug, Default)]
pub(super) struct Coming(Vec<Load>);

impl Coming {
    /// One more, asked for at `now`; those before that are over.
    pub fn push(&mut self, now: Time, load: Load) {
        self.0.retain(|load| load.at >= now);
        self.0.push(load);
    }

    /// Whether the line has come to `cpu` just now by a load that takes it.
    pub fn has_just_come(&self, cpu: CpuId, now: Time) -> bool {
        self.0.iter().any(|load| load.to == cpu && load.at == now && load.takes)
    }

    /// The first that is served after `now`.
    pub fn next(&mut self, now: Time) -> Option<&mut Load> {
        self.0.iter_mut().find(|load| load.at > now)
    }

    /// To whom it comes last.
    pub fn last(&self) -> Option<CpuId> {
        self.0.last().map(|load| load.to)
    }
}
