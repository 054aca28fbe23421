use super::*;

const PER_GROUP: u32 = 8192;

/// 8 GiB with a journal in the third flex group, as `mkfs.ext4` makes it.
fn fresh() -> Ialloc {
    with_directories_by_flex(true)
}

fn with_directories_by_flex(by_flex: bool) -> Ialloc {
    Ialloc::new(64, 128 << 20, 16 << 10, vec![509_900, 514_000, 499_700, 515_000], by_flex)
}

fn new_directory(ialloc: &Ialloc, name: u32) -> Home {
    let inode = ialloc.take_first(ialloc.group_of_new_directory(&ialloc.root(), Some(name)).unwrap()).unwrap();
    ialloc.count_directory(inode, 1);
    ialloc.home(inode)
}

/// As Linux 6.18 did it on a filesystem of `mkfs.ext4` 1.47 with 24 directories in the root.
#[test]
fn directories_of_the_root_spread_over_flex_groups_and_then_over_groups() {
    let ialloc = fresh();
    let mut homes: Vec<u32> = (0..24).map(|name| new_directory(&ialloc, name).group).collect();
    homes[..8].sort_unstable();
    assert_eq!(homes[..8], [16, 16, 16, 16, 48, 48, 48, 48]);
    assert_eq!(homes[8..], [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8]);
    assert_eq!(ialloc.audit(0, 24), Ok(()));
    assert_eq!(ialloc.audit(1, 23), Err("flex groups count 24 directories, 23 should be there".into()));
}

/// Below the root a directory stays with its parent, until its flex group has many more directories than the others.
#[test]
fn directories_below_others_stay_near_them() {
    // 10,922 with the first one: a quarter of all, and a sixteenth of a flex group's inodes
    assert_eq!(below_one(&fresh(), 11_000), [0, 10_921, 79, 0]);
}

/// Until 5.19 it may have a quarter of all and a sixteenth of a single group's inodes: 682 with the first one, of 683.
#[test]
fn until_5_19_they_leave_their_parent_sooner() {
    assert_eq!(below_one(&with_directories_by_flex(false), 682), [0, 681, 1, 0]);
}

fn below_one(ialloc: &Ialloc, count: u32) -> [u32; 4] {
    let top = new_directory(ialloc, 1);
    assert_eq!(top.group / FLEX, 1);
    let mut by_flex = [0; 4];
    for _ in 0..count {
        let inode = ialloc.take_first(ialloc.group_of_new_directory(&top, None).unwrap()).unwrap();
        ialloc.count_directory(inode, 1);
        by_flex[(ialloc.group_of(inode) / FLEX) as usize] += 1;
    }
    by_flex
}

/// As the laboratory's 6.12 did it: /mnt/work with 24 directories, and their files, in one flex group.
#[test]
fn directories_below_a_filled_one_lie_in_its_flex_group() {
    let ialloc = fresh();
    let parent = ialloc.fill_directory(5).unwrap();
    for _ in 0..24 {
        let inode = ialloc.take_first(ialloc.group_of_new_directory(&parent, None).unwrap()).unwrap();
        ialloc.count_directory(inode, 1);
        assert_eq!(ialloc.group_of(inode), parent.group);
    }
    assert_eq!((parent.group, ialloc.audit(0, 24)), (16, Ok(())));
}

#[test]
fn files_of_all_directories_of_a_flex_group_share_its_first_group() {
    let ialloc = fresh();
    let dirs: Vec<Home> = (0..12).map(|name| new_directory(&ialloc, name)).collect();
    let groups = |dirs: &[Home]| dirs.iter().map(|dir| ialloc.group_of_new_file(dir).unwrap()).collect::<Vec<_>>();
    assert_eq!(groups(&dirs[8..]), [0; 4]);
    let near: Vec<Home> = dirs.into_iter().filter(|dir| dir.group == 16).collect();
    for _ in 0..PER_GROUP - near.len() as u32 {
        assert_eq!(groups(&near), [16; 4]);
        ialloc.take_first(16);
    }
    assert_eq!(groups(&near), [17; 4]);
}

#[test]
fn the_lowest_free_inode_is_taken() {
    let ialloc = fresh();
    let taken: Vec<u32> = (0..4).map(|_| ialloc.take_first(5).unwrap() - 5 * PER_GROUP).collect();
    ialloc.free(5 * PER_GROUP + 2);
    ialloc.free(5 * PER_GROUP + 1);
    assert_eq!((taken, ialloc.take_first(5)), (vec![0, 1, 2, 3], Some(5 * PER_GROUP + 1)));
}

#[test]
fn inodes_freed_before_this_second_are_passed_by_while_there_are_others() {
    let ialloc = fresh();
    let first = 5 * PER_GROUP;
    (0..PER_GROUP - 1).for_each(|_| _ = ialloc.take_first(5));
    (0..20).for_each(|inode| ialloc.free(first + inode));
    assert_eq!((ialloc.passed(5, None), ialloc.find(5, None)), ((0, vec![]), Some(first)));
    ialloc.turn(1);
    let blocks = vec![first / INODES_PER_BLOCK, first / INODES_PER_BLOCK + 1];
    assert_eq!((ialloc.passed(5, None), ialloc.take_first(5)), ((20, blocks), Some(first + PER_GROUP - 1)));
    assert_eq!(ialloc.find(5, None), Some(first + 19)); // the last one that was freed
    ialloc.free(first + 30);
    assert_eq!(ialloc.find(5, None), Some(first + 30));
}

#[test]
fn who_is_alone_in_a_block_is_known() {
    let ialloc = fresh();
    let first = ialloc.take_first(7).unwrap();
    assert!(ialloc.alone_in_block(first));
    let second = ialloc.take_first(7).unwrap();
    assert!(!ialloc.alone_in_block(first) && !ialloc.alone_in_block(second));
    ialloc.free(first);
    assert!(ialloc.alone_in_block(second));
}

#[test]
fn a_full_filesystem_has_no_group() {
    let ialloc = Ialloc::new(1, 128 << 20, 4 << 10, vec![1000], true);
    let dir = ialloc.root();
    while let Some(group) = ialloc.group_of_new_file(&dir) {
        ialloc.take_first(group).unwrap();
    }
    assert_eq!(ialloc.audit((128 << 20 >> 12) - RESERVED, 0), Ok(()));
}
