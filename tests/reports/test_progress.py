"""Progress without a terminal: a line now and then on standard error, none for short work."""

from __future__ import annotations

import io

from rich.console import Console

from simfs.reports.progress import SILENT, bar, lines


def test_long_work_tells_now_and_then_and_short_work_nothing() -> None:
    clock = iter([0.0, 1.0, SILENT, SILENT, SILENT + 1.0, 3.0 * SILENT, 3.0 * SILENT])
    out = io.StringIO()
    tell = lines(Console(file=out), lambda: next(clock))
    tell(1, 40, "a workload.tasks=1")
    assert out.getvalue() == ""
    tell(2, 40, "a workload.tasks=2")
    tell(3, 40, "a workload.tasks=4")
    tell(30, 40, "b workload.tasks=1")
    assert out.getvalue().splitlines() == [
        "a workload.tasks=2: 2 of 40 runs are done",
        "b workload.tasks=1: 30 of 40 runs are done",
    ]


def test_without_a_terminal_there_is_no_bar() -> None:
    out = io.StringIO()
    with bar(Console(file=out)) as tell:
        tell(1, 2, "a")
    assert out.getvalue() == ""
