//! AppArmor's labels of open files (`security/apparmor/lsm.c`, since 4.13). A file that is opened gets the label of the task that opens it,
//! with a reference, which goes back when the file is closed for the last time. All tasks that no profile confines have one label: their
//! opens and closes meet at its count of references, whatever files they are of.
//!
//! The count has a line for itself: what else is read of a label (`flags`, `secid`) lies 64 bytes behind it, and the label 256 bytes into
//! its profile (offsets recalled, of 6.10). Left out: what the calls themselves take, and files that a profile has rules for.

use crate::kernel::Rules;
use crate::waist::{Access, LineId, Machine};

/// The label of all tasks of a run.
pub struct Label {
    /// Its count of references, if the kernel runs with AppArmor.
    count: Option<LineId>,
    /// An open takes a reference to look at the label, and gives it back.
    open_counts: bool,
}

impl Label {
    /// By the rules of a kernel.
    pub fn new<M: Machine>(m: &M, rules: &Rules) -> Self {
        Self {
            count: rules.apparmor.then(|| m.new_line("apparmor.label count", 1)),
            open_counts: rules.apparmor_open_counts,
        }
    }

    /// `apparmor_file_alloc_security`: before the walk of an `open`.
    pub async fn file_alloc<M: Machine>(&self, m: &M) {
        self.count(m).await;
    }

    /// `apparmor_file_open`, in `do_dentry_open`.
    pub async fn file_open<M: Machine>(&self, m: &M) {
        if self.open_counts {
            self.count(m).await;
            self.count(m).await;
        }
    }

    /// `apparmor_file_free_security`, in `__fput`.
    pub async fn file_free<M: Machine>(&self, m: &M) {
        self.count(m).await;
    }

    /// `kref_get`, `kref_put`.
    async fn count<M: Machine>(&self, m: &M) {
        if let Some(line) = self.count {
            m.touch(line, Access::Atomic);
            m.settle().await;
        }
    }
}
