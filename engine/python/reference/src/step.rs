//! What a program leaves for Python to do, and the words for it.
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use simfs_engine::waist::{Access, Account, GracePeriod, LockId, Mode, Side, SpawnKind, Time};

/// What a program asks for that takes simulated time.
#[derive(Clone, Copy)]
pub(super) enum Step {
    Run(Account, Time),
    RunTurns(u64, Time, Time),
    Lock(LockId, Side),
    TryLockSpinning(LockId, Side),
    Unlock(LockId, Side),
    Convert(LockId, Side, Mode),
    WaitFor(LockId),
    WaitForWork(LockId),
    Complete(LockId),
    Sleep(Time),
    Park,
    Rest,
    Exec,
    CondResched,
    MightSleep,
    ExitToUserMode,
}

impl Step {
    pub(super) fn into_tuple(self, py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        match self {
            Self::Run(account, time) => ("run", account_word(account), time).into_pyobject(py),
            Self::RunTurns(count, user, kernel) => ("run_turns", count, user, kernel).into_pyobject(py),
            Self::Lock(lock, side) => ("lock", lock, side_word(side)).into_pyobject(py),
            Self::TryLockSpinning(lock, side) => ("try_lock_spinning", lock, side_word(side)).into_pyobject(py),
            Self::Unlock(lock, side) => ("unlock", lock, side_word(side)).into_pyobject(py),
            Self::Convert(lock, side, mode) => ("convert", lock, side_word(side), mode_word(mode)).into_pyobject(py),
            Self::WaitFor(completion) => ("wait_for", completion).into_pyobject(py),
            Self::WaitForWork(pool) => ("wait_for_work", pool).into_pyobject(py),
            Self::Complete(completion) => ("complete", completion).into_pyobject(py),
            Self::Sleep(time) => ("sleep", time).into_pyobject(py),
            Self::Park => ("park",).into_pyobject(py),
            Self::Rest => ("rest",).into_pyobject(py),
            Self::Exec => ("exec",).into_pyobject(py),
            Self::CondResched => ("cond_resched",).into_pyobject(py),
            Self::MightSleep => ("might_sleep",).into_pyobject(py),
            Self::ExitToUserMode => ("exit_to_user_mode",).into_pyobject(py),
        }
    }
}

pub(super) fn side_word(side: Side) -> &'static str {
    match side {
        Side::Read => "read",
        Side::Write => "write",
    }
}

pub(super) fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Spinning => "spinning",
        Mode::Blocking => "blocking",
    }
}

pub(super) fn spawn_kind_word(spawn_kind: SpawnKind) -> &'static str {
    match spawn_kind {
        SpawnKind::Foreground => "foreground",
        SpawnKind::Helper => "helper",
        SpawnKind::Setup => "setup",
        SpawnKind::Background => "background",
    }
}

pub(super) fn grace_period_word(step: GracePeriod) -> &'static str {
    match step {
        GracePeriod::Wanted => "wanted",
        GracePeriod::Begin => "begin",
        GracePeriod::Passed => "passed",
        GracePeriod::Force => "force",
        GracePeriod::End => "end",
    }
}

pub(super) fn word_of(access: Access) -> &'static str {
    match access {
        Access::Read => "read",
        Access::Store => "store",
        Access::Write => "write",
        Access::Atomic => "atomic",
    }
}

fn account_word(account: Account) -> &'static str {
    match account {
        Account::User => "user",
        Account::System => "system",
        Account::Spin => "spin",
        Account::Switch => "switch",
        Account::Irq => "irq",
        Account::Idle => "idle",
    }
}
