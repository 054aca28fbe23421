"""The lock laboratory: opened from a disk in a browser, and used as a student does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Browser
from lab import built

from engine import window
from simfs import _engine
from simfs.experiments.scene import NEVER, Scene, window_around
from simfs.reports.lab import page
from simfs.reports.lab.templates import CPUS, kit
from simfs.reports.timeline.html import data
from simfs.results.timeline import follow
from simfs.scenario import load, to_run_spec
from simfs.scenario.points import expand

pytestmark = pytest.mark.slow

MEBI = 1 << 20
IDLE = "!document.getElementById('run').disabled"
BUSY = "document.getElementById('run').disabled"


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("lab") / "lock-lab.html"
    file.write_text(page.page(built()), "utf-8")
    return file


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """An empty page with what the lab computes."""
    with Browser(tmp_path_factory.mktemp("modules")) as browser:
        script = page.bundle(("follow", "scene", "spec"))
        browser.eval(
            f"(0, eval)({json.dumps(script + ';Object.assign(globalThis, {sceneOf, specOf}); null')})"
        )
        browser.eval(f"globalThis.kit = {json.dumps(kit())}; null")
        yield browser


@pytest.fixture
def lab(document: Path, tmp_path: Path) -> Iterator[Browser]:
    with Browser(tmp_path / "profile") as browser:
        browser.open(document.as_uri())
        browser.wait(f"{IDLE} && document.querySelector('#line svg')")
        yield browser
        assert browser.wrong == []


CHOICE: dict[str, Any] = {
    "lock": "mutex-4.10", "tasks": 7, "cpus": 4, "hold": 2500, "think": 40000, "times": "constant", "readers": 0.25,
    "seed": 9, "duration": 5_000_000,
}  # fmt: skip


@pytest.mark.parametrize("lock", ["mutex-4.10", "rwsem-5.11", "ticket"])
@pytest.mark.parametrize("cpus", [CPUS[0], CPUS[3], CPUS[-1]])
def test_the_page_asks_what_the_command_line_asks(modules: Browser, lock: str, cpus: int) -> None:
    choice = CHOICE | {"lock": lock, "cpus": cpus}
    settings = [
        "sweep={}", "variants=[]", f"workload.lock={lock}", "workload.tasks=7", f"machine.cpus={cpus}",
        "workload.hold={constant: 2.5 us}", "workload.think={constant: 40 us}", "workload.readers=0.25",
        "measure.seed=9", "measure.duration=5 ms",
    ]  # fmt: skip
    asked = json.loads(modules.eval(f"specOf(kit, {json.dumps(choice)}, 2)"))
    assert asked == to_run_spec(expand(load("lock-cycle", settings))[0], 2)


@pytest.mark.parametrize("lock", ["ticket", "semaphore", "mutex-4.10", "rwsem-5.11"])
@pytest.mark.parametrize("tasks", [1, 3, 12])
def test_the_page_reads_a_trace_as_python_does(modules: Browser, lock: str, tasks: int) -> None:
    choice = CHOICE | {"lock": lock, "tasks": tasks, "times": "exponential"}
    spec = modules.eval(f"specOf(kit, {json.dumps(choice)})")
    *_, waits = _engine.watch(spec, start=NEVER)
    worst = max(waits, key=lambda wait: wait[3] - wait[2], default=None)
    begin, length = window_around(worst, 200_000_000, 1_250_000_000)
    short = json.loads(spec) | window((begin + length) / 1000)
    _, in_force, events, _ = _engine.watch(json.dumps(short), start=begin)
    line = follow(in_force, events, begin, begin + length)
    focus = worst[0] if worst else ""
    expected = json.loads(json.dumps(data(Scene("", line, focus, worst), "x")))
    watched = json.dumps({"in_force": in_force, "events": events})
    call = f"sceneOf({watched}, {begin}, {begin + length}, {json.dumps(worst)}, kit.style, 'x')"
    assert modules.eval(call) == expected


def text(lab: Browser, selector: str) -> str:
    return str(lab.eval(f"document.querySelector({json.dumps(selector)}).textContent"))


def pressed(lab: Browser, button: str) -> str:
    lab.click(button)
    lab.wait(IDLE, 120)
    return text(lab, "#said")


def test_a_student_runs_locks_and_draws_curves(lab: Browser, tmp_path: Path) -> None:
    assert re.match(r"ticket, 16 tasks, 8 CPUs: [\d,]+ cycles per second", text(lab, "#said"))
    lab.choose("select[name=lock]", "mcs")
    lab.choose("input[name=tasks]", "6")
    assert pressed(lab, "#run").startswith("mcs, 6 tasks, 8 CPUs")
    assert "on their nodes" in text(lab, "#about")
    assert re.search(r"now: mcs, 6.*before: ticket, 16", text(lab, "#numbers thead"))
    lab.choose("select[name=duration]", "5")
    assert "most at" in pressed(lab, "#curve")
    lab.choose("select[name=lock]", "semaphore")
    pressed(lab, "#curve")
    assert lab.eval("[...document.querySelectorAll('#curves [data-line]')].map((l) => l.dataset.line)") == [
        "mcs",
        "semaphore",
    ]
    lab.choose("input[name=hold]", "20")
    pressed(lab, "#curve")
    assert len(lab.eval("[...document.querySelectorAll('#curves [data-line]')].map(String)")) == 1
    assert lab.photograph(tmp_path / "lab.png").stat().st_size > 50_000
    assert lab.eval("document.documentElement.scrollWidth - innerWidth") <= 0


def test_the_time_line_plays_pauses_and_steps_back(lab: Browser) -> None:
    clock = "#line .clock"
    lab.click("#line [name=first]")
    first = text(lab, clock)
    steps = [first]
    for _ in range(3):
        lab.click("#line [name=forward]")
        steps.append(text(lab, clock))
    assert len(set(steps)) == 4
    lab.click("#line [name=back]")
    assert text(lab, clock) == steps[-2]
    lab.click("#line [name=play]")
    lab.wait(f"document.querySelector('{clock}').textContent !== {json.dumps(steps[-2])}")
    lab.click("#line [name=play]")
    stopped = text(lab, clock)
    assert lab.eval("new Promise((done) => setTimeout(done, 500))") is None
    assert text(lab, clock) == stopped
    assert re.search(r"task \d+", text(lab, "#line .why"))


def test_a_long_curve_is_stopped_and_the_page_lives(lab: Browser) -> None:
    lab.choose("select[name=duration]", "200")
    lab.choose("select[name=cpus]", "48")
    lab.click("#curve")
    lab.wait(BUSY)
    assert lab.eval("1 + 1") == 2
    assert "stopped" in pressed(lab, "#stop")
    lab.choose("select[name=duration]", "5")
    assert "48 CPUs" in pressed(lab, "#run")


def test_a_number_out_of_range_is_not_run(lab: Browser) -> None:
    before = text(lab, "#said")
    lab.choose("input[name=tasks]", "1000")
    assert pressed(lab, "#run") == before


def test_the_page_is_one_small_file_that_needs_nothing(document: Path) -> None:
    known = document.read_text("utf-8")
    assert len(known) < 5 * MEBI
    assert not re.search(r'\b(src|href)="(?!data:)|url\(http|@import|\bfetch\(', known)
