"""Unbound workqueues share a pool of workers: who went to sleep last does what is queued, one piece after the other."""

from __future__ import annotations

from pathlib import Path

import pytest
from machines import assert_same

from engine import Spec, lock_cycle, read_answer, window, written_spec
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
    return written_spec(folder / "s.yaml", text) | window(4e6)


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


CONVERTS = """\
simfs: 1
name: converts
title: Tasks write into blocks that ext4 has allocated and not written, and sync
machine: {{profile: server-24, cpus: 8, cpus_per_llc: 4, cpus_per_socket: {of_socket}}}
kernel: {{profile: linux-5.10, rules: {{workqueue.orders_one: {orders}}}}}
filesystem: {{kind: ext4}}
device: nvme
workload: {{kind: fio, tasks: 8, rw: randwrite, size: 8 MiB, files: per-task, fsync: 1, unwritten: true}}
measure: {{warmup: 0, duration: 10 ms, replications: 1}}
"""


def converted(folder: Path, of_socket: int, *, orders: bool) -> int:
    """Operations of tasks whose extents a worker converts, on sockets of so many CPUs."""
    text = CONVERTS.format(of_socket=of_socket, orders=str(orders).lower())
    return int(read_answer(written_spec(folder / "c.yaml", text))["operations"])


def test_one_piece_at_a_time_is_one_on_all_nodes_where_that_is_an_order(tmp_path: Path) -> None:
    """`alloc_workqueue`, 4.13 to 6.8; `ext4-rsv-conversion` has `max_active` 1."""
    assert converted(tmp_path, 8, orders=True) == converted(tmp_path, 8, orders=False)
    assert converted(tmp_path, 4, orders=True) != converted(tmp_path, 4, orders=False)
