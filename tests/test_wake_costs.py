"""What a wake-up costs while the lock inside the lock is held."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine import FREE, lock_cycle
from simfs import _engine

TRANSFER, WAKEUP = 50, 1000


def events(kind: str) -> list[Any]:
    """Six tasks on two CPUs: who spins while somebody else wants its CPU goes to sleep."""
    costs = {**FREE, "line_llc": TRANSFER, "line_socket": TRANSFER, "wakeup": WAKEUP, "context_switch": 1500}
    spec = lock_cycle(kind, 6, 2, duration_ns=2e6, costs=costs, think_ns=1e3, hold_ns=4e3)
    spec["kernel"] |= {"tick_ns": 2e4, "base_slice_ns": 2e4}
    return list(_engine.trace(json.dumps(spec))[1])


@pytest.mark.parametrize("kind", ["mutex", "rwsem-4.8", "rwsem-5.3", "rwsem-5.11"])
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
