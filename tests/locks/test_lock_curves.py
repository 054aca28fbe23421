"""What the scenarios of measured lock curves are made of: bound tasks, protected lines, pauses, and CNA's sorting."""

from __future__ import annotations

from typing import Any

import pytest

from engine import FREE, Spec, lock_cycle, rate, simulate, the_lock
from simfs.scenario import ScenarioError, expand, load, to_run_spec

LOCAL, REMOTE = 50, 500
FAR: Spec = {**FREE, "line_smt": 5, "line_llc": LOCAL, "line_socket": LOCAL, "line_remote": REMOTE}


def sockets(binding: str, tasks: int, per_core: int = 1, hold_ns: float = 10, **params: Any) -> Spec:  # noqa: ANN401
    """Two sockets of four CPUs, and a lock whose hand-over costs what its line's transfer costs."""
    spec = lock_cycle(
        "mcs",
        tasks,
        8,
        warmup_ns=1e5,
        duration_ns=1e6,
        costs=FAR,
        think_ns=10,
        hold_ns=hold_ns,
        binding=binding,
        **params,
    )
    spec["machine"] |= {"cpus_per_core": per_core, "cpus_per_llc": 4, "cpus_per_socket": 4}
    return spec


def cycle_ns(spec: Spec) -> float:
    return 1 / rate(simulate(spec))


def test_compact_tasks_fill_a_socket_before_the_next() -> None:
    assert cycle_ns(sockets("compact", 4)) < 2 * LOCAL + 30
    assert cycle_ns(sockets("compact", 5)) > 2 * cycle_ns(sockets("compact", 4))


def test_spread_tasks_take_sockets_in_turn() -> None:
    assert cycle_ns(sockets("spread", 2)) > REMOTE


def test_hyper_threads_of_a_busy_core_are_bound_last() -> None:
    """Two cores a socket: the third task goes to the other socket rather than to a busy core."""
    assert LOCAL < cycle_ns(sockets("compact", 2, per_core=2)) < REMOTE / 2
    assert cycle_ns(sockets("compact", 3, per_core=2)) > REMOTE / 2
    assert cycle_ns(sockets("none", 2, per_core=2)) > LOCAL  # nor does the scheduler choose one


def test_protected_lines_follow_the_lock() -> None:
    """A second task: each hold loads all lines of the group from the other one, and stores to them.

    The store to the next one's node is on its way while those wait.
    """
    lines = REMOTE * (1 + 3 / FREE["line_overlap"])
    for tasks, fetched in ((1, 0.0), (2, 2 * lines - REMOTE)):
        bare, loaded = (cycle_ns(sockets("spread", tasks, data_lines=lines)) for lines in (0, 4))
        assert loaded - bare == pytest.approx(fetched, rel=0.02)


def test_readers_share_the_protected_lines() -> None:
    spec = lock_cycle(
        "percpu-rwsem", 8, duration_ns=1e6, think_ns=10, hold_ns=10, costs=FAR, readers=1.0, data_lines=4
    )
    assert rate(simulate(spec)) == pytest.approx(8 / 20, rel=0.01)


def test_pauses_add_to_the_hold_what_a_pause_takes_on_the_machine() -> None:
    point = expand(load("rwsem-reader-spin", ["workload.pauses=20", "machine.costs.cpu_relax=30 ns"]))[0]
    assert to_run_spec(point, 0)["workload"]["params"]["hold_ns"] == 20 * 30


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("workload.hold={exponential: 1 us}", "pauses go with a constant hold"),
        ("workload.pin_to_cpu=0", "not both"),
    ],
)
def test_what_cannot_go_together_is_refused(setting: str, reason: str) -> None:
    with pytest.raises(ScenarioError, match=reason):
        load("rwsem-reader-spin", [setting])


def test_cna_sorts_also_when_a_look_takes_nearly_as_long_as_a_hold() -> None:
    """Spread over two sockets the queue is mixed; a look at a waiter of the other one costs a remote transfer."""

    def spread(lock: str) -> float:
        spec = sockets("spread", 8, hold_ns=600, think_distribution="exponential")
        spec["kernel"]["locks"]["lock"] = lock
        return rate(simulate(spec | {"duration_ns": 1e7}))

    assert spread("cna") > 1.3 * spread("qspinlock")


@pytest.mark.parametrize("lock", ["mutex", "rwsem-5.11"])
def test_who_releases_a_lock_pays_for_taking_it_back_from_a_spinner(lock: str) -> None:
    """An atomic access to a line that another CPU polls ends when that copy is gone: a second way.

    If it asks for it again before the spinner's request reaches it, in half a transfer, it goes on with it.
    """
    away, again = (sockets("spread", 2) for _ in range(2))
    for spec, think in ((away, 0.6 * REMOTE), (again, 10)):
        spec["kernel"]["locks"]["lock"] = lock
        spec["workload"]["params"]["think_ns"] = think
    assert cycle_ns(away) > 1.99 * REMOTE
    assert cycle_ns(again) < REMOTE


def test_a_lock_cycle_without_data_moves_only_the_lock() -> None:
    result = simulate(sockets("compact", 1))
    assert the_lock(result).line_transfers == 0
