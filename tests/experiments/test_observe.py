"""`simfs observe`: commands that test a prediction, and the loads that they run."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from simfs.cli import COMMANDS, app
from simfs.experiments.observe import CALLS, KERNEL, LOAD, MACHINE, shared_out, together
from simfs.experiments.real_loads import readable, real_load
from simfs.experiments.sensitivity import Screened
from simfs.interchange import will_it_scale
from simfs.results.statistics import Estimate
from simfs.scenario import expand, load
from simfs.scenario.points import Point

RUNNER = CliRunner()
QUICK = [
    "observe",
    "lock-cycle",
    "--variant",
    "mutex",
    "--quick",
    "--set",
    "workload.tasks=4",
    "--load",
    "./my-loop 4",
]


def point(workload: dict[str, Any], **more: Any) -> Point:  # noqa: ANN401
    base = {"simfs": 1, "name": "x", "title": "x", "machine": "server-24", "kernel": "linux-6.12"}
    return expand(load(base | {"filesystem": {"kind": "xfs", "size": "8 GiB"}, "workload": workload} | more))[
        0
    ]


@pytest.mark.parametrize(
    ("workload", "command"),
    [
        ({"kind": "create_unlink", "tasks": 8, "directories": "per-task"},
         "python -m simfs.measuring.load create_unlink --tasks 8 --directories per-task --seconds 10 --at '/srv/a b'"),
        ({"kind": "tmpfile", "tasks": 2},
         "python -m simfs.measuring.load tmpfile --tasks 2 --directories shared --seconds 10 --at '/srv/a b'"),
        ({"kind": "create", "tasks": 3}, "fs_mark -d '/srv/a b' -t 3 -s 0 -S 0 -k -n 20000"),
        ({"kind": "fs_mark", "tasks": 2, "directories": "per-task", "files": 7, "sync": 0},
         "fs_mark -d '/srv/a b'/0 -d '/srv/a b'/1 -s 51200 -w 16384 -S 0 -n 7 -L 5"),
        ({"kind": "fs_mark", "tasks": 2, "files": 7, "sync": 0, "subdirectories": 3, "files_per_directory": 2},
         "fs_mark -d '/srv/a b' -t 2 -s 51200 -w 16384 -S 0 -n 7 -D 3 -N 2 -L 5"),
        ({"kind": "dbench", "tasks": 4}, "dbench -D '/srv/a b' -t 10 4"),
        ({"kind": "fio", "tasks": 4, "rwmixread": "70 %", "direct": True, "iodepth": 8, "size": "1 GiB"},
         "fio --name=load --rw=randrw --rwmixread=70 --bs=4096 --size=1073741824 --numjobs=4 --ioengine=libaio "
         "--iodepth=8 --direct=1 --fsync=0 --time_based --runtime=10 --group_reporting --output-format=json "
         "--filename='/srv/a b'/file"),
    ],
)  # fmt: skip
def test_the_real_load_of_a_scenario(workload: dict[str, Any], command: str) -> None:
    assert real_load(point(workload), "/srv/a b") == command
    assert readable(command)
    assert shlex.split(command)


def test_compiles_are_counted_and_not_read(tmp_path: Path) -> None:
    command = real_load(point({"kind": "compile", "tasks": 2}), str(tmp_path))
    assert not readable(command)
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc")
    short = command.replace("timeout 10", "timeout 1")
    done = subprocess.run(["sh", "-c", short], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert int(done.stdout) >= 2, done.stderr


@pytest.mark.parametrize(
    "workload",
    [{"kind": "tmpfile", "fsync": True}, {"kind": "lock_cycle", "lock": "mutex", "think": "1 us", "hold": "1 us"}],
)  # fmt: skip
def test_a_load_without_a_command_is_refused(workload: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="--load"):
        real_load(point(workload), "/srv")


def screened(name: str, effect: float) -> Screened:
    mu = Estimate(mean=effect, low=None, high=None, n=2)
    return Screened(
        parameter=name, low=0, high=1, mu_star=mu, mu=0, sigma=0, matters=False, source="a source"
    )


def test_numbers_are_shared_out_to_who_measures_them() -> None:
    names = (
        "machine.costs.speed",
        "machine.costs.wakeup",
        "machine.caches.llc_ns",
        "kernel.tick_ns",
        "workload.params.x",
        "y",
    )
    found = shared_out([*(screened(n, 4) for n in names), screened("kernel.noise", 1.9)], 1.0)
    by = {source: [n.parameter for n in numbers] for source, numbers in found.items()}
    assert by == {
        CALLS: [names[0]],
        MACHINE: list(names[1:3]),
        KERNEL: [names[3]],
        LOAD: [names[4]],
        None: ["y"],
    }
    assert together([screened("a", 3), screened("b", 4)]) == 5


@pytest.mark.slow
def test_commands_come_with_what_they_decide() -> None:
    answer = RUNNER.invoke(app, [*QUICK, "--format", "json"])
    assert answer.exit_code == 0, answer.stderr
    found = json.loads(answer.stdout)
    first, locks, *_ = found["tests"]
    assert first["commands"] == ["./my-loop 4 | tee load.txt"]
    assert "throughput_per_s" in first["decides"]
    assert "lock 0." in locks["decides"]
    assert locks["compare"] == "simfs compare waits.txt lock-cycle:mutex --set workload.tasks=4"
    effects = [order["narrows_percent"] for order in found["narrowing"]]
    assert effects == sorted(effects, reverse=True)
    text = RUNNER.invoke(app, QUICK).stdout
    assert all(f"$ {command}" in text for order in found["tests"] for command in order["commands"])
    for order in (*found["tests"], *found["narrowing"]):  # what simfs itself is told can be typed
        for command in filter(None, (order["compare"], *order["commands"])):
            if command.startswith("simfs "):
                name, *rest = shlex.split(command)[1:]
                COMMANDS[name].load(name).make_context(name, rest)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [["no-such"], ["lock-cycle"], ["lock-cycle", "--variant", "mutex"], ["compile-24"], [*QUICK[1:], "--metric", "no"],
     [*QUICK[1:-1], " "], [*QUICK[1:], "--trajectories", "1"]],
)  # fmt: skip
def test_bad_input_of_observe_is_two(options: list[str]) -> None:
    answer = RUNNER.invoke(app, ["observe", *options])
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert answer.stderr


LOAD_FOR_REAL = [sys.executable, "-m", "simfs.measuring.load"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="loads are run on Linux only")
def test_a_real_load_prints_what_import_reads(tmp_path: Path) -> None:
    for directories in ("shared", "per-task"):
        options = [
            "tmpfile",
            "--tasks",
            "1,2",
            "--seconds",
            "0.1",
            "--at",
            str(tmp_path),
            "--directories",
            directories,
        ]
        done = subprocess.run([*LOAD_FOR_REAL, *options], capture_output=True, text=True, check=True)
        figures = will_it_scale.read(done.stdout).figures
        assert [f.tasks for f in figures if f.metric == "operations_per_s"] == [1, 2]
    assert list(tmp_path.iterdir()) == []
    assert subprocess.run([*LOAD_FOR_REAL, "fly", "--at", str(tmp_path)], capture_output=True).returncode == 2
