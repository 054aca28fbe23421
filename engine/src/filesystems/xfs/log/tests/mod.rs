//! Rules of the AIL's thread and of space in the log, on the native machine: a small mounted filesystem whose costs are all 100 ns, on a
//! device that needs 2 ms to write.

mod directories;
mod eras;

use super::ail::Subject;
use super::buffer::Buffer;
use super::grant::{GrantHead, TR_CREATE, TR_ICHANGE};
use super::{Item, Logged};
use crate::devices::BlockDevice;
use crate::filesystems::costs::Costs;
use crate::filesystems::testing::{built, device, spec, MS};
use crate::filesystems::xfs::buffer_hash::Prices;
use crate::filesystems::xfs::mount::Xfs;
use crate::filesystems::xfs::operations::file_io::{BufferedIo, Rules};
use crate::filesystems::xfs::structures::geometry::Geometry;
use crate::kernel::Rules as KernelRules;
use crate::machine::{Context, Native};
use crate::memory::Lru;
use crate::spec::RunSpec;
use crate::waist::time::from_ns;
use crate::waist::{Host, LineId, Machine, Placement, SpawnKind, Time};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;

/// A filesystem whose costs are whatever it asks for, at 100 each.
fn build(m: &Context, spec: &RunSpec, device: &Rc<BlockDevice>, kernel: KernelRules, log_su: Option<u64>) -> Xfs {
    let geometry = Geometry::with_log(1 << 30, None, Some(10 << 20)).expect("mkfs makes it");
    built(&mut BTreeMap::from([("cil_limit_mib".into(), 1.0)]), |table| {
        let rules = Rules {
            buffered: BufferedIo::Locked,
            range_lock: None,
            unlocked: false,
            logbsize: None,
            log_su,
            tick: 4 * MS,
            rehash: Prices::default(),
        };
        let costs = Costs::new(vec![table], 1.0, kernel, 0).with_lists(Lru::new(m, spec));
        Xfs::new(m, &geometry, device.clone(), rules, &costs)
    })
}

/// Runs `test` beside the threads of a filesystem; it has to end.
fn mounted<F: Future<Output = ()> + 'static>(
    duration: Time,
    test: impl FnOnce(Context, Rc<Xfs>) -> F + 'static,
) -> Native {
    mounted_on(KernelRules::default(), duration, test)
}

/// The same with a log of this stripe unit.
fn striped<F: Future<Output = ()> + 'static>(log_su: Option<u64>, test: impl FnOnce(Context, Rc<Xfs>) -> F + 'static) {
    mounted_as(KernelRules::default(), log_su, 100 * MS, test);
}

fn mounted_on<F: Future<Output = ()> + 'static>(
    rules: KernelRules,
    duration: Time,
    test: impl FnOnce(Context, Rc<Xfs>) -> F + 'static,
) -> Native {
    mounted_as(rules, None, duration, test)
}

fn mounted_as<F: Future<Output = ()> + 'static>(
    rules: KernelRules,
    log_su: Option<u64>,
    duration: Time,
    test: impl FnOnce(Context, Rc<Xfs>) -> F + 'static,
) -> Native {
    let spec = spec(duration);
    let mut native = Native::new(&spec);
    let device = device(&mut native, &spec, rules);
    let fs = Rc::new(native.setup(|m| build(m, &spec, &device, rules, log_su)));
    fs.start(&mut native, 4 * MS);
    let done = Rc::new(Cell::new(false));
    let ended = done.clone();
    native.spawn(Placement::Pinned(3), SpawnKind::Foreground, move |m| async move {
        test(m, fs).await;
        ended.set(true);
    });
    let outcome = native.run(&spec);
    assert!(outcome.stall.is_none() && outcome.broken.is_empty(), "{outcome:?}");
    assert!(done.get(), "the test did not come to its end in {} ms", duration / MS);
    native
}

/// A transaction that changes what `items` tells.
async fn change(m: &Context, fs: &Xfs, logged: Logged) {
    let ticket = fs.log.reserve(m, TR_ICHANGE).await;
    fs.log.commit(m, logged).await;
    fs.log.committed(m, ticket).await;
}

/// Puts what was committed onto disk.
async fn checkpoint(m: &Context, fs: &Xfs) {
    fs.log.checkpoints.flush(m).await;
    m.sleep(10 * MS).await;
}

/// Where in the list an item is.
fn position(fs: &Xfs, item: Item) -> Option<u64> {
    let wanted = match item {
        Item::Inode { line, .. } => line,
        Item::Buffer(buffer) => buffer.lines,
    };
    let (ail, mut cursor) = (fs.log.ail.borrow(), super::ail::Cursor::default());
    std::iter::from_fn(|| ail.next(&mut cursor)).find_map(|(id, lsn)| {
        let lines = match ail.subject(id) {
            Subject::Inode { line, .. } => line,
            Subject::Buffer(buffer) => buffer.lines,
            Subject::Former(_) => return None,
        };
        (lines == wanted).then_some(lsn)
    })
}

fn buffers(fs: &Xfs) -> (Buffer, Buffer) {
    let group = fs.group_of(fs.directory(0).ino);
    (group.agi, group.inobt)
}

#[test]
fn who_logs_a_cluster_copies_what_has_changed_since_it_was_written() {
    mounted(300 * MS, |m, fs| async move {
        let copies = |buffers: &[Buffer]| fs.clusters.logging(&m, buffers, 0) / from_ns(100.0);
        for agino in [64, 65, 65] {
            fs.clusters.change(&m, 0, agino);
        }
        let (one, other) = (fs.clusters.of(&m, 0, 64), fs.clusters.change(&m, 1, 64));
        assert_eq!(copies(&[one, other]), 3, "an inode counts once");
        change(&m, &fs, Logged::default().buffers(&[one])).await;
        checkpoint(&m, &fs).await;
        assert_eq!(copies(&[one, other]), 3, "the log has it, its place has not");
        fs.log.pusher.push_all(&m);
        m.sleep(100 * MS).await;
        assert_eq!(copies(&[one, other]), 1);
    });
}

#[test]
fn a_buffer_that_is_locked_is_passed_by_and_tried_again() {
    mounted(300 * MS, |m, fs| async move {
        let (agi, inobt) = buffers(&fs);
        change(&m, &fs, Logged::default().buffers(&[agi, inobt])).await;
        checkpoint(&m, &fs).await;
        agi.lock(&m).await;
        fs.log.pusher.push_all(&m);
        m.sleep(10 * MS).await;
        assert!(position(&fs, agi.item()).is_some() && position(&fs, inobt.item()).is_none());
        agi.unlock(&m).await;
        m.sleep(100 * MS).await;
        assert!(fs.log.ail.borrow().is_empty());
    });
}

#[test]
fn what_is_pinned_has_the_cil_written_though_it_is_not_full() {
    mounted(300 * MS, |m, fs| async move {
        let (agi, _) = buffers(&fs);
        change(&m, &fs, Logged::default().buffers(&[agi])).await;
        checkpoint(&m, &fs).await;
        let first = position(&fs, agi.item());
        change(&m, &fs, Logged::default().buffers(&[agi])).await;
        m.sleep(100 * MS).await;
        assert_eq!(position(&fs, agi.item()), first, "nobody has asked for it");
        fs.log.pusher.push_all(&m);
        m.sleep(100 * MS).await;
        assert!(position(&fs, agi.item()) > first);
    });
}

#[test]
fn the_device_holds_a_buffer_while_it_is_written() {
    let native = mounted(100 * MS, |m, fs| async move {
        let (agi, _) = buffers(&fs);
        change(&m, &fs, Logged::default().buffers(&[agi])).await;
        checkpoint(&m, &fs).await;
        fs.log.pusher.push_all(&m);
        m.sleep(MS / 2).await;
        let asked = m.now();
        agi.lock(&m).await;
        assert!((MS..2 * MS).contains(&(m.now() - asked)), "a write takes 2 ms");
        agi.unlock(&m).await;
        assert!(fs.log.ail.borrow().is_empty());
    });
    let device: Time = native
        .state()
        .classes
        .iter()
        .filter(|c| c.name == "xfs.AGI")
        .map(|c| c.held.iter().map(|h| h.device).sum::<Time>())
        .sum();
    assert!((2 * MS..3 * MS).contains(&device));
}

#[test]
fn a_clean_inode_waits_for_its_cluster_under_write_and_a_dirty_one_does_not() {
    mounted(200 * MS, |m, fs| async move {
        let Item::Inode { cluster, .. } = fs.directory(0).item() else { unreachable!() };
        let [dirty, clean] =
            [0, 1].map(|_| Item::Inode { line: m.new_line("xfs.inode", 1), cluster, times_only: false });
        change(&m, &fs, Logged::items([dirty])).await;
        checkpoint(&m, &fs).await;
        for (item, waits) in [(dirty, false), (clean, true)] {
            fs.log.pusher.push_all(&m);
            m.sleep(MS / 2).await;
            let asked = m.now();
            change(&m, &fs, Logged::items([item])).await;
            assert_eq!(m.now() - asked > MS, waits, "{} us", (m.now() - asked) / 1_000_000);
            m.sleep(5 * MS).await;
            assert_eq!(position(&fs, dirty), None, "as it was flushed, it is on disk");
            checkpoint(&m, &fs).await;
            assert!(position(&fs, item).is_some(), "what was logged meanwhile is not");
        }
    });
}

#[test]
fn the_tail_of_the_log_is_the_oldest_item_that_no_later_checkpoint_has() {
    mounted(100 * MS, |m, fs| async move {
        let (agi, inobt) = buffers(&fs);
        let mut spaces = Vec::new();
        for logged in [agi, inobt, agi, inobt] {
            change(&m, &fs, Logged::default().buffers(&[logged])).await;
            checkpoint(&m, &fs).await;
            spaces.push(fs.log.ail.borrow().tail_space());
        }
        let one = spaces[0];
        assert_eq!(spaces, [one, 2 * one, 2 * one, 2 * one]);
        assert_eq!(fs.log.grants.granted(), 0);
    });
}

#[test]
fn a_write_of_the_log_takes_whole_stripe_units_and_transactions_reserve_two_more() {
    let mut reserved = Vec::new();
    // a header of 512 bytes, a buffer's 180 and the commit record's 128
    for (log_su, written) in [(None, 1024), (Some(4 << 10), 4 << 10), (Some(64 << 10), 64 << 10)] {
        let bytes = Rc::new(Cell::new(0));
        let ticket = bytes.clone();
        striped(log_su, move |m, fs| async move {
            let (agi, _) = buffers(&fs);
            for _ in 0..2 {
                change(&m, &fs, Logged::default().buffers(&[agi])).await;
                checkpoint(&m, &fs).await;
                assert_eq!(fs.log.ail.borrow().tail_space(), written);
                assert_eq!(fs.log.grants.granted(), 0);
            }
            let reserving = fs.log.reserve(&m, TR_ICHANGE).await;
            ticket.set(reserving.bytes());
            fs.log.grants.sub(reserving.bytes());
        });
        reserved.push(bytes.get());
    }
    assert_eq!(reserved[1] - reserved[0], 2 * (4096 - 512));
    assert_eq!(reserved[2] - reserved[0], 2 * (65536 - 512));
}

#[test]
fn a_transaction_sleeps_while_others_have_reserved_the_whole_log() {
    mounted(100 * MS, |m, fs| async move {
        let mut tickets = Vec::new();
        for _ in 0..23 {
            tickets.push(fs.log.reserve(&m, TR_CREATE).await); // 430 KiB each
        }
        let granted = Rc::new(Cell::new(None));
        let (other, seen) = (fs.clone(), granted.clone());
        m.spawn(Placement::Anywhere, SpawnKind::Foreground, move |m| async move {
            let ticket = other.log.reserve(&m, TR_CREATE).await;
            seen.set(Some(m.now()));
            other.log.grants.sub(ticket.bytes());
        });
        m.sleep(20 * MS).await;
        assert_eq!(granted.get(), None);
        let last = tickets.pop().expect("there are 23");
        let freed = m.now();
        fs.log.grants.sub(last.bytes());
        fs.log.space_wake(&m).await;
        m.sleep(MS).await;
        assert!(granted.get().is_some_and(|at| at >= freed));
        tickets.iter().for_each(|ticket| fs.log.grants.sub(ticket.bytes()));
    });
}

#[test]
fn who_waits_for_log_space_gets_it_in_order_and_a_small_one_does_not_pass_a_large_one() {
    let spec = spec(20 * MS);
    let mut native = Native::new(&spec);
    let (head, free) = (Rc::new(native.setup(|m| GrantHead::new(m, 1))), Rc::new(Cell::new(0u64)));
    let order = Rc::new(RefCell::new(Vec::new()));
    for (number, bytes) in [5, 1, 1].into_iter().enumerate() {
        let (head, free, order) = (head.clone(), free.clone(), order.clone());
        native.spawn(Placement::Pinned(number as u32), SpawnKind::Foreground, move |m| async move {
            m.sleep(number as Time * MS).await;
            head.check(&m, bytes, || free.get(), |_| ()).await;
            free.set(free.get() - bytes);
            order.borrow_mut().push(number);
        });
    }
    let waiting = order.clone();
    native.spawn(Placement::Pinned(3), SpawnKind::Foreground, move |m| async move {
        m.sleep(5 * MS).await;
        for (more, admitted) in [(4, vec![]), (2, vec![0, 1]), (1, vec![0, 1, 2])] {
            free.set(free.get() + more);
            head.space_wake(&m, || free.get(), |_| ()).await;
            m.sleep(MS).await;
            assert_eq!(*waiting.borrow(), admitted);
        }
    });
    let outcome = native.run(&spec);
    assert!(outcome.stall.is_none() && outcome.broken.is_empty(), "{outcome:?}");
    assert_eq!(*order.borrow(), [0, 1, 2]);
}

/// Forces the context that has an item from a task of its own; when that ended is put into what is returned, with whether it wrote.
fn force_from(m: &Context, fs: &Rc<Xfs>, lines: LineId, cpu: u32) -> Rc<Cell<Option<bool>>> {
    let wrote = Rc::new(Cell::new(None));
    let (seen, fs) = (wrote.clone(), fs.clone());
    m.spawn(Placement::Pinned(cpu), SpawnKind::Foreground, move |m| async move {
        let sequence = fs.log.ail.borrow().pinned_by(lines).expect("it is pinned");
        seen.set(Some(fs.log.checkpoints.force(&m, sequence).await));
    });
    wrote
}

#[test]
fn who_forces_the_log_waits_for_the_pushes_before() {
    mounted(300 * MS, |m, fs| async move {
        let (agi, _) = buffers(&fs);
        let pushes = &fs.log.checkpoints.pushes;
        pushes.begin(0); // a worker that has not returned
        change(&m, &fs, Logged::default().buffers(&[agi])).await;
        let forced = force_from(&m, &fs, agi.lines, 2);
        m.sleep(20 * MS).await;
        assert!(forced.get().is_none() && position(&fs, agi.item()).is_none());
        pushes.end(&m, 0).await;
        m.sleep(20 * MS).await;
        assert!(forced.get().is_some() && position(&fs, agi.item()).is_some());
    });
}

#[test]
fn of_two_who_force_the_same_buffer_one_writes_it() {
    mounted(300 * MS, |m, fs| async move {
        let (agi, _) = buffers(&fs);
        change(&m, &fs, Logged::default().buffers(&[agi])).await;
        let forced = [1, 2].map(|cpu| force_from(&m, &fs, agi.lines, cpu));
        m.sleep(50 * MS).await;
        let wrote: Vec<_> = forced.iter().filter_map(|one| one.get()).collect();
        assert_eq!((wrote.len(), wrote.iter().filter(|wrote| **wrote).count()), (2, 1));
    });
}
