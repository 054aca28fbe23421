"""Each task of a workload on a CPU of its own, with all that it starts; and the shell of a compile load."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tiny_machine import TinyMachine

from engine import Spec, scenario_spec
from simfs import _engine
from simfs.scenario import ScenarioError, expand, load, to_run_spec


class Recording(TinyMachine):
    """Notes which task spawned which, and where it may run; without the kernel threads of the beginning."""

    cpus = 4

    def __init__(self, spec: Spec) -> None:
        self.spawned: list[tuple[int | None, int | None]] = []
        self.threads = 0
        super().__init__(spec)

    def spawn(self, parent: int | None, pinned: int | None, spawn_kind: str, program: _engine.Program) -> int:
        if spawn_kind == "background":
            self.threads += 1
        else:
            self.spawned.append((None if parent is None else parent - self.threads, pinned))
        return super().spawn(parent, pinned, spawn_kind, program)

    def tasks(self, of: int = 0) -> list[int]:
        """The tasks that a task has started; task 0 starts those of the workload."""
        return [number for number, (parent, _) in enumerate(self.spawned) if parent == of]


def compiled(*options: str, tasks: int = 4) -> Recording:
    settings = [f"workload.tasks={tasks}", "machine.cpus=4", *options]
    machine = Recording(scenario_spec("compile-24", "tmpfs", *settings, warmup_ns=0, duration_ns=1))
    machine.run(10**11)
    return machine


def test_each_compiler_and_its_children_keep_to_one_cpu() -> None:
    machine = compiled("workload.binding=compact")
    assert [machine.spawned[task][1] for task in machine.tasks()] == [0, 1, 2, 3]
    for parent, pinned in machine.spawned[5:]:
        assert parent is not None
        assert pinned == machine.spawned[parent][1]
    assert machine.operations["compile"] > 4


def test_compilers_that_are_not_bound_run_anywhere() -> None:
    assert {pinned for _, pinned in compiled("workload.binding=none").spawned} == {None}


def test_tasks_beyond_the_last_cpu_begin_again_at_the_first() -> None:
    machine = compiled("workload.binding=compact", tasks=6)
    assert [machine.spawned[task][1] for task in machine.tasks()] == [0, 1, 2, 3, 0, 1]


@pytest.mark.parametrize(("shell", "processes"), [("true", 4), ("false", 3)])
def test_a_shell_starts_the_driver_which_starts_the_others(shell: str, processes: int) -> None:
    """Each turn of will-it-scale's load is `system("cc -c ...")`: sh, cc, cc1, as."""
    machine = compiled(f"workload.shell={shell}", tasks=1)
    generations: Counter[int] = Counter()
    for parent, _ in machine.spawned[2:]:
        depth = 0
        while parent:
            depth, parent = depth + 1, machine.spawned[parent][0]
        generations[depth] += 1
    turns = machine.operations["compile"]
    assert turns > 2
    assert sum(generations.values()) / turns == pytest.approx(processes, abs=processes / turns)
    assert max(generations) == processes - 1  # cc1 and as have one parent
    assert generations[max(generations)] / turns == pytest.approx(2, abs=2 / turns)


LOADS = {
    "create": "kind: create",
    "mix": "kind: mix, operations: [{op: stat}]",
    "fs_mark": "kind: fs_mark",
    "fio": "kind: fio",
    "dbench": "kind: dbench",
    "range_lock": "kind: range_lock",
}


@pytest.mark.slow
@pytest.mark.parametrize("load_", LOADS)
def test_every_load_can_be_bound(load_: str, tmp_path: Path) -> None:
    path = tmp_path / "bound.yaml"
    files = "kind: none" if load_ == "range_lock" else "kind: tmpfs"
    path.write_text(
        "simfs: 1\nname: bound\ntitle: bound\nmachine: {profile: server-24, cpus: 4}\nkernel: linux-6.12\n"
        f"filesystem: {{{files}}}\nworkload: {{{LOADS[load_]}, tasks: 2, binding: spread}}\n"
        "measure: {warmup: 0 ns, duration: 1 ms}\n"
    )
    (point,) = expand(load(path))
    machine = Recording(to_run_spec(point, 0))
    machine.run(10**10 if load_ == "dbench" else 10**9)  # ps; clients of dbench first make a tree
    assert [pinned for _, pinned in machine.spawned if pinned is not None] == [0, 1]


def test_tasks_are_bound_once() -> None:
    with pytest.raises(ScenarioError, match="not both"):
        load("compile-24", ["workload.binding=compact", "workload.pin_to_cpu=0"])
