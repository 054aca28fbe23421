//! The structures as seen from outside: geometry, placement and growth in the shape of the tables that were read from
//! real filesystems. Input and output are JSON; only tests ask.

use crate::gathered::gathered;
use serde::Deserialize;
use serde_json::{json, Value};

use crate::filesystems::xfs::structures::ag::AllocGroup;
use crate::filesystems::xfs::structures::directory::geometry::DirGeometry;
use crate::filesystems::xfs::structures::directory::Directory;
use crate::filesystems::xfs::structures::geometry::{self, Geometry, GeometryError};
use crate::filesystems::xfs::structures::inode_alloc::InodeChunk;
use crate::filesystems::xfs::structures::layout::{DirId, Layout, ROOT};

/// One question.
#[derive(Debug, Deserialize)]
#[serde(tag = "report", deny_unknown_fields)]
enum XfsRequest {
    /// The geometry of a filesystem.
    #[serde(rename = "xfs_geometry")]
    Geometry { size_bytes: u64, agcount: Option<u64> },
    /// A fresh filesystem: free space and inode chunks of every group.
    #[serde(rename = "xfs_fresh")]
    Fresh { size_bytes: u64, agcount: Option<u64> },
    /// Where the inodes of directories and files go.
    #[serde(rename = "xfs_placement")]
    Placement { size_bytes: u64, agcount: Option<u64> },
    /// Trees and directories after `files` empty files were made round robin in `dirs` directories.
    #[serde(rename = "xfs_growth")]
    Growth { size_bytes: u64, agcount: Option<u64>, dirs: u32, files: u32 },
    /// What a list of operations on named directories leaves.
    #[serde(rename = "xfs_script")]
    Script { size_bytes: u64, agcount: Option<u64>, dirblksize: Option<u64>, steps: Vec<Step> },
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
}

/// Answers one request; an error is a sentence.
pub fn structure_report(request_json: &str) -> Result<String, String> {
    let request: XfsRequest = serde_json::from_str(request_json).map_err(|e| e.to_string())?;
    let answer = match request {
        XfsRequest::Geometry { size_bytes, agcount } => geometry_report(&make(size_bytes, agcount)?),
        XfsRequest::Fresh { size_bytes, agcount } => fresh(&make(size_bytes, agcount)?),
        XfsRequest::Placement { size_bytes, agcount } => placement(&make(size_bytes, agcount)?)?,
        XfsRequest::Growth { size_bytes, agcount, dirs, files } => growth(&make(size_bytes, agcount)?, dirs, files)?,
        XfsRequest::Script { size_bytes, agcount, dirblksize, steps } => {
            let sizes =
                dirblksize.map_or(Some(DirGeometry::default()), DirGeometry::new).ok_or("no such dirblksize")?;
            script(&make(size_bytes, agcount)?.with_directories(sizes), &steps)?
        }
    };
    Ok(answer.to_string())
}

fn make(size_bytes: u64, agcount: Option<u64>) -> Result<Geometry, String> {
    Geometry::new(size_bytes, agcount).map_err(|e: GeometryError| e.to_string())
}

fn geometry_report(g: &Geometry) -> Value {
    let (_, root_agino) = g.split_ino(g.root_ino());
    json!({
        "agcount": g.agcount,
        "agsize_blocks": g.agblocks,
        "last_ag_blocks": g.ag_length(g.agcount - 1),
        "blocks": g.dblocks,
        "block_size": geometry::BLOCK_SIZE,
        "sector_size": 512,
        "inode_size": geometry::INODE_SIZE,
        "inodes_per_block": 1 << geometry::INOPBLOG,
        "inopblog": geometry::INOPBLOG,
        "agblklog": g.agblklog,
        "ino_to_ag_shift": g.agino_log(),
        "inodes_per_chunk": geometry::INODES_PER_CHUNK,
        "blocks_per_chunk": geometry::BLOCKS_PER_CHUNK,
        "inoalignmt_blocks": geometry::INODE_ALIGNMENT,
        "log_blocks": g.logblocks,
        "log_start_agno": g.log_agno,
        "log_start_agbno": geometry::PREALLOC_BLOCKS,
        "root_ino": g.root_ino(),
        "root_ino_agbno": root_agino >> geometry::INOPBLOG,
    })
}

fn free_extents(group: &AllocGroup) -> Value {
    group.space.extents().map(|extent| json!([extent.start, extent.len])).collect()
}

fn chunk(chunk: &InodeChunk) -> Value {
    json!({
        "startino": chunk.startino,
        "agbno": chunk.startino >> geometry::INOPBLOG,
        "holemask": chunk.holemask,
        "count": chunk.count,
        "freecount": chunk.freecount,
        "free": format!("{:#x}", chunk.free),
    })
}

fn fresh(g: &Geometry) -> Value {
    let layout = Layout::new(g);
    let groups = layout.groups().groups.iter().map(|group| {
        json!({
            "free_extents": free_extents(group),
            "agfl_agbnos": group.space.agfl().collect::<Vec<_>>(),
            "chunks": group.chunks().map(chunk).collect::<Vec<_>>(),
        })
    });
    let roots = json!({
        "bnobt_root_agbno": geometry::BNOBT_ROOT,
        "cntbt_root_agbno": geometry::CNTBT_ROOT,
        "inobt_root_agbno": geometry::INOBT_ROOT,
        "finobt_root_agbno": geometry::FINOBT_ROOT,
        "refcountbt_root_agbno": geometry::REFCOUNTBT_ROOT,
    });
    json!({"roots": roots, "groups": groups.collect::<Vec<_>>()})
}

/// Makes names of a letter and a number, and answers with inode numbers.
struct Script {
    layout: Layout,
}

impl Script {
    fn mkdir(&mut self, parent: DirId, name: &str) -> Result<(DirId, u64), String> {
        let (dir, created) = self.layout.mkdir(parent, name.as_bytes()).map_err(|e| e.to_string())?;
        Ok((dir, created.inode.ino))
    }

    fn create(&mut self, dir: DirId, name: &str) -> Result<u64, String> {
        let created = self.layout.create(dir, name.as_bytes()).map_err(|e| e.to_string())?;
        Ok(created.inode.ino)
    }

    fn unlink(&mut self, dir: DirId, name: &str) -> Result<u64, String> {
        let unlinked = self.layout.unlink(dir, name.as_bytes()).ok_or_else(|| format!("no file {name}"))?;
        self.layout.iunlink_remove(unlinked.ino).ok_or("not on an unlinked list")?;
        self.layout.ifree(unlinked.ino);
        Ok(unlinked.ino)
    }

    fn create_many(&mut self, dir: DirId, letter: char, count: u32) -> Result<Vec<u64>, String> {
        (0..count).map(|i| self.create(dir, &format!("{letter}{i:07}"))).collect()
    }

    fn agno(&self, ino: u64) -> u32 {
        self.layout.geometry().split_ino(ino).0
    }

    fn agnos(&self, inos: &[u64]) -> Vec<u32> {
        inos.iter().map(|&ino| self.agno(ino)).collect()
    }

    fn dirs_of(&mut self, inos: &[u64], dir: u64) -> Value {
        let agnos = self.agnos(inos);
        let runs = runs(inos).into_iter().map(|(start, count)| {
            let (ag, agino) = self.layout.geometry().split_ino(start);
            let (agbno, off) = (agino >> geometry::INOPBLOG, agino & ((1 << geometry::INOPBLOG) - 1));
            json!([start, count, {"ag": ag, "agbno": agbno, "off": off}])
        });
        json!({
            "dir_ag": self.agno(dir),
            "dir_ino": dir,
            "file_ags": repeats(&agnos),
            "inode_runs": runs.collect::<Vec<_>>(),
        })
    }
}

/// Values and how often each follows itself.
fn repeats(values: &[u32]) -> Value {
    values.chunk_by(|a, b| a == b).map(|same| json!([same[0], same.len()])).collect()
}

/// Runs of consecutive numbers.
fn runs(values: &[u64]) -> Vec<(u64, usize)> {
    values.chunk_by(|a, b| a + 1 == *b).map(|run| (run[0], run.len())).collect()
}

fn placement(g: &Geometry) -> Result<Value, String> {
    let mut s = Script { layout: Layout::new(g) };
    let dirs: Vec<(DirId, u64)> = (0..100).map(|i| s.mkdir(ROOT, &format!("d{i:03}"))).collect::<Result<_, _>>()?;
    let dir_inos: Vec<u64> = dirs.iter().map(|dir| dir.1).collect();
    let files: Vec<Vec<u64>> =
        dirs[..3].iter().map(|&(dir, _)| s.create_many(dir, 'f', 200)).collect::<Result<_, _>>()?;
    let in_root = s.create_many(ROOT, 'r', 100)?;
    let mut deepest = ROOT;
    let mut chain = Vec::new();
    for i in 0..10 {
        let (dir, ino) = s.mkdir(deepest, &format!("n{i}"))?;
        deepest = dir;
        chain.push(ino);
    }
    let siblings: Vec<u64> =
        (0..10).map(|i| s.mkdir(deepest, &format!("s{i}")).map(|dir| dir.1)).collect::<Result<_, _>>()?;
    let unlinked: Vec<u64> = (5..15).map(|i| s.unlink(dirs[0].0, &format!("f{i:07}"))).collect::<Result<_, _>>()?;
    let created = s.create_many(dirs[0].0, 'g', 12)?;
    s.layout.remount();
    let after: Vec<u64> =
        (0..4).map(|i| s.mkdir(ROOT, &format!("after{i}")).map(|dir| dir.1)).collect::<Result<_, _>>()?;
    s.layout.check()?;
    let in_dirs: serde_json::Map<String, Value> =
        gathered(files.iter().enumerate().map(|(i, inos)| (format!("d{i:03}"), s.dirs_of(inos, dir_inos[i]))));
    let group = &s.layout.groups().groups[s.agno(dir_inos[0]) as usize];
    Ok(json!({
        "root_dirs_100": {
            "ag_sequence": s.agnos(&dir_inos),
            "agino_sequence": dir_inos.iter().map(|&ino| g.split_ino(ino).1).collect::<Vec<_>>(),
        },
        "files_in_dir": in_dirs,
        "files_in_root_100": {"file_ags": repeats(&s.agnos(&in_root)), "inode_runs": runs(&in_root)},
        "nested_chain_10": {"ags": s.agnos(&chain)},
        "siblings_in_deepest_10": {"ags": s.agnos(&siblings)},
        "reuse_after_unlink_10_create_12": {"unlinked": unlinked, "created": created},
        "after_remount_4_dirs_ags": s.agnos(&after),
        "ag_of_dir_d000_chunks": group.chunks().map(chunk).collect::<Vec<_>>(),
    }))
}

fn growth(g: &Geometry, dirs: u32, files: u32) -> Result<Value, String> {
    let mut s = Script { layout: Layout::new(g) };
    let dirs: Vec<DirId> =
        (0..dirs).map(|i| s.mkdir(ROOT, &format!("d{i:03}")).map(|dir| dir.0)).collect::<Result<_, _>>()?;
    for i in 0..files {
        s.create(dirs[i as usize % dirs.len()], &format!("f{i:07}"))?;
    }
    s.layout.check()?;
    Ok(state(&s.layout, &dirs))
}

fn script(g: &Geometry, steps: &[Step]) -> Result<Value, String> {
    let mut s = Script { layout: Layout::new(g) };
    let mut dirs = Vec::new();
    let known = |dirs: &[DirId], dir: u32| dirs.get(dir as usize).copied().ok_or(format!("no directory {dir}"));
    let mut inos = Vec::new();
    for step in steps {
        inos.push(match step {
            Step::Mkdir { name } => {
                let (dir, ino) = s.mkdir(ROOT, name)?;
                dirs.push(dir);
                ino
            }
            Step::Create { dir, name } => s.create(known(&dirs, *dir)?, name)?,
            Step::Unlink { dir, name } => s.unlink(known(&dirs, *dir)?, name)?,
        });
    }
    s.layout.check()?;
    let mut state = state(&s.layout, &dirs);
    state["inos"] = json!(inos);
    let maps = dirs.iter().map(|&dir| s.layout.dir(dir).map().mappings().collect::<Vec<_>>());
    state["dir_maps"] = json!(maps.collect::<Vec<_>>());
    state["dir_blocks"] = dirs.iter().map(|&dir| dir_blocks(s.layout.dir(dir))).collect();
    let names = |free: bool| {
        let groups = s.layout.groups().groups.iter();
        groups.map(|g| if free { free_extents(g) } else { g.chunks().map(chunk).collect() }).collect::<Vec<Value>>()
    };
    state["free_extents"] = json!(names(true));
    state["chunks"] = json!(names(false));
    Ok(state)
}

fn state(layout: &Layout, dirs: &[DirId]) -> Value {
    let groups = &layout.groups().groups;
    let agnos = dirs.iter().map(|&dir| layout.geometry().split_ino(layout.dir(dir).ino).0);
    json!({
        "dir_ags": agnos.collect::<Vec<_>>(),
        "icount_sb": groups.iter().map(AllocGroup::inode_count).sum::<u64>(),
        "ags": groups.iter().map(group_state).collect::<Vec<_>>(),
        "dir0_blocks": dirs.first().map(|&dir| dir_blocks(layout.dir(dir))),
        "root_dir": dir_blocks(layout.dir(ROOT)),
    })
}

fn group_state(group: &AllocGroup) -> Value {
    let [inobt, finobt] = group.inode_tree_shapes();
    let [bnobt, cntbt] = group.space.shapes();
    let (min, max) = group.inobt_leaf_fill();
    json!({
        "agno": group.agno,
        "inodes": group.inode_count(),
        "ifree": group.free_inodes(),
        "inobt": inobt,
        "finobt": finobt,
        "bnobt": bnobt,
        "cntbt": cntbt,
        "sparse_chunks": group.chunks().filter(|chunk| chunk.holemask != 0).count(),
        "flcount": group.space.agfl_count(),
        "btreeblks": group.space.btree_blocks(),
        "inobt_leaf_minmax": [min, max],
    })
}

fn dir_blocks(dir: &Directory) -> Value {
    let blocks = dir.blocks();
    let format = dir.inode_format();
    let text = ["(local)", "(extents)", "(btree)"][usize::from(format) - 1];
    json!({
        "core.format": format,
        "core.format_text": text,
        "core.size": blocks.size,
        "core.nblocks": blocks.blocks,
        "core.nextents": blocks.extents,
        "data_blocks": blocks.data,
        "leaf_or_node_blocks": blocks.index,
        "freeindex_blocks": blocks.free,
        "extents": blocks.extents,
        "bmap_btree_blocks": blocks.map,
    })
}
