"""The section of a scenario that names a kernel profile, and the lock types there are."""

from __future__ import annotations

import re
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field, StrictBool, StrictFloat, WithJsonSchema

from simfs.scenario.section import Section, Text
from simfs.scenario.units import Duration, PositiveDuration, checked_duration

LockKind = Literal[
    "tas", "ticket", "mcs", "qspinlock", "cna", "rwlock-2.6", "qrwlock",
    "semaphore", "mutex-2.6.16", "mutex-2.6.30", "mutex-3.0", "mutex-3.10", "mutex", "mutex-4.10",
    "rwsem-2.6", "rwsem-3.10", "rwsem-3.16", "rwsem-4.8", "rwsem-5.3", "rwsem", "rwsem-5.11",
    "percpu-rwsem", "btrfs-tree-2", "btrfs-tree-3-biased", "btrfs-tree-3",
]  # fmt: skip

OWN_LOCK = re.compile(r".+\.py:[A-Za-z_]\w*")
"""How a lock written by the user is given: a file and the class in it."""

LockUse = Annotated[
    str,
    Field(min_length=1, max_length=1000),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(get_args(LockKind))},
                {"type": "string", "description": "A lock of one's own: its name, or FILE.py:CLASS."},
            ]
        }
    ),
]
"""A built-in lock, or the name of one's own; `simfs.scenario.checks` refuses all others."""


def _count_or_duration(value: object) -> object:
    return checked_duration(value) if isinstance(value, str) else value


CountOrDuration = Annotated[
    StrictFloat,
    Field(ge=0, le=1e15),
    BeforeValidator(_count_or_duration, json_schema_input_type=StrictFloat | Duration),
]


class KernelUse(Section):
    """A kernel profile and what differs from it here. The profile's name alone will do."""

    profile: Text = Field(description="Name of a profile in models/kernels, or path of a file like one.")
    tick: PositiveDuration | None = Field(default=None, description="Length of a scheduler tick.")
    base_slice: PositiveDuration | None = Field(default=None, description="Time slice of a task.")
    run_to_parity: StrictBool | None = Field(
        default=None, description="Whether a running task is protected from wake-up preemption for its slice."
    )
    delay_dequeue: StrictBool | None = Field(
        default=None, description="Whether who sleeps ahead of its share stays in the queue until it is not."
    )
    designs: dict[str, str] = Field(
        default={}, description="What one lock guards and who does the work: role -> design."
    )
    preemption: Literal["none", "voluntary", "full", "host"] | None = Field(
        default=None,
        description="When kernel code gives up its CPU to another task; `host`: the tasks are virtual CPUs, which "
        "their host preempts anywhere, also under spinlocks.",
    )
    kernel_threads: StrictBool = Field(
        default=False,
        description="Whether kernel threads that have nothing to do with the workload take a CPU now and then.",
    )
    constants: dict[str, CountOrDuration] = Field(
        default={},
        description="Constants of lock code that replace the profile's: durations with a unit, or counts.",
    )
