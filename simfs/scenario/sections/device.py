"""Block devices: the profile of one, and the section of a scenario that names it."""

from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictFloat, StrictInt

from simfs.scenario.sections.quantity import (
    Burst,
    Bytes,
    BytesPerSecond,
    Count,
    Period,
    PerSecond,
    Time,
    Variation,
)
from simfs.scenario.sections.section import Section, word_as
from simfs.scenario.sections.units import Duration, Size

ServedBy = Literal["submitter", "worker", "hardware"]


class Service(Section):
    """How long one kind of request takes: mean of 4 KiB, its variation, and each further KiB."""

    time: Time
    cv: Variation
    per_kib: Time

    def spec(self) -> dict[str, float]:
        """Return `device.read`, `.write` or `.flush` of a RunSpec."""
        return {"time_ns": self.time.ns, "cv": self.cv.plain, "per_kib_ns": self.per_kib.ns}


class Bandwidth(Section):
    """Bytes a second that the device can move, by direction; each uses its part of one pipe."""

    read: BytesPerSecond
    write: BytesPerSecond

    def spec(self) -> dict[str, float]:
        """Return `device.bandwidth` of a RunSpec."""
        return {"read": self.read.plain, "write": self.write.plain}


class SmallWrites(Section):
    """Writes that the flash takes, however small: so many a second for ever, so many at once after a rest."""

    rate: PerSecond
    burst: Burst

    def spec(self) -> dict[str, float]:
        """Return `device.small_writes` of a RunSpec."""
        return {"rate": self.rate.plain, "burst": self.burst.plain}


class FirstWrite(Section):
    """The first write of a page of a RAM disk: to allocate and clear it, and to enter it under the disk's lock."""

    allocate: Time
    insert: Time

    def spec(self) -> dict[str, float]:
        """Return `device.first_write` of a RunSpec."""
        return {"allocate_ns": self.allocate.ns, "insert_ns": self.insert.ns}


class Disk(Section):
    """The arm and the platters of a disk: what comes before a request's own time there."""

    revolution: Period
    seek_track: Time
    seek_full: Time
    capacity: Bytes
    cache: Bytes

    def spec(self) -> dict[str, float]:
        """Return `device.disk` of a RunSpec."""
        return {
            "revolution_ns": self.revolution.ns,
            "seek_track_ns": self.seek_track.ns,
            "seek_full_ns": self.seek_full.ns,
            "capacity_bytes": round(self.capacity.plain),
            "cache_bytes": round(self.cache.plain),
        }


class Device(Section):
    """A block device: who serves its requests, how many at once, and how long they take.

    `submit` is the submitter's CPU time, `merge` that for what becomes part of a request in its plug (who serves
    requests himself has none), `interrupt` that of a request's end (the interrupt of hardware on the same
    CPU, the softirq after a worker) without the wake-up, which is the machine's, `dispatch` that of `kblockd` for a
    request of a flush sequence. `fua` tells how data are written past the cache: by the device (in the time of a write
    and a flush, or of a write alone: `write`), or by a flush after them. Without a volatile `write_cache` flushes are
    not sent at all. A `rotational` device says that it rotates.
    Where a flush is done `alone` (`flush_alone`), the device finishes what it has before, and takes nothing beside it.
    `queues`: one for all CPUs or one for each; only flushes of one queue are joined. `depth` is how many requests it
    has at most; others wait before it, where neighbours become one.
    What a submitter or a worker serves takes CPU time, not the device's.
    """

    name: str
    title: str
    served_by: ServedBy
    parallelism: Count
    depth: Count | None = None
    submit: Time
    merge: Time | None = None
    interrupt: Time
    dispatch: Time
    fua: Literal["device", "write", "flush"]
    write_cache: Literal["volatile", "none"] = "volatile"
    rotational: bool = False
    flush_alone: bool = False
    queues: Literal["one", "per-cpu"] = "one"
    read: Service
    write: Service
    flush: Service
    bandwidth: Bandwidth | None = None
    small_writes: SmallWrites | None = None
    disk: Disk | None = None
    first_write: FirstWrite | None = None

    def spec(self) -> dict[str, Any]:
        """Return the `device` section of a RunSpec."""
        return {
            "served_by": self.served_by,
            "parallelism": round(self.parallelism.plain),
            "submit_ns": self.submit.ns,
            **({} if self.merge is None else {"merge_ns": self.merge.ns}),
            "interrupt_ns": self.interrupt.ns,
            "dispatch_ns": self.dispatch.ns,
            "fua": self.fua != "flush",
            **({"fua_waits": False} if self.fua == "write" else {}),
            **({} if self.write_cache == "volatile" else {"write_cache": False}),
            **({"queue_per_cpu": True} if self.queues == "per-cpu" else {}),
            **({"rotational": True} if self.rotational else {}),
            **({"flush_alone": True} if self.flush_alone else {}),
            "read": self.read.spec(),
            "write": self.write.spec(),
            "flush": self.flush.spec(),
            **({} if self.depth is None else {"depth": round(self.depth.plain)}),
            **{name: part.spec() for name in _PARTS if (part := getattr(self, name)) is not None},
        }


_PARTS = ("bandwidth", "small_writes", "disk", "first_write")
"""What only some devices have."""


class ServiceUse(Section):
    """What differs from a profile in the time of one kind of request. A duration alone is the mean of 4 KiB."""

    time: Duration | None = Field(default=None, description="Mean of a request of 4 KiB.")
    cv: Annotated[StrictFloat, Field(ge=0, le=10)] | None = Field(
        default=None,
        description="Standard deviation relative to the mean (log-normal); 0 is always the mean.",
    )
    per_kib: Duration | None = Field(default=None, description="Each KiB beyond the first 4.")


class DiskUse(Section):
    """What differs from a profile in a disk's arm and platters."""

    revolution: Duration | None = Field(default=None, description="Time of one turn.")
    seek_track: Duration | None = Field(default=None, description="A seek to the next track.")
    seek_full: Duration | None = Field(default=None, description="A seek over the whole disk.")
    capacity: Size | None = Field(default=None, description="Bytes on the disk.")
    cache: Size | None = Field(default=None, description="Bytes of the cache that takes writes.")


class BandwidthUse(Section):
    """What differs from a profile in what a device can move."""

    read: Size | None = Field(default=None, description="Bytes read a second.")
    write: Size | None = Field(default=None, description="Bytes written a second.")


class SmallWritesUse(Section):
    """What differs from a profile in the writes that its flash takes."""

    rate: Annotated[StrictInt, Field(ge=1, le=10**9)] | None = Field(
        default=None, description="Writes a second for ever, however small."
    )
    burst: Annotated[StrictInt, Field(ge=1, le=10**6)] | None = Field(
        default=None, description="Writes at once after a rest; 1 is a drive that has been written full."
    )


_Time = Annotated[ServiceUse, word_as("time", ServiceUse)]


class DeviceUse(Section):
    """A device profile and what differs from it here. The profile's name alone will do."""

    profile: Annotated[str, Field(min_length=1, max_length=2000)] = Field(
        description="Name of a profile in models/devices, or path of a file like one."
    )
    parallelism: Annotated[StrictInt, Field(ge=1, le=65_536)] | None = Field(
        default=None, description="Requests served at once."
    )
    depth: Annotated[StrictInt, Field(ge=1, le=65_536)] | None = Field(
        default=None, description="Requests that the device has at most; others wait before it."
    )
    submit: Duration | None = Field(default=None, description="CPU time of the submitter.")
    interrupt: Duration | None = Field(
        default=None, description="CPU time of a request's end, without the wake-up."
    )
    write_cache: Literal["volatile", "none"] | None = Field(
        default=None,
        description="Whether it has a cache that loses its data; without one no flushes are sent.",
    )
    queues: Literal["one", "per-cpu"] | None = Field(
        default=None,
        description="One queue for all CPUs, or one for each; only flushes of one queue are joined.",
    )
    rotational: StrictBool | None = Field(
        default=None,
        description="Whether it says that it rotates (queue/rotational), which filesystems ask at mount.",
    )
    raid0: Annotated[StrictInt, Field(ge=1, le=1024)] | None = Field(
        default=None,
        description="It is an md array (RAID 0) of so many such devices, which the submitter serves.",
    )
    read: _Time = Field(default=ServiceUse(), description="Time of a read.")
    write: _Time = Field(default=ServiceUse(), description="Time of a write.")
    flush: _Time = Field(
        default=ServiceUse(), description="Time of a flush of the device's cache, which it then has."
    )
    bandwidth: BandwidthUse = Field(
        default=BandwidthUse(), description="Bytes a second that all requests share."
    )
    small_writes: SmallWritesUse = Field(
        default=SmallWritesUse(), description="Writes that the flash takes, however small."
    )
    disk: DiskUse = Field(default=DiskUse(), description="Arm and platters of a disk.")
