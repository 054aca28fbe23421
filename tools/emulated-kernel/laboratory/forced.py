"""What an fsync takes on XFS up to the end of its log buffer, of untraced loops of tools/file-operations.

Wake-ups, switches and submissions are left out of all parts: machine and device have costs of their own for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean, median
from typing import TYPE_CHECKING

from laboratory.loops import Loop, loops
from laboratory.synced import Span, around, spans

if TYPE_CHECKING:
    from laboratory.counted import Row, Values

_LOGGED = "one task in the emulated kernel, 6.12.117, every block of instructions logged: "
_WHERE = f"append of 4 KiB and fsync, {_LOGGED}"
_STEP = "what is executed since the step before, as in the trace"
ALLOCATION = (
    ("log_reserve_2", "xfs_log_reserve"),
    ("trans_alloc_2", "xfs_ilock"),
    ("lock_file_ilock_excl_3", "down_write"),
    ("read_agf", "xfs_read_agf"),
    ("trylock_agf", "down_trylock"),
    ("lock_agfl", "xfs_buf_lock"),
    ("unlock_agfl", "xfs_buf_unlock"),
    ("lock_cntbt", "xfs_buf_lock"),
    ("lock_bnobt", "xfs_buf_lock"),
    ("defer_finish", "xfs_trans_commit"),
    ("trans_commit_2", "xlog_cil_commit"),
    ("unlock_agf", "xfs_buf_unlock"),
    ("unlock_cntbt", "xfs_buf_unlock"),
    ("unlock_bnobt", "xfs_buf_unlock"),
    ("trans_free_2", "xfs_trans_free"),
    ("unlock_file_ilock_excl_3", "up_write"),
)
"""The steps of an allocation, and the function with whose entry each ends."""
SOURCES = {
    "wfsync.": f"{_WHERE}{_STEP}",
    **{f"wfsync.{name}": f"create, write of 4 KiB and fsync, {_LOGGED}{_STEP}" for name, _ in ALLOCATION},
    "wfsync.convert": f"{_WHERE}xfs_end_io, and what process_one_work does around it",
    "checkpoint.push": f"{_WHERE}xlog_cil_push_work and what process_one_work does around it, less its one item",
    "checkpoint.end": f"{_WHERE}xlog_ioend_work and what process_one_work does around it, less its one item",
    "iclog.sync": f"{_WHERE}xlog_sync without submission, less the checksum of a KiB",
    "cil_queue_": f"fsync on 24 CPUs, {_LOGGED}flush_workqueue_prep_pwqs by the locks that it takes",
    "iclog.kib": f"{_WHERE}crc32c_intel_update of two sectors more or less",
}
_SUBMISSION = ("submit_bio", "blk_finish_plug")
_LOCKS = ("_raw_spin_lock_irq", "_raw_spin_unlock_irq")
_COLOURS = "flush_workqueue_prep_pwqs"
_WAITS = 3
"""An fsync waits for its page, for a push and for its log buffer."""
_SECTORS = 512


def counted(rows: Sequence[Row], items: Values) -> Values:
    """Return `wfsync.*`, and what a push and a log buffer take besides what each item takes (`checkpoint.*`)."""
    loop, first = (loops(rows)[f"own:{kind}"] for kind in ("append_fsync", "create_fsync_unlink"))
    found: Values = {"wfsync.convert": _turns(loop, "xfs_end_io")}
    for call in _fsyncs(loop):
        _fsync(call, found)
    for call in list(_fsyncs(first))[1:]:
        for name, (begin, end) in _allocation(call, call.at("up_read")[0]).items():
            found.setdefault(f"wfsync.{name}", []).append(_step(Span(first, call.task, begin, end)))
    return found | _log(loop, items)


def _fsyncs(loop: Loop) -> Iterator[Span]:
    return (Span(loop, call.task, call.begin, call.end) for call in loop.calls() if call.name == "fsync")


def queue(rows: Sequence[Row]) -> Values:
    """Return what each part of the queue of checkpoint workers takes, and its lock."""
    counted = [colours(span) for span in spans(loops(rows)["own:append_fsync"], _COLOURS)]
    return dict(zip(("cil_queue_part", "cil_queue_lock"), map(list, zip(*counted, strict=True)), strict=True))


def colours(span: Span) -> tuple[int, int]:
    """Return what `flush_workqueue_prep_pwqs` takes for a part, without and for its lock."""
    parts, locks = len(span.at(_LOCKS[0])), span.of(*_LOCKS)
    return round((span.to(span.begin, span.end) - locks) / parts), round(locks / parts)


def _fsync(call: Span, found: Values) -> None:
    waits, forced = call.at("schedule"), call.at("xfs_log_force_seq", "xlog_cil_force_seq")
    if len(waits) != _WAITS or len(forced) != 2 or call.at("xfs_bmapi_convert_one_delalloc"):
        return
    woken = [call.loop.log.returns(at) for at in waits]
    looked, unlocked = call.at("down_read")[0], call.at("up_read")[0]
    entered, synced = call.at("__x64_sys_fsync")[0], call.at("xfs_file_fsync")[0]
    parts = {
        "enter_fsync": (call.begin, entered),
        "file_fsync": (entered, synced),
        "lock_file_ilock_shared_2": (synced, looked),
        "unlock_file_ilock_shared_2": (looked, unlocked),
        "switch_out": (unlocked, waits[0]),
        "log_force": (woken[0], forced[0]),
        "log_force_2": (forced[0], forced[1]),
        "switch_out_2": (forced[1], waits[1]),
        "switch_out_3": (woken[1], waits[2]),
        "exit_fsync": (woken[2], call.end),
    }
    for name, (begin, end) in parts.items():
        found.setdefault(f"wfsync.{name}", []).append(_step(Span(call.loop, call.task, begin, end)))


def _allocation(call: Span, begin: int) -> dict[str, tuple[int, int]]:
    """The steps of the allocation of a call, from where it has seen that there are no blocks."""
    steps: dict[str, tuple[int, int]] = {}
    for name, function in ALLOCATION:
        end = next(at for at in call.at(function) if at > begin)
        steps[name] = (begin, end)
        begin = end
    return steps


def _step(span: Span) -> int:
    """A step without the log buffer, the submissions and the colours of a queue's parts, which are charged apart."""
    buffers = [_called(span, at) for at in span.at("xlog_sync")]
    within = sum(_submissions(buffer) for buffer in buffers)
    whole = sum(buffer.to(buffer.begin, buffer.end) for buffer in buffers)
    return span.to(span.begin, span.end) - whole - (_submissions(span) - within) - span.of(_COLOURS)


def _called(span: Span, at: int) -> Span:
    return Span(span.loop, span.task, at, span.loop.log.returns(at))


def _submissions(span: Span) -> int:
    """Submissions without their wake-ups."""
    return sum(call.to(call.begin, call.end) for call in (_called(span, at) for at in span.at(*_SUBMISSION)))


def _turns(loop: Loop, work: str) -> list[int]:
    """What a work of a queue takes, with what is around it."""
    outside = round(median(around(loop, work)))
    return [span.to(span.begin, span.end) + outside for span in spans(loop, work)]


def _log(loop: Loop, items: Values) -> Values:
    """What a push, the end of a buffer and its writing take; most have one item, and one or two sectors of data."""
    each = {name: round(mean(taken)) for name, taken in items.items()}
    pushed = sum(each[f"checkpoint.{name}"] for name in ("build", "order", "write"))
    buffers = list(spans(loop, "xlog_sync"))
    sums = sorted({buffer.of("crc32c_intel_update") for buffer in buffers})
    kib = (sums[1] - sums[0]) * 1024 // _SECTORS
    return {
        "checkpoint.push": [taken - pushed for taken in _turns(loop, "xlog_cil_push_work")],
        "checkpoint.end": [taken - each["checkpoint.committed"] for taken in _turns(loop, "xlog_ioend_work")],
        "iclog.sync": [b.to(b.begin, b.end) - _submissions(b) - kib for b in buffers],
        "iclog.kib": [kib],
    }
