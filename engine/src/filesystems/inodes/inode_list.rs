//! A list of inodes under a spinlock, or one for each CPU: a superblock's (`s_inodes`), and SELinux's.

use crate::filesystems::costs::Costs;
use crate::filesystems::inodes::listed::{Entry, Lists, Pointers, OTHERS};
use crate::kernel::vfs::{InodeList, IsecList};
use crate::memory::Held;
use crate::waist::{Access, Account, ClassId, LockId, Machine, Side, Time};

/// The lists. Each has its head in the line of its lock.
pub struct InodeLists {
    locks: Vec<LockId>,
    listed: Lists,
    pointers: Pointers,
    hold: Time,
}

impl InodeLists {
    /// `s_inodes`, under `s_inode_list_lock` (`fs/inode.c`).
    pub fn of_superblock<M: Machine>(m: &M, costs: &Costs<'_>) -> Result<Self, String> {
        let class = m.class("vfs.s_inode_list_lock", "vfs.inode_list");
        Self::new(m, class, if costs.rules().inode_list == InodeList::Global { 1 } else { m.cpus() }, costs)
    }

    /// `isec_head`, under `isec_lock`: inodes whose labels wait for a policy (`security/selinux/hooks.c`). None without SELinux, or with a policy.
    pub fn of_selinux<M: Machine>(m: &M, costs: &Costs<'_>) -> Result<Option<Self>, String> {
        let lists = match costs.rules().isec_list {
            IsecList::None => return Ok(None),
            IsecList::Global => 1,
            IsecList::PerCpu => m.cpus(),
        };
        Self::new(m, m.class("vfs.isec_lock", "vfs.isec_list"), lists, costs).map(Some)
    }

    fn new<M: Machine>(m: &M, class: ClassId, lists: u32, costs: &Costs<'_>) -> Result<Self, String> {
        Ok(Self {
            locks: (0..lists).map(|_| m.new_lock(class)).collect(),
            listed: Lists::default(),
            pointers: Pointers::of_list(costs.rules().debug_list),
            hold: costs.sum(&["inode_list"])?,
        })
    }

    /// `list_add`, by who is on this CPU; how long it takes under the lock.
    pub async fn add<M: Machine>(&self, m: &M, inode: Entry) -> Time {
        let list = m.cpu() as usize % self.locks.len();
        self.under(m, list, || {
            if inode != OTHERS {
                self.pointers.touch(m, inode, Access::Write);
            }
            let first = self.listed.add(list as u32, inode);
            self.pointers.relink(m, first);
        })
        .await
    }

    /// `list_del_init`, and the inode's memory is free; how long it takes under the lock.
    pub async fn remove<M: Machine>(&self, m: &M, inode: Entry) -> Time {
        let list = self.listed.list_of(inode).map_or(m.cpu() as usize % self.locks.len(), |list| list as usize);
        let time = self.under(m, list, || {
            self.pointers.touch(m, inode, Access::Write);
            self.pointers.relink(m, self.listed.remove(inode).into_iter().flatten());
        });
        let time = time.await;
        self.pointers.free(m, inode);
        time
    }

    /// An inode is on no list when the run begins.
    pub fn leaves_memory(&self, inode: Entry) {
        self.listed.remove(inode);
    }

    /// What an inode takes that goes because memory is short.
    pub fn held(&self) -> Held {
        Held { locks: self.locks.clone(), hold: self.hold, count: None }
    }

    async fn under<M: Machine>(&self, m: &M, list: usize, change: impl FnOnce()) -> Time {
        m.lock(self.locks[list], Side::Write).await;
        change();
        m.run(Account::System, self.hold).await;
        m.unlock(self.locks[list], Side::Write).await;
        self.hold
    }
}
