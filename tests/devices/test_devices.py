"""A lock handed to a device stays held until the device is done, although the task that took it has gone on."""

from __future__ import annotations

from typing import Any

import pytest

from engine import lock_cycle, rate, simulate, the_lock
from simfs.results.run_result import RunResult

HOLD, DEVICE = 50.0, 1000.0


def written(tasks: int, think: float, **more: Any) -> RunResult:  # noqa: ANN401
    """Tasks that take a semaphore, hold it, hand it to a device and go on; more than one CPU each is no use."""
    return simulate(
        lock_cycle(
            "semaphore",
            tasks,
            warmup_ns=1e5,
            duration_ns=1.05e6,
            think_ns=think,
            hold_ns=HOLD,
            device_ns=DEVICE,
            **more,
        )
    )


def test_the_device_holds_the_lock_for_its_service_time() -> None:
    lock = the_lock(written(2, 1200))
    assert lock.acquired == 1000
    assert lock.holder_device_ns / lock.acquired == pytest.approx(DEVICE, rel=0.01)
    assert lock.holder_running_ns / lock.acquired == pytest.approx(HOLD, rel=0.01)
    assert lock.hold_max_ns == HOLD + DEVICE


def test_waiters_sleep_for_the_device_although_the_submitter_has_gone_on() -> None:
    """The submitter thinks for 1200 ns beside the device's 1000; the other waits from its arrival to the release."""
    result = written(2, 1200)
    lock = the_lock(result)
    assert rate(result) == pytest.approx(1 / (HOLD + DEVICE), rel=2e-3)
    assert lock.slept == lock.contended == lock.acquired
    expected = 2 * (HOLD + DEVICE) - 1200 - HOLD  # two turns less thinking and the own hold
    assert lock.wait_total_ns / lock.contended == pytest.approx(expected, rel=2e-3)
    assert result.cpu_ns.user / result.operations == pytest.approx(1200, rel=2e-3)
    assert result.latency["cycle"].max_ns < 2 * (HOLD + DEVICE)


def test_nobody_waits_where_the_device_is_done_before_the_next_comes() -> None:
    result = written(1, 1200)
    assert rate(result) == pytest.approx(1 / (1200 + HOLD), rel=2e-3)
    assert the_lock(result).contended == 0


@pytest.mark.parametrize("tasks", [1, 4])
@pytest.mark.parametrize("parallelism", [1, 4])
def test_one_buffer_is_written_once_at_a_time_also_for_the_task_that_submitted_it(
    tasks: int, parallelism: int
) -> None:
    result = written(tasks, 100, device_parallelism=parallelism)
    assert result.operations == 1000
    assert the_lock(result).acquired == 1000


def test_the_completion_interrupt_takes_the_time_of_a_wakeup_from_whatever_runs() -> None:
    result = written(2, 1200, costs={"wakeup": 30})
    assert result.cpu_ns.irq / result.operations == pytest.approx(30, rel=0.01)


def test_only_semaphores_can_be_released_by_a_device() -> None:
    with pytest.raises(ValueError, match="device_ns"):
        simulate(lock_cycle("mutex", 1, think_ns=100, hold_ns=10, device_ns=10))
