use super::*;

fn none() -> Touches {
    Touches::default()
}

#[test]
fn near_takes_the_block_before_a_gap_when_that_is_nearer() {
    let mut space = FreeSpace::new(0, 6, 1000);
    assert!(space.alloc_exact(16, &Request { alignment: 1, ..Request::of(8) }, &mut none()));
    assert_eq!(space.alloc_near(16, &Request::of(1), &mut none()), Some(15));
    assert_eq!(space.alloc_near(20, &Request::of(1), &mut none()), Some(24));
    space.check().unwrap();
}

#[test]
fn many_holes_split_both_trees_from_the_free_list() {
    let mut space = FreeSpace::new(0, 6, 20_000);
    for block in (20..19_000).step_by(2) {
        assert!(space.alloc_exact(block, &Request::of(1), &mut none()), "block {block}");
        if block % 500 == 0 {
            space.check().unwrap();
        }
    }
    assert!(space.shapes()[0][0] == 2 && space.btree_blocks() > 30, "{:?}", space.shapes());
    for block in (20..19_000).step_by(2) {
        space.free(Extent { start: block, len: 1 }, &mut none());
    }
    space.check().unwrap();
    assert_eq!(space.shapes()[0][0], 1);
}

#[test]
fn a_reservation_is_not_for_others() {
    let mut space = FreeSpace::new(0, 6, 110);
    space.reserve(90);
    assert_eq!(space.free_blocks(), 100);
    assert_eq!(space.alloc_near(50, &Request::of(11), &mut none()), None);
    assert!(space.alloc_near(50, &Request::of(10), &mut none()).is_some());
}
