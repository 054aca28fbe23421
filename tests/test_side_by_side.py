"""Experiments side by side: in order, no more runs at once than there are slots, and none after an interrupt."""

from __future__ import annotations

import json
from functools import partial
from threading import Barrier, Event, Lock

import pytest

from simfs.experiments.side_by_side import MANY, Gate, side_by_side

PATIENCE = 10.0
"""Seconds after which something that should happen does not."""


def test_they_go_on_at_the_same_time_and_results_are_in_order() -> None:
    together = Barrier(2)

    def experiment(number: int) -> int:
        together.wait(PATIENCE)
        return number

    assert side_by_side(Gate(2), [partial(experiment, n) for n in range(4)]) == [0, 1, 2, 3]


def test_no_more_runs_are_under_way_than_there_are_slots() -> None:
    under_way, most, lock = 0, 0, Lock()

    def engine(spec: str) -> str:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        Event().wait(0.001)
        with lock:
            under_way -= 1
        return spec

    gate = Gate(1)
    runs = partial(side_by_side, Gate(4), [partial(gate.before(engine), str(n)) for n in range(20)])
    assert runs() == [str(n) for n in range(20)]
    assert most == 1


def _on_btrfs(files: int, tasks: int = 1) -> str:
    load = {"initial_files": files, "tasks": tasks}
    return json.dumps({"filesystem": {"kind": "btrfs"}, "workload": load}, separators=(",", ":"))


@pytest.mark.parametrize(
    ("specs", "together"),
    [
        ([_on_btrfs(MANY), _on_btrfs(MANY)], False),
        ([_on_btrfs(MANY), _on_btrfs(2 * MANY)], True),
        ([_on_btrfs(MANY), _on_btrfs(MANY, tasks=2)], True),
        ([_on_btrfs(10), _on_btrfs(10)], True),
        ([_on_btrfs(MANY).replace("btrfs", "xfs")] * 2, True),
        (["{}", "{}"], True),
    ],
)
def test_runs_wait_outside_while_the_first_lays_out_the_same_files(specs: list[str], together: bool) -> None:
    gate, inside, both, other = Gate(2), Event(), Event(), Event()

    def first(spec: str) -> str:
        inside.set()
        both.wait(PATIENCE if together else 0.05)
        assert both.is_set() is together
        return spec

    def second(spec: str) -> str:
        both.set()
        return spec

    def third(spec: str) -> str:
        other.set()  # a slot is free for it all the time
        return spec

    def later() -> str:
        inside.wait(PATIENCE)
        return gate.before(second)(specs[1])

    def unlike() -> str:
        inside.wait(PATIENCE)
        return gate.before(third)("{}")

    experiments = [lambda: gate.before(first)(specs[0]), later, unlike]
    assert side_by_side(Gate(3), experiments) == [*specs, "{}"]
    assert both.is_set()
    assert other.is_set()


def test_when_the_first_has_laid_them_out_its_like_go_side_by_side() -> None:
    gate, spec, together = Gate(2), _on_btrfs(MANY), Barrier(2)
    gate.before(lambda spec: spec)(spec)

    def engine(spec: str) -> str:
        together.wait(PATIENCE)
        return spec

    assert side_by_side(gate, [partial(gate.before(engine), spec)] * 2) == [spec, spec]


def test_an_interrupt_of_one_ends_the_others_before_their_next_run() -> None:
    gate, begun, stopped = Gate(2), Barrier(2), []

    def runs_on() -> None:
        begun.wait(PATIENCE)
        engine = gate.before(lambda spec: spec)
        for _ in range(int(PATIENCE * 1000)):
            try:
                engine("")
            except KeyboardInterrupt:
                stopped.append(True)
                raise
            Event().wait(0.001)

    def interrupted() -> None:
        begun.wait(PATIENCE)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        side_by_side(gate, [runs_on, interrupted])
    assert stopped == [True]
