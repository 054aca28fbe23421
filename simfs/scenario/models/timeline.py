"""What Linux does since which version, and kernels as points on that line (`models/kernels/timeline.yaml`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Protocol, Self, TypeVar

from pydantic import BeforeValidator, Field, StrictBool, model_validator

from simfs.scenario.sections.quantity import Quantity
from simfs.scenario.sections.section import Section, refusal, shorten
from simfs.scenario.suggest import nearest
from simfs.vocabulary import vocabulary

SCHEDULER = ("tick", "slice", "latency", "wakeup_granularity")
"""Numbers that are not constants of a RunSpec: they are scaled, or have names of their own."""

CONFIG: dict[str, tuple[str, ...]] = {"preemption": ("none", "voluntary", "full")}
"""What can be configured, and how."""

Release = tuple[int, ...]
Refusal = tuple[tuple[str, ...], str, str | None]
"""The path of what is wrong, why, and what was probably meant."""
Value = bool | str


def parse_version(text: object) -> Release:
    """Return `6.11` as numbers that compare; raise `ValueError` for anything but that and such numbers."""
    if isinstance(text, tuple):
        return text
    parts = text.split(".") if isinstance(text, str) else []
    if not 2 <= len(parts) <= 4 or not all(
        part.isascii() and part.isdecimal() and len(part) < 5 for part in parts
    ):
        raise refusal(f'{shorten(text)} is not a version; write it quoted, for example "6.11"')
    return tuple(map(int, parts))


Version = Annotated[Release, BeforeValidator(parse_version)]


class Choice(Section):
    """What something is in a kernel."""

    is_: StrictBool | str = Field(alias="is")
    source: Annotated[str, Field(min_length=8)]


class Era(Choice):
    """What something is since a version; without one, as far back as the timeline goes."""

    since: Version | None = None


class NumberEra(Quantity):
    """A number since a version."""

    since: Version | None = None


class Since(Protocol):
    """What begins with a version."""

    @property
    def since(self) -> Release | None:
        """The version, or None for as far back as the timeline goes."""
        ...


E = TypeVar("E", bound=Since)


def at(eras: tuple[E, ...], version: Release) -> E:
    """Return the last era that has begun."""
    return next(era for era in reversed(eras) if era.since is None or era.since <= version)


Eras = Annotated[tuple[Era, ...], Field(min_length=1)]


INSIDE_FUTEX = "futex.bucket"
"""The role of a lock inside another, which cannot be of every kind."""


class Timeline(Section):
    """The eras of each primitive, lock role, rule, configured choice and number."""

    releases: dict[str, int]
    primitives: dict[str, Eras]
    roles: dict[str, Eras]
    rules: dict[str, Eras]
    config: dict[str, Eras]
    numbers: dict[str, Annotated[tuple[NumberEra, ...], Field(min_length=1)]]

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        first = min(self.versions())
        for name, eras in self._tables():
            since = [era.since for era in eras]
            starts = [version or (0,) for version in since]
            if None in since[1:] or starts != sorted(set(starts)) or starts[0] > first:
                raise refusal(
                    f"{name}: eras must begin one after the other, the first not after {dotted(first)}"
                )
        return self

    def _tables(self) -> Iterator[tuple[str, tuple[Since, ...]]]:
        for table in (self.primitives, self.roles, self.rules, self.config):
            yield from table.items()
        yield from self.numbers.items()

    def versions(self) -> list[Release]:
        """Return all releases, oldest first."""
        series = sorted((int(major), last) for major, last in self.releases.items())
        return [(major, minor) for major, last in series for minor in range(last + 1)]

    def nearest(self, version: Release) -> Release:
        """Return the last release that is not after `version`, or the first of all."""
        return max((known for known in self.versions() if known <= version), default=min(self.versions()))

    def changes(self, version: Release) -> list[str]:
        """Return the names of what a release does differently from the one before."""
        tables = (self.primitives, self.roles, self.rules)
        return [
            name for table in tables for name, eras in table.items() if version in [e.since for e in eras[1:]]
        ]

    def kernel(self, version: Release) -> Kernel:
        """Return the kernel of a version as distributions configure it."""
        return self.of(Profile(name=linux(version), title=f"Linux {dotted(version)}", version=version))

    def of(self, profile: Profile) -> Kernel:
        """Return a profile's kernel: the timeline's at its version, but for what the profile says."""
        roles = self._laid_over("roles", profile, profile.locks)
        return Kernel(
            name=profile.name,
            title=profile.title,
            version=profile.version,
            preemption=str(self._laid_over("config", profile, profile.config)["preemption"]),
            numbers=self._laid_over("numbers", profile, profile.numbers),
            locks={role: self._kind(str(lock), profile.version) for role, lock in roles.items()},
            primitives={role: str(lock) for role, lock in roles.items() if lock in self.primitives},
            rules=self._laid_over("rules", profile, profile.rules),
        )

    def _laid_over(
        self, table: str, profile: Profile, own: Mapping[str, Choice] | Mapping[str, Quantity]
    ) -> dict[str, Any]:
        eras = {name: at(eras, profile.version) for name, eras in getattr(self, table).items()}
        return {
            name: value.is_ if isinstance(value, Choice) else value for name, value in {**eras, **own}.items()
        }

    def _kind(self, lock: str, version: Release) -> str:
        eras = self.primitives.get(lock)
        return str(at(eras, version).is_) if eras else lock

    def refusals(self, profile: Profile) -> Iterator[Refusal]:
        """Yield what is wrong with a profile: at which key, what, and the nearest word."""
        if profile.version not in self.versions():
            last = dotted(self.nearest(profile.version))
            yield (
                ("version",),
                f"there is no Linux {dotted(profile.version)} here; the last before it is {last}",
                None,
            )
        yield from _unknown("numbers", profile.numbers, self.numbers)
        for name, number in profile.numbers.items():
            if name in self.numbers and number.is_time != self.numbers[name][0].is_time:
                yield ("numbers", name), f"cannot be in {number.unit}", None
            elif name in SCHEDULER and number.ns < 1000:
                yield ("numbers", name), "must be at least 1 us", None
        yield from _refused("config", profile.config, CONFIG)
        if profile.locks:
            kinds = (*vocabulary().lock_kinds, *self.primitives)
            yield from _refused("locks", profile.locks, dict.fromkeys(self.roles, kinds))
        yield from rule_refusals(profile.rules)


class Profile(Section):
    """A kernel of one's own: a version, and what it has besides or instead (`models/kernels/NAME.yaml`)."""

    name: str
    title: str
    version: Version
    numbers: dict[str, Quantity] = Field(default={})
    config: dict[str, Choice] = Field(default={})
    locks: dict[str, Choice] = Field(default={})
    rules: dict[str, Choice] = Field(default={})


@dataclass(frozen=True)
class Kernel:
    """A kernel: its numbers, its preemption model, the kind of every lock role and the value of every rule."""

    name: str
    title: str
    version: Release
    preemption: str
    numbers: Mapping[str, Quantity]
    locks: Mapping[str, str]
    primitives: Mapping[str, str]
    """Of the lock roles that are of one, the primitive: `vfs.d_lock` is a `spinlock`."""
    rules: Mapping[str, Value]

    def with_locks(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the kind of every lock role where `given` says otherwise.

        A primitive there, as `spinlock`, means all its roles, but for the lock inside a futex.
        """
        of_primitives = {
            role: given[primitive]
            for role, primitive in self.primitives.items()
            if primitive in given and role != INSIDE_FUTEX
        }
        known = set(self.primitives.values())
        return {**self.locks, **of_primitives, **{r: kind for r, kind in given.items() if r not in known}}

    def ruled(self, rules: Mapping[str, Value]) -> Kernel:
        """Return the same kernel with other values of some rules."""
        return replace(self, rules={**self.rules, **rules})

    @property
    def tick(self) -> Quantity:
        """Length of a scheduler tick."""
        return self.numbers["tick"]

    @property
    def constants(self) -> dict[str, Quantity]:
        """Constants of the lock code and the scheduler."""
        return {name: number for name, number in self.numbers.items() if name not in SCHEDULER}

    def spec(self, cpus: int) -> dict[str, Any]:
        """Return the `kernel` section of a RunSpec for a machine with `cpus` CPUs; times in ns."""
        times = {
            "latency_ns": self._scaled("latency", cpus),
            "wakeup_granularity_ns": self._scaled("wakeup_granularity", cpus),
        }
        return {
            "name": self.name,
            "tick_ns": self.tick.ns,
            "base_slice_ns": self._scaled("slice", cpus),
            **({"cfs": times} if self.rules["sched.class"] == "cfs" else {}),
            "preemption": self.preemption,
            "locks": dict(self.locks),
            "rules": dict(self.rules),
            "constants": {name: quantity.plain for name, quantity in self.constants.items()},
        }

    def _scaled(self, name: str, cpus: int) -> float:
        """As the kernel scales its scheduler's times: times 1 + floor(log2(min(cpus, 8)))."""
        return self.numbers[name].ns * min(cpus, 8).bit_length()


def rule_refusals(rules: Mapping[str, Choice]) -> Iterator[Refusal]:
    """Yield what is wrong with rules that a profile gives."""
    if rules:
        yield from _refused("rules", rules, {rule.name: rule.values for rule in vocabulary().rules.values()})


def not_a_choice(value: Value, choices: Iterable[Value]) -> tuple[str, str | None] | None:
    """Return what is wrong with a value and the nearest choice; None for one of them."""
    known = list(choices)
    if value in known:
        return None
    words = [_written(choice) for choice in known]
    return f"{shorten(_written(value))} is not one of {', '.join(words)}", nearest(_written(value), words)


def _written(value: Value) -> str:
    """A value as YAML has it."""
    return str(value).lower() if isinstance(value, bool) else value


def _unknown(table: str, own: Iterable[str], known: Iterable[str]) -> Iterator[Refusal]:
    words = list(known)
    for name in own:
        if name not in words:
            yield (table, name), f"unknown key '{shorten(name)}'", nearest(name, words)


def _refused(
    table: str, own: Mapping[str, Choice], known: Mapping[str, Iterable[Value]]
) -> Iterator[Refusal]:
    yield from _unknown(table, own, known)
    for name, choice in own.items():
        if wrong := name in known and not_a_choice(choice.is_, known[name]):
            yield (table, name, "is"), wrong[0], wrong[1]


def dotted(version: Release) -> str:
    """Return a version as people write it."""
    return ".".join(map(str, version))


def linux(version: Release) -> str:
    """Return what a scenario calls the kernel of a version."""
    return f"linux-{dotted(version)}"
