//! A directory under long churn keeps all its invariants, whatever its form: the blocks, the hash index and the free space.

use super::common::draw::Draw;
use simfs_engine::filesystems::xfs::structures::geometry::Geometry;
use simfs_engine::filesystems::xfs::structures::layout::{Layout, ROOT};

/// Adds and removes names of two lengths at random; `most` names at once decide the largest form.
fn churn(seed: u64, most: u64, steps: u64) {
    let geometry = Geometry::new(8 << 30, Some(4)).expect("a plain geometry");
    let mut layout = Layout::new(&geometry);
    let (dir, _) = layout.mkdir(ROOT, b"d").expect("room");
    let mut draw = Draw(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut names: Vec<Vec<u8>> = Vec::new();
    for step in 0..steps {
        if names.is_empty() || (draw.below(100) < 55 && (names.len() as u64) < most) {
            let name = if draw.below(2) == 0 { format!("cc{step:06}.s") } else { format!("h{step:03}.o") }.into_bytes();
            layout.create(dir, &name).expect("room");
            names.push(name);
        } else {
            let name = names.swap_remove(draw.below(names.len() as u64) as usize);
            let ino = layout.unlink(dir, &name).expect("the name is there").ino;
            layout.iunlink_remove(ino).expect("it is on the list");
            layout.ifree(ino);
        }
        layout.check().unwrap_or_else(|broken| panic!("seed {seed}, step {step}, {} names: {broken}", names.len()));
    }
    for name in names {
        assert!(layout.lookup(dir, &name).0.is_some(), "seed {seed}: a name is lost");
    }
}

#[test]
fn a_small_directory_survives_churn() {
    (0..80).for_each(|seed| churn(seed, 30, 400));
}

#[test]
fn a_block_directory_survives_churn() {
    (0..40).for_each(|seed| churn(seed, 120, 600));
}

#[test]
fn a_node_directory_survives_churn() {
    (0..3).for_each(|seed| churn(seed, 1500, 3000));
}

/// Names are renamed, so that each new one is longer there than the one it follows: in a directory of a few names their offsets
/// wander to the end of the block that it would become.
#[test]
fn a_directory_of_a_few_names_survives_renames() {
    let geometry = Geometry::new(8 << 30, Some(4)).expect("a plain geometry");
    for names in 2..12 {
        let mut layout = Layout::new(&geometry);
        let (dir, _) = layout.mkdir(ROOT, b"d").expect("room");
        let name = |n: usize| format!("f0000_{n:08}").into_bytes();
        let mut draw = Draw(names as u64 | 64);
        let mut live: Vec<usize> = (0..names).collect();
        for &n in &live {
            layout.create(dir, &name(n)).expect("room");
        }
        for next in names..names + 2000 {
            let place = draw.below(live.len() as u64) as usize;
            layout.add_name(dir, &name(next), 1000 + next as u64).expect("room");
            layout.remove_name(dir, &name(live[place])).expect("it is there");
            live[place] = next;
            layout.check().unwrap_or_else(|broken| panic!("{names} names, rename {next}: {broken}"));
        }
    }
}
