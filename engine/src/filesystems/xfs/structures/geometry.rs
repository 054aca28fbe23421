//! The geometry of an XFS filesystem as `mkfs.xfs` 6.1 computes it: default options, 4 KiB blocks, 512-byte inodes,
//! data without a stripe unit, internal log. Where the log's blocks lie is that of a log without a stripe unit, too.

use super::directory::geometry::DirGeometry;
use std::fmt;

/// Bytes in a filesystem block.
pub const BLOCK_SIZE: u64 = 4096;
/// Bytes in an inode.
pub const INODE_SIZE: u64 = 512;
/// Inodes in a block, as a power of two.
pub const INOPBLOG: u32 = 3;
/// Inodes in one chunk, that is in one inobt record (`XFS_INODES_PER_CHUNK`).
pub const INODES_PER_CHUNK: u32 = 64;
/// Blocks of a whole inode chunk.
pub const BLOCKS_PER_CHUNK: u32 = 8;
/// Blocks of a sparse chunk, one inode cluster (`sb_spino_align`, 16 KiB).
pub const BLOCKS_PER_CLUSTER: u32 = 4;
/// Alignment of an inode chunk in blocks (`sb_inoalignmt`).
pub const INODE_ALIGNMENT: u32 = 8;
/// AG block of the bnobt root; the other roots follow in the order of this list.
pub const BNOBT_ROOT: u32 = 1;
/// AG block of the cntbt root.
pub const CNTBT_ROOT: u32 = 2;
/// AG block of the inobt root.
pub const INOBT_ROOT: u32 = 3;
/// AG block of the finobt root.
pub const FINOBT_ROOT: u32 = 4;
/// AG block of the refcountbt root.
pub const REFCOUNTBT_ROOT: u32 = 5;
/// First block behind the headers and tree roots (`xfs_prealloc_blocks`): the log or the AGFL starts here.
pub const PREALLOC_BLOCKS: u32 = 6;
/// Blocks on the free list of a fresh AG.
pub const AGFL_BLOCKS: u32 = 4;

const MIB: u64 = (1 << 20) / BLOCK_SIZE;
const TIB: u64 = (1 << 40) / BLOCK_SIZE;
/// `XFS_AG_MIN_BLOCKS`: 16 MiB.
const AG_MIN_BLOCKS: u64 = 16 * MIB;
/// `XFS_AG_MAX_BLOCKS`: one block less than 1 TiB.
const AG_MAX_BLOCKS: u64 = TIB - 1;
/// `XFS_MAX_AGNUMBER` + 1.
const MAX_AGCOUNT: u64 = u32::MAX as u64 - 1;
/// `XFS_MIN_REALISTIC_LOG_BLOCKS`: 64 MiB.
const LOG_MIN_BLOCKS: u64 = 64 * MIB;
/// What `mkfs.xfs` before 5.19 made of less than 1 GiB: `libxfs_log_calc_minimum_size` with CRCs and a finobt (855 blocks;
/// 1,368 with reflink).
const LOG_LEAST_BLOCKS: u64 = 855;
/// `XFS_MAX_LOG_BYTES`: 2 GiB - 10 MiB.
const LOG_MAX_BLOCKS: u64 = 2038 * MIB;
/// 300 MiB, the least that mkfs takes since 5.19.
const LEAST_BLOCKS: u64 = 300 * MIB;
/// One block of log for this many blocks of data.
const LOG_RATIO: u64 = 2048;

/// Why `mkfs.xfs` refuses a geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeometryError {
    /// Below the 300 MiB that mkfs has required since 5.19; blocks given.
    TooSmall(u64),
    /// An `agcount` of zero, or more groups than a number can name.
    BadAgCount(u64),
    /// Groups smaller than 16 MiB; blocks in a group.
    AgTooSmall(u64),
    /// Groups of 1 TiB or more; blocks in a group.
    AgTooLarge(u64),
    /// The last of so many groups would be empty.
    EmptyLastAg(u64),
    /// A group cannot hold the smallest log (64 MiB); blocks in a group.
    LogDoesNotFit(u64),
    /// A log that is too small or too large; blocks given, and the most.
    BadLog(u64, u64),
    /// Only one group is left, so there would be one superblock.
    SingleAg,
}

impl fmt::Display for GeometryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooSmall(blocks) => write!(f, "{} MiB: must be at least 300 MiB", blocks / MIB),
            Self::BadAgCount(count) => write!(f, "agcount {count} is not possible"),
            Self::AgTooSmall(blocks) => write!(f, "allocation groups of {blocks} blocks are smaller than 16 MiB"),
            Self::AgTooLarge(blocks) => write!(f, "allocation groups of {blocks} blocks: must be below 1 TiB"),
            Self::EmptyLastAg(count) => write!(f, "agcount {count} leaves the last allocation group empty"),
            Self::LogDoesNotFit(blocks) => {
                write!(f, "allocation groups of {blocks} blocks cannot hold the smallest log (64 MiB)")
            }
            Self::BadLog(blocks, most) => {
                write!(
                    f,
                    "a log of {blocks} blocks is not possible: {LOG_LEAST_BLOCKS} blocks to {} MiB, inside one allocation group",
                    most / MIB
                )
            }
            Self::SingleAg => write!(f, "must have at least two allocation groups"),
        }
    }
}

impl std::error::Error for GeometryError {}

/// Sizes and positions that are fixed when the filesystem is made. Blocks are of [`BLOCK_SIZE`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Allocation groups.
    pub agcount: u32,
    /// Blocks in every group but the last.
    pub agblocks: u32,
    /// Blocks of the whole data device.
    pub dblocks: u64,
    /// Bits of a block number inside a group: `ceil(log2(agblocks))`.
    pub agblklog: u32,
    /// Blocks of the log.
    pub logblocks: u32,
    /// Group that holds the log.
    pub log_agno: u32,
    /// Greatest share of space that inodes may take, percent.
    pub imaxpct: u32,
    /// Sizes in directories.
    pub dir: DirGeometry,
    /// Inodes know their names and in which directories they are (`XFS_SB_FEAT_INCOMPAT_PARENT`).
    pub parent: bool,
}

impl Geometry {
    /// The geometry of a device of `size_bytes`, as `mkfs.xfs -d agcount=N` makes it (the default count without N).
    pub fn new(size_bytes: u64, agcount: Option<u64>) -> Result<Self, GeometryError> {
        Self::with_log(size_bytes, agcount, None)
    }

    /// The same with a log of so many bytes (`mkfs.xfs -l size=`). Who gives it may have a filesystem of less than 300 MiB or a log
    /// of less than 64 MiB, as mkfs made them before 5.19.
    pub fn with_log(size_bytes: u64, agcount: Option<u64>, log_bytes: Option<u64>) -> Result<Self, GeometryError> {
        let dblocks = (size_bytes & !1023) / BLOCK_SIZE;
        if dblocks < AG_MIN_BLOCKS {
            return Err(GeometryError::TooSmall(dblocks));
        }
        let agblocks = match agcount {
            Some(0) => return Err(GeometryError::BadAgCount(0)),
            Some(n) => dblocks.div_ceil(n),
            None => default_agblocks(dblocks),
        };
        let agcount = agcount.unwrap_or_else(|| dblocks.div_ceil(agblocks));
        let (dblocks, agcount) = drop_runt(dblocks, agblocks, agcount);
        validate(dblocks, agblocks, agcount, if log_bytes.is_none() { LEAST_BLOCKS } else { AG_MIN_BLOCKS })?;
        let logblocks = match log_bytes {
            Some(bytes) => given_log(bytes / BLOCK_SIZE, agblocks)?,
            None => log_blocks(dblocks, agblocks)?,
        };
        Ok(Self {
            agcount: agcount as u32,
            agblocks: agblocks as u32,
            dblocks,
            agblklog: (agblocks as u32).next_power_of_two().trailing_zeros(),
            logblocks,
            log_agno: agcount as u32 / 2,
            imaxpct: if dblocks < TIB {
                25
            } else if dblocks < 50 * TIB {
                5
            } else {
                1
            },
            dir: DirGeometry::default(),
            parent: false,
        })
    }

    /// The same with directories of these sizes (`mkfs.xfs -n size=`).
    pub fn with_directories(self, dir: DirGeometry) -> Self {
        Self { dir, ..self }
    }

    /// The same with or without parent pointers (`mkfs.xfs -n parent=`).
    pub fn with_parents(self, parent: bool) -> Self {
        Self { parent, ..self }
    }

    /// Blocks of group `agno`.
    pub fn ag_length(&self, agno: u32) -> u32 {
        if agno + 1 < self.agcount {
            self.agblocks
        } else {
            (self.dblocks - u64::from(self.agblocks) * u64::from(self.agcount - 1)) as u32
        }
    }

    /// First block behind headers, roots and log of group `agno`: where its AGFL starts in a fresh filesystem.
    pub fn first_unreserved(&self, agno: u32) -> u32 {
        PREALLOC_BLOCKS + if agno == self.log_agno { self.logblocks } else { 0 }
    }

    /// Bits of an inode number inside a group.
    pub fn agino_log(&self) -> u32 {
        self.agblklog + INOPBLOG
    }

    /// The inode number of inode `agino` of group `agno`.
    pub fn ino(&self, agno: u32, agino: u32) -> u64 {
        u64::from(agno) << self.agino_log() | u64::from(agino)
    }

    /// The group and the number in it of inode `ino`.
    pub fn split_ino(&self, ino: u64) -> (u32, u32) {
        ((ino >> self.agino_log()) as u32, (ino & ((1 << self.agino_log()) - 1)) as u32)
    }

    /// The filesystem block number of block `agbno` of group `agno`.
    pub fn fsblock(&self, agno: u32, agbno: u32) -> u64 {
        u64::from(agno) << self.agblklog | u64::from(agbno)
    }

    /// Blocks of the device before block `agbno` of group `agno`.
    pub fn linear(&self, agno: u32, agbno: u32) -> u64 {
        u64::from(agno) * u64::from(self.agblocks) + u64::from(agbno)
    }

    /// The group and the number in it of filesystem block `fsblock`.
    pub fn split_fsblock(&self, fsblock: u64) -> (u32, u32) {
        ((fsblock >> self.agblklog) as u32, (fsblock & ((1 << self.agblklog) - 1)) as u32)
    }

    /// Inode number of the root directory: the first chunk-aligned block behind headers and AGFL of group 0.
    pub fn root_ino(&self) -> u64 {
        let first_free = PREALLOC_BLOCKS + AGFL_BLOCKS;
        u64::from(first_free.next_multiple_of(INODE_ALIGNMENT)) << INOPBLOG
    }

    /// Most inodes there may be (`maxicount` of `xfs_ialloc_setup_geometry`).
    pub fn max_icount(&self) -> u64 {
        let blocks = self.dblocks * u64::from(self.imaxpct) / 100;
        blocks / u64::from(BLOCKS_PER_CHUNK) * u64::from(INODES_PER_CHUNK)
    }
}

/// `calc_default_ag_geometry` without multidisk: four groups up to 4 TiB, then groups of the greatest size.
fn default_agblocks(dblocks: u64) -> u64 {
    if dblocks >= 4 * TIB {
        AG_MAX_BLOCKS
    } else {
        dblocks.div_ceil(4).min(AG_MAX_BLOCKS)
    }
}

/// `align_ag_geometry`: a last group below the minimum is given up.
fn drop_runt(dblocks: u64, agblocks: u64, agcount: u64) -> (u64, u64) {
    let runt = dblocks % agblocks;
    if runt != 0 && runt < AG_MIN_BLOCKS && agcount > 1 {
        ((agcount - 1) * agblocks, agcount - 1)
    } else {
        (dblocks, agcount)
    }
}

/// `validate_ag_geometry`.
fn validate(dblocks: u64, agblocks: u64, agcount: u64, least: u64) -> Result<(), GeometryError> {
    if agcount > MAX_AGCOUNT {
        Err(GeometryError::BadAgCount(agcount))
    } else if agblocks < AG_MIN_BLOCKS {
        Err(GeometryError::AgTooSmall(agblocks))
    } else if agblocks > AG_MAX_BLOCKS {
        Err(GeometryError::AgTooLarge(agblocks))
    } else if agblocks * (agcount - 1) >= dblocks {
        Err(GeometryError::EmptyLastAg(agcount))
    } else if dblocks < least {
        Err(GeometryError::TooSmall(dblocks))
    } else if agcount < 2 {
        Err(GeometryError::SingleAg)
    } else {
        Ok(())
    }
}

/// Blocks of a group that a log may have.
fn usable(agblocks: u64) -> u64 {
    agblocks - u64::from(PREALLOC_BLOCKS + AGFL_BLOCKS) - 1
}

/// `calculate_log_size`: 1/2048 of the space, between 64 MiB and 2038 MiB, inside one group
/// (`xfs_alloc_ag_max_usable` leaves headers, roots and AGFL; mkfs leaves one block more).
fn log_blocks(dblocks: u64, agblocks: u64) -> Result<u32, GeometryError> {
    let wanted = (dblocks / LOG_RATIO).clamp(LOG_MIN_BLOCKS, LOG_MAX_BLOCKS).min(usable(agblocks));
    if wanted < LOG_MIN_BLOCKS {
        return Err(GeometryError::LogDoesNotFit(agblocks));
    }
    Ok(wanted as u32)
}

/// A log of so many blocks, if a group can hold it.
fn given_log(blocks: u64, agblocks: u64) -> Result<u32, GeometryError> {
    let most = LOG_MAX_BLOCKS.min(usable(agblocks));
    if (LOG_LEAST_BLOCKS..=most).contains(&blocks) {
        Ok(blocks as u32)
    } else {
        Err(GeometryError::BadLog(blocks, most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn default_agcount_is_four_below_4_tib() {
        let g = Geometry::new(100 * GIB, None).unwrap();
        assert_eq!((g.agcount, g.agblocks, g.logblocks), (4, 6_553_600, 16384));
    }

    #[test]
    fn large_filesystems_take_the_greatest_groups_and_drop_the_rest() {
        let g = Geometry::new(10 << 40, None).unwrap();
        assert_eq!((g.agcount, g.agblocks, g.dblocks, g.logblocks), (10, 268_435_455, 2_684_354_550, 521_728));
    }

    #[test]
    fn forty_nine_groups() {
        let g = Geometry::new(8 * GIB, Some(49)).unwrap();
        assert_eq!((g.agblocks, g.ag_length(48), g.log_agno, g.root_ino()), (42800, 42752, 24, 128));
    }

    #[test]
    fn with_a_log_of_its_own_a_filesystem_may_be_as_small_as_mkfs_made_it_before() {
        let g = Geometry::with_log(100 << 20, None, Some(855 * BLOCK_SIZE)).unwrap();
        assert_eq!((g.agcount, g.agblocks, g.logblocks, g.max_icount()), (4, 6400, 855, 51_200));
        assert!(matches!(Geometry::with_log(100 << 20, None, Some(3 << 20)), Err(GeometryError::BadLog(768, _))));
        assert!(matches!(Geometry::with_log(10 << 20, None, Some(4 << 20)), Err(GeometryError::TooSmall(_))));
    }

    #[test]
    fn impossible_geometries_are_named() {
        assert!(matches!(Geometry::new(100 << 20, None), Err(GeometryError::TooSmall(_))));
        assert!(matches!(Geometry::new(GIB, Some(0)), Err(GeometryError::BadAgCount(0))));
        assert!(matches!(Geometry::new(GIB, Some(17)), Err(GeometryError::LogDoesNotFit(_))));
        assert!(matches!(Geometry::new(GIB, Some(100)), Err(GeometryError::AgTooSmall(_))));
        assert!(matches!(Geometry::new(GIB, Some(1)), Err(GeometryError::SingleAg)));
    }
}
