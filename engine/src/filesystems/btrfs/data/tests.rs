//! What a file of btrfs knows of its data.

use super::*;

#[test]
fn a_small_file_lies_in_the_tree_until_it_outgrows_it() {
    let mut data = FileData::new(7);
    data.write(0, 9, 7);
    let written = data.write_back(300);
    assert_eq!(written.len(), 1);
    assert_eq!((written[0].bytes, written[0].item.size), (0, 30));
    data.write(9, 4096, 7);
    let written = data.write_back(300);
    assert_eq!((written.len(), written[0].bytes, written[0].item.size), (1, 8192, 53));
    let inline = data.put(Placed { offset: 0, place: 1 << 20, bytes: 8192, generation: 7, unwritten: false });
    assert_eq!(inline.gone.iter().map(|extent| extent.bytes).collect::<Vec<_>>(), [0], "what was inline is no more");
    assert_eq!(data.extents().len(), 1);
}

#[test]
fn writes_one_after_the_other_are_one_extent_and_others_each_their_own() {
    let mut data = FileData::on_disk(1 << 20, 1, |_| 0);
    for offset in [65536, 8192, 0, 4096, 8192] {
        data.write(offset, 4096, 3);
    }
    assert_eq!(data.dirty_pages(), 4);
    let bytes: Vec<u64> = data.write_back(300).iter().map(|extent| extent.bytes).collect();
    assert_eq!(bytes, [3 * 4096, 4096]);
    assert!(data.write_back(300).is_empty());
}

#[test]
fn what_is_written_into_the_middle_of_an_extent_splits_it() {
    let mut data = FileData::on_disk(1 << 20, 1, |_| 1 << 30);
    let written = Placed { offset: 8192, place: 77 << 20, bytes: 4096, generation: 0, unwritten: false };
    let replaced = data.put(written);
    assert_eq!(
        replaced.tail,
        Some(Placed {
            offset: 12288,
            place: (1 << 30) + 12288,
            bytes: (1 << 20) - 12288,
            generation: 0,
            unwritten: false
        })
    );
    assert_eq!(replaced.gone, [], "the rest of it is used");
    let bytes: Vec<u64> = data.extents().iter().map(|extent| extent.bytes).collect();
    assert_eq!(bytes, [8192, 4096, (1 << 20) - 12288]);
    assert_eq!(data.put(Placed { place: 78 << 20, ..written }).gone, [written]);
    let first = data.put(Placed { offset: 0, place: 79 << 20, bytes: 4096, generation: 0, unwritten: false });
    assert_eq!(first.tail.map(|tail| (tail.offset, tail.bytes)), Some((4096, 4096)));
    let second = data.put(Placed { offset: 4096, place: 80 << 20, bytes: 4096, generation: 0, unwritten: false });
    assert_eq!(second.gone, [], "what is left of the whole lies behind");
    let gone: Vec<u64> = data.drop_extents().iter().filter_map(|(_, gone)| gone.map(|gone| gone.bytes)).collect();
    assert_eq!(gone, [4096, 4096, 4096, 1 << 20], "three extents and at last the whole");
}

#[test]
fn all_extents_in_the_range_of_a_write_go_and_the_last_keeps_its_end() {
    let mut next = 0;
    let mut data = FileData::on_disk(64 << 10, 4, |bytes| {
        next += 2 * bytes;
        next
    });
    let before = data.extents().to_vec();
    let written = Placed { offset: 16 << 10, place: 77 << 20, bytes: 40 << 10, generation: 0, unwritten: false };
    let replaced = data.put(written);
    assert_eq!(replaced.gone, before[1..3]);
    let tail = replaced.tail.unwrap();
    assert_eq!((tail.offset, tail.place, tail.bytes), (56 << 10, before[3].place + (8 << 10), 8 << 10));
    assert_eq!(data.extents(), [before[0], written, tail]);
}

#[test]
fn extents_that_are_neighbours_on_disk_have_one_map() {
    let lacks = |gap: u64, in_turns: bool, released: std::ops::Range<u64>| {
        let mut next = 0;
        let mut data = FileData::on_disk(32 << 20, 4, |bytes| {
            next += bytes + gap;
            next - bytes
        });
        let pages = PageCache::of(32 << 20, true).noting_releases();
        released.for_each(|page| assert!(pages.evict(page)));
        data.pages = Some(Rc::new(pages));
        data.in_turns = in_turns;
        data.release_maps();
        data.needs_full_sync()
    };
    assert!(lacks(4096, false, 2000..2100) && lacks(4096, false, 0..1), "the second extent begins at page 2048");
    assert!(!lacks(4096, false, 2100..2200), "no extent begins there");
    assert!(!lacks(0, false, 2000..2100) && lacks(0, false, 0..1));
    assert!(lacks(0, true, 2000..2100), "others' extents lie between");
}

#[test]
fn the_flusher_goes_on_where_it_was_and_who_syncs_begins_with_the_first() {
    let mut data = FileData::default();
    let taken = |extent: Extent| (extent.offset / 4096, extent.bytes / 4096);
    data.write(0, 100 * 4096, 1);
    assert_eq!(data.take_extent(300, 10 * 4096).map(taken), Some((0, 10)));
    data.write(0, 4096, 1);
    let next: Vec<_> = (0..2).filter_map(|_| data.take_extent(300, 60 * 4096).map(taken)).collect();
    assert_eq!(next, [(10, 60), (70, 30)]);
    assert_eq!((data.take_extent(300, 4096).map(taken), data.dirty_pages()), (Some((0, 1)), 0));
    data.write(0, 100 * 4096, 1);
    assert_eq!(data.take_extent(300, 10 * 4096).map(taken), Some((1, 10)));
    assert_eq!(data.write_back(300).into_iter().map(taken).collect::<Vec<_>>(), [(0, 1), (11, 89)]);
}

#[test]
fn a_byte_lies_in_the_extent_that_begins_before_it() {
    let mut next = 0;
    let data = FileData::on_disk(300 << 20, 1, |bytes| {
        next += bytes;
        next - bytes
    });
    let places: Vec<u64> = data.extents().iter().map(|extent| extent.place).collect();
    assert_eq!(places, [0, 128 << 20, 256 << 20], "extents of at most 128 MiB");
    assert_eq!(data.extent_of((128 << 20) + 5).map(|extent| extent.place), Some(128 << 20));
    assert_eq!(data.extent_of(300 << 20), None, "the file has ended");
}

#[test]
fn what_is_logged_or_committed_is_not_logged_again() {
    let mut data = FileData::new(7);
    assert!(data.needs_log(7, 6, 0));
    data.log(7, 1);
    assert!(data.needs_log(7, 6, 0), "the log is on its way");
    assert!(!data.needs_log(7, 6, 1) && !data.needs_log(7, 6, 2));
    data.write(0, 9, 7);
    assert!(data.needs_log(7, 6, 2));
    assert!(data.needs_log(8, 6, 2), "the commit of 7 is on its way");
    assert!(!data.needs_log(8, 7, 2), "the commit of 7 has it on disk");
}

fn written(offset: u64, bytes: u64) -> Extent {
    Extent { item: items::extent(300, offset), offset, place: offset, bytes }
}

#[test]
fn what_is_written_into_the_middle_of_an_allocation_is_an_item_more_on_either_side() {
    let mut data = FileData::preallocated(1 << 20, |_| 1 << 30);
    let change = data.convert(&written(8192, 4096), 3, |_| true);
    assert_eq!(
        (&change.comes[..], &change.goes[..], change.on_disk),
        (&[8192, 12288][..], &[][..], (1 << 30, 1 << 20))
    );
    let kinds: Vec<_> = data.extents().iter().map(|e| (e.offset, e.place - (1 << 30), e.unwritten)).collect();
    assert_eq!(kinds, [(0, 0, true), (8192, 8192, false), (12288, 12288, true)]);
    assert_eq!(data.on_device(), [(1 << 30, 1 << 20)]);
}

#[test]
fn what_is_written_beside_written_parts_of_an_allocation_joins_them() {
    let mut data = FileData::preallocated(16384, |_| 1 << 30);
    let mut write = |offset, in_leaf: bool| {
        let change = data.convert(&written(offset, 4096), 3, |_| in_leaf);
        (change.comes.to_vec(), change.goes.to_vec(), data.extents().len())
    };
    assert_eq!(write(0, true), (vec![4096], vec![], 2));
    assert_eq!(write(4096, true), (vec![8192], vec![4096], 2), "the item of the rest moves on");
    assert_eq!(write(12288, true), (vec![12288], vec![], 3));
    assert_eq!(write(8192, true), (vec![], vec![8192, 12288], 1));
    assert_eq!(data.on_device(), [(1 << 30, 16384)]);
    assert!(data.unwritten().is_empty());
}

#[test]
fn an_item_in_another_leaf_is_not_joined() {
    let mut data = FileData::preallocated(16384, |_| 1 << 30);
    data.convert(&written(0, 4096), 3, |_| true);
    let change = data.convert(&written(4096, 4096), 3, |offset| offset > 0);
    assert_eq!((&change.comes[..], &change.goes[..]), (&[8192][..], &[][..]));
}

#[test]
fn dirty_pages_are_taken_by_the_extent_that_was_not_written_in_which_they_lie() {
    let mut data = FileData::preallocated(16384, |_| 1 << 30);
    data.convert(&written(4096, 4096), 3, |_| true);
    data.write(0, 16384, 3);
    let taken: Vec<_> = data.write_back(300).iter().map(|extent| (extent.offset, extent.bytes)).collect();
    assert_eq!(taken, [(0, 4096), (4096, 4096), (8192, 8192)]);
}
