"""A sweep on a Dask cluster of separate processes: the same bytes as at home, whoever of them is killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import pytest
from places import ROOT
from typer.testing import CliRunner, Result

from simfs.cli import app

pytest.importorskip("distributed")
pytestmark = pytest.mark.usefixtures("png_alone_in_file")

RUNNER = CliRunner()
SWEEP = [
    "sweep",
    "lock-cycle",
    "--quick",
    "--set",
    "measure.duration=20 ms",
    "--set",
    "measure.warmup=10 ms",
]
SWEEP += ["--vary", "workload.tasks=1..40", "--design", "sobol", "--points", "16"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of the cluster, ended with the block."""
    # The code under test, also where it is not installed.
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", f"distributed.cli.{arguments[0]}", *arguments[1:]]
    started = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield started
    finally:
        started.kill()
        started.wait(10)


@dataclass(frozen=True)
class Cluster:
    """A scheduler and its workers."""

    address: str
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]


@contextmanager
def cluster(workers: int) -> Iterator[Cluster]:
    port = free_port()
    with ExitStack() as stack:
        scheduler = stack.enter_context(
            process("dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
        )
        options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "60")
        started = [
            stack.enter_context(process("dask_worker", f"tcp://127.0.0.1:{port}", *options))
            for _ in range(workers)
        ]
        _await(port)
        yield Cluster(f"dask://127.0.0.1:{port}", scheduler, started)


def _await(port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail("the scheduler does not come up")


def files(folder: Path) -> dict[str, bytes]:
    paths = [p for p in sorted(folder.rglob("*")) if p.is_file() and "store" not in p.parts]
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in paths if p.name != "manifest.json"}


def runs(folder: Path) -> int:
    return sum(1 for _ in folder.glob("store/??/*"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("home") / "out"
    assert RUNNER.invoke(app, [*SWEEP, "--out", str(out)]).exit_code == 0
    return out


def swept_while_killing(victim: subprocess.Popen[bytes], address: str, away: Path) -> tuple[Result, int]:
    """The answer of a sweep of which a process is killed on the way, and how many runs it had then."""
    killed_at: list[int] = []

    def kill() -> None:
        while runs(away) < 10:
            time.sleep(0.005)
        killed_at.append(runs(away))
        victim.send_signal(signal.SIGKILL)

    Thread(target=kill, daemon=True).start()
    answer = RUNNER.invoke(app, [*SWEEP, "--executor", address, "--out", str(away)])
    assert victim.wait(10) == -signal.SIGKILL
    return answer, killed_at[0]


@pytest.mark.slow
def test_a_cluster_gives_the_same_bytes_although_a_worker_is_killed(home: Path, tmp_path: Path) -> None:
    with cluster(workers=2) as dask:
        answer, killed_at = swept_while_killing(dask.workers[0], dask.address, tmp_path)
        assert answer.exit_code == 0, answer.stderr
        assert dask.workers[1].poll() is None
    assert killed_at < runs(home) - 10, "the worker was killed when nearly all was done"
    assert files(tmp_path) == files(home)


@pytest.mark.slow
def test_when_the_scheduler_is_killed_what_has_ended_is_kept(home: Path, tmp_path: Path) -> None:
    with cluster(workers=1) as dask:
        answer, killed_at = swept_while_killing(dask.scheduler, dask.address, tmp_path)
    assert killed_at < runs(home) - 10, "the scheduler was killed when nearly all was done"
    assert answer.exit_code == 2
    assert "the scheduler went away" in answer.stderr
    assert "Traceback" not in answer.output
    assert killed_at <= runs(tmp_path) < runs(home)
    assert RUNNER.invoke(app, [*SWEEP, "--out", str(tmp_path)]).exit_code == 0
    assert files(tmp_path) == files(home)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody comes late here."""
    monkeypatch.setattr("simfs.experiments.dask_cluster.PATIENCE_S", 1.0)


@pytest.mark.slow
def test_a_scheduler_that_is_not_there_is_told_soon(tmp_path: Path, impatient: None) -> None:
    begin = time.monotonic()
    options = ["--executor", f"dask://127.0.0.1:{free_port()}", "--out", str(tmp_path / "out")]
    answer = RUNNER.invoke(app, [*SWEEP, *options])
    assert time.monotonic() - begin < 10
    assert answer.exit_code == 2
    assert "no Dask scheduler answers there" in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.slow
def test_a_cluster_without_workers_is_told_soon(tmp_path: Path, impatient: None) -> None:
    with cluster(workers=0) as dask:
        begin = time.monotonic()
        answer = RUNNER.invoke(app, [*SWEEP, "--executor", dask.address, "--out", str(tmp_path / "out")])
        assert time.monotonic() - begin < 10
    assert answer.exit_code == 2
    assert "has no workers" in answer.stderr


@pytest.mark.parametrize("address", ["dask://", "dask://host", "dask://host:port", "dask://a b:1"])
def test_an_address_is_refused_with_an_example(address: str, tmp_path: Path) -> None:
    answer = RUNNER.invoke(app, [*SWEEP, "--executor", address, "--out", str(tmp_path / "out")])
    assert answer.exit_code == 2
    assert "dask://localhost:8786" in answer.stderr
