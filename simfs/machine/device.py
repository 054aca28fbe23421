"""Devices: requests wait for one of a device's slots, take their service time, and complete by an interrupt.

The interrupt comes to the CPU that submitted the request and steals its time and that of a wake-up from whatever runs
there. It may release a lock that a task took long ago: a buffer that hardware was writing. A device has at most `depth`
requests; the others wait before it, and there neighbours become one request. All share one pipe of bytes. A request
that the device does alone waits until it has nothing else, and what comes meanwhile waits before the device. A write
is done when it is in the cache of a disk that has one, and a flush when all of the cache is on the platters.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from simfs.machine.clock import What
from simfs.machine.cpus.cpu import Cpu
from simfs.machine.disk import Cache, Disk
from simfs.machine.locks.bit_lock import BitLock
from simfs.machine.locks.completion import Completion
from simfs.machine.locks.semaphore import Semaphore
from simfs.machine.pipe import Pipe
from simfs.machine.time import Time

if TYPE_CHECKING:
    from simfs.machine.machine import Machine


NO_LIMIT = 2**32 - 1
"""The depth of a device that takes all requests at once."""

MERGED = 1280 << 10
"""The most bytes of a request that neighbours are merged to: `BLK_DEF_MAX_SECTORS`, 2560 sectors."""


@dataclass(frozen=True)
class Hardware:
    """What a device is like."""

    parallelism: int = 1
    """How many requests it serves at once."""
    depth: int = NO_LIMIT
    """How many requests it has at most; others wait before it."""
    interrupt: Time = 0
    """CPU time of a completion interrupt, besides the wake-up in it."""
    slack: Time = 0
    """How far its flash may be behind the writes that it has taken."""
    flush_alone: bool = False
    """It does a flush alone."""
    disk: Disk | None = None


@dataclass(frozen=True)
class Span:
    """The part of a device that a request reads or writes."""

    at: int
    bytes: int
    write: bool

    def joined(self, other: Span) -> Span | None:
        """Return the two as one if they are neighbours."""
        first, second = (self, other) if self.at < other.at else (other, self)
        together = self.bytes + other.bytes
        if self.write != other.write or first.at + first.bytes != second.at or together > MERGED:
            return None
        return Span(first.at, together, self.write)


@dataclass(frozen=True)
class Io:
    """What a request asks of a device."""

    op: str
    """What it asks for: `read`, `write` or `flush`."""
    service: Time
    """How long it takes when the device has nothing else to do."""
    joined: Time = 0
    """How long it takes besides a neighbour in one request."""
    transfer: Time = 0
    """How long it keeps the pipe of bytes."""
    flash: Time = 0
    """How long it keeps the flash."""
    span: Span | None = None
    """Where it is, if that is known."""

    @property
    def written(self) -> int:
        """How many bytes of a place it writes."""
        return self.span.bytes if self.span is not None and self.span.write else 0

    def with_neighbour(self, other: Io) -> Io | None:
        """Return the two as one request, if they are neighbours."""
        if self.span is None or other.span is None or (span := self.span.joined(other.span)) is None:
            return None
        service, joined = self.service + other.joined, self.joined + other.joined
        return replace(
            self, service=service, joined=joined, transfer=self.transfer + other.transfer, span=span
        )


@dataclass(eq=False)
class Request:
    """One request and what its completion interrupt does: complete a completion, or release a semaphore.

    It may complete one more, or release one more lock, which the device was handed.
    """

    number: int
    task: int
    cpu: Cpu
    io: Io
    since: Time
    then: Completion | Semaphore
    also: BitLock | Completion | Semaphore | None = None
    merged: list[Request] = field(default_factory=list)
    """Neighbours that are one request with it, the last one first."""

    def join(self, other: Request) -> bool:
        """Make another request, and what is part of it, part of this one if they are neighbours."""
        together = self.io.with_neighbour(other.io)
        if together is not None:
            self.io = together
            self.merged[:0] = [other, *other.merged]
        return together is not None


class Device:
    """A device of a machine; all its requests share one pipe."""

    def __init__(self, machine: Machine, number: int, hardware: Hardware) -> None:
        self.machine = machine
        self.number = number
        self.hardware = hardware
        self._slots = max(hardware.parallelism, 1)
        self._under_way = 0
        self._waiting: deque[Request] = deque()
        self._alone = False
        self._pipe = Pipe()
        self._flash = Pipe(hardware.slack)
        self._head = 0
        self._arm: Request | None = None
        """The request for which the arm of a disk moves."""
        self._cache = Cache(hardware.disk) if hardware.disk is not None and hardware.disk.cache else None

    def __str__(self) -> str:
        return f"device#{self.number}"

    def new_request(
        self,
        task: int,
        cpu: Cpu,
        io: Io,
        then: Completion | Semaphore,
        also: BitLock | Completion | Semaphore | None = None,
    ) -> Request:
        """A request that is to be sent. Its end completes or releases `then`, and completes or releases `also`.

        A semaphore is held by the device until the request is done.
        """
        if isinstance(then, Semaphore):
            then.hand_to_device()
        else:
            then.requests += 1
        if isinstance(also, Completion):
            also.requests += 1
        return Request(self.machine.requests.take(), task, cpu, io, self.machine.now, then, also)

    def send(self, request: Request) -> None:
        """Send a request to the device."""
        self.machine.note_cpu("submit", request.cpu, self)
        if not self._merge(request):
            alone = self._does_alone(request.io)
            self._waiting.insert(self._queued() if alone else len(self._waiting), request)
            self._serve()

    def _merge(self, request: Request) -> bool:
        """Make a request one with a neighbour of the same task that waits before the device."""
        before = reversed(list(self._waiting)[self._queued() :])
        return any(other.task == request.task and other.join(request) for other in before)

    def _first_alone(self) -> int:
        """How many wait before the first one that the device does alone."""
        return next((at for at, r in enumerate(self._waiting) if self._does_alone(r.io)), len(self._waiting))

    def _does_alone(self, io: Io) -> bool:
        return self.hardware.flush_alone and io.op == "flush"

    def _queued(self) -> int:
        """How many of those that wait are in the device's own queue: none that came after one that it does alone."""
        if self._alone:
            return 0
        return min(max(self.hardware.depth - self._under_way, 0), self._first_alone())

    def _serve(self) -> None:
        while True:
            reached, request = self._next()
            out, cached = self._next_cached()
            if self._cache is not None and cached is not None and (request is None or out < reached):
                self._cache.waiting.remove(cached)
                self._at(self._writes_out(self._cache.disk, cached), cached)
            elif request is not None:
                self._at(self._take(request), request)
            else:
                return

    def _at(self, end: Time, request: Request) -> None:
        self.machine.clock.at(end, What.DEVICE_DONE, request.number, partial(self._done, request))

    def _take(self, request: Request) -> Time:
        """Take a request that waits, and say when it is served."""
        self._waiting.remove(request)
        self._under_way += 1
        self._alone = self._does_alone(request.io)
        return self._serves(request)

    def _next(self) -> tuple[Time, Request | None]:
        """Which of the waiting requests is served next, if one can be, and when it is reached."""
        if self._alone or not self._waiting:
            return 0, None
        first = self._waiting[0]
        if self._does_alone(first.io):
            return 0, None if self._under_way else first
        if self.hardware.disk is None:
            return 0, first if self._under_way < self._slots else None
        queued = list(self._waiting)[: self._queued()]
        reached = [(time, request) for request in queued if (time := self._comes_to(request.io)) is not None]
        return min(reached, key=lambda at: at[0], default=(0, None))

    def _comes_to(self, io: Io) -> Time | None:
        """When a disk comes to a request, if it can now."""
        if self._cache is not None and io.op == "write":
            return 0 if self._cache.has_room(io.written) else None
        if self._cache is not None and io.op == "flush":
            return 0
        return self._reached(io) if self._arm is None else None

    def _next_cached(self) -> tuple[Time, Request | None]:
        """Which of the writes in a disk's cache goes to the platters next, if one can, and when it is reached."""
        if self._cache is None or self._arm is not None:
            return 0, None
        oldest = self._cache.waiting[: self.hardware.depth]
        reached = [(self._reached(request.io), request) for request in oldest]
        return min(reached, key=lambda at: at[0], default=(0, None))

    def _reached(self, io: Io) -> Time:
        """How long the arm of a disk needs to be where a request is.

        What follows the last read has been read ahead; what follows the last write has to come round, if the arm did
        not go on to it at once.
        """
        if self.hardware.disk is None or io.span is None or (io.span.at == self._head and not io.span.write):
            return 0
        return self.hardware.disk.reaches(self._head, io.span.at, self.machine.now)

    def _serves(self, request: Request) -> Time:
        """When a request that is taken now has been through its pipes and is served."""
        io, now = request.io, self.machine.now
        if self._cache is not None and io.op != "read":
            self._cache.take(io.written)
            return now + self._pipe.take(now, io.transfer) + io.service
        begins = now + self._reached(io)
        follows = self.hardware.disk is not None and io.span is not None and io.span.at == self._head
        goes_on = follows and io.op == "read"
        self._moves(request)
        waits = max(self._pipe.take(begins, io.transfer), self._flash.take(begins, io.flash))
        return begins + waits + (io.joined if goes_on else io.service)

    def _writes_out(self, disk: Disk, request: Request) -> Time:
        """When a write of the cache is on the platters."""
        begins = self.machine.now + self._reached(request.io)
        self._moves(request)
        return begins + disk.passes(request.io.written)

    def _moves(self, request: Request) -> None:
        if self.hardware.disk is not None:
            self._arm = request
        if (span := request.io.span) is not None:
            self._head = span.at + span.bytes

    def _done(self, request: Request) -> None:
        """Go on with a request for which the device has done something."""
        cache, op = self._cache, request.io.op
        if cache is not None and op == "write" and self._arm is request:
            cache.is_out(request.io.written)
            self._arm = None
            self.machine.requests.give_back(request.number)
            flushes = cache.take_flushes()
            self._serve()
            for flush in flushes:
                self._end(flush)
        elif cache is not None and op == "flush" and not cache.empty:
            cache.flushes.append(request)
        else:
            self._end(request)

    def _end(self, request: Request) -> None:
        """The completion interrupt of a request."""
        self.machine.note_cpu("device done", request.cpu, self)
        self.machine.served(request.io.op, request.since)
        self._under_way -= 1
        self._alone = False
        if self._arm is request:
            self._arm = None
        cached = self._cache if request.io.op == "write" else None
        if cached is not None:
            cached.waiting.append(request)
        self._serve()
        self.machine.scheduler.segments.interrupt(request.cpu, self.hardware.interrupt)
        for one in (request, *request.merged):
            if cached is None or one is not request:
                self.machine.requests.give_back(one.number)
            one.then.done_by_interrupt()
            if one.also is not None:
                one.also.done_by_interrupt()


class Numbers:
    """Numbers for things that come and go: the last one given back is given out first."""

    def __init__(self) -> None:
        self._unused: list[int] = []
        self._next = 0

    def take(self) -> int:
        """A number that nothing has."""
        if self._unused:
            return self._unused.pop()
        self._next += 1
        return self._next - 1

    def give_back(self, number: int) -> None:
        """The number is free again."""
        self._unused.append(number)
