"""The laboratory's counter of fsync: a commit cut into its parts, without wake-ups and switches."""

from __future__ import annotations

import numpy as np
from laboratory import blocks, forced, synced
from laboratory.loops import Loop

TEXT, TASK, USER = 0xFFFFFFFF81000000, 0xFFFFC90000004000, 0x7FFF0000
NAMES = (
    "jbd2_journal_commit_transaction", "__wake_up", "jbd2_journal_write_metadata_buffer", "submit_bh",
    "free_buffer_head", "__jbd2_journal_refile_buffer", "try_to_wake_up", "__schedule", "blk_mq_requeue_work",
    "process_one_work", "ext4_convert_unwritten_extents", "ext4_iomap_begin", "down_write", "up_write",
    "xlog_force_lsn", "xlog_sync", "submit_bio", "flush_workqueue_prep_pwqs", "_raw_spin_lock_irq",
    "_raw_spin_unlock_irq",
)  # fmt: skip
KALLSYMS = "".join(f"{TEXT + 0x100 * nth:x} T {name}\n" for nth, name in enumerate(NAMES))

Block = tuple[str, int, int]
"""The function that is entered (none: its caller goes on), the depth, and the instructions."""


def loop(*executed: Block) -> Loop:
    """What a task executes between user code."""
    records, ns = [], 0
    for nth, (name, depth, instructions) in enumerate((("", -1, 1), *executed, ("", -1, 1))):
        place = TEXT + 0x100 * NAMES.index(name) if name else TEXT + 0xFFFF + nth
        user = depth < 0
        records.append(
            (USER if user else place, USER if user else TASK + 0x800 - 8 * depth, ns, instructions, 0)
        )
        ns += instructions
    return Loop(blocks.Log(np.array(records, dtype=blocks.RECORD), blocks.Symbols.parse(KALLSYMS)))


def test_a_commit_has_parts_of_its_own_and_parts_of_each_block() -> None:
    commit = loop(
        ("jbd2_journal_commit_transaction", 1, 50), ("__wake_up", 2, 10),
        ("jbd2_journal_write_metadata_buffer", 2, 30), ("jbd2_journal_write_metadata_buffer", 2, 30),
        ("", 1, 5), ("submit_bh", 2, 14), ("submit_bh", 2, 14), ("try_to_wake_up", 2, 1000), ("__schedule", 2, 2000),
        ("", 1, 7), ("free_buffer_head", 2, 4), ("free_buffer_head", 2, 4), ("", 1, 70), ("submit_bh", 2, 20),
        ("__schedule", 2, 2000), ("", 1, 3), ("__jbd2_journal_refile_buffer", 2, 6),
        ("__jbd2_journal_refile_buffer", 2, 6), ("", 1, 9), ("", 0, 0),
    )  # fmt: skip
    (span,) = [synced.Span(commit, task, at, end) for at, end, task in commit.each(NAMES[0])]
    found: dict[str, list[int]] = {}
    synced._commit(span, found)
    assert found["wfsync.commit_lock"] == [50]
    assert found["wfsync.commit_log"] == [10 + 2 * 30 + 5 - 2 * 30]
    # its tag, submission (14, and 14 up to the record's in the middle), end and refiling
    assert found["wfsync.commit_end"] == [3 + 2 * 6 + 9 - 2 * 6]


def test_what_is_around_a_workers_work_is_told_apart_from_wake_ups() -> None:
    turns = [
        ("process_one_work", 1, 40), ("blk_mq_requeue_work", 2, 100), ("try_to_wake_up", 3, 1000),
        ("", 1, 8), ("", 0, 5),
    ]  # fmt: skip
    assert synced.around(loop(*turns, *turns), "blk_mq_requeue_work") == [48]


def test_a_direct_writes_handles_are_cut_where_i_data_sem_is_taken_and_released() -> None:
    writes = [
        ("ext4_iomap_begin", 1, 20), ("down_write", 2, 300), ("up_write", 2, 4), ("", 1, 6), ("", 0, 1),
        ("ext4_convert_unwritten_extents", 1, 30), ("down_write", 2, 100), ("try_to_wake_up", 3, 1000),
        ("up_write", 2, 5), ("", 1, 7), ("", 0, 1),
    ]  # fmt: skip
    assert synced.unwritten(loop(*writes, *writes)) == {
        "unwritten.split": [300],
        "unwritten.split_rest": [20 + 4 + 6],
        "unwritten.convert": [100],
        "unwritten.convert_rest": [30 + 5 + 7],
    }


def test_a_step_of_xfs_has_neither_its_log_buffer_nor_its_submission() -> None:
    force = loop(
        ("xlog_force_lsn", 1, 40), ("flush_workqueue_prep_pwqs", 2, 90), ("", 1, 2), ("xlog_sync", 2, 500),
        ("submit_bio", 3, 1900), ("try_to_wake_up", 4, 1000), ("", 2, 60), ("", 1, 8),
        ("submit_bio", 2, 2000), ("", 1, 3), ("", 0, 5),
    )  # fmt: skip
    (span,) = [synced.Span(force, task, at, end) for at, end, task in force.each("xlog_force_lsn")]
    assert forced._step(span) == 40 + 2 + 8 + 3
    (buffer,) = [forced._called(span, at) for at in span.at("xlog_sync")]
    assert buffer.to(buffer.begin, buffer.end) - forced._submissions(buffer) == 500 + 60


def test_a_part_of_a_queue_is_told_apart_from_its_lock() -> None:
    part = (("_raw_spin_lock_irq", 2, 10), ("", 1, 30), ("_raw_spin_unlock_irq", 2, 9), ("", 1, 1))
    colours = (("flush_workqueue_prep_pwqs", 1, 20), *part, *part, ("", 1, 20), ("", 0, 5))
    log = loop(*colours, *colours)
    counted = [forced.colours(span) for span in synced.spans(log, "flush_workqueue_prep_pwqs")]
    assert counted == [(51, 19)]
