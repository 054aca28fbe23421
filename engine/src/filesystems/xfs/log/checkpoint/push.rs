//! The programs of the workers that write checkpoints and that end log buffers.

use super::super::context::Context;
use super::super::Log;
use super::COMMIT_RECORD;
use crate::filesystems::xfs::mount::Xfs;
use crate::kernel::xfs::LogFlushes;
use crate::waist::Machine;
use crate::waist::{Account, CpuId, Side, Time};
use crate::workqueue::HIGHPRI;
use std::rc::Rc;

impl Xfs {
    /// Writes a checkpoint if one is to be written (`xlog_cil_push_work`).
    pub async fn push_cil<M: Machine>(&self, m: &M) {
        let cil = &self.log.checkpoints;
        m.at("cil push");
        if !cil.queued.replace(false) {
            return;
        }
        cil.running.set(cil.running.get() + 1);
        let context = Self::take_context(m, &self.log).await;
        if cil.orders {
            m.run(Account::System, cil.costs.order * context.items.len() as Time).await;
        }
        let sequence = context.sequence;
        self.write_checkpoint(m, context).await;
        cil.pushes.end(m, sequence).await;
        cil.running.set(cil.running.get() - 1);
    }

    /// `xlog_cil_build_lv_chain`: the items are taken off the list, while nobody can commit. `xc_push_lock` is taken before it, for the
    /// parts of CPUs and the list of contexts that are being committed, and after it, for `xc_current_sequence`.
    async fn take_context<M: Machine>(m: &M, log: &Log) -> Context {
        let cil = &log.checkpoints;
        m.lock(cil.ctx_lock, Side::Write).await;
        cil.lock(m).await;
        cil.gather_parts(m).await;
        let context = cil.switch(log);
        cil.push_wait.wake_all(m).await;
        cil.unlock(m).await;
        m.run(Account::System, cil.costs.push + cil.costs.build * context.items.len() as Time).await;
        cil.lock(m).await;
        cil.unlock(m).await;
        m.unlock(cil.ctx_lock, Side::Write).await;
        context
    }

    /// `xlog_cil_write_chain` and `xlog_cil_write_commit_record`: the items buffer by buffer, then the record in the order of the contexts.
    /// What was written in place is safe before the first buffer is written, and the others are on disk before the record.
    async fn write_checkpoint<M: Machine>(&self, m: &M, context: Context) {
        let (cil, sequence) = (&self.log.checkpoints, context.sequence);
        let (iclogs, stable) = (&cil.iclogs, cil.stable.take());
        if cil.flushes == LogFlushes::Before {
            iclogs.flush_device(m).await; // xfs_flush_bdev_async, whose end is waited for before the first buffer
        }
        let (work, mut left, mut first) = (cil.writing(&context), context.bytes, None);
        while left > 0 {
            let (number, part) = iclogs.get_space(m, left).await;
            if first.replace(first.unwrap_or(number)).is_none() && cil.flushes == LogFlushes::Ends {
                iclogs.preflush(m, number).await;
            }
            m.run(Account::System, work * part / context.bytes).await;
            left -= part;
            iclogs.release(m, number).await;
        }
        cil.wait_for_turn(m, sequence).await;
        let (number, _) = iclogs.get_space(m, COMMIT_RECORD).await;
        iclogs.attach(m, number, context).await;
        cil.written.borrow_mut().push_back((sequence, number));
        cil.end_turn(m, sequence).await;
        let before = cil.flushes > LogFlushes::Each && first.is_some_and(|first| first < number);
        iclogs.release_commit(m, number, before, stable).await;
    }

    /// The program of a CPU's worker that ends log buffers (`xlog_ioend_work`).
    pub async fn log_ender<M: Machine>(m: M, fs: Rc<Self>, cpu: CpuId) {
        let cil = &fs.log.checkpoints;
        m.at("log end");
        m.set_nice(HIGHPRI); // the workqueue xfs-log
        loop {
            let (number, _) = cil.iclogs.ended.next(&m, cpu).await;
            m.run(Account::System, cil.costs.end).await;
            let mut ended = cil.iclogs.done(&m, number).await;
            while let Some((ends, besides)) = ended {
                for context in ends {
                    m.run(Account::System, cil.costs.committed * context.items.len() as Time).await; // xlog_cil_committed
                    fs.log.ail_insert(&m, context).await;
                    cil.lock(&m).await; // xc_committing
                    cil.written.borrow_mut().pop_front();
                    cil.unlock(&m).await;
                }
                fs.log.pass(&m, besides).await;
                ended = cil.iclogs.clean(&m).await;
            }
        }
    }
}
