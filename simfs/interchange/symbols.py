"""Call chains and lockdep's names to lock classes of simfs, by `models/symbols.yaml`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Annotated

from pydantic import Field, ValidationError, model_validator

from simfs.interchange.reading import Waits, total
from simfs.scenario.paths import MODELS
from simfs.scenario.problems import ScenarioError
from simfs.scenario.reading.document import Document
from simfs.scenario.reading.refusals import problems_of
from simfs.scenario.sections.section import Section

FILE = MODELS / "symbols.yaml"
KINDS = ("semaphore", "spinlock", "rwlock", "rwsem", "mutex", "rt-mutex", "pcpu-sem", "wait_lock")


class Symbols(Section):
    """How a lock class shows in tools."""

    chains: tuple[str, ...] = ()
    lockdep: tuple[str, ...] = Field((), description="Names in /proc/lock_stat; `btrfs-tree-` has levels.")
    source: str

    @model_validator(mode="after")
    def _is_seen(self) -> Symbols:
        if not self.chains and not self.lockdep:
            raise ValueError("needs a chain or a name of lockdep")
        return self


class SymbolMap(Section):
    """The file."""

    locks: Annotated[dict[str, Symbols], Field(min_length=1)]


@dataclass(frozen=True)
class Chain:
    """A chain of the file."""

    kind: str
    functions: tuple[str, ...]
    lock: str

    def said(self, waits: Waits) -> int:
        """How many of its functions stand in this order in a chain; inner ones may be missing at its beginning."""
        if self.kind and waits.kind and waits.kind.partition(":")[0] != self.kind:
            return 0
        return next(
            (
                len(self.functions) - start
                for start in range(len(self.functions))
                if (start == 0 or waits.where[0] == self.functions[start])
                and _in_order(self.functions[start:], waits.where)
            ),
            0,
        )

    def may_fit(self, waits: Waits) -> bool:
        """Whether the chain says no more than what several locks share."""
        kind = waits.kind.partition(":")[0]
        return (
            len(self.functions) > 1 and self.functions[0] in waits.where and kind in ("", self.kind or kind)
        )


def _in_order(wanted: tuple[str, ...], chain: tuple[str, ...]) -> bool:
    left = iter(re.sub(r"\.(isra|constprop|part|cold)\.?\d*", "", function) for function in chain)
    return all(function in left for function in wanted)


@cache
def symbols() -> SymbolMap:
    """Load the file; raises ScenarioError as other models do."""
    document = Document.read(FILE)
    try:
        return SymbolMap.model_validate(document.data)
    except ValidationError as error:
        raise ScenarioError(problems_of(error, document)) from None


@cache
def chains() -> tuple[Chain, ...]:
    """All chains. Of those that fit the one that says most is meant, of equal ones the first."""
    return tuple(_chain(text, lock) for lock, known in symbols().locks.items() for text in known.chains)


def _chain(text: str, lock: str) -> Chain:
    first, _, rest = text.partition(" ")
    kind, functions = (first, rest) if first in KINDS else ("", text)
    return Chain(kind, tuple(f.strip() for f in functions.split("<")), lock)


def lock_of(waits: Waits) -> str | None:
    """The lock class that was waited for; None where the chain does not tell."""
    if not waits.where:
        return None
    if waits.kind.startswith("wait_lock"):
        found = lock_of(Waits(waits.where))
        return f"{found}.wait_lock" if found and not found.endswith("wait_lock") else found
    said = [(chain.said(waits), chain.lock) for chain in chains()]
    most, lock = max(said, key=lambda each: each[0])
    if most:
        return lock
    return _of_lockdep(waits.where[0]) if len(waits.where) == 1 else None


def _of_lockdep(name: str) -> str | None:
    """By lockdep's name: `&sb->s_type->i_mutex_dir_key#3` has a version, `&rq->lock/1` a subclass."""
    bare = re.sub(r"#\d+", "", name)
    for lock, known in symbols().locks.items():
        for word in known.lockdep:
            if word in (bare, name) or bare.rpartition("/")[0] == word:
                return lock
            if word.endswith("-") and (level := re.fullmatch(re.escape(word) + r"0?(\d)(?:/\d+)?", bare)):
                return f"{lock} L{level[1]}"
    return None


def candidates(waits: Waits) -> list[str]:
    """Locks that a chain may mean, where it stops too early to tell."""
    return list(dict.fromkeys(c.lock for c in chains() if c.may_fit(waits)))


@dataclass(frozen=True)
class Sorted:
    """Waits by lock class, and what belongs to none."""

    by_lock: dict[str, Waits]
    unmapped: tuple[Waits, ...]


def sort(waits: Iterable[Waits]) -> Sorted:
    """Add waits up by lock class, the longest total first."""
    groups, unmapped = defaultdict[str, list[Waits]](list), list[Waits]()
    for each in waits:
        lock = lock_of(each)
        groups[lock].append(each) if lock else unmapped.append(each)
    merged = {lock: merge(lock, found) for lock, found in groups.items()}
    ordered = sorted(merged.items(), key=lambda item: (-(item[1].total_ns or 0.0), item[0]))
    unmapped.sort(key=lambda w: -(w.total_ns or 0.0))
    return Sorted(dict(ordered), tuple(unmapped))


def merge(name: str, found: list[Waits]) -> Waits:
    """Several lines as one."""
    longest = [w.max_ns for w in found if w.max_ns is not None]
    acquired = [w.acquired for w in found if w.acquired is not None]
    kinds = {w.kind for w in found}
    return Waits(
        (name,),
        sum(w.count for w in found),
        kinds.pop() if len(kinds) == 1 else "",
        total(w.total_ns for w in found),
        max(longest, default=None),
        sum(acquired) if acquired else None,
        total(w.held_ns for w in found),
    )
