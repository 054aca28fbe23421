"""Block devices: the profile of one, and the section of a scenario that names it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StrictFloat, StrictInt

from simfs.scenario.quantity import Bytes, Count, Period, Time, Variation
from simfs.scenario.section import Section, word_as
from simfs.scenario.units import Duration, Size

ServedBy = Literal["submitter", "worker", "hardware"]


class Service(Section):
    """How long one kind of request takes: mean of 4 KiB, its variation, and each further KiB."""

    time: Time
    cv: Variation
    per_kib: Time

    def spec(self) -> dict[str, float]:
        """Return `device.read`, `.write` or `.flush` of a RunSpec."""
        return {"time_ns": self.time.ns, "cv": self.cv.plain, "per_kib_ns": self.per_kib.ns}


class Disk(Section):
    """The arm and the platters of a disk: what comes before a request's own time there."""

    revolution: Period
    seek_track: Time
    seek_full: Time
    capacity: Bytes
    depth: Count

    def spec(self) -> dict[str, float]:
        """Return `device.disk` of a RunSpec."""
        return {
            "revolution_ns": self.revolution.ns,
            "seek_track_ns": self.seek_track.ns,
            "seek_full_ns": self.seek_full.ns,
            "capacity_bytes": round(self.capacity.plain),
            "depth": round(self.depth.plain),
        }


class Device(Section):
    """A block device: who serves its requests, how many at once, and how long they take.

    `submit` is the submitter's CPU time, `interrupt` that of a request's end (the interrupt of hardware on the same
    CPU, the softirq after a worker) without the wake-up, which is the machine's, `dispatch` that of `kblockd` for a
    request of a flush sequence. `fua` tells how data are written past the cache: by the device, or by a flush after
    them.
    What a submitter or a worker serves takes CPU time, not the device's.
    """

    name: str
    title: str
    served_by: ServedBy
    parallelism: Count
    submit: Time
    interrupt: Time
    dispatch: Time
    fua: Literal["device", "flush"]
    read: Service
    write: Service
    flush: Service
    disk: Disk | None = None

    def spec(self) -> dict[str, Any]:
        """Return the `device` section of a RunSpec."""
        return {
            "served_by": self.served_by,
            "parallelism": round(self.parallelism.plain),
            "submit_ns": self.submit.ns,
            "interrupt_ns": self.interrupt.ns,
            "dispatch_ns": self.dispatch.ns,
            "fua": self.fua == "device",
            "read": self.read.spec(),
            "write": self.write.spec(),
            "flush": self.flush.spec(),
            **({} if self.disk is None else {"disk": self.disk.spec()}),
        }


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
    depth: Annotated[StrictInt, Field(ge=1, le=65_536)] | None = Field(
        default=None, description="Requests among which the disk chooses the one that it reaches first."
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
    submit: Duration | None = Field(default=None, description="CPU time of the submitter.")
    interrupt: Duration | None = Field(
        default=None, description="CPU time of a request's end, without the wake-up."
    )
    read: _Time = Field(default=ServiceUse(), description="Time of a read.")
    write: _Time = Field(default=ServiceUse(), description="Time of a write.")
    flush: _Time = Field(default=ServiceUse(), description="Time of a flush of the device's cache.")
    disk: DiskUse = Field(default=DiskUse(), description="Arm and platters of a disk.")
