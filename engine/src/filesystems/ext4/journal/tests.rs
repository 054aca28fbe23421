//! What of a commit an `fsync` sees, on a device that needs 2 ms to write.

use super::space::Space;
use super::{credits, Block, Journal};
use crate::filesystems::costs::Costs;
use crate::filesystems::testing::{built, device, spec, MS};
use crate::kernel::ext4::TransactionSize;
use crate::kernel::Rules;
use crate::machine::Native;
use crate::spec::RunSpec;
use crate::waist::time::from_ns;
use crate::waist::{Host, Machine, Placement, SpawnKind};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A journal on a device that needs 2 ms to write, and its thread on CPU 0.
fn journal(spec: &RunSpec) -> (Native, Rc<Journal>) {
    let mut native = Native::new(spec);
    let device = device(&mut native, spec, Rules::default());
    let journal = Rc::new(native.setup(|m| {
        built(&mut BTreeMap::new(), |table| {
            let beside = m.new_lock(m.class("ext4.orphan lock", "ext4.orphan"));
            let costs = Costs::new(vec![table], 1.0, Rules::default(), 0);
            Journal::new(m, true, 1 << 30, beside, device.clone(), &costs)
        })
    }));
    let thread = journal.clone();
    native.spawn(Placement::Pinned(0), SpawnKind::Background, move |m| async move {
        thread.thread(&m, 1000, |_| async {}).await;
    });
    (native, journal)
}

#[test]
fn the_device_is_still_to_be_flushed_until_the_commit_record_is_written() {
    let spec = spec(20 * MS);
    let (mut native, journal) = journal(&spec);
    let (syncer, looks) = (journal.clone(), Rc::new(RefCell::new(Vec::new())));
    native.spawn(Placement::Pinned(1), SpawnKind::Foreground, move |m| async move {
        let handle = syncer.start(&m, credits::INODE).await;
        let transaction = syncer.stop(&m, handle, &[Block::Extents(1)]).await;
        syncer.sync(&m, transaction).await;
    });
    let seen = looks.clone();
    native.spawn(Placement::Pinned(2), SpawnKind::Foreground, move |m| async move {
        for _ in 0..3 {
            m.sleep(MS).await; // 1 ms: the log is being written; 3 ms: the record is; 5 ms: it is on disk
            let will = (journal.will_send_data_barrier(&m, 1).await, journal.will_send_data_barrier(&m, 2).await);
            seen.borrow_mut().push(will);
            m.sleep(MS).await;
        }
    });
    let outcome = native.run(&spec);
    assert!(outcome.stall.is_none() && outcome.broken.is_empty(), "{outcome:?}");
    assert_eq!(*looks.borrow(), [(true, true), (false, true), (false, true)]);
}

#[test]
fn blocks_are_closed_to_handles_one_after_the_other() {
    let spec = spec(20 * MS);
    let (mut native, journal) = journal(&spec);
    let blocks: Vec<_> = (0..100).map(Block::Extents).collect();
    let (first, last) = (blocks[0], blocks[99]);
    let (syncer, waits) = (journal.clone(), Rc::new(RefCell::new(Vec::new())));
    native.spawn(Placement::Pinned(1), SpawnKind::Foreground, move |m| async move {
        let handle = syncer.start(&m, credits::INODE).await;
        let transaction = syncer.stop(&m, handle, &blocks).await;
        syncer.sync(&m, transaction).await;
    });
    let seen = waits.clone();
    native.spawn(Placement::Pinned(2), SpawnKind::Foreground, move |m| async move {
        while !journal.shadow.get().covers(1, 0) {
            m.sleep(from_ns(10.0)).await;
        }
        let mut handle = journal.start(&m, credits::INODE).await;
        for block in [last, first] {
            let asked = m.now();
            journal.get_write_access(&m, &mut handle, &[block]).await;
            seen.borrow_mut().push(m.now() - asked > MS);
        }
        journal.stop(&m, handle, &[]).await;
    });
    let outcome = native.run(&spec);
    assert!(outcome.stall.is_none() && outcome.broken.is_empty(), "{outcome:?}");
    assert_eq!(*waits.borrow(), [false, true], "only the first is on its way to the log");
}

#[test]
fn a_transaction_may_have_a_third_of_the_log_since_6_11() {
    let most = |largest| Space::of(1 << 30, largest).most;
    assert_eq!(most(TransactionSize::Quarter), 8192 / 4);
    assert_eq!(most(TransactionSize::Third), 8192 / 3);
}

#[test]
fn half_of_a_transaction_is_reserved_and_who_gives_credits_back_wakes_all_who_wait() {
    let spec = spec(20 * MS);
    let (mut native, journal) = journal(&spec);
    let (room, begun) = (8192 / 3 / 2 / credits::CONVERSION, Rc::new(RefCell::new(0)));
    for _ in 0..room + 4 {
        let (writer, begun) = (journal.clone(), begun.clone());
        native.spawn(Placement::Anywhere, SpawnKind::Foreground, move |m| async move {
            let handle = writer.start_reserving(&m, credits::EXTENT, credits::CONVERSION).await;
            *begun.borrow_mut() += 1;
            writer.stop(&m, handle, &[]).await;
        });
    }
    let (seen, counts) = (Rc::new(RefCell::new(Vec::new())), begun.clone());
    let looks = seen.clone();
    native.spawn(Placement::Anywhere, SpawnKind::Foreground, move |m| async move {
        for _ in 0..2 {
            m.sleep(5 * MS).await;
            looks.borrow_mut().push(*counts.borrow());
            let handle = journal.start_reserved(&m, credits::CONVERSION).await;
            journal.stop(&m, handle, &[]).await;
        }
    });
    let outcome = native.run(&spec);
    assert!(outcome.stall.is_none() && outcome.broken.is_empty(), "{outcome:?}");
    assert_eq!(*seen.borrow(), [room, room + 1]);
}
