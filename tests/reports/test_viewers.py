"""Traces for viewers, parsed back: ftrace's text, Perfetto's protobuf, the SQL of the docs, the player in a browser."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import struct
import subprocess
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from browser import chromium
from places import ROOT
from typer.testing import CliRunner

from simfs import _engine
from simfs.cli import app
from simfs.experiments.points import the_point
from simfs.experiments.scene import Ask, Scene, Watcher
from simfs.reports.timeline.figure import LOOKS
from simfs.reports.timeline.html import data, page
from simfs.reports.traces.ftrace import events_of, ftrace
from simfs.reports.traces.perfetto import perfetto
from simfs.reports.traces.trace_dat import FORMATS, trace_dat
from simfs.reports.traces.tracks import Tracks, pid_of
from simfs.results.timeline import Doing, State
from simfs.scenario import load

RUNNER = CliRunner()
DOCS = ROOT / "docs" / "how-to" / "see.md"
TYPES = {"lock": "semaphore", "xfs.AGI": "semaphore"}

LINE = re.compile(
    r"^ *(?P<comm>.+)-(?P<pid>\d+) +\( *(?P<tgid>\d+|-+)\) \[(?P<cpu>\d+)\] [a-zA-Z0-9.]{5} +(?P<time>\d+\.\d+): "
    r"(?P<event>\S+): (?P<text>.*)$"
)
"""A line as Perfetto's tokenizer of systrace lines takes it apart."""


@pytest.fixture(scope="module")
def scene() -> Scene:
    asked = load("lock-cycle", ["workload.tasks=9", "machine.cpus=4", "measure.duration=10 ms"])
    watcher = Watcher(_engine.watch, Ask(length=5 * 10**8))
    return watcher.look(watcher.find(the_point(asked, "semaphore"), "semaphore"))


@pytest.fixture(scope="module")
def filesystem() -> Scene:
    asked = load("compile-24", ["workload.tasks=6", "measure.duration=100 ms"])
    watcher = Watcher(_engine.watch)
    return watcher.look(watcher.find(the_point(asked, "xfs"), "xfs"))


@pytest.fixture(params=["scene", "filesystem"])
def either(request: pytest.FixtureRequest) -> Scene:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Scene)
    return found


# --- ftrace --------------------------------------------------------------------------------------------------


def lines(scene: Scene) -> list[dict[str, str]]:
    text = ftrace(scene.line, TYPES).splitlines()
    matches = [LINE.match(line) for line in text if not line.startswith("#")]
    assert all(matches)
    return [match.groupdict() for match in matches if match]


def fields(text: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in text.split() if "=" in part and part != "==>")


def test_switches_follow_each_other_and_nobody_runs_twice(either: Scene) -> None:
    current: dict[str, str] = {}
    events = lines(either)
    assert [float(line["time"]) for line in events] == sorted(float(line["time"]) for line in events)
    for line in events:
        if line["event"] != "sched_switch":
            continue
        switch = fields(line["text"])
        assert current.get(line["cpu"], "0") == switch["prev_pid"] == line["pid"]
        assert switch["next_pid"] == "0" or switch["next_pid"] not in current.values()
        assert len(switch["next_comm"]) <= 15
        current[line["cpu"]] = switch["next_pid"]


def test_a_task_is_woken_before_it_runs_again(either: Scene) -> None:
    asleep: set[str] = set()
    for line in lines(either):
        told = fields(line["text"])
        if line["event"] == "sched_switch":
            assert told["next_pid"] not in asleep
            if told["prev_state"] in ("S", "D"):
                asleep.add(told["prev_pid"])
        elif line["event"] == "sched_wakeup":
            asleep.discard(told["pid"])


def test_slices_begin_and_end_on_their_thread_and_nest(either: Scene) -> None:
    depth = Counter[str]()
    waiting: dict[str, list[str]] = defaultdict(list)
    contended = 0
    for line in lines(either):
        text = line["text"]
        if text.startswith("B|"):
            depth[line["pid"]] += 1
        elif text.startswith("E|"):
            depth[line["pid"]] -= 1
            assert depth[line["pid"]] >= 0
        elif line["event"] == "contention_begin":
            assert re.fullmatch(r"0x[0-9a-f]{16} \(flags=[A-Z|]*\)", text)
            waiting[line["pid"]].append(text.split()[0])
            contended += 1
        elif line["event"] == "contention_end":
            assert waiting[line["pid"]].pop() == text.split()[0]
    assert not any(depth.values())
    assert contended == sum(1 for _ in either.line.of("wait"))


def test_the_owner_is_named_as_perfettos_plug_in_wants_it(scene: Scene) -> None:
    marks = [line["text"] for line in lines(scene) if "Lock contention on lock (" in line["text"]]
    owners = {int(number) for mark in marks for number in re.findall(r"\(owner tid: (\d+)\)$", mark)}
    assert marks
    assert owners <= {0, *(pid_of(task) for task in scene.line.tasks)}
    assert len(owners - {0}) > 1


# --- trace-cmd -----------------------------------------------------------------------------------------------


def ring(file: bytes) -> list[tuple[int, int, int]]:
    """Time, CPU and type of each event in a trace.dat, by the rules of the kernel's ring buffer."""
    at = file.index(b"flyrecord\0") + len(b"flyrecord\0")
    (cpus,) = struct.unpack_from("<I", file, file.index(b"options  \0") - 4)
    found = []
    for cpu in range(cpus):
        offset, size = struct.unpack_from("<QQ", file, at + 16 * cpu)
        assert offset % 4096 == size % 4096 == 0
        for begin in range(offset, offset + size, 4096):
            time, commit = struct.unpack_from("<QQ", file, begin)
            assert commit <= 4080
            place = begin + 16
            while place < begin + 16 + commit:
                head, first = struct.unpack_from("<II", file, place)
                kind, delta = head & 31, head >> 5
                time += delta + ((first << 27) if kind == 30 else 0)
                if kind != 30:
                    found.append((time, cpu, struct.unpack_from("<H", file, place + (4 if kind else 8))[0]))
                place += 8 if kind == 30 else 4 * (kind + 1) if kind else first + 4
    return found


def test_trace_dat_holds_every_event_at_its_time(either: Scene) -> None:
    events = events_of(Tracks(either.line), TYPES)
    expected = [(event.time // 1000, event.cpu, FORMATS[event.event].number) for event in events]
    assert sorted(ring(trace_dat(either.line, TYPES))) == sorted(expected)


def test_trace_cmd_reports_what_ftrace_prints(either: Scene, tmp_path: Path) -> None:
    tool = shutil.which("trace-cmd")
    if tool is None:
        pytest.skip("trace-cmd is not on this machine")
    file = tmp_path / "trace.dat"
    file.write_bytes(trace_dat(either.line, TYPES))
    report = [tool, "report", "-t", "-R", "-i", str(file)]
    done = subprocess.run(report, capture_output=True, text=True, check=True, timeout=60)
    said = re.findall(r"^ *(\S+)-(\d+) +\[(\d+)\] +(\d+\.\d+): (\S+): ", done.stdout, re.MULTILINE)
    own = [
        tuple(line[key].strip() for key in ("comm", "pid", "cpu", "time", "event")) for line in lines(either)
    ]
    prints = [(*each[:4], each[4].replace("print", "tracing_mark_write")) for each in said]
    assert sorted(prints) == sorted(own)


# --- Perfetto ------------------------------------------------------------------------------------------------


def parsed(scene: Scene) -> Any:  # noqa: ANN401
    pytest.importorskip("perfetto", reason="the package perfetto is not installed")
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

    trace = Trace()
    trace.ParseFromString(perfetto(scene.line))
    return trace


def test_perfetto_has_the_same_switches(either: Scene) -> None:
    switches = []
    for packet in parsed(either).packet:
        for event in packet.ftrace_events.event:
            if event.HasField("sched_switch"):
                one = event.sched_switch
                switches.append((event.timestamp, packet.ftrace_events.cpu, one.prev_pid, one.next_pid))
    expected = [
        (s.time // 1000, s.cpu, *(pid_of(task) for task in (s.before, s.after)))
        for s in Tracks(either.line).switches
    ]
    assert sorted(switches) == sorted(expected)


def test_slices_end_and_each_flow_goes_from_one_hold_to_the_next(either: Scene) -> None:
    depth, out, into = Counter[int](), Counter[int](), Counter[int]()
    for packet in parsed(either).packet:
        event = packet.track_event
        if packet.HasField("track_event"):
            depth[event.track_uuid] += {1: 1, 2: -1}.get(event.type, 0)
            assert depth[event.track_uuid] >= 0
            out.update(event.flow_ids)
            into.update(event.terminating_flow_ids)
    assert not any(depth.values())
    assert set(out) == set(into)
    assert set(out.values()) == set(into.values()) == {1}
    assert len(out) == len(either.line.hand_overs)


def test_tracks_are_named_and_counters_count(scene: Scene) -> None:
    trace = parsed(scene)
    threads = {
        p.track_descriptor.thread.thread_name for p in trace.packet if p.track_descriptor.HasField("thread")
    }
    assert {f"load-{task}" for task in scene.line.tasks} <= threads
    counters = {
        p.track_descriptor.uuid for p in trace.packet if p.track_descriptor.name == "waiting for lock"
    }
    steps = [p.track_event.counter_value for p in trace.packet if p.track_event.track_uuid in counters]
    assert steps == [waiting for _, waiting in scene.line.waiting(scene.locks)]


def queries() -> list[str]:
    return re.findall(r"```sql\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)


def database(scene: Scene) -> sqlite3.Connection:
    """The tables of Perfetto's SQL that the queries read, out of the trace itself."""
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE slice (id, ts, dur, name, category, arg_set_id)")
    base.execute("CREATE TABLE flow (slice_out, slice_in)")
    base.execute("CREATE TABLE thread (utid, name)")
    base.execute("CREATE TABLE thread_state (utid, ts, dur, state)")
    arguments: list[dict[str, Any]] = []
    base.create_function("EXTRACT_ARG", 2, lambda at, key: arguments[at].get(key.removeprefix("debug.")))
    open_: dict[int, list[int]] = defaultdict(list)
    flows: dict[int, int] = {}
    begun: dict[int, tuple[Any, ...]] = {}
    for packet in parsed(scene).packet:
        event = packet.track_event
        if event.type == 1 and packet.HasField("track_event"):
            number = len(arguments)
            told = {a.name: a.string_value or a.int_value for a in event.debug_annotations}
            arguments.append(told)
            open_[event.track_uuid].append(number)
            begun[number] = (number, packet.timestamp, event.name, event.categories[0])
            flows.update(dict.fromkeys(event.flow_ids, number))
            for flow in event.terminating_flow_ids:
                base.execute("INSERT INTO flow VALUES (?, ?)", (flow, number))
        elif event.type == 2 and packet.HasField("track_event"):
            number, begin, name, category = begun[open_[event.track_uuid].pop()]
            values = (number, begin, packet.timestamp - begin, name, category, number)
            base.execute("INSERT INTO slice VALUES (?, ?, ?, ?, ?, ?)", values)
    for flow, number in flows.items():
        base.execute("UPDATE flow SET slice_out = ? WHERE slice_out = ?", (number, flow))
    names = {Doing.RUN: "Running", Doing.RUNNABLE: "R", Doing.ASLEEP: "D"}
    for task, parts in scene.line.tasks.items():
        base.execute("INSERT INTO thread VALUES (?, ?)", (task, Tracks(scene.line).name(task)))
        for part in parts:
            row = (task, part.begin // 1000, (part.end - part.begin) // 1000, names.get(part.doing, "X"))
            base.execute("INSERT INTO thread_state VALUES (?, ?, ?, ?)", row)
    return base


@pytest.mark.parametrize("number", range(4))
def test_the_queries_of_the_docs_find_something(scene: Scene, number: int) -> None:
    rows = database(scene).execute(queries()[number].replace("xfs.AGI", "lock")).fetchall()
    assert rows
    assert all(value is not None for value in rows[0])


def test_waits_by_class_are_those_of_the_time_line(scene: Scene) -> None:
    rows = database(scene).execute(queries()[0]).fetchall()
    waits = Counter(span.about.partition("#")[0] for span in scene.line.of("wait"))
    assert {row[0]: row[1] for row in rows} == waits


@pytest.mark.parametrize("number", range(4))
def test_the_queries_run_in_trace_processor(scene: Scene, number: int, tmp_path: Path) -> None:
    binary = shutil.which("trace_processor_shell") or shutil.which("trace_processor")
    if binary is None:
        pytest.skip(
            "trace_processor_shell is not on this machine; the package perfetto fetches it from the internet"
        )
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    file = tmp_path / "trace.pftrace"
    file.write_bytes(perfetto(scene.line))
    with TraceProcessor(trace=str(file), config=TraceProcessorConfig(bin_path=binary)) as processor:
        rows = list(processor.query(queries()[number].replace("xfs.AGI", "lock")))
    assert rows


@pytest.mark.parametrize("form", ["ftrace", "perfetto", "trace-dat"])
def test_the_command_writes_them(form: str) -> None:
    options = ["--variant", "semaphore", "--set", "workload.tasks=4", "--start", "1 ms", "--length", "200 us"]
    answer = RUNNER.invoke(app, ["trace", "lock-cycle", *options, "--format", form])
    assert answer.exit_code == 0, answer.stderr
    assert len(answer.stdout_bytes) > 1000


def test_without_the_package_perfetto_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simfs.commands.trace.find_spec", lambda name: None)
    answer = RUNNER.invoke(app, ["trace", "lock-cycle", "--format", "perfetto"])
    assert answer.exit_code == 2
    assert "pip install" in answer.stderr


# --- the player ----------------------------------------------------------------------------------------------

DRIVE = """
<script>
window.addEventListener("load", () => {
  const said = [], root = document.querySelector(".simfs-timeline");
  const why = () => root.querySelector(".why").textContent;
  said.push(why());
  for (const button of root.querySelectorAll("button")) { button.click(); said.push(button.name + ": " + why()); }
  const click = new MouseEvent("click", {bubbles: true, clientX: 400});
  for (const row of root.querySelectorAll(".row")) row.dispatchEvent(click);
  root.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight", bubbles: true}));
  said.push(why());
  const out = document.createElement("pre");
  out.id = "said";
  out.textContent = JSON.stringify({said, rows: root.querySelectorAll(".row").length});
  document.body.append(out);
});
window.addEventListener("error", (event) => { document.title = "error: " + event.message; });
</script>
"""


@pytest.mark.slow
def test_every_control_of_the_player_works_in_a_browser(scene: Scene, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    text = page([scene])
    file.write_text(text.replace("</head>", f"{DRIVE}</head>"), encoding="utf-8")
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--dump-dom",
        f"--user-data-dir={tmp_path / 'profile'}",
    ]
    done = subprocess.run(
        [chromium(), *options, file.as_uri()], capture_output=True, text=True, timeout=120, check=False
    )
    assert "<title>error" not in done.stdout
    (said,) = re.findall(r'<pre id="said">(.*?)</pre>', done.stdout)
    told = json.loads(said.replace("&gt;", ">").replace("&amp;", "&"))
    assert told["rows"] == len(scene.rows(40))
    assert all(re.search(r"task \d", each) for each in told["said"])
    assert "waits for lock#" in told["said"][0]
    assert len(set(told["said"])) > 4


def test_the_page_needs_nothing_from_outside_and_is_small(filesystem: Scene) -> None:
    text = page([filesystem])
    assert not re.search(r"(src|href)=|url\(http|@import", text)
    assert len(text) < 1_000_000
    assert text.count("</script>") == 3


def test_the_players_parts_cover_the_window(either: Scene) -> None:
    document = data(either, "x")
    for task in document["tasks"]:
        parts = task["parts"]
        assert parts[0][0] == 0
        assert parts[-1][1] == document["length"]
    assert set(document["rows"]) <= {task["id"] for task in document["tasks"]}
    assert document["moments"] == sorted(set(document["moments"]))


def test_who_spins_is_drawn_in_the_queue_apart_from_who_sleeps(scene: Scene) -> None:
    document = data(scene, "x")
    locks = scene.locks
    assert document["queue"] == [
        [(min(at, scene.line.end) - scene.line.begin) // 1000, n] for at, n in scene.line.waiting(locks)
    ]
    assert [n for _, n in document["spinning"]] == [n for _, n in scene.line.spinning(locks)]
    assert (
        document["areas"]["spinning"]["colour"]
        == LOOKS[State.SPINS].colour
        != document["areas"]["queue"]["colour"]
    )
