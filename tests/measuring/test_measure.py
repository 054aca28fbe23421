"""`simfs measure`: the probes, what is derived from them, the file, and what bad input is told."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from simfs.cli import app
from simfs.measuring.beside import beside
from simfs.measuring.circumstances import Circumstances, Clocks, doubts
from simfs.measuring.figures import Figure
from simfs.measuring.filesystem import kernel_here, kind_at, speed
from simfs.measuring.probes import IDLE_NS, Probe, gather, machine_plan
from simfs.measuring.profile import Taken, taken
from simfs.measuring.topology import Cpu, DeclaredIdle, Topology, read_topology
from simfs.measuring.writing import as_yaml, write_profile
from simfs.scenario import ScenarioError, expand, load, to_run_spec
from simfs.scenario.models import load_machine

RUNNER = CliRunner()
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux machines can be measured")
HERE = Circumstances("A CPU", "6.18.1", "2026-11-22", False, "performance", 1 << 34)
TWO = Topology(
    tuple(Cpu(n, (n,), (0, 1), (0, 1)) for n in (0, 1)),
    1 << 20,
    1 << 25,
    (DeclaredIdle("C1", 1000.0, 1000.0), DeclaredIdle("C6", 100_000.0, 300_000.0)),
)
GUEST = {  # what was measured on the machine of guest-2cpu, ns
    "clock": 22.4, "syscall": 167.1, "atomic": 2.0, "pause": 37.0, "wake_nobody": 329.9, "yield": 1399.3,
    "pipe_alone": 685.9, "pipe": 2526.9, "wake_same_run": 2444.0, "wake_same_call": 940.0, "lines_llc_1": 109.1,
    "lines_llc_2": 120.0, "lines_llc_17": 283.7, "load_l1": 1.4, "load_l2": 5.0, "load_llc": 47.0, "load_memory": 189.0,
    "load_memory_by_page": 50.0,
}  # fmt: skip


def samples(**changed: float) -> dict[str, list[float]]:
    """As of guest-2cpu; a CPU that idled 30 us or longer is woken in 15.5 us, before in 11.6."""
    wakes = {f"wake_{ns}_run": 15_467.0 if ns >= 30_000 else 11_607.0 for ns in IDLE_NS}
    calls = {f"wake_{ns}_call": 6400.0 for ns in IDLE_NS}
    return {name: [value] * 9 for name, value in (GUEST | wakes | calls | changed).items()}


def of_guest(**changed: float) -> Taken:
    return taken(samples(**changed), TWO, HERE, "this-one")


def test_costs_are_derived_as_those_of_the_shipped_guest_were() -> None:
    found, shipped = of_guest().machine, load_machine("guest-2cpu")
    for name in (
        "line_hit",
        "line_llc",
        "line_socket",
        "cpu_relax",
        "wakeup",
        "context_switch",
        "ipi_send",
    ):
        ours, theirs = getattr(found.costs, name).value, getattr(shipped.costs, name).value
        assert ours == pytest.approx(theirs, rel=1e-3), name
    assert shipped.costs.switch_mm
    without = shipped.costs.ipi_deliver.ns - shipped.costs.switch_mm.ns  # all its samples are of processes
    assert found.costs.ipi_deliver.ns == pytest.approx(without, rel=1e-3)
    assert found.costs.line_overlap.value == pytest.approx(10, rel=1e-2)
    assert found.costs.instruction.value == pytest.approx(shipped.costs.instruction.value, rel=1e-2)


def test_page_tables_are_what_processes_take_longer_than_threads() -> None:
    costs = of_guest(**{"yield": 1311.3, "wake_same_run": 2356.0}).machine.costs
    assert costs.wakeup.ns == pytest.approx(608.8, abs=0.5)
    assert costs.context_switch.ns == pytest.approx(1232.2, abs=0.5)
    assert costs.switch_mm
    assert costs.switch_mm.ns == pytest.approx(88, abs=0.5)


def test_a_wake_up_adds_up_to_what_was_measured() -> None:
    costs, micro, idle = (m := of_guest().machine).costs, m.micro, m.idle_states[0]
    parts = (
        micro["wake_nobody"],
        costs.wakeup,
        costs.ipi_send,
        costs.ipi_deliver,
        idle.exit,
        costs.context_switch,
    )
    assert sum(q.ns for q in parts) + micro["clock"].ns == pytest.approx(11_607, abs=2)


def test_a_deeper_idle_state_begins_where_wake_ups_become_longer() -> None:
    first, second = of_guest().machine.idle_states
    assert (first.name, first.exit.ns) == ("C1", 1000)
    assert second.residency.plain_range == (20_000, 30_000)
    assert second.exit.ns == pytest.approx(1000 + 15_467 - 11_607)
    assert second.name == "idle-30us"  # C6 needs longer


def test_what_cannot_be_measured_is_of_the_nearest_machine_and_says_so() -> None:
    found = of_guest()
    assert found.stand_in == "guest-2cpu"
    assert {"costs.line_remote", "costs.smt_speed", "costs.speed", "caches.code_lines"} <= set(
        found.unmeasured
    )
    assert found.machine.costs.line_remote.source.startswith("not measured: as on guest-2cpu")
    assert "costs.line_llc" not in found.unmeasured


def test_one_cpu_can_be_measured_too() -> None:
    alone = Topology((Cpu(0, (0,), (0,), (0,)),), 0, 0, ())
    kept = {
        k: v
        for k, v in samples().items()
        if not k.startswith(("lines", "wake_")) or "nobody" in k or "same" in k
    }
    found = taken({k: v for k, v in kept.items() if k != "load_llc"}, alone, HERE, "one")
    assert {"costs.line_llc", "costs.ipi_send", "caches.llc"} <= set(found.unmeasured)
    assert not [p for p in machine_plan(alone, 1 << 30) if len(set(p.cpus)) > 1]


def test_a_difference_carries_both_ends_along_and_is_never_negative() -> None:
    a, b = Figure(10, 8, 12), Figure(4, 3, 9)
    assert a - b == Figure(6, 0, 9)
    assert (b - a).value == 0


def test_noise_a_governor_and_a_hypervisor_are_told() -> None:
    here = Circumstances("A CPU", "6.18", "2026-11-22", True, "powersave", 1)
    before, after = Clocks(0, 0, 0, 0), Clocks(10, 5 * (os.cpu_count() or 1), 1 * (os.cpu_count() or 1), 0)
    told = "\n".join(doubts(here, before, after, {"wide": Figure(3, 1, 9), "narrow": Figure(2, 1.9, 2.1)}))
    for word in ("hypervisor", "powersave", "other work used 50%", "took 10%", ": wide"):
        assert word in told
    quiet = Clocks(10, 5, 0, 5)
    assert not list(doubts(HERE, before, quiet, {"narrow": Figure(2, 1.9, 2.1)}))


def test_a_profile_is_written_as_it_is_and_used_by_a_scenario(tmp_path: Path) -> None:
    machine = of_guest().machine
    write_profile(machine, ["a remark"], tmp_path / "mine.yaml")
    assert load_machine(tmp_path / "mine.yaml") == machine
    scenario = tmp_path / "s.yaml"
    scenario.write_text(
        "simfs: 1\nname: s\ntitle: t\nmachine: ./mine.yaml\nkernel: linux-6.12\n"
        "workload: {kind: lock_cycle, lock: mutex, tasks: 2, think: 1 us, hold: 1 us}\n",
        "utf-8",
    )
    assert to_run_spec(expand(load(scenario))[0], 0)["machine"]["costs"]["line_llc"] == pytest.approx(109.1)


def test_a_profile_that_does_not_load_is_not_written(tmp_path: Path) -> None:
    machine = of_guest().machine
    broken = machine.model_copy(
        update={"costs": machine.costs.model_copy(update={"line_hit": machine.topology.cpus})}
    )
    with pytest.raises(ScenarioError, match="line_hit"):
        write_profile(broken, (), tmp_path / "mine.yaml")
    assert list(tmp_path.iterdir()) == []


def test_the_machine_beside_the_nearest_shipped_one() -> None:
    found = beside(of_guest(lines_llc_1=218.2).machine)
    ratios = {line.what: line.ratio for line in found.lines if line.measured}
    assert found.nearest == "guest-2cpu"
    assert ratios["costs.line_llc"] == pytest.approx(2)
    assert ratios["costs.cpu_relax"] == pytest.approx(1)


def test_topology_is_read_from_sysfs(tmp_path: Path) -> None:
    """Two sockets of two cores of two threads; the threads of a core are far apart in numbers."""
    for n in range(8):
        core, socket = n % 4, n % 4 // 2
        files = {
            "topology/core_cpus_list": f"{core},{core + 4}",
            "topology/package_cpus_list": f"{2 * socket}-{2 * socket + 1},{2 * socket + 4}-{2 * socket + 5}",
            "cache/index2/level": "2", "cache/index2/type": "Unified", "cache/index2/size": "512K",
            "cache/index3/level": "3", "cache/index3/type": "Unified", "cache/index3/size": "16M",
            "cache/index3/shared_cpu_list": f"{core},{core + 4}", "cache/index2/shared_cpu_list": f"{core}",
            "cpuidle/state0/name": "POLL", "cpuidle/state1/name": "C1", "cpuidle/state1/latency": "2",
            "cpuidle/state1/residency": "4",
        }  # fmt: skip
        for name, text in files.items():
            path = tmp_path / f"cpu{n}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n", "ascii")
    found = read_topology(tmp_path, range(8))
    assert [found.shared(what) for what in ("core", "llc", "socket")] == [2, 2, 4]
    assert set(found.pairs()) == {"smt", "socket", "remote"}
    assert found.pairs()["smt"][0] == (0, 4)
    assert (found.core_cache, found.llc, found.idle) == (
        512 << 10,
        16 << 20,
        (DeclaredIdle("C1", 2000, 4000),),
    )


def test_the_plan_is_gone_through_in_rounds() -> None:
    asked: list[str] = []

    def fake(what: str, cpus: list[int], **_: object) -> dict[str, list[float]]:
        asked.append(what)
        return {"each": [1.0], "share": [0.5]}

    found = gather([Probe("a", "x", (0,)), Probe("b", "y", (0,))], 1, 2, lambda *_: None, fake)
    assert asked == ["x", "y", "x", "y"]
    assert found == {"a": [1, 1], "a_share": [0.5, 0.5], "b": [1, 1], "b_share": [0.5, 0.5]}


@LINUX
@pytest.mark.parametrize(
    ("what", "cpus", "amount"),
    [("clock", 1, 0), ("syscall", 1, 0), ("wake", 1, 0), ("yield", 1, 0), ("pipe", 1, 0), ("memory", 1, 65536),
     ("tick", 1, 0), ("ping_pong", 2, 17), ("contended", 2, 0), ("wake", 2, 5000), ("membarrier", 2, 0)],
)  # fmt: skip
def test_a_probe_gives_positive_times(what: str, cpus: int, amount: int) -> None:
    from simfs._engine import measure

    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < cpus:
        pytest.skip("has one CPU")
    some = allowed[:cpus] if (what, cpus) not in (("wake", 1), ("pipe", 1)) else allowed[:1] * 2
    found = measure(what, some, amount=amount, seconds=0.01)
    assert found
    assert all(values and min(values) >= 0 for values in found.values())


@LINUX
@pytest.mark.parametrize(
    ("what", "cpus", "says"),
    [("fly", [0], "there are clock"), ("clock", [], "CPUs are one"), ("wake", [0], "waker and sleeper"),
     ("clock", [5000], "may not run"),
     ("calls", [0], "needs a folder"), ("memory", [0], "less than a page")],
)  # fmt: skip
def test_a_probe_says_what_cannot_be_done(what: str, cpus: list[int], says: str) -> None:
    from simfs._engine import measure

    with pytest.raises(ValueError, match=says):
        measure(what, [sorted(os.sched_getaffinity(0))[0]] if cpus == [0] else cpus, seconds=0.01)


@LINUX
def test_calls_leave_no_files(tmp_path: Path) -> None:
    from simfs._engine import measure

    cpu = [min(os.sched_getaffinity(0))]
    for amount in (0, 1, 1 << 16):
        found = measure("calls", cpu, amount=amount, seconds=0.02, at=tmp_path)
        assert {"create", "close", "unlink", "write", "stat", "rename", "fsync"} <= set(found)
    assert measure("load", [], seconds=0.02, at=str(tmp_path))["operations"][0] >= 1
    assert list(tmp_path.iterdir()) == []
    shutil.rmtree(tmp_path)
    with pytest.raises(ValueError, match="No such file"):
        measure("load", cpu, seconds=0.02, at=str(tmp_path))


def test_speed_is_real_over_simulated_time() -> None:
    times = {"xfs_load_seconds": [1.0, 1.0, 1.0], "xfs_load_operations": [50_000.0, 40_000.0, 100_000.0]}
    found = speed("xfs", times, 20_000, "here")
    assert (found.low, found.value, found.high) == (0.5, 1.0, 1.25)


def test_the_kernel_and_the_filesystem_of_a_folder(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"/dev/a / ext4 rw 0 0\nb {tmp_path} xfs rw 0 0\nc {tmp_path}/x\\040y btrfs rw 0 0\n", "utf-8"
    )
    (tmp_path / "x y").mkdir()
    assert [kind_at(p, mounts) for p in (tmp_path, tmp_path / "x y", Path("/"))] == ["xfs", "btrfs", "ext4"]
    assert kernel_here("6.12.3-arch1") == "linux-6.12"
    assert kernel_here("99.1") == kernel_here("99.2")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--out", "machine.txt"], "must end in .yaml"),
        (["--out", "/proc/self/stat/machine.yaml"], "stat is a file, not a directory"),
        (["--filesystem", "xfs"], "go together"),
        (["--at", "."], "go together"),
        (["--filesystem", "zfs", "--at", "."], "simfs has xfs"),
        (["--filesystem", "xfs", "--at", "no-such"], "is not a folder"),
        (["--filesystem", "tmpfs", "--at", "/proc"], "at /proc: "),
        (["--format", "csv"], "csv"),
    ],
)
def test_bad_input_of_measure_is_two(
    options: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = RUNNER.invoke(app, ["measure", *options])
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert says in answer.stderr


def test_doctor_refuses_what_is_no_machine(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("name: x\n", "utf-8")
    for options in (["--machine", "no-such"], ["--machine", str(tmp_path / "x.yaml")]):
        assert RUNNER.invoke(app, ["doctor", *options]).exit_code == 2


@LINUX
@pytest.mark.slow
def test_a_quick_measurement_from_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simfs.measuring.measured.QUICK_SECONDS", 1.0)
    out = tmp_path / "mine.yaml"
    asked = ["measure", "--quick", "-o", str(out), "--format", "json"]
    if kind_at(tmp_path) in ("ext4", "xfs", "btrfs", "tmpfs"):
        asked += ["--filesystem", kind_at(tmp_path), "--at", str(tmp_path)]
    answer = RUNNER.invoke(app, asked)
    assert answer.exit_code == 0, answer.stderr
    found = json.loads(answer.stdout)
    machine = load_machine(out)
    assert found["machine"]["costs"]["line_hit"]["value"] == machine.costs.line_hit.value
    assert machine.costs.line_hit.ns < machine.micro["syscall"].ns < machine.micro["pipe"].ns
    assert [p.name for p in tmp_path.iterdir()] == ["mine.yaml"]
    assert as_yaml(machine, ()).splitlines()[-1] in out.read_text("utf-8")


@LINUX
@pytest.mark.slow
def test_an_interrupt_leaves_no_file(tmp_path: Path) -> None:
    program = "from simfs.cli import main; main()"
    command = [sys.executable, "-c", program, "measure", "-o", str(tmp_path / "mine.yaml")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        time.sleep(4)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
    assert (running.returncode, list(tmp_path.iterdir())) == (130, [])
    assert "interrupted: nothing was written" in said
