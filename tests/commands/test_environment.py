"""What is around simfs: closed and full outputs, encodings, disks, defects. One line and the right exit code."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from hashlib import sha256
from io import BytesIO, TextIOWrapper
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from typer.testing import CliRunner

import simfs.experiments.answer
import simfs.results.run
from simfs.cli import app
from simfs.machine.recorder import Trace
from simfs.reports.export import write_files
from simfs.results.store import ForeignRunError, Store, engine_version, write_whole
from simfs.scenario import paths

RUNNER = CliRunner()
pytestmark = pytest.mark.usefixtures("png_alone_in_file")
SIMFS = f"{sys.executable} -c 'from simfs.cli import main; main()'"
SMALL = ["lock-cycle", "--quick", "--set", "sweep.workload.tasks=[2]", "--set", "measure.duration=1 ms"]


def shell(command: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run `command`, in which SIMFS stands for the command line, in a shell."""
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command.replace("SIMFS", SIMFS)],
        capture_output=True,
        env=os.environ | environment,
        timeout=60,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        ("SIMFS locks > /dev/full", 4, "standard output: No space left on device\n"),
        ("SIMFS locks --format json > /dev/full", 4, "standard output: No space left on device\n"),
        ("SIMFS --help > /dev/full", 4, "standard output: No space left on device\n"),
        ("SIMFS locks >&-", 4, "standard output is closed: send it to /dev/null instead\n"),
        ("SIMFS locks --format csv | head -1", 0, ""),
        ("SIMFS locks | head -1", 0, ""),
        ("SIMFS --help | true", 0, ""),
        ("COLUMNS=0 SIMFS locks > /dev/full", 4, "standard output: No space left on device\n"),
        ("SIMFS run no-such-scenario 2> /dev/full", 2, ""),
        ("SIMFS trace lock-cycle --variant mutex --length '50 us' > /dev/null 2> /dev/full", 4, ""),
    ],
)
def test_an_output_that_takes_nothing(command: str, code: int, says: str) -> None:
    done = shell(command)
    assert (done.returncode, done.stderr.decode()) == (code, says)


@pytest.mark.slow
def test_who_reads_no_further_loses_no_results(tmp_path: Path) -> None:
    one = ["--variant", "mutex", "--out", f"{tmp_path}/out", "--report", f"{tmp_path}/r.html"]
    words = shlex.join([*SMALL, *one])
    done = shell(f"SIMFS run {words} | true")
    assert done.returncode == 0
    assert (tmp_path / "out" / "result.json").exists()
    assert (tmp_path / "r.html").read_text("utf-8").rstrip().endswith("</html>")


@pytest.mark.slow
def test_an_output_in_ascii() -> None:
    words = shlex.join([*SMALL, "--set", "variants.0.title=é"])
    text = shell(f"SIMFS run {words}", PYTHONIOENCODING="ascii")
    assert (text.returncode, text.stderr) == (0, b"")
    assert text.stdout.isascii()
    whole = shell(f"SIMFS run {words} --format json", PYTHONIOENCODING="ascii")
    assert "é" in json.loads(whole.stdout.decode())["titles"].values()


def run_with(monkeypatch: pytest.MonkeyPatch, error: BaseException, *options: str) -> Any:  # noqa: ANN401
    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(simfs.experiments.answer, "run_scenario", fails)
    return RUNNER.invoke(app, ["run", *SMALL, *options])


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (TypeError("unsupported operand"), "TypeError: unsupported operand (at test_environment.py:"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "wrong"), "UnicodeDecodeError"),
        (
            OSError(errno.ENOSPC, "No space left on device", "store/aa/b"),
            "store/aa/b: No space left on device",
        ),
        (MemoryError(), "not enough memory"),
        (RecursionError("too deep"), "RecursionError: too deep"),
    ],
)
def test_what_is_nobodys_scenario_is_four_and_one_line(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, says: str
) -> None:
    answer = run_with(monkeypatch, error)
    assert answer.exit_code == 4
    assert says in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


def test_the_traceback_is_there_for_who_asks(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:  # noqa: ANN401
    monkeypatch.setenv("SIMFS_TRACEBACK", "1")
    assert "in fails" in run_with(monkeypatch, TypeError("wrong")).stderr


@pytest.mark.parametrize("command", ["run", "sweep", "validate", "calibrate"])
def test_a_name_that_is_too_long(command: str) -> None:
    about = ["seed-xfs-compile-2024"] if command == "validate" else ["compile-24"]
    answer = RUNNER.invoke(app, [command, *about, "--out", "x" * 300])
    assert answer.exit_code == 2
    assert "too long" in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


@pytest.mark.slow
def test_a_disk_that_is_full(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "there")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        for command in ("run", "sweep"):
            answer = RUNNER.invoke(app, [command, *SMALL, "--out", str(tmp_path / command)])
            assert answer.exit_code == 4
            assert "No space left on device" in answer.stderr.splitlines()[-1]
            assert ("cycles/s" in answer.stdout) == (
                command == "run"
            )  # a sweep keeps its runs, a run has only this
    assert RUNNER.invoke(app, ["sweep", *SMALL, "--out", str(tmp_path / "sweep")]).exit_code == 0


def test_a_write_that_fails_names_its_file(tmp_path: Path) -> None:
    """Python's error of a write names none, and was told as one of standard output."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(OSError, match=re.escape(str(tmp_path / "there"))):
            write_whole(tmp_path / "there", b"x" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.iterdir())


# --- Results -----------------------------------------------------------------------------------------------


def test_a_result_that_is_none_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    for nonsense in ("", "{}", '{"a": 1}', "[]"):
        with monkeypatch.context() as patch:
            patch.setattr(simfs.results.run, "_with_programs", lambda run, said=nonsense: lambda spec: said)
            answer = RUNNER.invoke(app, ["run", *SMALL])
        assert answer.exit_code == 4
        assert len(answer.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "spoil", [lambda data: b"x\x9c" + data, lambda data: b"", lambda data: b"plain text"]
)
def test_what_is_not_an_entry_of_the_store_is_run_again(
    tmp_path: Path, spoil: Callable[[bytes], bytes]
) -> None:
    run = Store(tmp_path, "one").remembering(str.upper)
    assert run("a") == "A"
    (entry,) = Store(tmp_path, "one").entries()
    entry.write_bytes(spoil(entry.read_bytes()))
    assert run("a") == "A"


def test_an_entry_under_the_name_of_another_is_not_believed(tmp_path: Path) -> None:
    store = Store(tmp_path, "one")
    store.put(store.key("a"), "A")
    store.put(store.key("b"), "B")
    mine, other = (next(tmp_path.glob(f"*/{store.key(spec)}")) for spec in "ab")
    mine.write_bytes(other.read_bytes())
    assert store.get(store.key("a")) is None
    with pytest.raises(ForeignRunError):  # "B" is no result
        store.get(store.key("b"))


@pytest.mark.slow
def test_a_store_that_is_none_is_told_in_a_line(tmp_path: Path) -> None:
    sweep = ["sweep", *SMALL, "--out", str(tmp_path / "out")]
    assert RUNNER.invoke(app, sweep).exit_code == 0
    entry = next((tmp_path / "out" / "store").glob("??/*"))
    entry.unlink()
    entry.mkdir()
    answer = RUNNER.invoke(app, sweep)
    assert answer.exit_code == 4
    assert answer.stderr == f"{entry}: Is a directory\n"


def test_a_manifest_of_somebody_else_names_nothing_outside(tmp_path: Path) -> None:
    victim, out = tmp_path / "victim.txt", tmp_path / "out"
    victim.write_text("mine")
    out.mkdir()
    names = ("../victim.txt", str(victim), "tables/../../victim.txt")
    files = dict.fromkeys(names, sha256(b"mine").hexdigest())
    (out / "manifest.json").write_text(json.dumps({"simfs": 1, "files": files}))
    write_files(out, {"simfs": 1}, {"result.json": b"{}"})
    assert victim.read_text() == "mine"
    (out / "manifest.json").write_text(json.dumps({"simfs": 1, "files": {"x\0": "0", "result.json": 3}}))
    write_files(out, {"simfs": 1}, {"other.json": b"{}"})


@pytest.mark.slow
def test_a_manifest_has_what_a_result_came_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = (paths.SCENARIOS / "compile-24.yaml").read_text("utf-8") + "# my own\n"
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(text.encode())))
    settings = ["workload.tasks=1", "workload.user_cpu=1 ms", "measure.duration=20 ms"]
    options = ["--quick", "--out", str(tmp_path), *(word for key in settings for word in ("--set", key))]
    done = RUNNER.invoke(app, ["run", "-", *options], input=text)
    assert done.exit_code == 0, done.stderr
    about = json.loads((tmp_path / "manifest.json").read_text("utf-8"))
    assert about["scenario"]["text"] == text
    assert about["engine"]["version"] == engine_version()
    for file in ("models/machines/server-24.yaml", "scenarios/measured/seed-xfs-compile-2024.yaml"):
        assert about["read"][file] == sha256((paths.DATA / file).read_bytes()).hexdigest()


# --- Traces ------------------------------------------------------------------------------------------------


def test_a_trace_without_end_is_refused() -> None:
    answer = RUNNER.invoke(app, ["trace", "lock-cycle", "--variant", "mutex", "--length", "1000 s"])
    assert answer.exit_code == 2
    assert "ask for less time" in answer.stderr


def test_the_reference_machine_refuses_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simfs.machine.recorder.MOST_EVENTS", 3)
    trace = Trace(start=2)
    for moment in (1, 2, 3, 4):
        trace.record((moment, None, 0, "tick", ""), None, setting_up=False)
    assert [event[0] for event in trace.events] == [2, 3, 4]
    with pytest.raises(ValueError, match="more than 3 events"):
        trace.record((5, None, 0, "tick", ""), None, setting_up=False)


@pytest.mark.parametrize("engine", ["native", "simpy"])
def test_a_trace_begins_where_it_is_asked_to(engine: str) -> None:
    options = ["lock-cycle", "--set", "sweep.workload.tasks=[4]", "--engine", engine, "--format", "json"]
    whole = json.loads(RUNNER.invoke(app, ["trace", *options, "--length", "300 us"]).stdout)
    part = json.loads(
        RUNNER.invoke(app, ["trace", *options, "--start", "100 us", "--length", "200 us"]).stdout
    )
    assert 0 < len(part) < len(whole)
    assert part == [event for event in whole if event["time_ns"] >= 100_000]


@pytest.mark.slow
def test_what_cannot_be_written_leaves_what_stood_there(tmp_path: Path) -> None:
    """A picture on a full disk was left cut, and so was the one that it should replace."""
    picture = tmp_path / "convoy.png"
    picture.write_text("yesterday's")
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "from simfs.cli import main; main()"
    )
    few = ["--set", "measure={warmup: 0 ms, duration: 1 ms}", "--set", "sweep.workload.tasks=[2]"]
    options = ["--variant", "mutex", *few, "-o", str(picture)]
    ended = subprocess.run(
        [sys.executable, "-c", code, "timeline", "lock-cycle", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode != 0
    assert f"{picture}: cannot be written" in ended.stderr
    assert picture.read_text() == "yesterday's"
    assert list(tmp_path.iterdir()) == [picture]


@pytest.mark.slow
def test_a_file_may_be_a_device() -> None:
    """To replace a file as a whole would replace the device."""
    link = Path("/dev/stdout")
    before = link.lstat().st_ino
    command = [sys.executable, "-m", "simfs", "import", "-", "-o", "/dev/stdout"]
    ended = subprocess.run(
        command, input="tasks,shared\n1,48000\n", capture_output=True, text=True, check=False
    )
    assert "shared" in ended.stdout, ended.stderr
    assert link.lstat().st_ino == before


TELLING = """
import sys
from simfs import _engine
from simfs.machine import runs

def telling(run):
    def told(*words, **named):
        sys.stderr.write("begun\\n")  # one write: several threads tell
        return run(*words, **named)
    return told

for machine in (_engine, runs):
    for name in ("run", "trace", "watch"):
        setattr(machine, name, telling(getattr(machine, name)))
from simfs.cli import main
main()
"""
"""The command line, which says on standard error when a machine begins to run."""

WINDOW = "--set measure.warmup='1 ms' --set measure.duration='10000 s'"
LONG = f"lock-cycle --set sweep.workload.tasks=[8] {WINDOW}"


@pytest.mark.parametrize(
    "command",
    [
        f"run {LONG} --variant mutex",
        f"run {LONG} --variant mutex --engine simpy",
        f"run lock-cycle --variant mutex --set sweep.workload.tasks=[1] {WINDOW}",
        f"run python-lock-cycle {WINDOW}",
        f"why {LONG} --variant mutex",
        f"why {LONG} --variant mutex --at '10000 s'",
        f"timeline {LONG} --variant mutex --start '10000 s' -o convoy.png",
        f"trace {LONG} --variant mutex --start '10000 s'",
    ],
)
def test_an_interrupt_ends_a_run_that_would_take_hours(command: str, tmp_path: Path) -> None:
    words = [sys.executable, "-c", TELLING, *shlex.split(command)]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stderr is not None
        late = Timer(60, running.kill)
        late.start()
        try:
            assert any(b"begun" in line for line in running.stderr)
            time.sleep(0.3)  # into the run
            running.send_signal(signal.SIGINT)
            out, said = running.communicate(timeout=20)
        finally:
            late.cancel()
            running.kill()
    assert (running.returncode, out) == (130, b"")
    assert b"interrupted: " in said
    assert b"Traceback" not in said


STUBBORN = """
import time
from simfs.commands.interrupts import end_at_the_second
end_at_the_second()
try:
    print("begun", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    time.sleep(60)
"""


def test_the_second_interrupt_ends_what_the_first_did_not_and_a_hint_says_so() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        try:
            running.stdout.readline()
            running.send_signal(signal.SIGINT)
            assert b"Ctrl-C once more" in running.stderr.readline()
            running.send_signal(signal.SIGINT)
            _, said = running.communicate(timeout=20)
        finally:
            running.kill()
    assert running.returncode == 130
    assert b"interrupted" in said
