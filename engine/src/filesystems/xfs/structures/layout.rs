//! A whole filesystem: all groups and directories, and the steps of create, unlink and inode freeing.
//!
//! Each step is what one part of a kernel operation does to the structures. `xfs_create` is [`Layout::dialloc`] under
//! the AGI, then [`Layout::add_name`] under the directory's ILOCK. `xfs_remove` is [`Layout::iunlink`] and
//! [`Layout::remove_name`]; the inodegc worker does [`Layout::ifree`] later.

pub use super::ag::Unlinking;
use super::bmap::{DATA_FORK_SIZE, ROOT_FORK_SIZE};
use super::directory::{DirTouch, Directory};
use super::file_blocks::FileBlocks;
use super::geometry::{Geometry, BLOCKS_PER_CLUSTER, INODES_PER_CHUNK, INOPBLOG};
use super::groups::{Groups, NoSpace};
use super::touch::{BlockKind, Touches};

/// A directory of a [`Layout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DirId(pub u32);

/// Blocks that a new inode may need, and more than its chunk and trees do (`XFS_IALLOC_SPACE_RES`).
const INODE_BLOCKS: u32 = 29;

/// The root directory.
pub const ROOT: DirId = DirId(0);

/// An allocated inode.
#[derive(Clone, Copy, Debug)]
pub struct Dialloc {
    /// Its number.
    pub ino: u64,
    /// Its group.
    pub agno: u32,
    /// Whether a chunk of inodes had to be allocated.
    pub new_chunk: bool,
    /// Whether the number was in use before (`iget_recycle` instead of `iget_miss`).
    pub recycled: bool,
    /// AGI, inode tree and, for a new chunk, free space buffers in lock order.
    pub touches: Touches,
}

/// A freed inode.
#[derive(Clone, Copy, Debug)]
pub struct Freed {
    /// Its group.
    pub agno: u32,
    /// Whether its chunk was given back.
    pub chunk_freed: bool,
    /// AGI, inode tree and, with a chunk, free space buffers in lock order.
    pub touches: Touches,
}

/// A created file: [`Layout::dialloc`] and [`Layout::add_name`].
#[derive(Clone, Copy, Debug)]
pub struct Created {
    /// The inode.
    pub inode: Dialloc,
    /// The change of the directory.
    pub dir: DirTouch,
}

/// An unlinked file: [`Layout::iunlink`] and [`Layout::remove_name`].
#[derive(Clone, Copy, Debug)]
pub struct Unlinked {
    /// The inode, now on an unlinked list.
    pub ino: u64,
    /// The unlinked list.
    pub list: Unlinking,
    /// The change of the directory.
    pub dir: DirTouch,
}

/// A mounted filesystem.
#[derive(Clone, Debug)]
pub struct Layout {
    pub(super) groups: Groups,
    dirs: Vec<Directory>,
    /// Numbers of directories that were removed.
    free_dirs: Vec<DirId>,
    /// Blocks of files.
    pub(super) files: FileBlocks,
    /// Next group for a directory (`m_agirotor`).
    rotor: u32,
    /// Bytes of the data fork of new directories.
    fork_size: usize,
}

impl Layout {
    /// A fresh filesystem, mounted.
    pub fn new(geometry: &Geometry) -> Self {
        let root = geometry.root_ino();
        let dirs = vec![Directory::new(root, root, inode_block(geometry, root), ROOT_FORK_SIZE, geometry.dir)];
        let (free_dirs, files) = (Vec::new(), FileBlocks::default());
        Self { groups: Groups::new(geometry), dirs, free_dirs, files, rotor: 0, fork_size: DATA_FORK_SIZE }
    }

    /// The same one where new inodes have no attributes, and no room for them.
    pub fn without_attributes(self) -> Self {
        Self { fork_size: ROOT_FORK_SIZE, ..self }
    }

    /// Sizes and positions.
    pub fn geometry(&self) -> &Geometry {
        &self.groups.geometry
    }

    /// The allocation groups.
    pub fn groups(&self) -> &Groups {
        &self.groups
    }

    /// A directory.
    pub fn dir(&self, dir: DirId) -> &Directory {
        &self.dirs[dir.0 as usize]
    }

    /// First block of the inode cluster buffer that holds `ino`.
    pub fn cluster(&self, ino: u64) -> u64 {
        let block = inode_block(self.geometry(), ino);
        block - block % u64::from(BLOCKS_PER_CLUSTER)
    }

    /// Unmount and mount: what is only in memory starts anew.
    pub fn remount(&mut self) {
        self.rotor = 0;
    }

    /// Makes an empty directory: its inode in the next group by rotor, its name in `parent`.
    pub fn mkdir(&mut self, parent: DirId, name: &[u8]) -> Result<(DirId, Created), NoSpace> {
        let start = self.next_directory_group();
        let inode = self.dialloc_directory(start, parent)?;
        let dir = self.add_name(parent, name, inode.ino)?;
        Ok((self.add_directory(parent, inode.ino), Created { inode, dir }))
    }

    /// Where the inode of the next directory is looked for (`xfs_ialloc_next_ag`).
    pub fn next_directory_group(&mut self) -> u32 {
        let start = self.rotor % self.geometry().agcount;
        self.rotor = self.rotor.wrapping_add(1);
        start
    }

    /// Allocates an inode for a directory in `parent` (`xfs_dialloc`), in this group or in the next with room.
    pub fn dialloc_directory(&mut self, start: u32, parent: DirId) -> Result<Dialloc, NoSpace> {
        self.reserve()?;
        self.dialloc_from(start, parent)
    }

    /// An empty directory in this inode, whose `..` is a link to `parent` (`xfs_dir_init`, `xfs_bumplink`).
    pub fn add_directory(&mut self, parent: DirId, ino: u64) -> DirId {
        self.dirs[parent.0 as usize].links += 1;
        let (block, sizes) = (inode_block(self.geometry(), ino), self.geometry().dir);
        let new = Directory::new(ino, self.dir(parent).ino, block, self.fork_size, sizes);
        if let Some(free) = self.free_dirs.pop() {
            self.dirs[free.0 as usize] = new;
            return free;
        }
        self.dirs.push(new);
        DirId(self.dirs.len() as u32 - 1)
    }

    /// An empty directory without a name loses its link to `parent` and its own ones (`xfs_droplink`).
    pub fn drop_directory(&mut self, parent: DirId, dir: DirId) {
        debug_assert_eq!(self.dir(dir).names(), 0, "only an empty directory is removed");
        self.dirs[parent.0 as usize].links -= 1;
        self.free_dirs.push(dir);
    }

    /// Creates a file.
    pub fn create(&mut self, dir: DirId, name: &[u8]) -> Result<Created, NoSpace> {
        let inode = self.dialloc(dir)?;
        Ok(Created { inode, dir: self.add_name(dir, name, inode.ino)? })
    }

    /// Unlinks a file, which leaves its inode for [`Self::ifree`].
    pub fn unlink(&mut self, dir: DirId, name: &[u8]) -> Option<Unlinked> {
        let (ino, touch) = self.remove_name(dir, name)?;
        Some(Unlinked { ino, list: self.iunlink(ino), dir: touch })
    }

    /// Finds a name: its inode, and the buffers read.
    pub fn lookup(&self, dir: DirId, name: &[u8]) -> (Option<u64>, Touches) {
        self.dir(dir).lookup(name)
    }

    /// Allocates an inode for a file in `dir` (`xfs_dialloc`): in the directory's group, else in the next with room.
    pub fn dialloc(&mut self, dir: DirId) -> Result<Dialloc, NoSpace> {
        self.reserve()?;
        let (agno, _) = self.geometry().split_ino(self.dir(dir).ino);
        self.dialloc_from(agno, dir)
    }

    /// Enters a name that is not there (`xfs_dir_createname`).
    pub fn add_name(&mut self, dir: DirId, name: &[u8], ino: u64) -> Result<DirTouch, NoSpace> {
        self.reserve()?;
        self.dirs[dir.0 as usize].add(name, ino, &mut self.groups)
    }

    /// Removes a name (`xfs_dir_removename`): its inode, if it was there.
    pub fn remove_name(&mut self, dir: DirId, name: &[u8]) -> Option<(u64, DirTouch)> {
        self.dirs[dir.0 as usize].remove(name, &mut self.groups)
    }

    /// Puts an inode without a name on the unlinked list of its group (`xfs_iunlink`).
    pub fn iunlink(&mut self, ino: u64) -> Unlinking {
        let (agno, agino) = self.geometry().split_ino(ino);
        self.groups.groups[agno as usize].iunlink(agino)
    }

    /// Takes an inode off its unlinked list (`xfs_iunlink_remove`), if it is on one.
    pub fn iunlink_remove(&mut self, ino: u64) -> Option<Unlinking> {
        let (agno, agino) = self.geometry().split_ino(ino);
        self.groups.groups[agno as usize].iunlink_remove(agino)
    }

    /// Of all groups (`m_ifree`).
    pub fn free_inodes(&self) -> u64 {
        self.groups.groups.iter().map(|group| group.free_inodes()).sum()
    }

    /// Frees an inode (`xfs_difree`), and its chunk if that was the last one in use.
    pub fn ifree(&mut self, ino: u64) -> Freed {
        let (agno, agino) = self.geometry().split_ino(ino);
        let mut touches = Touches::default();
        touches.add(BlockKind::Agi, self.geometry().fsblock(agno, 0));
        let chunk_freed = self.groups.groups[agno as usize].difree(agino, &mut touches);
        Freed { agno, chunk_freed, touches }
    }

    /// All directories.
    pub fn directories(&self) -> impl Iterator<Item = &Directory> {
        self.dirs.iter()
    }

    /// Checks every structure.
    pub fn check(&self) -> Result<(), String> {
        self.groups.groups.iter().try_for_each(|group| group.check())?;
        self.dirs.iter().try_for_each(Directory::check)
    }

    /// `xfs_dialloc`: two passes over the groups; the second takes less room for enough.
    fn dialloc_from(&mut self, start: u32, parent: DirId) -> Result<Dialloc, NoSpace> {
        let mut touches = Touches::default();
        if self.groups.groups[start as usize].free_inodes() > 0 {
            return Ok(self.dialloc_in(start, parent, false, touches));
        }
        let agcount = self.geometry().agcount;
        let may_grow = self.may_grow();
        let low_space = self.low_space();
        for strict in [true, false] {
            let ok_alloc = may_grow && !(low_space && strict);
            for agno in (0..agcount).map(|i| (start + i) % agcount) {
                let group = &mut self.groups.groups[agno as usize];
                if !group.good_for_inode(strict, ok_alloc) {
                    continue;
                }
                touches.add(BlockKind::Agi, group.base);
                let new_chunk = group.free_inodes() == 0;
                if !new_chunk || group.alloc_chunk(&mut touches) {
                    return Ok(self.dialloc_in(agno, parent, new_chunk, touches));
                }
            }
        }
        Err(NoSpace)
    }

    fn dialloc_in(&mut self, agno: u32, parent: DirId, new_chunk: bool, mut touches: Touches) -> Dialloc {
        let (parent_agno, parent_agino) = self.geometry().split_ino(self.dir(parent).ino);
        let near = (parent_agno == agno).then_some(parent_agino);
        let group = &mut self.groups.groups[agno as usize];
        touches.add(BlockKind::Agi, group.base);
        let taken = group.dialloc(near, &mut touches);
        Dialloc { ino: self.geometry().ino(agno, taken.agino), agno, new_chunk, recycled: taken.recycled, touches }
    }

    /// Whether `imaxpct` allows a further chunk.
    fn may_grow(&self) -> bool {
        let count: u64 = self.groups.groups.iter().map(|group| group.inode_count()).sum();
        count + u64::from(INODES_PER_CHUNK) <= self.geometry().max_icount()
    }

    /// Blocks that an ordinary transaction may take.
    pub fn free_blocks(&self) -> u64 {
        let free: u64 = self.groups.groups.iter().map(|group| u64::from(group.space.unreserved())).sum();
        let pool = (self.geometry().dblocks / 20).min(8192);
        free.saturating_sub(pool)
    }

    /// Below 1 % free (`XFS_LOWSP_1_PCNT`), where groups with free inodes come first.
    fn low_space(&self) -> bool {
        self.free_blocks() < self.geometry().dblocks / 100
    }

    /// The space reservation of a create (`XFS_CREATE_SPACE_RES`), which no operation exceeds.
    pub(super) fn reserve(&self) -> Result<(), NoSpace> {
        let blocks = INODE_BLOCKS + self.geometry().dir.enter_blocks();
        let plenty = 8192 + blocks;
        let roomy = |group: &super::ag::AllocGroup| group.space.unreserved() > plenty;
        if self.groups.groups.iter().any(roomy) || self.free_blocks() > u64::from(blocks) {
            Ok(())
        } else {
            Err(NoSpace)
        }
    }
}

fn inode_block(geometry: &Geometry, ino: u64) -> u64 {
    let (agno, agino) = geometry.split_ino(ino);
    geometry.fsblock(agno, agino >> INOPBLOG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_in_the_inode_passes_by_the_names_before_the_one_that_is_looked_for() {
        let mut layout = Layout::new(&Geometry::new(8 << 30, Some(4)).expect("a geometry"));
        for name in [b"a", b"b", b"c"] {
            layout.create(ROOT, name).expect("there is space");
        }
        assert_eq!([b"a", b"b", b"d"].map(|name| layout.dir(ROOT).passed_by(name)), [0, 1, 3]);
        for n in 0..200 {
            layout.create(ROOT, format!("file{n}").as_bytes()).expect("there is space");
        }
        assert_eq!(layout.dir(ROOT).passed_by(b"d"), 0, "it has blocks now");
    }
}
