//! A directory that fits into its inode (`xfs_dir2_sf.c`).

use super::data::{entry_size, DATA_HEADER};

/// First offset after `.` and `..` in the block that the directory would become.
const FIRST_OFFSET: usize = DATA_HEADER + 32;
/// Bytes of an entry besides its name here: name length, offset, inode number.
const FIXED: usize = 1 + 2 + 8;

/// Entries in the order of the offsets that they would have in block form.
#[derive(Clone, Debug)]
pub struct ShortForm {
    parent: u64,
    count: usize,
    /// Inode numbers above 32 bits, the parent's included: with one of them all take eight bytes.
    large: usize,
    name_bytes: usize,
    /// Length, offset, inode number and name of each entry.
    bytes: Vec<u8>,
}

impl ShortForm {
    /// An empty directory.
    pub fn new(parent: u64) -> Self {
        Self { parent, count: 0, large: usize::from(is_large(parent)), name_bytes: 0, bytes: Vec::new() }
    }

    /// Inode number of `..`.
    pub fn parent(&self) -> u64 {
        self.parent
    }

    /// Number of names.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Bytes in the inode (`xfs_dir2_sf_hdr_size` and entries with file type).
    pub fn size(&self) -> usize {
        on_disk(self.count, self.name_bytes, self.large)
    }

    /// Bytes that entries of these name lengths and inode numbers would take (`xfs_dir2_block_sfsize`).
    pub fn size_of(parent: u64, entries: impl Iterator<Item = (usize, u64)>) -> usize {
        let start = (0, 0, usize::from(is_large(parent)));
        let (count, names, large) = entries
            .fold(start, |(n, bytes, large), (len, ino)| (n + 1, bytes + len, large + usize::from(is_large(ino))));
        on_disk(count, names, large)
    }

    /// Offset in block form, name and inode number of each entry.
    pub fn entries(&self) -> impl Iterator<Item = (usize, &[u8], u64)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let rest = self.bytes.get(at..).filter(|rest| !rest.is_empty())?;
            let len = usize::from(rest[0]);
            let offset = u16::from_le_bytes([rest[1], rest[2]]).into();
            let ino = u64::from_le_bytes(rest[3..FIXED].try_into().expect("eight bytes"));
            at += FIXED + len;
            Some((offset, &rest[FIXED..FIXED + len], ino))
        })
    }

    /// The inode number for a name.
    pub fn lookup(&self, name: &[u8]) -> Option<u64> {
        self.entries().find(|entry| entry.1 == name).map(|entry| entry.2)
    }

    /// Adds a name; false when more than `fork_size` bytes are needed, or more than the `block` that it would become has, so that it must
    /// (`xfs_dir2_sf_addname`).
    pub fn add(&mut self, name: &[u8], ino: u64, fork_size: usize, block: usize) -> bool {
        let large = self.large + usize::from(is_large(ino));
        if on_disk(self.count + 1, self.name_bytes + name.len(), large) > fork_size {
            return false;
        }
        let size = entry_size(name.len());
        let mut end = FIRST_OFFSET;
        let mut hole = None;
        let mut at = 0;
        for (offset, other, _) in self.entries() {
            if hole.is_none() && end + size <= offset {
                hole = Some((end, at));
            }
            end = offset + entry_size(other.len());
            at += FIXED + other.len();
        }
        let used = end + 8 * (self.count + 3) + 8;
        let (offset, at) = match hole {
            _ if used + size <= block => (end, at),
            Some(hole) if used <= block => hole,
            _ => return false,
        };
        self.insert(at, offset, name, ino);
        true
    }

    /// Adds an entry behind all others, at its offset in block form.
    pub fn append(&mut self, offset: usize, name: &[u8], ino: u64) {
        self.insert(self.bytes.len(), offset, name, ino);
    }

    /// Removes a name: its inode number, if it was there.
    pub fn remove(&mut self, name: &[u8]) -> Option<u64> {
        let mut at = 0;
        let (_, _, ino) = self.entries().find(|entry| {
            let found = entry.1 == name;
            at += if found { 0 } else { FIXED + entry.1.len() };
            found
        })?;
        self.bytes.drain(at..at + FIXED + name.len());
        self.count -= 1;
        self.name_bytes -= name.len();
        self.large -= usize::from(is_large(ino));
        Some(ino)
    }

    fn insert(&mut self, at: usize, offset: usize, name: &[u8], ino: u64) {
        let fixed = self.bytes.len();
        self.bytes.push(name.len() as u8);
        self.bytes.extend_from_slice(&(offset as u16).to_le_bytes());
        self.bytes.extend_from_slice(&ino.to_le_bytes());
        self.bytes.extend_from_slice(name);
        let len = self.bytes.len() - fixed;
        self.bytes[at..].rotate_right(len);
        self.count += 1;
        self.name_bytes += name.len();
        self.large += usize::from(is_large(ino));
    }
}

fn is_large(ino: u64) -> bool {
    ino > u64::from(u32::MAX)
}

fn on_disk(count: usize, name_bytes: usize, large: usize) -> usize {
    let number = if large > 0 { 8 } else { 4 };
    2 + number + count * (1 + 2 + 1 + number) + name_bytes
}
