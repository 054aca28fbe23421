"""simfs timeline: windows around the worst wait, their pictures, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from matplotlib.colors import to_rgb
from typer.testing import CliRunner

from simfs import _engine
from simfs.cli import app
from simfs.commands.timeline import _to_simulate
from simfs.experiments.points import the_point
from simfs.experiments.scene import LENGTH, LONGEST, Ask, Scene, Watcher, scenes, window_around
from simfs.reports.timeline.figure import LOOKS, ROWS, figure
from simfs.reports.timeline.words import lock_times, reason, sentence
from simfs.results.timeline import Doing, Interval, Span, State, Timeline, state_of
from simfs.scenario import Point, load

RUNNER = CliRunner()
SMALL = ("workload.tasks=8", "machine.cpus=4", "measure.duration=10 ms")


def looked(watcher: Watcher, point: Point, title: str) -> Scene:
    return watcher.look(watcher.find(point, title))


def scene(ask: Ask | None = None, variant: str = "semaphore") -> Scene:
    return looked(
        Watcher(_engine.watch, ask or Ask()), the_point(load("lock-cycle", SMALL), variant), variant
    )


@pytest.fixture(scope="module")
def worst() -> Scene:
    return scene()


def test_the_worst_wait_lies_in_the_window_and_is_in_the_trace(worst: Scene) -> None:
    assert worst.worst is not None
    lock, task, begin, end = worst.worst
    assert worst.focus == lock
    assert worst.line.begin <= begin < end <= worst.line.end
    assert worst.line.end - worst.line.begin == LENGTH
    assert [
        span for span in worst.line.of("wait") if (span.about, span.task, span.begin) == (lock, task, begin)
    ]
    assert all(span.end - span.begin <= end - begin for span in worst.line.of("wait") if span.end)
    assert task in worst.rows(4)


@pytest.mark.parametrize(
    ("wait", "length", "window"),
    [
        ((5 * LENGTH, 5 * LENGTH + 1000), None, (5 * LENGTH + 500 - LENGTH // 2, LENGTH)),
        ((0, 100), None, (0, LENGTH)),
        ((LENGTH, 5 * LENGTH), None, (LENGTH // 2, 5 * LENGTH)),
        ((0, 40 * LENGTH), None, (40 * LENGTH - LONGEST * 3 // 4, LONGEST)),
        ((0, 4000), 400, (3700, 400)),
    ],
)
def test_windows(wait: tuple[int, int], length: int | None, window: tuple[int, int]) -> None:
    assert window_around(("a#0", 1, *wait), length, 0) == window


def test_the_time_of_the_lock_is_the_windows(worst: Scene) -> None:
    times = lock_times(worst)
    assert sum(times.values()) == worst.line.end - worst.line.begin
    holding = (State.HOLDS, State.GRANTED, State.STALLED)
    for state in holding:  # one holder at a time
        own = [
            each.end - each.begin
            for intervals in worst.line.tasks.values()
            for each in intervals
            if state_of(each, worst.locks) is state
        ]
        assert times[state] == sum(own)
    assert times[State.GRANTED] > 0
    assert "by who has not run yet" in sentence(worst)


def test_a_window_that_is_asked_for_has_the_lock_most_waited_for() -> None:
    found = scene(Ask(start=2 * 10**9, length=10**9, lock="lock"))
    assert (found.line.begin, found.line.end) == (2 * 10**9, 3 * 10**9)
    assert found.focus.startswith("lock#")
    one = scene(Ask(lock=found.focus))
    assert one.focus == found.focus


def test_the_queue_shows_who_spins_and_who_sleeps() -> None:
    waits = [Span(task, "wait", "lock#1", 0, 60) for task in (1, 2)]
    spins = Interval(10, 40, Doing.RUN, 0, waits=("lock#1",))
    sleeps = Interval(10, 40, Doing.ASLEEP, 1, waits=("lock#1",))
    line = Timeline(10, 40, tasks={1: [spins], 2: [sleeps]}, spans=waits)
    assert line.waiting(frozenset({"lock#1"})) == [(10, 2), (60, 0)]
    assert line.spinning(frozenset({"lock#1"})) == [(10, 1), (40, 0)]
    assert line.spinning(frozenset({"lock#2"})) == [(10, 0)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["semaphore", "mutex", "ticket"])
def test_every_variant_is_drawn(kind: str) -> None:
    drawn = figure([scene(Ask(length=10**8), kind)])
    drawn.canvas.draw()
    queue, tasks, cpus = drawn.axes
    assert queue.get_xlim() == tasks.get_xlim() == cpus.get_xlim() == (0, 100)
    assert "us" in cpus.get_xlabel()
    assert [label.get_text() for label in cpus.get_yticklabels()] == ["0", "1", "2", "3"]


@pytest.mark.slow
def test_rows_do_not_overlap_and_everything_is_on_the_paper(worst: Scene) -> None:
    drawn = figure([worst, worst])
    drawn.canvas.draw()
    boxes = [axes.get_tightbbox() for axes in drawn.axes]
    paper = drawn.bbox
    for box in boxes:
        assert box is not None
        assert paper.x0 <= box.x0
        assert box.x1 <= paper.x1 + 1
    panels = [axes.get_window_extent() for axes in drawn.axes]
    assert all(lower.y1 <= upper.y0 for upper, lower in pairwise(panels))
    for legend in drawn.legends:
        assert legend.get_window_extent().y1 <= panels[-1].y0


@pytest.mark.slow
def test_at_most_forty_rows_those_that_wait_longest() -> None:
    point = the_point(load("lock-cycle", ["workload.tasks=60", "measure.duration=10 ms"]), "semaphore")
    crowd = looked(Watcher(_engine.watch), point, "crowd")
    assert len(crowd.order) == 60
    assert len(crowd.rows(ROWS)) == ROWS
    drawn = figure([crowd])
    assert len(drawn.axes[1].get_yticklabels()) == ROWS
    assert "20 more" in drawn.axes[1].get_ylabel()


def test_variants_have_windows_of_one_length() -> None:
    watcher = Watcher(_engine.watch)
    first = watcher.find(the_point(load("lock-cycle", SMALL), "semaphore"), "")
    assert first.worst is not None
    begin, end = first.worst[2:]
    longer = replace(first, window=window_around((*first.worst[:2], begin, end + LENGTH), None, 0))
    found = [first, longer]
    spans = {each.line.end - each.line.begin for each in scenes([(watcher, each) for each in found])}
    assert spans == {max(each.window[1] for each in found)}


def test_who_holds_longest_has_a_row_however_many_wait() -> None:
    waiting = {task: [Interval(0, 100, Doing.ASLEEP, 0, ("a#1",))] for task in range(1, 9)}
    holder = [Interval(0, 90, Doing.ASLEEP, 0, (), ("a#1",)), Interval(90, 100, Doing.RUN, 0)]
    spans = [Span(task, "wait", "a#1", 0, None) for task in waiting] + [Span(0, "hold", "a#1", 0, 90)]
    crowd = Scene("", Timeline(0, 100, {0: holder, **waiting}, spans=spans), "a#1")
    assert crowd.rows(4)[0] == 0
    assert len(crowd.rows(4)) == 4


def test_the_sentence_says_why_a_holder_is_off_cpu() -> None:
    asleep = Interval(0, 90, Doing.ASLEEP, 0, (), ("a#1",), (), "timer")
    line = Timeline(0, 100, {0: [asleep, Interval(90, 100, Doing.RUN, 0)]})
    assert "90 % by who is off CPU (until a timer rings)" in sentence(Scene("", line, "a#1"))
    reasons = {
        "waits for b": asleep._replace(waits=("b#2",)),
        "until a device is done": asleep._replace(woken_by="device#0"),
        "until another task wakes it": asleep._replace(woken_by="task 4"),
        "wants a CPU": asleep._replace(doing=Doing.RUNNABLE),
        "asleep to the end": asleep._replace(woken_by=""),
    }
    assert {said: reason(each) for said, each in reasons.items()} == {said: said for said in reasons}


def test_a_workload_written_in_python_is_drawn() -> None:
    point = the_point(load("python-lock-cycle", ["workload.tasks=4", "measure.duration=2 ms"]))
    assert looked(Watcher(_engine.watch), point, "python").line.tasks


def test_states_of_one_height_differ_in_greyscale_or_by_hatch() -> None:
    looks = [look for state, look in LOOKS.items() if state is not State.SLEEPS]
    for at, one in enumerate(looks):
        for other in looks[at + 1 :]:
            grey = [
                sum(w * c for w, c in zip((0.3, 0.59, 0.11), to_rgb(look.colour), strict=True))
                for look in (one, other)
            ]
            assert one.height != other.height or one.hatch != other.hatch or abs(grey[0] - grey[1]) > 0.15


def test_nobody_waits() -> None:
    point = the_point(load("lock-cycle", ["workload.tasks=1", "measure.duration=5 ms"]), "semaphore")
    calm = looked(Watcher(_engine.watch), point, "calm")
    assert calm.focus == ""
    assert "nobody waits" in sentence(calm)
    figure([calm]).canvas.draw()


def test_a_window_without_events_is_drawn() -> None:
    figure([Scene("nothing", Timeline(0, 1000))]).canvas.draw()


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_the_command_draws_and_says_what_it_shows(tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"convoy.{ending}"
    options = [part for setting in SMALL for part in ("--set", setting)]
    command = ["timeline", "lock-cycle", "--variant", "semaphore", "--length", "200 us", *options]
    answer = RUNNER.invoke(app, [*command, "-o", str(out)])
    assert answer.exit_code == 0, answer.stderr
    assert "Longest wait of the run" in answer.stdout
    magic = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending]
    assert out.read_bytes().startswith(magic)


def test_a_first_look_ends_after_a_fifth_of_the_time(
    worst: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[float] = []

    def filmed(points: list[tuple[str, Point]], ask: Ask) -> list[Scene]:
        looked_at.extend(point.scenario.measure.duration for _, point in points)
        return [worst]

    monkeypatch.setattr("simfs.experiments.scene.filmed", filmed)
    for options in ([], ["--quick"]):
        answer = RUNNER.invoke(app, ["timeline", "lock-cycle", *options, "-o", str(tmp_path / "x.svg")])
        assert answer.exit_code == 0, answer.stderr
    whole, quick = looked_at
    assert quick == whole / 5


@pytest.mark.slow
def test_a_lock_of_ones_own_is_drawn_on_the_reference_machine(tmp_path: Path) -> None:
    out = tmp_path / "own.svg"
    options = ["--variant", "two-phase", "--set", "workload.tasks=4", "--set", "measure.duration=2 ms"]
    answer = RUNNER.invoke(app, ["timeline", "own-lock", *options, "--length", "200 us", "-o", str(out)])
    assert answer.exit_code == 0, answer.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--variant", "semafore"], "did you mean 'semaphore'?"),
        (["--lock", "lok"], "did you mean 'lock'?"),
        (["--lock", "lock#99"], "did you mean 'lock#"),
        (["--start", "soon"], "--start"),
        (["--start", "500 s"], "--set 'measure.duration=500 s' makes it last as long"),
        (["--length", "0"], "--length"),
        (["-o", "x.pgn"], "did you mean 'png'?"),
        (["-o", "/proc/self/stat/place.png"], "stat is a file, not a directory"),
    ],
)
def test_bad_input_is_named(tmp_path: Path, options: list[str], said: str) -> None:
    out = [] if "-o" in options else ["-o", str(tmp_path / "x.png")]
    small = [part for setting in SMALL for part in ("--set", setting)]
    answer = RUNNER.invoke(app, ["timeline", "lock-cycle", *small, *options, *out])
    assert answer.exit_code == 2, answer.stdout
    assert said in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize(("start", "said"), [(None, "running"), (3600 * 10**12, "simulating 3,600 s, from")])
def test_a_late_window_tells_how_much_runs_before_it(start: int | None, said: str) -> None:
    assert _to_simulate(Ask(start)).startswith(said)
