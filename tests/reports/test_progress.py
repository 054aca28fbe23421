"""Progress without a terminal: a line now and then on standard error, none for short work."""

from __future__ import annotations

import io
from collections.abc import Callable
from time import monotonic, sleep

import pytest
from rich.console import Console

from simfs.reports import progress
from simfs.reports.progress import LONG, SILENT, Lines, bar, patience


def test_long_work_tells_now_and_then_and_short_work_nothing() -> None:
    clock = iter([0.0, 1.0, SILENT, SILENT, SILENT + 1.0, 3.0 * SILENT, 3.0 * SILENT])
    out = io.StringIO()
    tell = Lines(Console(file=out), lambda: next(clock)).tell
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


def test_a_long_run_that_tells_nothing_is_said_to_go_on_each_half_a_minute() -> None:
    time = 0.0
    out = io.StringIO()
    log = Lines(Console(file=out), lambda: time)
    for time in range(0, 71, 5):  # noqa: B007 what the clock reads
        log.remind()
    log.tell(1, 5, "a")
    time = 71.0 + LONG
    log.remind()
    assert out.getvalue().splitlines() == [
        "no run is done after 30 s",
        "no run is done after 60 s",
        "a: 1 of 5 runs are done",
        "a: 1 of 5 runs are done after 101 s",
    ]


def test_without_a_terminal_reminders_come_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LONG", 0.0)
    monkeypatch.setattr(progress, "CHECKED", 0.01)
    out = io.StringIO()
    with bar(Console(file=out, width=100)):
        _until(lambda: "no run is done after" in out.getvalue())
    with patience(Console(file=out, width=100), "a: simulating"):
        _until(lambda: "a: simulating: not done after" in out.getvalue())
    said = out.getvalue()
    sleep(0.05)
    assert out.getvalue() == said


def _until(happened: Callable[[], bool]) -> None:
    give_up = monotonic() + 20
    while not happened():
        assert monotonic() < give_up
        sleep(0.01)
