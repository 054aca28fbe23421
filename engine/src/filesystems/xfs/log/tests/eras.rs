//! What `xfsaild` did before 6.11 and 5.15.

use super::*;
use crate::kernel::xfs::{AilForce, AilTarget, AilTurn};

/// Locks in the list that a turn meets before it gives up, and some more.
const LOCKED: usize = 110;

/// Whether what is in the list is written when so many creates of 430 KiB are reserved of a log of 10 MiB, none of which commits.
fn is_pushed(ail_target: AilTarget, reserved: usize) -> bool {
    let pushed = Rc::new(Cell::new(false));
    let out = pushed.clone();
    mounted_on(KernelRules { ail_target, ..KernelRules::default() }, 300 * MS, move |m, fs| async move {
        let (agi, _) = buffers(&fs);
        change(&m, &fs, Logged::default().buffers(&[agi])).await;
        checkpoint(&m, &fs).await;
        let mut tickets = Vec::new();
        for _ in 0..reserved {
            tickets.push(fs.log.reserve(&m, TR_CREATE).await);
        }
        m.sleep(150 * MS).await;
        out.set(fs.log.ail.borrow().is_empty());
        tickets.iter().for_each(|ticket| fs.log.grants.sub(ticket.bytes()));
    });
    pushed.get()
}

#[test]
fn before_6_11_what_is_reserved_counts_as_used() {
    assert!(!is_pushed(AilTarget::Reservations, 10) && is_pushed(AilTarget::Reservations, 19));
    assert!(!is_pushed(AilTarget::Items, 19), "the list itself holds next to nothing of the log");
}

/// When a buffer was written that the thread comes to in the turn in which it forces the log.
fn written_beside_a_pinned_one(ail_force: AilForce) -> Time {
    let at = Rc::new(Cell::new(0));
    let out = at.clone();
    mounted_on(KernelRules { ail_force, ..KernelRules::default() }, 300 * MS, move |m, fs| async move {
        let (agi, inobt) = buffers(&fs);
        change(&m, &fs, Logged::default().buffers(&[agi, inobt])).await;
        checkpoint(&m, &fs).await;
        change(&m, &fs, Logged::default().buffers(&[agi])).await;
        inobt.lock(&m).await;
        fs.log.pusher.push_all(&m);
        m.sleep(10 * MS).await;
        inobt.unlock(&m).await;
        while position(&fs, inobt.item()).is_some() {
            m.sleep(MS / 10).await;
        }
        out.set(m.now());
    });
    at.get()
}

#[test]
fn before_5_15_the_thread_waits_for_the_log() {
    let later = written_beside_a_pinned_one(AilForce::Waits) - written_beside_a_pinned_one(AilForce::Queues);
    assert!((MS..8 * MS).contains(&later), "a write of the log takes 2 ms: {later}");
}

/// When the first of many locked buffers was written that were unlocked after 1 ms.
fn written_in_the_next_turn(ail_turn: AilTurn) -> Time {
    let at = Rc::new(Cell::new(0));
    let out = at.clone();
    mounted_on(KernelRules { ail_turn, ..KernelRules::default() }, 300 * MS, move |m, fs| async move {
        let all: Vec<_> = (1..=LOCKED as u32 + 30).map(|k| fs.clusters.change(&m, 0, 64 * k)).collect();
        for some in all.chunks(10) {
            change(&m, &fs, Logged::default().buffers(some)).await;
        }
        checkpoint(&m, &fs).await;
        let (agi, _) = buffers(&fs);
        change(&m, &fs, Logged::default().buffers(&[agi])).await; // so the target lies behind them
        checkpoint(&m, &fs).await;
        let locked = &all[30..];
        for buffer in locked {
            buffer.lock(&m).await;
        }
        let begin = m.now();
        fs.log.pusher.push_all(&m);
        m.sleep(MS).await;
        for buffer in locked {
            buffer.unlock(&m).await;
        }
        while position(&fs, locked[0].item()).is_some() {
            m.sleep(MS / 10).await;
        }
        out.set(m.now() - begin);
    });
    at.get()
}

/// Since 6.11 the next turn comes before they are unlocked and before the others are written. So all are stuck, and the one after it comes 20 ms later.
#[test]
fn before_6_11_the_thread_sleeps_10_ms_between_turns() {
    let (pauses, submits) = (written_in_the_next_turn(AilTurn::Pauses), written_in_the_next_turn(AilTurn::Submits));
    assert!((10 * MS..20 * MS).contains(&pauses), "{pauses}");
    assert!((20 * MS..40 * MS).contains(&submits), "{submits}");
}
