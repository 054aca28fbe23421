"""The built-in programs run on a machine written in Python: here on the smallest one that can carry them."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator

import pytest
from tiny_machine import Step, TinyMachine

from engine import Spec, lock_cycle, scenario_spec, simulate
from simfs import _engine

CYCLES = lock_cycle(
    "mutex", think_ns=1000, think_distribution="exponential", hold_ns=50, hold_distribution="exponential"
)


def compilers(tasks: int) -> Spec:
    return scenario_spec("compile-24", "xfs", f"workload.tasks={tasks}", warmup_ns=0, duration_ns=1)


def test_a_lock_cycle_is_driven_step_by_step() -> None:
    machine = TinyMachine(CYCLES)
    machine.run(50_000_000)
    assert [step[0] for _, step in machine.steps[:8]] == ["run", "lock", "run", "unlock"] * 2
    accounts = [step[1] for _, step in machine.steps if step[0] == "run"]
    assert accounts[:4] == ["user", "system", "user", "system"]
    assert machine.operations["cycle"] > 20


def test_a_holder_that_goes_blocking_converts_its_lock() -> None:
    machine = TinyMachine(lock_cycle("btrfs-tree-2", think_ns=1000, hold_ns=50, blocking=1.0))
    machine.run(50_000_000)
    assert [step for _, step in machine.steps[1:3]] == [
        ("lock", 0, "write"),
        ("convert", 0, "write", "blocking"),
    ]


def test_programs_draw_the_same_numbers_on_every_machine() -> None:
    machine = TinyMachine(CYCLES)
    machine.run(50_000_000)
    stream = _engine.Stream(1, 0, "task 0")
    drawn = [draw for _ in range(5) for draw in (stream.exponential(1_000_000), stream.exponential(50_000))]
    assert [step[2] for _, step in machine.steps if step[0] == "run"][:10] == drawn


def test_an_uncontended_lock_cycle_makes_as_many_cycles_as_on_the_native_machine() -> None:
    machine = TinyMachine(CYCLES)
    machine.run(1_000_000_000)
    assert machine.operations["cycle"] == simulate(CYCLES).operations


def test_compilers_on_xfs_run_to_their_ends_again_and_again() -> None:
    machine = TinyMachine(compilers(4))
    machine.run(10**11)
    assert machine.operations["compile"] >= 8  # two for each task
    assert "xfs.AGI" in machine.classes
    kinds = {step[0] for _, step in machine.steps}
    assert {"run", "lock", "unlock", "wait_for", "complete", "sleep", "park"} <= kinds
    assert machine.calls["touch"] > machine.operations["compile"]


def test_a_device_holds_the_lock_on_after_submit() -> None:
    machine = TinyMachine(lock_cycle("semaphore", think_ns=1000, hold_ns=50, device_ns=100))
    machine.run(10_000_000)
    assert machine.calls["submit, then release"] == 1
    assert [step[0] for _, step in machine.steps].count("lock") == 2  # the second is never granted


class Refusing(TinyMachine):
    def touch(self, task: int, line: int, access: str) -> None:
        raise LookupError("no such line")


def test_what_a_method_of_the_machine_raises_comes_out_of_step() -> None:
    machine = Refusing(compilers(1))
    with pytest.raises(LookupError, match="no such line"):
        machine.run(10**12)
    failed = [program for program in machine.programs if program.step() is None]
    assert len(failed) == 1  # the program that made the call has ended; the others go on


def test_what_a_method_of_the_machine_raises_comes_out_of_populate() -> None:
    class Roleless(TinyMachine):
        def new_class(self, name: str, role: str) -> int:
            raise KeyError(role)

    with pytest.raises(KeyError, match="lock"):
        Roleless(CYCLES)


def test_an_answer_of_a_wrong_type_is_an_error() -> None:
    class Wordy(TinyMachine):
        def new_lock(self, lock_class: int) -> int:
            return "first"  # type: ignore[return-value]

    with pytest.raises(TypeError):
        Wordy(CYCLES)


def test_a_program_is_not_stepped_before_spawn_has_returned() -> None:
    class Hasty(TinyMachine):
        def spawn(
            self, parent: int | None, pinned: int | None, spawn_kind: str, program: _engine.Program
        ) -> int:
            program.step()
            return 0

    with pytest.raises(RuntimeError, match="before spawn has returned"):
        Hasty(CYCLES)


def test_a_wrong_spec_is_refused_before_anything_is_made() -> None:
    with pytest.raises(ValueError, match="cpus"):
        TinyMachine(CYCLES | {"machine": CYCLES["machine"] | {"cpus": 0}})


def test_a_closed_program_is_at_its_end() -> None:
    machine = TinyMachine(CYCLES)
    machine.programs[0].close()
    assert machine.programs[0].step() is None


def test_a_program_stays_in_its_thread() -> None:
    machine = TinyMachine(CYCLES)
    errors: list[str] = []

    def step() -> None:
        try:
            machine.programs[0].step()
        except RuntimeError as error:
            errors.append(str(error))

    thread = threading.Thread(target=step)
    thread.start()
    thread.join()
    assert len(errors) == 1
    assert "thread" in errors[0]


def test_a_machine_that_nobody_needs_any_more_is_freed_with_its_programs() -> None:
    machine = TinyMachine(CYCLES)
    machine.run(10_000_000)
    freed = weakref.ref(machine)
    del machine
    gc.collect()
    assert freed() is None


@pytest.mark.slow
def test_a_program_says_so_when_its_machine_is_gone() -> None:
    machine = TinyMachine(lock_cycle("semaphore", think_ns=1000, hold_ns=50))
    program = machine.programs[0]
    del machine
    gc.collect()
    with pytest.raises(RuntimeError, match="no longer exists"):
        list(steps(program))


def steps(program: _engine.Program) -> Iterator[Step]:
    while (step := program.step()) is not None:
        yield step


def test_streams_are_told_apart_by_seed_replication_and_name() -> None:
    ones = [(1, 0, "a"), (2, 0, "a"), (1, 1, "a"), (1, 0, "b")]
    assert len({_engine.Stream(*one).next_u64() for one in ones}) == len(ones)
    assert _engine.Stream(1, 0, "a").next_u64() == _engine.Stream(1, 0, "a").next_u64()


def test_drawn_times_have_the_means_asked_for() -> None:
    stream = _engine.Stream(1, 0, "means")
    number = 40_000
    for drawn in (
        [stream.exponential(10_000) for _ in range(number)],
        [stream.lognormal(10_000, 0.5) for _ in range(number)],
    ):
        assert sum(drawn) / number == pytest.approx(10_000, rel=0.02)
    assert [stream.chance(0.25) for _ in range(number)].count(True) / number == pytest.approx(0.25, abs=0.01)
    assert sum(stream.uniform() for _ in range(number)) / number == pytest.approx(0.5, abs=0.01)


def test_a_histogram_reports_what_the_engine_reports() -> None:
    """The latency of an uncontended cycle without costs is its hold, which its stream tells."""
    result = simulate(CYCLES)
    stream = _engine.Stream(1, 0, "task 0")
    histogram = _engine.Histogram(3)
    for _ in range(result.operations):
        stream.exponential(1_000_000)
        histogram.record(stream.exponential(50_000) // 1000)
    reported = result.latency["cycle"]
    assert (histogram.count, histogram.mean, histogram.max) == (
        reported.count,
        reported.mean_ns,
        reported.max_ns,
    )
    percentiles = [histogram.percentile(p) for p in (50, 90, 99)]
    assert percentiles == [reported.p50_ns, reported.p90_ns, reported.p99_ns]
    histogram.reset()
    assert (histogram.count, histogram.percentile(50)) == (0, 0.0)


def test_a_histogram_of_a_wrong_precision_is_refused() -> None:
    with pytest.raises(ValueError, match="1 to 5"):
        _engine.Histogram(9)


def test_a_pool_of_histograms_has_the_values_of_all() -> None:
    parts = [_engine.Histogram(3) for _ in range(4)]
    for number, part in enumerate(parts[1:], 1):
        for ns in range(number):
            part.record(7**ns * number)
    pool = _engine.Histogram.pooled([part.encode() for part in parts])
    for part in parts[1:]:
        parts[0].add(part)
    assert (pool.encode(), pool.count, pool.max) == (parts[0].encode(), 6, 147)
    nothing = _engine.Histogram(3).encode()
    assert _engine.Histogram.pooled([nothing, nothing]).count == 0
    for wrong in ([], ["?"], [nothing, "HIST"]):
        with pytest.raises(ValueError, match=r"histogram|base64"):
            _engine.Histogram.pooled(wrong)
