"""Reports at every width: no line too long, no number cut, no lock without its name, no blanks at ends when piped."""

from __future__ import annotations

import io
import re
from collections.abc import Callable

import fakes
import pytest
import yaml
from pictures import assert_no_overlap
from rich.console import Console
from test_figures import CURVE, TABLE
from typer.testing import CliRunner

from simfs.cli import app
from simfs.commands.locks import listed, tables
from simfs.experiments.advise import Advice, Choice
from simfs.experiments.answer import answer
from simfs.experiments.whatif import Effect, LockSlope, WhatIf
from simfs.reports import catalogue
from simfs.reports.advise import print_advice
from simfs.reports.columns import columns_of, columns_to_come
from simfs.reports.layout import WIDTH, ReportConsole, Sheet, report_console
from simfs.reports.sweep import print_sweep
from simfs.reports.text import print_report
from simfs.reports.whatif import figure, print_what_if, sentences
from simfs.results.focus import focus
from simfs.results.run import Runs, run_scenario
from simfs.results.statistics import Estimate
from simfs.scenario import expand, load

RUNNER = CliRunner()
WIDTHS = (60, 80, 100, 118, 200)
SOME = Estimate(mean=1234.5, low=1230.0, high=1239.0, n=10)
GAIN = Estimate(mean=31.7, low=8.9, high=54.5, n=10)
LOCK = "vfs.i_rwsem (directory)"

LOCKS = tuple(f"lock-{n}" for n in ("mutex-3.10", "percpu-rwsem", "ticket"))
TOURNAMENT = run_scenario(
    fakes.points(tasks=(1, 8, 24)), Runs(2), engine=fakes.engine, to_spec=fakes.to_spec, operation="lock cycle",
    sweep=("workload.lock", "workload.tasks"),
)  # fmt: skip
TOURNAMENT = TOURNAMENT.model_copy(
    update={
        "points": tuple(
            p.model_copy(update={"variant": "default", "values": {"workload.lock": p.variant, **p.values}})
            for p in TOURNAMENT.points
        )
    }
)


def choice(directories: str, agcount: int, verdict: str) -> Choice:
    return Choice(
        agcount=agcount, directories=directories, locks={"xfs.buffer": "semaphore"}, throughput=SOME,
        gain_percent=GAIN, verdict=verdict, top_lock=LOCK, waited_percent={LOCK: 32.4},
    )  # fmt: skip


ADVICE = Advice(
    scenario="compile-24", point="xfs workload.tasks=24", operation="compile", tasks=24,
    as_it_is=choice("shared", 4, "as it is"), best=choice("per-task", 4, "better"),
    layouts=(choice("shared", 8, "undecided after 50"), choice("per-task", 4, "better")), locks=(),
    sentences=("take agcount=4 and a directory per task",), seed=1,
)  # fmt: skip
WHAT_IF = WhatIf(
    scenario="compile-24", point="p", variant="xfs", operation="compile", tasks=24, cpus=24, seed=1, replications=10,
    window_ns=1e9, warmup_ns=0, throughput=SOME, operations=9,
    profile=(
        LockSlope(
            lock=LOCK, type="semaphore", slope=GAIN, verdict="undecided after 50", held_percent=12.34,
            waited_percent=56.78, contended=123_456, removed_percent=(10, 20, 30, 40, 50), gain_percent=(GAIN,) * 5,
            operations=(1,) * 6, hold_total_ns=(1.0,) * 6,
        ),
    ),
    effects=(Effect(change="kind mutex", lock=LOCK, throughput=SOME, gain_percent=GAIN, verdict="better"),),
)  # fmt: skip

REPORTS: dict[str, Callable[[Console], None]] = {
    "curve": lambda console: print_report(CURVE, console),
    "table": lambda console: print_report(TABLE, console),
    "tournament": lambda console: print_report(TOURNAMENT, console),
    "sweep": lambda console: print_sweep(CURVE, console),
    "whatif": lambda console: print_what_if(WHAT_IF, console),
    "advise": lambda console: print_advice(ADVICE, console),
    "list": catalogue.print_catalogue,
    "locks": lambda console: console.print(*tables(listed())),
}


def printed(report: Callable[[Console], None], width: int) -> str:
    out = io.StringIO()
    report(Console(file=out, width=width, highlight=False, markup=False, emoji=False))
    return out.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", REPORTS)
def test_no_line_is_too_long_and_nothing_is_cut(name: str, width: int) -> None:
    text = printed(REPORTS[name], width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert "..." not in text


@pytest.mark.parametrize("width", WIDTHS)
def test_every_lock_that_was_waited_for_has_its_name(width: int) -> None:
    words = printed(REPORTS["table"], width).split()
    names = [lock.name for point in focus(TABLE) for lock in point.locks[:5] if lock.contended]
    assert names
    assert {word for name in names for word in name.split()} <= set(words)


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_numbers_that_are_shown_are_whole(width: int) -> None:
    words = printed(REPORTS["whatif"], width).split()
    assert {"1,234", "+31.7", "+31.700"} <= set(words)
    if width >= 118:
        assert "123,456" in words
    words = printed(REPORTS["curve"], width).split()
    assert {f"{p.throughput.mean:,.0f}" for p in CURVE.points if p.throughput.mean >= 100} <= set(words)


def test_what_is_left_of_the_width_makes_the_tallest_cell_low() -> None:
    """A column that did not need its room had it, and the last one a word a line."""
    sheet = Sheet()
    for name in ("lock", "Linux", "who spins"):
        sheet.add_column(name)
    for cells in (("tas", "before 2.6.25, on x86", "all"), ("cna", "patches", "the head on the word " * 4)):
        sheet.add_row(*cells)
    console = ReportConsole(60)
    with console.capture() as caught:
        console.print(sheet)
    assert len(caught.get().splitlines()) <= 3 + 4


def test_columns_that_matter_less_leave_first_and_together() -> None:
    sheet = Sheet("t")
    sheet.add_column("name")
    for name, leaves in (("rate", 0), ("±", 0), ("spun", 2), ("slept", 2), ("wait", 1)):
        sheet.add_column(name, leaves=leaves, justify="right")
    sheet.add_row("vfs.s_inode_list_lock", *["1,234,567"] * 5)

    def shown(width: int) -> list[str]:
        return [str(column.header) for column in sheet.laid_out(width).columns]

    assert shown(200) == ["name", "rate", "±", "spun", "slept", "wait"]
    assert shown(60) == ["name", "rate", "±", "wait"]
    assert shown(42) == ["name", "rate", "±"]
    assert shown(20) == ["name", "rate", "±"]


def test_small_slopes_have_room_in_the_figure() -> None:
    """Seven labels such as -0.075 lay over one another."""
    slope = WHAT_IF.profile[0].model_copy(
        update={"slope": Estimate(mean=0.002, low=-0.077, high=0.081, n=10)}
    )
    assert_no_overlap(figure(WHAT_IF.model_copy(update={"profile": (slope,) * 3})))


def test_the_lock_that_is_waited_for_most_is_told_where_its_holds_do_not_matter() -> None:
    """All that the profile of `compile-24` said was that `mm.lru_lock` matters most."""
    said = " ".join(sentences(WHAT_IF))
    assert f"tasks wait most for {LOCK}, 56.8 % of their time" in said
    assert f"--lock '{LOCK}' tries other kinds" in said
    matters = WHAT_IF.profile[0].model_copy(update={"verdict": "matters"})
    assert "wait most" not in " ".join(sentences(WHAT_IF.model_copy(update={"profile": (matters,)})))


@pytest.mark.slow
def test_chosen_columns_have_the_names_of_the_rows_and_other_tables_are_left_out() -> None:
    small = ["run", "lock-cycle", "--set", "measure={duration: 1 ms, warmup: 0 ms, replications: 2}"]
    text = RUNNER.invoke(app, [*small, "--columns", "idle %"]).stdout
    assert re.search(r"^ tasks +idle %$", text, re.MULTILINE)
    assert "locks by total wait" not in text
    assert "Scalability law" not in text


@pytest.mark.slow
def test_columns_by_name_and_in_full() -> None:
    small = ["run", "lock-cycle", "--set", "measure={duration: 1 ms, warmup: 0 ms, replications: 2}"]
    text = RUNNER.invoke(app, [*small, "--columns", "tasks, spin %"]).stdout
    assert "spin %" in text
    assert "idle %" not in text
    wide = RUNNER.invoke(app, [*small, "--wide"]).stdout
    assert max(map(len, wide.splitlines())) > 118 or "J/op" in wide
    text = RUNNER.invoke(app, [*small, "--columns", "hand-offs,holder %"]).stdout
    assert "hand-" in text
    assert "/sleep/dev" in text
    assert "spin %" not in text
    answer = RUNNER.invoke(app, [*small, "--columns", "measured,tasks"])
    assert answer.exit_code == 0
    assert "nothing stands in measured" in answer.stderr


def test_a_column_that_there_is_not_is_refused_before_anything_is_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("simfs.commands.run._answer", lambda *_, **__: pytest.fail("it ran"))
    answer = RUNNER.invoke(app, ["run", "lock-cycle", "--columns", "tasks,spinn %"])
    assert answer.exit_code == 2
    assert "--columns spinn %: there is no such column; did you mean 'spin %'" in answer.stderr


SHORT = "measure: {warmup: 0 ms, duration: 1 ms, replications: 2}"
CYCLE = (
    "{simfs: 1, name: a, title: a, machine: server-24, kernel: linux-6.12, "
    f"workload: {{kind: lock_cycle, tasks: 8, think: 5 us, hold: 1 us}}, {SHORT}, "
)
LOADS = {
    "curve": CYCLE + "sweep: {workload.tasks: [1, 4, 8]}}",
    "two keys": CYCLE + "sweep: {workload.tasks: [1, 4, 8], workload.hold: [1 us, 2 us]}}",
    "variants": CYCLE + "variants: [{name: b}, {name: c}], sweep: {workload.hold: [1 us, 2 us, 3 us]}}",
    "tournament": CYCLE + "sweep: {workload.lock: [mutex, ticket], workload.tasks: [1, 8]}}",
    "expected": CYCLE + "expect: [throughput > 0]}",
    "device": "{simfs: 1, name: a, title: a, machine: server-24, kernel: linux-6.12, "
    "filesystem: {kind: xfs}, device: nvme, "
    f"workload: {{kind: fio, tasks: 4, rw: randrw, rwmixread: 50 %, size: 64 MiB, direct: true}}, {SHORT}}}",
    "files": "{simfs: 1, name: a, title: a, machine: server-24, kernel: linux-6.12, filesystem: {kind: ext4}, "
    f"workload: {{kind: create_unlink, tasks: 8}}, {SHORT}}}",
}


@pytest.mark.slow
@pytest.mark.parametrize("which", LOADS)
def test_columns_are_known_before_a_run(which: str) -> None:
    asked, result = answer(load(yaml.safe_load(LOADS[which])), metrics=["idle_percent"])
    columns = columns_of(result)
    assert len(columns) >= 6
    assert set(columns) <= set(columns_to_come(tuple(asked.sweep), expand(asked)))


@pytest.mark.slow
@pytest.mark.parametrize("command", [["list"], ["locks"], ["run", "lock-cycle", "--quick"]])
def test_what_is_piped_has_no_blanks_at_the_ends(command: list[str]) -> None:
    text = RUNNER.invoke(app, command).stdout
    assert text
    assert [line for line in text.split("\n") if line != line.rstrip()] == []


def test_a_title_is_not_folded_to_the_width_of_a_narrow_table() -> None:
    sheet = Sheet("a title that is wider than the table below it")
    sheet.add_column("count")
    sheet.add_row("1")
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(sheet)
    assert sheet.title in console.export_text().splitlines()


def test_a_report_on_a_terminal_is_as_wide_as_it_is() -> None:
    console = ReportConsole(60)
    assert (console.width, console.columns) == (60, ())


@pytest.mark.parametrize(("told", "width"), [("150", 150), ("", WIDTH), ("wide", WIDTH), ("0", WIDTH)])
def test_what_is_piped_is_as_wide_as_the_environment_says(
    told: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", told)
    assert report_console().width == width
