"""rwsem between two patches of the series that rewrote it for 5.3, as scenarios/rwsem-wake-readers.yaml uses it."""

from itertools import takewhile
from typing import ClassVar

from simfs.machine.lock import Side, Waiting
from simfs.machine.locks.rwsem import Rwsem, Rwsem53
from simfs.machine.locks.rwsem_common import Waiter
from simfs.machine.task import Task


class AfterHandoff(Rwsem):
    """With the new count and the hand-off (4f23dbc1e657): nobody spins on readers, readers neither spin nor steal.

    A reader that is first takes along the readers behind it up to the first writer.
    """

    only_first_asks: ClassVar[bool] = True

    sleep_until_hope = Rwsem53.sleep_until_hope
    may_join = Rwsem53.may_join

    def down_read_slow(self, task: Task) -> Waiting:
        """`__rwsem_down_read_failed_common`: queue."""
        self.shares += 1  # left behind by the fast path's add
        return (yield from self.wait_as_reader(Waiter(task, Side.READ, 0), share=1))

    def spinnable(self, side: Side) -> bool:
        """`is_rwsem_owner_spinnable`: the owner word tells of readers until the next writer."""
        del side
        return self.writer.on_cpu if self.writer else not self.reader_owned

    def phase(self) -> list[Waiter]:
        """`__rwsem_mark_wake`: readers in front of the first writer."""
        return list(takewhile(lambda waiter: waiter.side is Side.READ, self.waiters))


class AllReaders(AfterHandoff):
    """With d3681e269fff: nearly all queued readers go together."""

    def phase(self) -> list[Waiter]:
        """Wherever they are, up to the batch limit."""
        return Rwsem.phase(self)
