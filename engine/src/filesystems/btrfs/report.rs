//! The trees as seen from outside, in the shape of the tables that were read from real filesystems. Input and output are
//! JSON; only tests ask.

use super::space::laid_out::SpaceTrees;
use super::space::Space;
use super::subvolume::Subvolume;
use super::tree::key::{Item, ItemKind, LEAF_DATA};
use super::tree::{BlockId, Tree};
use crate::gathered::gathered;
use crate::kernel::btrfs::SpaceCache;
use serde::Deserialize;
use serde_json::{json, Map, Value};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Bytes of the filesystems of the tables.
const SIZE: u64 = 8 << 30;

/// One question.
#[derive(Debug, Deserialize)]
#[serde(tag = "report", deny_unknown_fields)]
enum Request {
    /// The trees after `files` empty files were made round robin in `dirs` directories of the root.
    #[serde(rename = "btrfs_growth")]
    Growth { dirs: u32, files: u32 },
    /// What a list of operations on named directories leaves.
    #[serde(rename = "btrfs_script")]
    Script { steps: Vec<Step> },
    /// The hash of a name.
    #[serde(rename = "btrfs_name_hash")]
    NameHash { name: String },
}

/// One operation of a script.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
enum Step {
    /// A directory in the root; the script calls it by its place among them.
    Mkdir { name: String },
    /// An empty file.
    Create { dir: u32, name: String },
    /// Unlinks a file and frees its inode.
    Unlink { dir: u32, name: String },
    /// Commits the transaction: what is delayed goes into the tree.
    Commit,
}

/// Answers one request; an error is a sentence.
pub fn structure_report(request_json: &str) -> Result<String, String> {
    let request: Request = serde_json::from_str(request_json).map_err(|e| e.to_string())?;
    let answer = match request {
        Request::Growth { dirs, files } => growth(dirs, files)?,
        Request::Script { steps } => script(&steps)?,
        Request::NameHash { name } => json!({"hash": super::tree::key::name_hash(name.as_bytes())}),
    };
    Ok(answer.to_string())
}

/// A subvolume, and of each directory its files that exist: inode and index by name.
#[derive(Default)]
struct Script {
    subvolume: Subvolume,
    files: BTreeMap<(u32, String), (u64, u64)>,
}

impl Script {
    fn create(&mut self, dir: u32, name: &str) -> u64 {
        let (ino, index) = self.subvolume.create(dir, name.as_bytes());
        self.files.insert((dir, name.to_owned()), (ino, index));
        ino
    }

    fn unlink(&mut self, dir: u32, name: &str) -> Result<u64, String> {
        let (ino, index) = self.files.remove(&(dir, name.to_owned())).ok_or_else(|| format!("no file {name}"))?;
        self.subvolume.unlink(dir, name.as_bytes(), ino, index);
        Ok(ino)
    }
}

fn growth(dirs: u32, files: u32) -> Result<Value, String> {
    if dirs == 0 {
        return Err("dirs: at least one".into());
    }
    let mut subvolume = Subvolume::new();
    for i in 0..dirs {
        subvolume.mkdir(format!("d{i:03}").as_bytes());
    }
    for i in 0..files {
        subvolume.create(1 + i % dirs, format!("f{i:07}").as_bytes());
    }
    let space = RefCell::new(Space::new(SIZE));
    let mut tree = Tree::new();
    let trees = SpaceTrees::new(&space, &mut tree, SpaceCache::Tree);
    let mkfs = (tree.root(), tree.place(tree.root()));
    let mut tree = subvolume.into_tree();
    tree.set_place(mkfs.0, mkfs.1);
    trees.lay_out(&space, &mut tree);
    let mut answer = Value::default();
    for (name, tree) in
        [("fs_tree", &tree), ("extent_tree", &trees.extent.borrow()), ("free_space_tree", &trees.free_space.borrow())]
    {
        tree.check()?;
        answer[name] = shape(tree);
    }
    Ok(answer)
}

fn script(steps: &[Step]) -> Result<Value, String> {
    let mut script = Script::default();
    let mut inos = Vec::new();
    for step in steps {
        let known = |script: &Script, dir: u32| {
            (dir as usize + 1 < script.subvolume.dirs.len()).then_some(dir + 1).ok_or(format!("no directory {dir}"))
        };
        match step {
            Step::Mkdir { name } => inos.push(script.subvolume.mkdir(name.as_bytes())),
            Step::Create { dir, name } => {
                let dir = known(&script, *dir)?;
                inos.push(script.create(dir, name));
            }
            Step::Unlink { dir, name } => {
                let dir = known(&script, *dir)?;
                inos.push(script.unlink(dir, name)?);
            }
            Step::Commit => script.subvolume.commit(),
        }
        script.subvolume.tree().check()?;
    }
    script.subvolume.commit();
    let tree = script.subvolume.tree();
    tree.check()?;
    let mut answer = shape(&tree);
    answer["inos"] = json!(inos);
    answer["blocks"] = tree.blocks().map(|block| block_of_dump(&tree, block)).collect();
    Ok(answer)
}

/// A block as `dump-tree` prints it: level, items, and of a leaf the free bytes and each item.
fn block_of_dump(tree: &Tree, block: BlockId) -> Value {
    let (level, len) = (tree.level(block), tree.len(block));
    if level > 0 {
        return json!({"level": level, "items": len});
    }
    let items = tree.items(block).iter().map(item_of_dump).collect::<Vec<_>>();
    json!({"level": level, "items": items, "free": tree.free_space(block)})
}

fn item_of_dump(item: &Item) -> Value {
    json!([item.key.objectid(), item.key.kind().name(), item.key.offset(), item.size])
}

/// The tree in the words of the tables.
fn shape(tree: &Tree) -> Value {
    let level = tree.level(tree.root());
    let (leaves, nodes): (Vec<BlockId>, Vec<BlockId>) = tree.blocks().partition(|&block| tree.level(block) == 0);
    let mut node_items: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for node in nodes {
        node_items.entry(tree.level(node)).or_default().push(tree.len(node));
    }
    node_items.values_mut().for_each(|lens| lens.sort_unstable());
    let items = || leaves.iter().flat_map(|&leaf| tree.items(leaf));
    let mut sizes: BTreeMap<&str, BTreeMap<u16, usize>> = BTreeMap::new();
    for item in items() {
        *sizes.entry(item.key.kind().name()).or_default().entry(item.size).or_default() += 1;
    }
    let mut kinds: BTreeMap<&str, Vec<BlockId>> = BTreeMap::new();
    for &leaf in &leaves {
        kinds.entry(kind_of_leaf(tree.items(leaf))).or_default().push(leaf);
    }
    let by_kind: Map<String, Value> = gathered(kinds.iter().map(|(kind, of)| ((*kind).to_owned(), fill(tree, of))));
    let first: Vec<Value> = items().take(24).map(item_of_dump).collect();
    json!({
        "root_level": level,
        "leaves": leaves.len(),
        "nodes_by_level": gathered::<Map<_, _>, _>(node_items.iter().map(|(level, lens)| (level.to_string(), json!(lens.len())))),
        "node_items": gathered::<Map<_, _>, _>(node_items.iter().map(|(level, lens)| (level.to_string(), json!(lens)))),
        "items": gathered::<Map<_, _>, _>(sizes.iter().map(|(kind, of)| ((*kind).to_owned(), json!(of.values().sum::<usize>())))),
        "item_sizes": json!(sizes),
        "leaf_all": fill(tree, &leaves),
        "leaf_by_kind": by_kind,
        "first_items": first,
    })
}

fn kind_of_leaf(items: &[Item]) -> &'static str {
    let mut kinds: Vec<ItemKind> = items.iter().map(|item| item.key.kind()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    match kinds[..] {
        [] => "EMPTY",
        [kind] => kind.name(),
        [ItemKind::InodeItem, ItemKind::InodeRef] => "INODE_ITEM+INODE_REF",
        _ => "mixed",
    }
}

/// Fill and items of leaves: least, middle, most, mean.
fn fill(tree: &Tree, leaves: &[BlockId]) -> Value {
    let mut used: Vec<u32> = leaves.iter().map(|&leaf| LEAF_DATA - tree.free_space(leaf)).collect();
    let mut lens: Vec<usize> = leaves.iter().map(|&leaf| tree.len(leaf)).collect();
    used.sort_unstable();
    lens.sort_unstable();
    let share = |bytes: f64| (bytes / f64::from(LEAF_DATA) * 1e4).round() / 1e4;
    let count = leaves.len();
    json!({
        "leaves": count,
        "fill_mean": share(f64::from(used.iter().sum::<u32>()) / count as f64),
        "fill_min": share(f64::from(used[0])),
        "fill_p50": share(f64::from(used[count / 2])),
        "fill_max": share(f64::from(used[count - 1])),
        "items_min": lens[0],
        "items_p50": lens[count / 2],
        "items_max": lens[count - 1],
        "items_mean": (lens.iter().sum::<usize>() as f64 / count as f64 * 100.0).round() / 100.0,
    })
}
