"""The section of a scenario that names a kernel and what differs from it, and how locks are named."""

import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, StrictBool, StrictFloat

from simfs.scenario.sections.section import Section, Text, refusal, shorten
from simfs.scenario.sections.units import Duration, TurnTime, checked_duration
from simfs.scenario.sections.words import Named, Schema
from simfs.vocabulary import Vocabulary

OWN_LOCK = re.compile(r".+\.py:[A-Za-z_]\w*")
"""How a lock written by the user is given: a file and the class in it."""


def _lock_schema(words: Vocabulary) -> dict[str, Any]:
    own = {"type": "string", "description": "A lock of one's own: its name, or FILE.py:CLASS."}
    return {"anyOf": [{"enum": list(words.lock_kinds)}, own]}


def _rules_schema(words: Vocabulary) -> dict[str, Any]:
    rules = words.rules.values()
    properties = {rule.name: {"description": rule.about, "enum": list(rule.values)} for rule in rules}
    return {"type": "object", "properties": properties, "additionalProperties": False}


LockUse = Annotated[str, Field(min_length=1, max_length=1000), Schema(_lock_schema)]
"""A built-in lock, or the name of one's own; `simfs.scenario.checks.names` refuses all others."""


def _count_or_duration(value: object) -> object:
    return checked_duration(value) if isinstance(value, str) else value


def _rule_value(value: object) -> object:
    if isinstance(value, bool | str):
        return value
    raise refusal(f"should be a word, true or false, got {shorten(value)}")


RuleValue = Annotated[StrictBool | str, BeforeValidator(_rule_value)]
"""What a kernel does at one place; `simfs.scenario.checks.names` refuses what is no choice of the rule."""

CountOrDuration = Annotated[
    StrictFloat,
    Field(ge=0, le=1e15),
    BeforeValidator(_count_or_duration, json_schema_input_type=StrictFloat | Duration),
]


def _named(value: object) -> object:
    """Refuse a version written as a number: 6.10 would be 6.1."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise refusal("a release is named with its prefix, for example linux-6.12")
    return value


class KernelUse(Section):
    """A kernel and what differs from it here. Its name alone will do."""

    MOVED: ClassVar[dict[str, str]] = {
        "designs": "kernel.rules",
        "run_to_parity": "kernel.rules: {sched.run_to_parity: true or false}",
        "delay_dequeue": "kernel.rules: {sched.delay_dequeue: true or false}",
    }

    profile: Annotated[Text, BeforeValidator(_named)] = Field(
        description="A release, for example linux-5.11, a profile in models/kernels, or path of a file like one."
    )
    tick: TurnTime | None = Field(default=None, description="Length of a scheduler tick.")
    base_slice: TurnTime | None = Field(default=None, description="Time slice of a task.")
    rules: Annotated[dict[str, RuleValue], Schema(_rules_schema)] = Field(
        default={}, description="What this kernel does differently: rule -> value; no other rule changes."
    )
    preemption: Literal["none", "voluntary", "full", "host"] | None = Field(
        default=None,
        description="When kernel code gives up its CPU to another task; `host`: the tasks are virtual CPUs, which "
        "their host preempts anywhere, also under spinlocks.",
    )
    kernel_threads: StrictBool | Literal["emulated"] = Field(
        default=False,
        description="Whether kernel threads that have nothing to do with the workload take a CPU now and then; "
        "`emulated`: those of the laboratory's kernel.",
    )
    constants: Annotated[dict[str, CountOrDuration], Named(lambda words: words.constants)] = Field(
        default={},
        description="Constants of lock code that replace the profile's: durations with a unit, or counts.",
    )
