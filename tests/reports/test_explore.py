"""Sliders over runs: their core, the widget in a kernel and in a browser, and `simfs lab`."""

from __future__ import annotations

import base64
import http.client
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from browser import Browser
from places import ROOT

import simfs
from simfs.api import Answer, Question
from simfs.reports.web.explorer import Explorer

SHORT = ("measure.duration=2 ms", "measure.warmup=1 ms")
KEYS = ("workload.tasks=1,4,8", "workload.hold=2 us,20 us")


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    return Explorer(simfs.load("lock-cycle", *SHORT), KEYS)


def test_a_look_has_a_line_a_variant_and_the_locks(explorer: Explorer) -> None:
    seen = explorer.look([2, 1])
    assert len(seen["said"]) == len(seen["chart"]["lines"]) == 3
    assert seen["chart"]["lines"][0]["x"] == [1, 4, 8]
    assert "Who waits" in seen["locks"]
    assert explorer.look([0, 1])["locks"] != seen["locks"]
    assert explorer.look([2, 0])["said"] != seen["said"]


def test_the_numbers_are_those_of_a_sweep(explorer: Explorer) -> None:
    vary: dict[str, list[object]] = {"workload.tasks": [1, 4, 8], "workload.hold": ["2 us"]}
    swept = simfs.load("lock-cycle", *SHORT).sweep(vary, quick=True, progress=False)
    rates = explorer.look([0, 0])["chart"]["lines"][1]["numbers"]["rate"][0]
    assert rates == [p.throughput.mean for p in swept.result.points if p.variant == "mutex"]


def test_what_was_run_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    swept: list[object] = []
    sweep = Question.sweep

    def counted(self: Question, vary: Any, **options: Any) -> Answer:  # noqa: ANN401
        swept.append(vary)
        return sweep(self, vary, **options)

    monkeypatch.setattr(Question, "sweep", counted)
    explorer = Explorer(simfs.load("lock-cycle", *SHORT), KEYS)
    for at in ([0, 0], [1, 0], [2, 1], [2, 0], [0, 1]):
        explorer.look(at)
    assert len(swept) == 2


def test_keys_find_their_values() -> None:
    explorer = Explorer(simfs.load("lock-cycle"), ["workload.tasks", "workload.lock"])
    tasks, kinds = explorer.factors()
    assert tasks["values"][-1] == "24"
    assert "mcs" in kinds["values"]
    assert explorer.start() == [7, 0]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ([], "Name a key"),
        (["machine.cpus"], "which values"),
        (["machine.cpus=4"], "two values"),
        (["workload.tasks", "workload.tasks=1,2"], "named twice"),
    ],
)
def test_keys_that_cannot_be_explored_are_refused(keys: list[str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Explorer(simfs.load("lock-cycle"), keys)


@pytest.mark.parametrize("at", [[], [0], [3, 0], [-1, 0], [0, 0, 0], ["0", 0]])
def test_a_place_that_no_slider_has_is_refused(explorer: Explorer, at: list[Any]) -> None:
    with pytest.raises(ValueError, match="no place"):
        explorer.look(at)


# --- the widget


@pytest.mark.slow
def test_the_widget_follows_the_front_end_in_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("anywidget")
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    new = nbformat.v4.new_code_cell
    source = f"import simfs\nw = simfs.load('lock-cycle', *{SHORT!r}).explore(*{KEYS!r})\nw"
    cells = [new(source), new("print(w.at, '20 us' in str(w.shown['chart']))"), new("print(w.shown)")]
    book = nbformat.v4.new_notebook(cells=cells)
    client = nbclient.NotebookClient(book, timeout=120, kernel_name="python3")
    with client.setup_kernel():
        client.execute_cell(book.cells[0], 0)
        data = book.cells[0].outputs[-1]["data"]["application/vnd.jupyter.widget-view+json"]

        def moved(at: list[int]) -> None:
            update = {"method": "update", "state": {"at": at}, "buffer_paths": []}
            content = {"comm_id": data["model_id"], "data": update}
            client.kc.shell_channel.send(client.kc.session.msg("comm_msg", content))

        moved([0, 1])
        client.execute_cell(book.cells[1], 1)
        moved([9, 9])
        client.execute_cell(book.cells[2], 2)
    assert book.cells[1].outputs[0].text.strip() == "[0, 1] True"
    assert "no place of the sliders" in book.cells[2].outputs[0].text


@pytest.mark.slow
def test_the_widget_draws_in_a_browser(explorer: Explorer, tmp_path: Path) -> None:
    pytest.importorskip("anywidget")
    from simfs.reports.web.widget import Explore

    module = base64.b64encode(Explore._esm.encode()).decode()
    state = {"factors": explorer.factors(), "at": [2, 0], "shown": explorer.look([2, 0])}
    later: dict[str, Any] = {"at": [0, 1], "shown": explorer.look([0, 1])}
    with Browser(tmp_path / "profile") as page:
        page.eval(
            f"globalThis.state = {json.dumps(state)}; globalThis.css = {json.dumps(Explore._css)}; null"
        )
        page.eval(MODEL.replace("MODULE", module))
        assert page.eval("document.querySelectorAll('input[type=range]').length") == 2
        assert page.eval("document.querySelectorAll('canvas').length") == 3
        page.choose("input[name='workload.hold']", "1")
        assert page.eval("[state.at.join(), saved]") == ["2,1", 1]
        page.eval(f"Object.assign(state, {json.dumps(later)}); null")
        page.eval("heard['change:at'](); heard['change:shown'](); null")
        said = "[...document.querySelectorAll('.said li')].map((line) => line.textContent)"
        assert page.eval(said) == later["shown"]["said"]
        assert page.eval("document.querySelector('input[name=\"workload.tasks\"]').value") == "0"
        assert page.photograph(tmp_path / "widget.png").stat().st_size > 20_000
        assert page.wrong == []


MODEL = """
(async () => {
  globalThis.heard = {}; globalThis.saved = 0;
  const model = {
    get: (key) => state[key], set: (key, value) => { state[key] = value; },
    save_changes: () => { saved++; }, on: (event, act) => { heard[event] = act; },
  };
  const {default: widget} = await import("data:text/javascript;base64,MODULE");
  document.head.append(Object.assign(document.createElement("style"), {textContent: css}));
  widget.render({model, el: document.body});
})()
"""


# --- simfs lab


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    command = [sys.executable, str(ROOT / "cli.py"), "lab", "--no-browser"]
    served = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert served.stdout is not None
    yield served.stdout.readline().strip()
    served.send_signal(signal.SIGINT)
    assert served.communicate(timeout=30)[1].strip() == "ended"
    assert served.returncode == 0


@pytest.mark.slow
def test_simfs_lab_shows_a_gallery_and_a_scenario(address: str, tmp_path: Path) -> None:
    with Browser(tmp_path / "profile") as page:
        page.open(address)
        assert page.eval("document.querySelectorAll('.gallery li').length") > 20
        assert page.photograph(tmp_path / "gallery.png").stat().st_size > 20_000
        page.click("a[href*='name=lock-cycle&']")
        page.wait(
            "document.querySelector('canvas') && document.querySelectorAll('.said li').length === 3", 120
        )
        before = page.eval("document.querySelector('.said').textContent")
        page.choose("input[name='workload.tasks']", "2")
        page.wait(f"document.querySelector('.said').textContent !== {json.dumps(before)}")
        assert "problem" not in page.eval("document.querySelector('.said').textContent")
        assert page.photograph(tmp_path / "explore.png").stat().st_size > 40_000
        assert page.eval("document.documentElement.scrollWidth - innerWidth") <= 0
        assert page.wrong == []


@pytest.mark.slow
def test_simfs_lab_answers_nobody_else(address: str) -> None:
    parts = urlsplit(address)
    token = parts.query.removeprefix("token=")
    assert parts.hostname == "127.0.0.1"
    look = json.dumps({"name": "lock-cycle", "at": [99]})
    asked = [
        ("GET", "/", {}, None, 403),
        ("GET", "/?token=wrong", {}, None, 403),
        ("GET", f"/?{parts.query}", {"Host": f"elsewhere.example:{parts.port}"}, None, 403),
        ("GET", f"/other?{parts.query}", {}, None, 404),
        ("GET", f"/explore?name=../x&{parts.query}", {}, None, 404),
        ("POST", "/look", {}, look, 403),
        ("POST", "/look", {"X-Simfs-Token": token}, "[", 400),
        ("POST", "/look", {"X-Simfs-Token": token, "Content-Length": "abc"}, look, 403),
        ("POST", "/look", {"X-Simfs-Token": token, "Content-Length": "-1"}, look, 403),
        ("POST", "/look", {"X-Simfs-Token": token}, look, 200),
    ]
    for method, path, headers, body, status in asked:
        line = http.client.HTTPConnection("127.0.0.1", parts.port or 0, timeout=60)
        line.request(method, path, body, headers)
        assert line.getresponse().status == status, (method, path)
        line.close()
