"""Unbound workqueues share a pool of workers: who went to sleep last does what is queued, one piece after the other."""

from __future__ import annotations

from pathlib import Path

import pytest
from machines import assert_same

from engine import Spec, lock_cycle, written_spec
from simfs.machine.locks.pool import Pool, Work
from simfs.machine.machine import Machine
from simfs.machine.task import Steps, Task

SYNCED = "kind: mix, files: 1, file_size: 4 KiB, order: in-turn, operations: [{op: append}, {op: fsync, on: written}]"


def spec(folder: Path, kernel: str = "linux-6.12", tasks: int = 1, kind: str = "btrfs") -> Spec:
    """Tasks that append and sync on a loop device."""
    text = (
        "simfs: 1\nname: s\ntitle: s\nmachine: {profile: server-24, cpus: 4, cpus_per_llc: 2, cpus_per_socket: 4}\n"
        f"kernel: {kernel}\ndevice: loop-tmpfs\nfilesystem: {{kind: {kind}}}\n"
        f"workload: {{{SYNCED}, directories: per-task, tasks: {tasks}}}\n"
    )
    return written_spec(folder / "s.yaml", text) | {"warmup_ns": 0, "duration_ns": 4e6}


class Bench:
    """A pool with workers, by number, and who is woken."""

    def __init__(self, workers: int) -> None:
        machine = Machine(lock_cycle(tasks=1))
        self.home = machine.new_completion()
        self.pool = Pool(self.home)
        self.workers = [machine.spawn(_rest, spawn_kind="background") for _ in range(workers)]
        for worker in self.workers:
            self.idles(worker)

    def work(self, *, most: int = 9, is_one: bool = False) -> Work:
        """A queue."""
        return Work(self.pool, most, is_one, self.home)

    def idles(self, worker: Task) -> None:
        """A worker goes to sleep."""
        self.pool.idle.append((worker, False))


def _rest(task: Task) -> Steps:
    yield from task.park_program()


def test_who_went_to_sleep_last_is_woken_and_nobody_else_until_he_runs() -> None:
    bench = Bench(3)
    work = bench.work()
    assert work.insert() is bench.workers[2]
    assert work.insert() is None
    bench.pool.idle.pop()
    assert bench.pool.take() is work
    assert bench.pool.kick() is bench.workers[1]


def test_nobody_is_woken_when_a_worker_begins_the_last_piece() -> None:
    bench = Bench(2)
    bench.work().insert()
    bench.pool.idle.pop()
    assert bench.pool.take() is not None
    assert bench.pool.kick() is None


def test_pieces_beyond_the_limit_of_a_queue_wait_until_one_is_done() -> None:
    bench = Bench(2)
    narrow, other = bench.work(most=1), bench.work()
    narrow.insert()
    narrow.insert()
    other.insert()
    assert [bench.pool.take(), bench.pool.take(), bench.pool.take()] == [narrow, other, None]
    assert not narrow.finish()
    assert bench.pool.take() is narrow


def test_one_piece_that_is_queued_while_it_is_done_is_done_again_by_the_same_worker() -> None:
    bench = Bench(2)
    loop = bench.work(is_one=True)
    assert loop.insert() is bench.workers[1]
    assert bench.pool.take() is loop
    bench.pool.idle.pop()
    assert loop.insert() is bench.workers[0], "who finds that another one does it"
    assert loop.insert() is None, "it is queued already"
    assert bench.pool.take() is None
    assert loop.finish(), "again"
    assert not loop.finish()
    assert loop.active == 0


@pytest.mark.parametrize("kind", ["btrfs", "ext4", "xfs"])
@pytest.mark.parametrize("kernel", ["linux-6.12", "linux-6.1", "linux-5.10"])
def test_both_machines_agree_on_unbound_workers(tmp_path: Path, kernel: str, kind: str) -> None:
    assert_same(spec(tmp_path, kernel, 3, kind))
