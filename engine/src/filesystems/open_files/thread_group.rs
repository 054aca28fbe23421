//! The threads of one process: what they open is in one table, and each open file has a reference of their credentials.

use crate::filesystems::by_slot::BySlot;
use crate::filesystems::open_files::files_struct::{FilesStruct, TableWork};
use crate::waist::{Access, LineId, Machine, TaskId};
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;

/// What the threads of a process share.
pub struct ThreadGroup {
    /// What they have open.
    pub files: FilesStruct,
    /// The first line of `struct cred`: its count of references, and the identity that permissions go by.
    cred: LineId,
    /// A callback of RCU gives references back (`file_free_rcu`).
    callback: bool,
    /// Its first thread.
    pub leader: TaskId,
}

/// The processes of those tasks that are threads of one, by task.
pub type ThreadGroups = BySlot<Rc<ThreadGroup>>;

impl ThreadGroup {
    /// A process whose threads have opened nothing.
    pub fn new<M: Machine>(m: &M, work: TableWork, threads: Range<TaskId>, callback: bool) -> Self {
        let files = FilesStruct::new(m, work, threads.len() > 1);
        Self { files, cred: m.new_line("vfs.cred usage", 1), callback, leader: threads.start }
    }

    /// `do_sys_openat2`: what `opening` opens at `site` gets a descriptor, and a reference of the credentials (`init_file`).
    pub async fn open<M: Machine, T>(&self, m: &M, site: &'static str, opening: Pin<&mut dyn Future<Output = T>>) -> T {
        m.at(site);
        let fd = self.files.get_unused_fd(m).await;
        m.touch(self.cred, Access::Atomic);
        let opened = opening.await;
        m.touch(self.cred, Access::Read); // `may_open`, `inode_permission`
        self.files.install(m, fd).await;
        opened
    }

    /// `close` of what the thread opened last. A callback of RCU gives the references of many files back at a time, for which the line
    /// is fetched once.
    pub async fn close<M: Machine>(&self, m: &M) {
        self.files.close_fd(m).await;
        if !self.callback {
            m.touch(self.cred, Access::Atomic);
        }
    }
}
