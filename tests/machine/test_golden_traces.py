"""Small traces that a person can follow, kept as files: what each kind of lock does when three tasks meet at it.

`python tests/machine/test_golden_traces.py` writes the files anew; read the difference before committing it.
"""

from __future__ import annotations

import json

import pytest
from places import TESTS

from engine import Spec, lock_cycle
from simfs import _engine
from simfs.reports.traces.trace import line

GOLDEN = TESTS / "golden"
KINDS = ["ticket", "qspinlock", "qrwlock", "semaphore", "mutex-3.10", "mutex-4.10", "rwsem-2.6", "rwsem-5.16"]
PRICES = {"line_hit": 2, "line_llc": 50, "context_switch": 1500, "wakeup": 1000, "ipi_deliver": 500}


def spec(kind: str) -> Spec:
    """Three tasks think for 1 us and hold for 4 us, on two CPUs, once or twice each."""
    readers = 0.5 if kind.startswith(("rw", "qrw")) else 0.0
    return lock_cycle(kind, 3, 2, duration_ns=24e3, costs=PRICES, think_ns=1e3, hold_ns=4e3, readers=readers)


def trace(kind: str) -> str:
    return "".join(f"{line(event)}\n" for event in _engine.trace(json.dumps(spec(kind)))[1])


@pytest.mark.parametrize("kind", KINDS)
def test_the_trace_of_three_tasks_at_a_lock_is_the_one_that_was_read(kind: str) -> None:
    assert trace(kind) == (GOLDEN / f"{kind}.trace").read_text()


if __name__ == "__main__":
    for name in KINDS:
        (GOLDEN / f"{name}.trace").write_text(trace(name))
