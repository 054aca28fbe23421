"""What an append with fsync takes on ext4 and its loop device, of the untraced loop `append_fsync`.

Wake-ups and switches are left out of all parts: a machine has costs of its own for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import TYPE_CHECKING

import numpy as np

from laboratory.loops import Loop, loops

if TYPE_CHECKING:
    from laboratory.counted import Row, Values

_WHERE = "append of 4 KiB and fsync, one task in the emulated kernel, 6.12.117, every block of instructions logged: "
_UNWRITTEN = (
    "direct write of 4 KiB within an unwritten extent, one task in the emulated kernel, 6.12.117,"
    " every block of instructions logged: "
)
SOURCES = {
    "wfsync.writepages": f"{_WHERE}from the entry into fsync to the first wait, without the submission",
    "writepages.before_blocks": f"{_WHERE}from the entry into fsync to ext4_mb_mark_diskspace_used",
    "wfsync.convert": f"{_WHERE}ext4_end_io_rsv_work, and what process_one_work does around it",
    "wfsync.end_io": f"{_WHERE}the part of wfsync.convert outside of its handle, and around the work",
    "wfsync.commit_lock": f"{_WHERE}from the start of the commit to the wake-up of who waits for the switch",
    "wfsync.commit_log": f"{_WHERE}from there to the first submission, without what each block takes",
    "wfsync.commit_block": f"{_WHERE}the block and its tag, up to where it cannot be changed any more",
    "wfsync.commit_submit": f"{_WHERE}the submission of a block",
    "wfsync.commit_written": f"{_WHERE}what is done for a block when it is in the log",
    "wfsync.commit_refile": f"{_WHERE}the refiling of a block at the end",
    "wfsync.commit_record": f"{_WHERE}from the last block's end to the submission of the record",
    "wfsync.commit_end": f"{_WHERE}from the submission of the record to the end, without what each block takes",
    "wfsync.exit": f"{_WHERE}from the end of the first wait to user code, without the second wait",
    "unwritten.split": f"{_UNWRITTEN}ext4_iomap_begin, with i_data_sem exclusively",
    "unwritten.split_rest": f"{_UNWRITTEN}the rest of ext4_iomap_begin, with the handle",
    "unwritten.convert": f"{_UNWRITTEN}ext4_convert_unwritten_extents, with i_data_sem exclusively",
    "unwritten.convert_rest": f"{_UNWRITTEN}the rest of ext4_convert_unwritten_extents, with the handle and the inode",
    "submit": f"{_WHERE}submit_bio and blk_finish_plug of the data",
    "interrupt": f"{_WHERE}blk_mq_complete_request with the end of the request",
    "dispatch": f"{_WHERE}blk_mq_requeue_work, and what process_one_work does around it",
    "write.time": f"{_WHERE}a turn of loop_process_work for 4 KiB without the completion, and what is around it",
    "write.per_kib": f"{_WHERE}a quarter of shmem_file_write_iter of 4 KiB, as each page is written by itself",
    "flush.time": f"{_WHERE}a turn of loop_process_work for a flush without the completion, and what is around it",
}
_APART = ("try_to_wake_up", "__schedule")
_FIRST = 1
"""The first operation is not like the others."""


@dataclass(frozen=True)
class Span:
    """What a task executes between two positions of a log."""

    loop: Loop
    task: int
    begin: int
    end: int

    def at(self, *names: str) -> list[int]:
        """Return where functions are entered."""
        return self.loop.inside(self.begin, self.end, self.task, *names)

    def of(self, *names: str) -> int:
        """Return what functions take, with all that they call."""
        return sum(self.loop.took(self.task, at, self.loop.log.returns(at)) for at in self.at(*names))

    def to(self, begin: int, end: int) -> int:
        """Return what is executed between two positions, without wake-ups and switches."""
        part = Span(self.loop, self.task, begin, end)
        return self.loop.took(self.task, begin, end) - part.of(*_APART)


def spans(loop: Loop, name: str) -> Iterator[Span]:
    """Yield the calls of a function but the first."""
    for begin, end, task in list(loop.each(name))[_FIRST:]:
        yield Span(loop, task, begin, end)


def ext4(rows: Sequence[Row]) -> Values:
    """Return `wfsync.*` and `unwritten.*`."""
    loop = loops(rows)["append_fsync"]
    outside = round(median(around(loop, "ext4_end_io_rsv_work")))
    found: Values = {}
    found["wfsync.convert"] = [s.to(s.begin, s.end) + outside for s in spans(loop, "ext4_end_io_rsv_work")]
    found["wfsync.end_io"] = [_outside_handle(span) + outside for span in spans(loop, "ext4_end_io_rsv_work")]
    for span in spans(loop, "ext4_sync_file"):
        _fsync(span, found)
    del found["submit"]  # the device's
    for span in spans(loop, "jbd2_journal_commit_transaction"):
        _commit(span, found)
    return found | unwritten(loops(rows)["direct_unwritten"])


def unwritten(loop: Loop) -> Values:
    """Return what a direct write does in the handles that split and convert its extent."""
    found: Values = {}
    for step, function in (("split", "ext4_iomap_begin"), ("convert", "ext4_convert_unwritten_extents")):
        for span in spans(loop, function):
            (locked,), unlocked = span.at("down_write"), span.at("up_write")[-1]
            under = span.to(locked, unlocked)
            found.setdefault(f"unwritten.{step}", []).append(under)
            found.setdefault(f"unwritten.{step}_rest", []).append(span.to(span.begin, span.end) - under)
    return found


def _outside_handle(span: Span) -> int:
    (joined,), (left,), returns = (
        span.at("start_this_handle"),
        span.at("stop_this_handle"),
        span.loop.log.returns,
    )
    return span.to(span.begin, returns(joined)) + span.to(returns(left), span.end)


def _fsync(span: Span, found: Values) -> None:
    log = span.loop.log
    waits = span.at("__schedule")
    user = np.searchsorted(log.user, [span.begin, span.end])
    if len(waits) != 2 or user[1] == len(log.user):
        return
    entered, left = int(log.user[user[0] - 1]), int(log.user[user[1]])
    before = Span(span.loop, span.task, entered, waits[0])
    submission = before.of("submit_bio", "blk_finish_plug") - before.of("try_to_wake_up")
    marked = before.at("ext4_mb_mark_diskspace_used")[0]
    for name, value in (
        ("wfsync.writepages", span.to(entered, waits[0]) - submission),
        ("writepages.before_blocks", span.to(entered, marked)),
        ("wfsync.exit", span.to(log.returns(waits[0]), left)),
    ):
        found.setdefault(name, []).append(value)
    found.setdefault("submit", []).append(submission)


def _commit(span: Span, found: Values) -> None:
    woken, blocks = span.at("__wake_up")[0], span.at("jbd2_journal_write_metadata_buffer")
    submitted, ended = span.at("submit_bh"), span.at("free_buffer_head")
    refiled, record = span.at("__jbd2_journal_refile_buffer"), submitted[-1]
    many = len(blocks) - 1
    each = [span.to(part[0], part[many]) / many for part in (blocks, submitted, ended, refiled)]
    last = span.loop.log.returns(record)
    for name, value in (
        ("lock", span.to(span.begin, woken)),
        ("log", span.to(woken, submitted[0]) - (many + 1) * each[0]),
        *zip(("block", "submit", "written", "refile"), each, strict=True),
        ("record", span.to(ended[-1], record) - each[2]),
        ("end", span.to(last, span.end) - (many + 1) * each[3]),
    ):
        found.setdefault(f"wfsync.commit_{name}", []).append(round(value))


def around(loop: Loop, work: str) -> list[int]:
    """What a worker's turn takes besides its work."""
    turns = [(span, span.at(work)) for span in spans(loop, "process_one_work")]
    return [
        span.to(span.begin, span.end) - sum(span.to(at, loop.log.returns(at)) for at in works)
        for span, works in turns
        if works
    ]


def device(rows: Sequence[Row]) -> Values:
    """Return what the loop device takes."""
    loop = loops(rows)["append_fsync"]
    outside = round(median(around(loop, "loop_rootcg_workfn")))
    found: Values = {"submit": [], "write.time": [], "flush.time": []}
    for span in spans(loop, "ext4_sync_file"):
        _fsync(span, found)
    for span in spans(loop, "loop_process_work"):
        completion, pages = "blk_mq_complete_request", len(span.at("shmem_file_write_iter"))
        if len(span.at(completion)) == 1 and pages < 2:
            taken = span.loop.took(span.task, span.begin, span.end) - span.of(completion)
            found["write.time" if pages else "flush.time"].append(taken + outside)
    requeue = [s.to(s.begin, s.end) for s in spans(loop, "blk_mq_requeue_work")]
    writes = [s.to(s.begin, s.end) for s in spans(loop, "shmem_file_write_iter")]
    return {
        name: [round(median(values))]
        for name, values in found.items()
        if not name.startswith(("wfsync", "writepages"))
    } | {
        "interrupt": [round(mean(s.to(s.begin, s.end) for s in spans(loop, "blk_mq_complete_request")))],
        "dispatch": [round(mean(requeue)) + round(median(around(loop, "blk_mq_requeue_work")))],
        "write.per_kib": [round(median(writes) / 4)],
    }
