//! Requests: what they ask for, and what their end does.

use super::flush::Step;
use crate::waist::{CpuId, LockId, Span};
use crate::workqueue::Workqueue;
use std::rc::Rc;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // bytes, where on the device, how many of them nobody wrote before, and the flags of the block layer
pub enum Request {
    /// A read.
    Read { bytes: u32, at: Place },
    /// A write.
    Write { bytes: u32, at: Place, first: u32 },
    /// `REQ_OP_FLUSH`: what ended before it is safe.
    Flush,
    /// A write with `REQ_PREFLUSH`, what ended before it is safe first, or `REQ_FUA`, it is safe itself when it ends.
    LogWrite { bytes: u32, at: Place, preflush: bool, fua: bool },
}

impl Request {
    /// A write over what was written before.
    pub fn write(bytes: u32, at: Place) -> Self {
        Self::Write { bytes, at, first: 0 }
    }

    /// How much is read or written.
    pub fn bytes(self) -> u32 {
        match self {
            Self::Read { bytes, .. } | Self::Write { bytes, .. } | Self::LogWrite { bytes, .. } => bytes,
            Self::Flush => 0,
        }
    }

    /// Where it is, if that is known.
    pub fn span(self) -> Option<Span> {
        match self {
            Self::Read { bytes, at } => Some(Span { at: at?, bytes, write: false }),
            Self::Write { bytes, at, .. } | Self::LogWrite { bytes, at, .. } => {
                Some(Span { at: at?, bytes, write: true })
            }
            Self::Flush => None,
        }
    }

    /// The two as one, if they are neighbours and ask for the same.
    pub fn with(self, other: Self) -> Option<Self> {
        let Span { at, bytes, .. } = self.span()?.with(other.span()?)?;
        match (self, other) {
            (Self::Read { .. }, Self::Read { .. }) => Some(Self::Read { bytes, at: Some(at) }),
            (Self::Write { first, .. }, Self::Write { first: further, .. }) => {
                Some(Self::Write { bytes, at: Some(at), first: first + further })
            }
            _ => None,
        }
    }

    /// Whether what ended before it has to be safe first.
    pub fn flushes(self) -> bool {
        matches!(self, Self::Flush | Self::LogWrite { preflush: true, .. })
    }

    /// What is left of it when that is so.
    pub fn after_flush(self) -> Option<Self> {
        match self {
            Self::Flush => None,
            Self::LogWrite { bytes, at, fua, .. } => Some(Self::LogWrite { bytes, at, preflush: false, fua }),
            Self::Read { .. } | Self::Write { .. } => Some(self),
        }
    }
}

/// What a work item is about, and what its end completes if its owner has use for that.
pub type Work = (u32, LockId);

/// What the end of a request does.
#[derive(Clone, Debug)]
pub enum End {
    /// Completes a completion.
    Complete(LockId),
    /// Completes a completion and releases a lock that the device was handed.
    Unlock(LockId, LockId),
    /// Queues a work item on the CPU where the request ends.
    Queue(Rc<Workqueue<Work>>, Work),
    /// Does both, first the item, without anything to complete (`end_bbio_data_write`, which queues the end of the ordered extent).
    Both(Rc<Workqueue<Work>>, Work),
}

/// Nothing to complete.
pub const NOTHING: LockId = LockId::MAX;

/// What a request is part of.
#[derive(Debug)]
pub enum Part {
    Alone(End),
    /// It is several, which were neighbours.
    Merged(Vec<End>),
    Sequence(StepOf),
}

impl Part {
    /// Another one became part of it.
    pub fn add(&mut self, end: End) {
        match self {
            Self::Merged(ends) => ends.push(end),
            Self::Alone(first) => *self = Self::Merged(vec![first.clone(), end]),
            Self::Sequence(_) => unreachable!("what is ordered by flushes is not plugged"),
        }
    }
}

/// A step of a sequence, of the flush queue with this number.
pub type StepOf = (CpuId, Step);

/// What `kblockd` does: it issues a step of a sequence, or goes on with one after the interrupt that ended a step.
#[derive(Debug)]
pub enum Job {
    Issue(StepOf),
    Ended(StepOf),
}

/// Where a request is on a disk: so many bytes from the beginning of a file, or anywhere. Files are taken to lie over each
/// other at the beginning of the disk.
pub type Place = Option<u64>;
