"""Workers that are bound to a CPU share its pool: one is at work at a time, and who sleeps has the next one woken."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from machines import assert_same

from engine import Spec, window
from simfs import _engine
from simfs.scenario import expand, load, to_run_spec

CPUS = 24


@pytest.fixture(scope="module")
def spec() -> Spec:
    """Compilers in one directory of XFS: both kinds of workers have much to do."""
    settings = ["variants=[]", "calibrate=[]", "measured=null", f"machine.cpus={CPUS}"]
    (point,) = expand(load("emulated-compile", [*settings, "sweep.workload.tasks=[24]"]))
    return to_run_spec(point, 0) | window(4e8)


@dataclass
class Seen:
    """What happens to whom, in order, and who works for which CPU."""

    events: list[tuple[int, str]]
    frees_inodes: dict[int, int]
    frees_stacks: dict[int, int]

    def sleeps_at_once(self, place: int) -> bool:
        """Whether a worker that frees inodes falls asleep at the next event."""
        who, what = self.events[place + 1]
        return who in self.frees_inodes and what == "sleep"


@pytest.fixture(scope="module")
def seen(spec: Spec) -> Seen:
    """The workers of inodes are the first kernel threads to take the AGI; those of stacks were started before them."""
    _, _, events, _ = _engine.watch(json.dumps(spec))
    takers = {
        who
        for _, who, _, what, about in events
        if who is not None and who < 0 and what == "acquire" and str(about).startswith("xfs.AGI#")
    }
    inodes = sorted(takers, reverse=True)[:CPUS]
    assert inodes == [inodes[0] - cpu for cpu in range(CPUS)]
    stacks = {who + CPUS: cpu for cpu, who in enumerate(inodes)}
    shown = [(who, what) for _, who, _, what, _ in events if who is not None]
    while shown[-1][1] == "wake":  # what follows was not seen
        shown.pop()
    return Seen(shown, {who: cpu for cpu, who in enumerate(inodes)}, stacks)


def test_a_worker_that_sleeps_at_its_work_has_the_next_one_woken_first(seen: Seen) -> None:
    wakes = [at for at, (who, what) in enumerate(seen.events) if who in seen.frees_stacks and what == "wake"]
    assert len(wakes) > 10
    assert sum(map(seen.sleeps_at_once, wakes)) > 2


def test_nobody_is_woken_for_more_work_while_another_worker_is_at_work(seen: Seen) -> None:
    at_work: set[int] = set()
    for place, (who, what) in enumerate(seen.events):
        if who in seen.frees_inodes and what in {"run", "sleep"}:
            (at_work.add if what == "run" else at_work.discard)(seen.frees_inodes[who])
        elif who in seen.frees_stacks and what == "wake":
            assert seen.sleeps_at_once(place) or seen.frees_stacks[who] not in at_work


@pytest.mark.slow
def test_both_machines_agree_on_pools(spec: Spec) -> None:
    assert_same(spec | {"duration_ns": 3e7}, most=10_000)
