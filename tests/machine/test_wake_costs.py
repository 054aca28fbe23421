"""What a wake-up costs while the lock inside the lock is held."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine import CONSTANTS, FREE, lock_cycle
from simfs import _engine, machine
from simfs.machine.agreement import first_difference

TRANSFER, WAKEUP = 50, 1000


def events(kind: str) -> list[Any]:
    """Six tasks on two CPUs: who spins while somebody else wants its CPU goes to sleep."""
    costs = {**FREE, "line_llc": TRANSFER, "line_socket": TRANSFER, "wakeup": WAKEUP, "context_switch": 1500}
    spec = lock_cycle(kind, 6, 2, duration_ns=2e6, costs=costs, think_ns=1e3, hold_ns=4e3)
    spec["kernel"] |= {"tick_ns": 2e4, "base_slice_ns": 2e4}
    return list(_engine.trace(json.dumps(spec))[1])


@pytest.mark.parametrize("kind", ["mutex", "rwsem-4.8", "rwsem-5.3", "rwsem-5.4", "rwsem-5.11"])
def test_a_waker_fetches_the_waiter_while_it_has_the_wait_lock(kind: str) -> None:
    """Three lines (`wake_q_add`): the entry in the queue, the task's count of references, its `wake_q`."""
    since: dict[int, int] = {}
    spans: list[int] = []
    for time, task, _, what, about in events(kind):
        if what == "acquire" and about.startswith("lock.wait_lock"):
            since[task] = time
        elif what == "release" and about.startswith("lock.wait_lock"):
            spans.append(time - since.pop(task))
    long = [span for span in spans if span >= 3 * TRANSFER * 1000]
    assert len(long) > 0.2 * len(spans)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["rwsem-2.6", "rwsem-3.16", "rwsem-4.8", "rwsem-5.3", "rwsem-5.4", "rwsem-5.11"]
)
def test_both_machines_fetch_the_lines_of_as_many_readers_as_the_era_wakes(kind: str) -> None:
    """Before 5.3 a release wakes all readers up to a writer; the batch is a limit since then."""
    constants = {**CONSTANTS, "rwsem_reader_batch_max": 2}
    times: dict[str, Any] = {"think_ns": 3e3, "hold_ns": 300, "think_distribution": "exponential"}
    spec = lock_cycle(kind, 6, 4, duration_ns=1e6, readers=0.8, kernel={"constants": constants}, **times)
    assert first_difference(_engine.trace(json.dumps(spec))[1], machine.trace(json.dumps(spec))[1]) is None
