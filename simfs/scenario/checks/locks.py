"""What the models of the schema cannot see about the locks of a scenario."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from simfs.machine.locks.policy import SPINLOCKS, UNGUARDED
from simfs.scenario.models import load_kernel
from simfs.scenario.problems import Problem
from simfs.scenario.reading.document import Document, Path_
from simfs.scenario.schema import Scenario
from simfs.scenario.sections.kernel import OWN_LOCK
from simfs.scenario.sections.lock_tasks import LockCycle, LockTasks
from simfs.scenario.sections.section import shorten
from simfs.scenario.sections.workload import PythonTasks
from simfs.scenario.suggest import KINDS_OF_LOCKS, choices, nearest
from simfs.vocabulary import vocabulary

ROLES = {
    r"xfs\.(AGI|AGF|inobt|finobt|directory block|inode cluster)": "xfs.buffer",
    r"btrfs\..+ tree( L\d+)?": "btrfs.tree",
    r"btrfs\..+ log_mutex": "btrfs.log_mutex",
    r"ext4\.inode table": "ext4.buffer",
}
"""Roles of classes of locks whose names are not like theirs."""


def role_of(lock: str) -> str:
    """The role of a lock as results name it: `vfs.i_rwsem` of `vfs.i_rwsem (file)#3`."""
    name = re.sub(r"( \(.*\))?(#\d+)?$", "", lock)
    return next((role for names, role in ROLES.items() if re.fullmatch(names, name)), name)


def lock_problems(scenario: Scenario, document: Document) -> Iterator[Problem]:
    """Yield kinds that there are not, that do not fit where they stand, and what is wrong with locks of one's own."""
    own = scenario.own_locks
    uses: dict[Path_, str] = {("locks", role): use for role, use in scenario.locks.items() if role not in own}
    if isinstance(scenario.workload, LockCycle):
        uses["workload", "lock"] = scenario.workload.lock
    built_in = vocabulary().lock_kinds
    known = [*built_in, *own]
    for path, use in uses.items():
        if OWN_LOCK.fullmatch(use):
            needs = f"a lock of your own needs a name: locks: {{mine: {_short(use)}}}, and here that name"
            yield Problem(document.place_of(path).value, f"{'.'.join(map(str, path))}: {needs}")
        elif use not in known:
            at, key = document.place_of(path).value, ".".join(map(str, path))
            others = choices(use, known, KINDS_OF_LOCKS)
            yield Problem(at, f"{key}: there is no lock of kind {shorten(use)}; {others}")
        elif path == ("locks", "futex.bucket") and use not in SPINLOCKS:
            message = f"locks.futex.bucket: {use} is none of {', '.join(SPINLOCKS)}"
            yield Problem(document.place_of(path).value, message, nearest(use, SPINLOCKS))
        elif misfit := _misfit(scenario, use):
            yield Problem(document.place_of(path).value, f"{'.'.join(map(str, path))}: {misfit}")
    for name, reference in own.items():
        if "." in name or _names_what_is_there(scenario, name):  # it would name a lock that nothing uses
            role = nearest(name, [*vocabulary().roles, *primitives(scenario)]) or name
            needs = "a lock of your own needs a name without a point, which the role then gets"
            written = f"locks: {{mine: {_short(reference)}, {role}: mine}}"
            yield Problem(document.place_of(("locks", name)).key, f"locks.{name}: {needs}: {written}")
        elif name in built_in:
            yield Problem(document.place_of(("locks", name)).key, f"'{name}' is the name of a built-in lock")
        yield from _own_lock_problems(name, reference, document)


def primitives(scenario: Scenario) -> list[str]:
    """Kinds of the kernel that stand for all roles that are of them; loads on locks alone have none."""
    if isinstance(scenario.workload, LockTasks):
        return []
    kernel = load_kernel(scenario.kernel.profile).ruled(scenario.kernel.rules)
    return sorted(set(kernel.primitives.values()))


def _names_what_is_there(scenario: Scenario, name: str) -> bool:
    return name in vocabulary().roles or (
        name in primitives(scenario) and name not in scenario.used_own_locks
    )


def unused_own_locks(points: Iterable[Scenario]) -> Iterator[str]:
    """Yield of each lock of one's own that no point uses what to write so that it is used."""
    defined: dict[str, Scenario] = {}
    used: set[str] = set()
    for point in points:
        defined |= dict.fromkeys(point.own_locks, point)
        used |= point.used_own_locks.keys()
    for name, point in defined.items():
        if name not in used:
            yield f"locks.{name} is not used: {_how_to_use(name, point)}"


def _how_to_use(name: str, point: Scenario) -> str:
    if isinstance(point.workload, LockCycle):
        return f"'workload: {{lock: {name}}}' takes it"
    if isinstance(point.workload, PythonTasks):
        return f"a lock of the program gets it by its own name, 'locks: {{NAME: {name}}}'"
    of_load = list(point.workload.roles) if isinstance(point.workload, LockTasks) else []
    role = nearest(name, of_load or [*vocabulary().roles, *primitives(point)])
    return f"a role or a primitive gets it, 'locks: {{{role or [*of_load, 'vfs.i_rwsem'][0]}: {name}}}'"


def _misfit(scenario: Scenario, kind: str) -> str:
    """Why a kind cannot stand there; nothing where it can."""
    if kind in UNGUARDED and not isinstance(scenario.workload, LockCycle | PythonTasks):
        return f"{kind} lets others in beside a holder; only a lock_cycle or a program in Python can live with that"
    return ""


def _short(reference: str) -> str:
    """`FILE.py:CLASS` without its folder."""
    return shorten(reference.rpartition("/")[2])


def _own_lock_problems(name: str, reference: str, document: Document) -> Iterator[Problem]:
    from simfs.machine.own import OwnLockError, own_lock

    try:
        own_lock(reference)
    except OwnLockError as error:
        at = document.place_of(("locks", name)).value
        yield Problem(error.where or at, error.message, error.suggestion)
