use super::*;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Run(u64, u64);

impl Extent for Run {
    fn offset(&self) -> u64 {
        self.0
    }
    fn end(&self) -> u64 {
        self.0 + self.1
    }
}

/// Marsaglia's xorshift: the tests want variety, not quality.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn appended(extents: u64) -> ExtentMap<Run> {
    let mut map = ExtentMap::default();
    (0..extents).for_each(|n| map.insert(Run(2 * n, 1)));
    map
}

fn leaf_sizes(map: &ExtentMap<Run>) -> Vec<usize> {
    let first = map.find_level(0, 1, |_| ());
    let next = |&no: &BlockNo| Some(map.leaf(no).next).filter(|&next| next != NONE);
    std::iter::successors(Some(first), next).map(|no| map.leaf(no).records.len()).collect()
}

#[test]
fn it_is_a_sorted_list_whatever_is_done_to_it() {
    for seed in 1..=20u64 {
        let (mut map, mut model, mut state) = (ExtentMap::default(), Vec::<Run>::new(), seed);
        for step in 0..6000u32 {
            let offset = random(&mut state) % 4000;
            let at = model.partition_point(|run| run.end() <= offset);
            let covered = model.get(at).is_some_and(|run| run.0 <= offset);
            let cursor = map.lookup(offset);
            assert_eq!(map.get(cursor), model.get(at));
            assert_eq!(map.before(cursor).and_then(|before| map.get(before)), at.checked_sub(1).map(|at| &model[at]));
            let grow = random(&mut state) % 100 < if step % 2000 < 1000 { 80 } else { 20 };
            match (covered, grow) {
                (false, true) => {
                    let room = model.get(at).map_or(5, |next| next.0 - offset);
                    let run = Run(offset, 1 + random(&mut state) % room.min(5));
                    model.insert(at, run);
                    map.insert(run);
                }
                (true, true) if model[at].1 > 1 => {
                    model[at] = Run(model[at].0 + 1, model[at].1 - 1); // its first block goes
                    map.update(cursor, model[at]);
                }
                (true, false) => assert_eq!(map.remove(cursor), model.remove(at)),
                _ => {}
            }
            if step % 50 == 0 {
                map.check().unwrap_or_else(|e| panic!("seed {seed}, step {step}: {e}"));
                assert!(map.iter().eq(&model) && map.len() == model.len());
            }
        }
        while let Some(run) = model.pop() {
            assert_eq!(map.remove(map.lookup(run.0)), run);
            map.check().unwrap();
        }
        assert!(map.is_empty() && map.height() == 0 && map.unused.len() == map.blocks());
    }
}

#[test]
fn what_is_appended_fills_leaves_and_nodes() {
    for (extents, height) in [(0, 0), (1, 1), (15, 1), (16, 2), (240, 2), (241, 3), (3840, 3), (3841, 4)] {
        assert_eq!(appended(extents).height(), height, "{extents} extents");
    }
    assert!(leaf_sizes(&appended(300)).iter().all(|&records| records == 15));
    assert_eq!(appended(240).blocks(), 16 + 1);
}

#[test]
fn a_full_leaf_is_split_in_the_middle() {
    let mut map = appended(15);
    map.insert(Run(1, 1));
    assert_eq!(leaf_sizes(&map), [9, 7]);
    let mut map = appended(15);
    map.insert(Run(27, 1));
    assert_eq!(leaf_sizes(&map), [8, 8]);
}

#[test]
fn a_leaf_below_half_joins_the_one_before_it_first_and_only_if_both_fit() {
    let mut map = appended(45);
    let take = |map: &mut ExtentMap<Run>, n: u64| map.remove(map.lookup(2 * n));
    (15..24).for_each(|n| assert_eq!(take(&mut map, n), Run(2 * n, 1)));
    assert_eq!(leaf_sizes(&map), [15, 6, 15], "its neighbours are full");
    (0..6).for_each(|n| assert_eq!(take(&mut map, n), Run(2 * n, 1)));
    assert_eq!(leaf_sizes(&map), [9, 6, 15], "nine are more than half");
    take(&mut map, 24);
    assert_eq!(leaf_sizes(&map), [14, 15]);
}

#[test]
fn a_lookup_visits_one_block_a_level() {
    let map = appended(1000);
    let mut path = Vec::new();
    let found = map.lookup_visiting(1234, |no| path.push(no));
    assert_eq!(map.get(found), Some(&Run(1234, 1)));
    assert_eq!(path.len(), 3);
    assert_eq!((path[0], *path.last().unwrap()), (map.root, found.leaf));
}
