//! A lock that is made when it is first taken is one that was there before: its line, its number, what is counted of it.

use super::common;
use serde_json::json;
use simfs_engine::machine::Native;
use simfs_engine::waist::{Access, Account, Host, Machine, Placement, Side, SpawnKind, Time};
use std::cell::RefCell;
use std::rc::Rc;

const US: Time = 1_000_000;

/// Three tasks use the lines of five locks of one class, and take two of the locks now and then. When, with the transfers of the
/// lines, the longest hold, and how many locks there are.
fn story(kind: &str, seldom: bool) -> (Vec<Time>, Vec<(u64, Time)>, u64) {
    let locks = json!({"kernel": {"locks": {"d_lock": kind}}, "machine": {"costs": common::real_costs()}});
    let spec = common::spec(3, &locks);
    let mut native = Native::new(&spec);
    let (story, made) = (Rc::<RefCell<Vec<Time>>>::default(), Rc::<RefCell<Vec<u32>>>::default());
    for cpu in 0..3 {
        let (story, made) = (story.clone(), made.clone());
        native.spawn(Placement::Pinned(cpu), SpawnKind::Foreground, move |m| async move {
            if made.borrow().is_empty() {
                let class = m.class("d_lock", "d_lock");
                let new = |_| if seldom { m.new_seldom_lock(class) } else { m.new_lock(class) };
                *made.borrow_mut() = (0..5).map(new).collect();
            }
            for turn in 0..200_usize {
                let lock = made.borrow()[(turn * (cpu as usize + 1)) % 5];
                if turn > 60 && lock % 5 < 2 {
                    let taken = if seldom { m.seldom_lock(lock) } else { lock };
                    m.lock(taken, Side::Write).await;
                    m.run(Account::System, US / 3).await;
                    m.unlock(taken, Side::Write).await;
                } else if seldom {
                    m.touch_seldom(lock, Access::Atomic);
                } else {
                    m.touch_beside(lock, Access::Atomic);
                }
                m.run(Account::System, US / 5).await;
                story.borrow_mut().push(m.now());
            }
        });
    }
    let outcome = native.run(&spec);
    assert!(outcome.broken.is_empty() && outcome.stall.is_none(), "{outcome:?}");
    let state = native.state();
    let instances = state.classes.iter().map(|class| class.instances).sum();
    (story.take(), state.transfers_and_busiest_by_class(), instances)
}

#[test]
fn who_takes_it_finds_the_line_that_others_used() {
    for kind in ["qspinlock", "mutex"] {
        let at_once = story(kind, false);
        assert!(
            at_once.1.iter().any(|&(transfers, busiest)| transfers > 100 && busiest > 0),
            "{kind}: {:?}",
            at_once.1
        );
        assert_eq!(story(kind, true), at_once, "{kind}");
    }
}
