"""`simfs report`: one page that needs no network, whose every control works in a real browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from browser import chromium
from places import DATA
from test_figures import CURVE
from typer.testing import CliRunner

import simfs
from simfs.cli import app
from simfs.experiments.briefing import read
from simfs.reports.layout import Sheet
from simfs.reports.web import curves
from simfs.reports.web.page import summary
from simfs.reports.web.tables import sort_key, split_bar, table

RUNNER = CliRunner()
EVIL = "</script><script>alert('x')</script><b onmouseover=alert(1)>"

SCENARIO = f"""
simfs: 1
name: evil
title: "{EVIL}"
question: "{EVIL}?"
machine: {{profile: server-24, cpus: 4}}
kernel: linux-6.11
filesystem: {{kind: none}}
workload: {{kind: lock_cycle, tasks: 4, think: 5 us, hold: 2 us}}
variants:
- {{name: sleeping, title: "{EVIL}", locks: {{lock: semaphore}}}}
- {{name: spinning, locks: {{lock: ticket}}}}
sweep: {{workload.tasks: [1, 2, 4]}}
measure: {{duration: 10 ms, replications: 3, warmup: 1 ms}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, png_alone_in_file: None) -> Path:
    at = tmp_path_factory.mktemp("report")
    (at / "evil.yaml").write_text(SCENARIO, encoding="utf-8")
    asked = ["run", str(at / "evil.yaml"), "--out", str(at / "run"), "--report", str(at / "by-run.html")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["simfs", *asked])
        ran = RUNNER.invoke(app, asked)
    assert ran.exit_code == 0, ran.stderr
    asked = ["--variant", "sleeping", "--quick", "--out", str(at / "what-if")]
    ran = RUNNER.invoke(app, ["whatif", str(at / "evil.yaml"), *asked])
    assert ran.exit_code == 0, ran.stderr
    return at


@pytest.fixture(scope="module")
def report(folder: Path) -> Path:
    page = folder / "report.html"
    done = RUNNER.invoke(app, ["report", str(folder / "run"), str(folder / "what-if"), "-o", str(page)])
    assert done.exit_code == 0, done.stderr
    return page


class Reader(HTMLParser):
    """Tags in order, ids, and the text outside scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open:
            self.scripts[-1] += data


@pytest.mark.slow
def test_it_is_one_small_file_that_needs_no_network(report: Path) -> None:
    text = report.read_text("utf-8")
    assert len(text.encode()) < 2_000_000
    assert not re.search(r"<(link|img|iframe)|\bsrc=|url\(http|@import|fetch\(|XMLHttpRequest", text)
    links = [tag["href"] or "" for name, tag in Reader(text).tags if name == "a"]
    assert links
    assert all(link.startswith("#") for link in links)


@pytest.mark.slow
def test_titles_are_text_and_never_code(report: Path) -> None:
    read = Reader(report.read_text("utf-8"))
    assert not [tag for name, tag in read.tags if "onmouseover" in tag]
    assert not [script for script in read.scripts if script.startswith("alert")]


def test_it_has_every_part(report: Path) -> None:
    text = report.read_text("utf-8")
    names = {tag["id"] for name, tag in Reader(text).tags if name == "section"}
    assert names >= {"curves", "locks", "what-if", "time-line", "latency", "card", "scene-0"}
    for said in (
        "What is not modelled",
        "Ten sourced numbers",
        "mutual exclusion",
        "Chains",
        "Nothing: every number",
    ):
        assert said in text
    assert "simfs run" in unescape(text)
    assert "hqlock_" not in text, "a constant that no lock of the scenario reads"


@pytest.mark.slow
def test_a_sensitivity_says_which_numbers_matter(folder: Path, tmp_path: Path) -> None:
    asked = ["--variant", "sleeping", "--quick", "--trajectories", "2", "--parameter", "machine.costs.line_*"]
    done = RUNNER.invoke(
        app, ["sensitivity", str(folder / "evil.yaml"), *asked, "--out", str(tmp_path / "ranks")]
    )
    assert done.exit_code == 0, done.stderr
    page = tmp_path / "x.html"
    given = [str(tmp_path / "ranks"), str(folder / "run")]
    done = RUNNER.invoke(app, ["report", *given, "--no-timeline", "-o", str(page)])
    assert done.exit_code == 0, done.stderr
    text = page.read_text("utf-8")
    assert "Numbers that matter most" in text
    assert "beyond noise" in text
    assert "throughput_per_s of sleeping" in text
    assert 'id="time-line"' not in text


@pytest.mark.slow
def test_the_time_line_of_a_sweep_is_of_a_point_that_was_run(tmp_path: Path) -> None:
    """It was of as many tasks as the scenario has, beside curves that ended before."""
    words = ["--quick", "--set", "measure.duration=1 ms", "--vary", "workload.tasks=1,2"]
    done = RUNNER.invoke(app, ["sweep", "lock-cycle", *words, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.stderr
    assert read([tmp_path / "out"]).point.scenario.tasks == 2


def test_run_writes_the_same_page_but_what_ifs(folder: Path, report: Path) -> None:
    by_run = (folder / "by-run.html").read_text("utf-8")
    ids = {tag["id"] for name, tag in Reader(by_run).tags if name == "section"}
    assert {"curves", "locks", "time-line", "latency", "card"} <= ids
    assert "what-if" not in ids


def kept(text: str, kind: str) -> dict[str, Any]:
    found = re.search(rf'data-kind="{kind}">(.*?)</script>', text)
    assert found
    document: dict[str, Any] = json.loads(found[1])
    return document


def test_charts_have_the_numbers_of_the_result(folder: Path, report: Path) -> None:
    text = report.read_text("utf-8")
    result = json.loads((folder / "run" / "result.json").read_text("utf-8"))
    line = kept(text, "curves")["lines"][1]
    own = [p for p in result["points"] if p["variant"] == "spinning"]
    assert line["x"] == [1, 2, 4]
    assert line["numbers"]["rate"][0] == [p["throughput"]["mean"] for p in own]
    curve = kept(text, "latency")["operations"]["cycle"][1]["y"]
    assert curve == sorted(curve)
    assert curve[-1] == own[-1]["latency"]["cycle"]["max_ns"]


DRIVE = f"<script>{(DATA / 'drive_report.js').read_text('utf-8')}</script>"


def driven(report: Path, width: int, at: Path) -> dict[str, Any]:
    page = at / "driven.html"
    page.write_text(report.read_text("utf-8").replace("</head>", f"{DRIVE}</head>", 1), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", f"--window-size={width},900"]
    done = subprocess.run(
        [chromium(), *options, f"--user-data-dir={at / 'profile'}", page.as_uri()],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    (said,) = re.findall(r'<pre id="said">(.*?)</pre>', done.stdout, re.DOTALL)
    seen: dict[str, Any] = json.loads(unescape(said))
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 500])
def test_every_control_works_in_a_browser(report: Path, tmp_path: Path, width: int) -> None:
    seen = driven(report, width, tmp_path)
    assert seen["wrong"] == []
    assert seen["unnamed"] == []
    assert seen["buttons"] > 20
    assert seen["boxes"] >= 5
    assert seen["options"] > 6
    assert len(seen["read"]) == 3
    assert all(re.search(r"\d", text) for text in seen["read"])
    order, *rates = seen["sort"]
    assert rates == sorted(rates, reverse=order == "descending")
    assert seen["views"] == 1
    assert seen["wide"] <= 0


def test_nothing_is_lost_against_who_does_something_else() -> None:
    """A page of fxmark said that a loop that lists directories loses 99.8 % against one that reads."""
    first, second, *_ = CURVE.variants
    points = tuple(
        p.model_copy(update={"latency": {name: next(iter(p.latency.values()))}})
        for p in CURVE.points
        for name in ["list" if p.variant == first else "read"]
    )
    page = summary(CURVE.model_copy(update={"points": points}))
    lost = dict(re.findall(r'row">([^<]*)<(?:.*?<td){3}[^>]*>([^<]*)<', page))
    assert lost[first] == "-"
    assert float(lost[second]) > 0
    assert float(lost["tmpfs"]) == 0


def test_points_of_a_drawn_design_are_no_lines() -> None:
    question = simfs.load("lock-cycle", "measure.duration=2 ms", "measure.replications=1")
    drawn = question.sweep(
        {"workload.tasks": "1..8", "workload.hold": "1 us..4 us"}, design="sobol", points=4
    )
    charts = curves.throughput(drawn.result)
    assert [chart["key"] for chart in charts] == ["workload.tasks", "workload.hold"]
    for chart in charts:
        assert len(chart["lines"]) == 3
        assert not chart["joined"]
    grid = question.sweep({"workload.tasks": [1, 2], "workload.hold": ["1 us", "4 us"]})
    for chart in curves.throughput(grid.result):
        assert len(chart["lines"]) == 6
        assert chart["joined"]


# --- bad input


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rum"], "did you mean"),
        (["run", "--variant", "spining"], "did you mean 'spinning'"),
        (["run", "-o", "page.pdf"], "did you mean 'page.html'"),
        (["run", "-o", "/proc/self/stat/page.html"], "not a directory"),
        (["what-if"], "one run or sweep"),
        (["."], "did you mean"),
    ],
)
def test_bad_input_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(folder)
    done = RUNNER.invoke(app, ["report", *arguments])
    assert done.exit_code == 2, done.output
    assert said in done.stderr


def test_a_damaged_result_is_refused(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "run", tmp_path / "run")
    (tmp_path / "run" / "result.json").write_text('{"name": 3}', encoding="utf-8")
    done = RUNNER.invoke(app, ["report", str(tmp_path / "run"), "-o", str(tmp_path / "x.html")])
    assert done.exit_code == 2
    assert "result.json" in done.stderr


# --- notebooks


def test_notebooks_show_the_same_tables() -> None:
    question = simfs.load("lock-cycle", "workload.tasks=4", "sweep={}", "measure.duration=5 ms")
    answer = question.run(quick=True, threads=1)
    shown = answer.lock_views("semaphore")._repr_html_()
    assert "Who waits" in shown
    assert "<script" not in shown
    assert "semaphore" in repr(answer.lock_views())
    with pytest.raises(ValueError, match="did you mean 'mutex'"):
        answer.lock_views("mutes")
    changed = question.whatif("semaphore", changes=[("lock", "remove")], quick=True, threads=1)
    assert "remove" in changed._repr_html_()


def test_an_answer_writes_its_report(tmp_path: Path) -> None:
    answer = simfs.load("lock-cycle", "workload.tasks=4", "sweep={}").run(quick=True, threads=1)
    text = answer.report(tmp_path / "page.html", timeline=False).read_text("utf-8")
    assert 'id="locks"' in text
    assert 'id="time-line"' not in text


# --- tables


@pytest.mark.parametrize(
    ("text", "key"),
    [("1,499", 1499), ("~27.3", 27.3), ("1.23 ms", 1.23e-3), ("-", None), ("xfs.AGI", None), ("+3 %", 3)],
)
def test_cells_sort_by_what_they_mean(text: str, key: float | None) -> None:
    assert sort_key(text) == (None if key is None else pytest.approx(key))


def test_tables_escape_every_cell() -> None:
    sheet = Sheet(EVIL)
    sheet.add_column(EVIL)
    sheet.add_row(EVIL)
    assert "<b" not in table(sheet)
    assert "<b" not in table(sheet, {EVIL: split_bar})


def test_a_damaged_table_is_refused_and_a_missing_one_is_not(folder: Path, tmp_path: Path) -> None:
    """Latency curves lie in a table of their own, which folders of old versions do not have."""
    shutil.copytree(folder / "run", tmp_path / "run")
    table = tmp_path / "run" / "tables" / "latency_curves.parquet"
    asked = ["report", str(tmp_path / "run"), "--no-timeline", "-o", str(tmp_path / "x.html")]
    table.write_bytes(b"PAR1")
    done = RUNNER.invoke(app, asked)
    assert done.exit_code == 2
    assert "latency_curves.parquet: is broken; run it again" in done.stderr
    table.unlink()
    assert RUNNER.invoke(app, asked).exit_code == 0
