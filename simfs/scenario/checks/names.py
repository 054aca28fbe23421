"""What the models of the schema cannot see: names in profiles and measured data. Fits are in `fits`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from simfs.scenario.checks.locks import lock_problems, primitives, role_of
from simfs.scenario.checks.operations import operation_problems
from simfs.scenario.models import load_kernel, load_workload
from simfs.scenario.models.timeline import dotted, not_a_choice
from simfs.scenario.points import drafts
from simfs.scenario.problems import Problem, ScenarioError
from simfs.scenario.program import load_program
from simfs.scenario.reading.document import Document, Path_
from simfs.scenario.reading.overlay import split_key
from simfs.scenario.run_spec import device_spec, filesystem_costs, machine_spec
from simfs.scenario.schema import SECTIONS, Scenario
from simfs.scenario.sections.expectation import coordinates, instances
from simfs.scenario.sections.expectation_parser import parse
from simfs.scenario.sections.filesystem import NoFilesystem, Xfs
from simfs.scenario.sections.fio import Fio
from simfs.scenario.sections.lock_tasks import LockCycle, LockTasks, RangeLock
from simfs.scenario.sections.machine import MachineUse
from simfs.scenario.sections.mix import Mix
from simfs.scenario.sections.section import shorten
from simfs.scenario.sections.tasks import MAX_TASKS
from simfs.scenario.sections.workload import FromProfile, PythonTasks, profile_of
from simfs.scenario.suggest import nearest
from simfs.vocabulary import vocabulary


def check_profiles(scenario: Scenario, document: Document) -> Iterator[Problem]:
    """Yield what does not fit the machine, the kernel or the filesystem the scenario names."""
    yield from _profile(lambda: _machine_problems(scenario, document), document, "machine")
    yield from _profile(lambda: _kernel_problems(scenario, document), document, "kernel")
    yield from _profile(lambda: lock_problems(scenario, document), document, "kernel")
    yield from _profile(lambda: _filesystem_problems(scenario, document), document, "filesystem")
    yield from _profile(lambda: _device_problems(scenario, document), document, "device")
    use = scenario.workload
    if isinstance(use, PythonTasks):
        yield from _program_problems(use.program, document)
    elif not isinstance(use, LockCycle):
        yield from _profile(lambda: _workload_problems(use, document), document, "workload")


def _workload_problems(use: FromProfile, document: Document) -> Iterator[Problem]:
    known = load_workload(profile_of(use)).spec()
    if set(known) != set(load_workload(use.kind).spec()):
        raise ValueError(f"profile '{profile_of(use)}' is no profile of a '{use.kind}' load")
    yield from _unknown(use.params, known, ("workload", "params"), "parameter", document)


def _program_problems(program: str, document: Document) -> Iterator[Problem]:
    try:
        load_program(program)
    except ValueError as error:
        message, _, hint = str(error).partition("; did you mean '")
        at = document.place_of(document.locate(("workload", "program"))).value
        yield Problem(at, message, hint.removesuffix("'?") or None)


def check_groups(scenario: Scenario, document: Document) -> Iterator[Problem]:
    """Yield what is wrong with the names of groups and with all tasks together."""
    names = [group.name for group in scenario.groups]
    for number, name in enumerate(names):
        if name in names[:number]:
            at = document.place_of(("groups", number, "name")).value
            yield Problem(at, f"there is already a group '{name}'")
    if scenario.tasks > MAX_TASKS:
        at = document.place_of(("groups",)).key
        yield Problem(at, f"groups have {scenario.tasks} tasks together; at most {MAX_TASKS} can be run")


def check_points(scenario: Scenario, document: Document) -> Iterator[Problem]:
    """Yield what `points:` says of variants and keys that there are not."""
    variants = [variant.name for variant in scenario.variants]
    for index, change in enumerate(scenario.points):
        if change.variant is not None and change.variant not in variants:
            at = document.place_of(("points", index, "variant")).value
            yield Problem(at, f"there is no variant '{change.variant}'", nearest(change.variant, variants))
        for key in change.at:
            if split_key(key)[0] not in SECTIONS or "." not in key:
                at = document.place_of(("points", index, "at", key)).key
                yield Problem(at, f"'{key}' is no key of {', '.join(SECTIONS)}", nearest(key, scenario.sweep))


LISTED = 60
"""As many names are told where none is like the one that is unknown."""

_COMMON = ("lock", "locks", "order", "data_lines", "device")
"""What lock cycles of all groups have in common: the locks."""


def check_group(whole: Scenario, group: Scenario, document: Document) -> Iterator[Problem]:
    """Yield what the load of a group cannot be, beside the others of `whole`."""
    own, all_ = group.workload, whole.workload
    at = document.place_of(document.locate(("workload", "kind"))).value
    if isinstance(own, PythonTasks | RangeLock | Fio):
        yield Problem(at, f"tasks of {own.kind} cannot be in a group")
    elif isinstance(own, LockCycle) != isinstance(all_, LockCycle):
        yield Problem(
            at, "lock_cycle has no filesystem and other loads need one: they cannot be in groups together"
        )
    elif isinstance(own, LockCycle) and isinstance(all_, LockCycle):
        for key in _COMMON:
            if getattr(own, key) != getattr(all_, key):
                at = document.place_of(("workload", key)).value
                yield Problem(at, f"groups have their locks in common: {key} is that of the workload")


def check_measured(scenario: Scenario, document: Document) -> Iterator[Problem]:
    """Yield what does not fit the measured data the scenario names."""
    if scenario.measured is None:
        return
    from simfs.scenario.measured.dataset import (
        load_dataset,  # its models take a while, and most scenarios name no data
    )

    try:
        dataset = load_dataset(scenario.measured.dataset)
    except ScenarioError as error:
        yield from _in_file(error, document.place_of(document.locate(("measured", "dataset"))).value)
        return
    labels = [series.variant or name for name, series in dataset.series.items()]
    variants = [variant.name for variant in scenario.variants]
    for label, variant in scenario.measured.variants.items():
        place = document.place_of(("measured", "variants", label))
        if label not in labels:
            yield Problem(
                place.key, f"'{label}' is not in dataset {shorten(dataset.name)}", nearest(label, labels)
            )
        if variants and variant not in variants:
            yield Problem(place.value, f"there is no variant '{variant}'", nearest(variant, variants))


def check_expectations(scenario: Scenario, document: Document) -> Iterator[Problem]:
    """Yield what is expected of points that there are none of."""
    if not scenario.expect:
        return
    points = [
        coordinates(draft.variant, draft.values, Scenario.model_validate(draft.document.data).tasks)
        for draft in drafts(document)
    ]
    for number, text in enumerate(scenario.expect):
        at = document.place_of(("expect", number)).value
        try:
            if not any(True for _ in instances(parse(text), points, scenario.sweep)):
                yield Problem(at, f"expect: no points go together in '{text}'")
        except ValueError as error:
            yield Problem(at, f"expect: {error}")


def _profile(
    problems: Callable[[], Iterable[Problem]], document: Document, section: str
) -> Iterator[Problem]:
    at = document.place_of(document.locate((section, "profile"))).value
    try:
        yield from problems()
    except ScenarioError as error:
        yield from _in_file(error, at)
    except ValueError as error:
        message, _, hint = str(error).partition("; did you mean '")
        yield Problem(at, message, hint.removesuffix("'?") or None)


def _in_file(error: ScenarioError, at: str) -> Iterator[Problem]:
    """What is wrong with a file that the scenario names at `at`."""
    yield from (Problem(at, f"{p.where}: {p.message}", p.suggestion) for p in error.problems)


def _machine_problems(scenario: Scenario, document: Document) -> Iterator[Problem]:
    use = scenario.machine
    spec = machine_spec(use, scenario.tasks)
    if not spec["cpus_per_core"] <= spec["cpus_per_llc"] <= spec["cpus_per_socket"] <= spec["cpus"]:
        order = "cpus_per_core <= cpus_per_llc <= cpus_per_socket <= cpus"
        figures = " <= ".join(str(spec[key.strip()]) for key in order.split("<="))
        yield Problem(document.place_of(("machine",)).key, f"{order} must hold, but is {figures}")
    else:
        yield from _broken_parts(use, spec, document)
    if spec["caches"] is None and use.caches.model_fields_set:
        at = document.place_of(("machine", "caches")).key
        yield Problem(at, f"machine {use.profile} has no caches that these could replace")
    pinned = scenario.workload.pin_to_cpu
    if pinned is not None and pinned >= spec["cpus"]:
        at = document.place_of(("workload", "pin_to_cpu")).value
        yield Problem(at, f"there is no CPU {pinned}: the machine has CPUs 0 to {spec['cpus'] - 1}")


def _broken_parts(use: MachineUse, spec: dict[str, Any], document: Document) -> Iterator[Problem]:
    """Yield a part that the scenario gives a number of CPUs which the parts below do not make up."""
    for inner, outer in (("cpus_per_core", "cpus_per_llc"), ("cpus_per_llc", "cpus_per_socket")):
        given = next((key for key in (outer, inner) if getattr(use, key) is not None), None)
        if given and use.cpus != "tasks" and spec[outer] % spec[inner]:
            what = f"{outer} {spec[outer]} is no multiple of {inner} {spec[inner]}: set both"
            yield Problem(document.place_of(("machine", given)).value, what)


_EEVDF_RULES = tuple(
    f"sched.{rule}"
    for rule in (
        "run_to_parity",
        "place_lag",
        "place_deadline_initial",
        "place_rel_deadline",
        "preempt_short",
        "delay_dequeue",
        "pick_buddy",
    )
)


_TRUE_SINCE = {"vfs.apparmor": (4, 13)}
"""Rules that no kernel before a version can be given."""


def _kernel_problems(scenario: Scenario, document: Document) -> Iterator[Problem]:
    kernel = load_kernel(scenario.kernel.profile).ruled(scenario.kernel.rules)
    yield from _unknown(
        scenario.kernel.constants, kernel.constants, ("kernel", "constants"), "constant", document
    )
    yield from _rule_problems(scenario.kernel.rules, document)
    for rule in _EEVDF_RULES:
        if scenario.kernel.rules.get(rule) is True and kernel.rules["sched.class"] == "cfs":
            at = document.place_of(("kernel", "rules", rule)).value
            yield Problem(at, f"kernel {kernel.name} has CFS, and {rule} is a rule of EEVDF")
    for rule, since in _TRUE_SINCE.items():
        if scenario.kernel.rules.get(rule) is True and kernel.version < since:
            at = document.place_of(("kernel", "rules", rule)).value
            yield Problem(
                at, f"kernel {kernel.name} is before {dotted(since)}, since when {rule} can be true"
            )
    if not isinstance(scenario.workload, PythonTasks):  # a program may name its locks as it likes
        holder = scenario.workload if isinstance(scenario.workload, LockTasks) else scenario.filesystem
        own = holder.roles if isinstance(holder, LockTasks | Xfs) else {}
        known = [*kernel.locks, *own, *primitives(scenario)]
        for name in scenario.lock_roles:
            if name not in known and (role := role_of(name)) in known:
                at = document.place_of(("locks", name)).key
                yield Problem(at, f"'{name}' is a class of locks; their kind is set by their role", role)
            else:
                yield from _unknown([name], known, ("locks",), "lock role", document)


def _rule_problems(given: Mapping[str, bool | str], document: Document) -> Iterator[Problem]:
    known = vocabulary().rules
    yield from _unknown(given, known, ("kernel", "rules"), "rule", document)
    for name, value in given.items():
        if wrong := name in known and not_a_choice(value, known[name].values):
            at = document.place_of(("kernel", "rules", name)).value
            yield Problem(at, f"kernel.rules.{name}: {wrong[0]}", wrong[1])


def _filesystem_problems(scenario: Scenario, document: Document) -> Iterator[Problem]:
    use = scenario.filesystem
    if isinstance(use, NoFilesystem):
        if not isinstance(scenario.workload, LockTasks | PythonTasks):
            at = document.place_of(("filesystem",)).value
            yield Problem(at, f"workload {scenario.workload.kind} needs a filesystem")
    elif use.costs or use.profile:
        known, read = filesystem_costs(use), vocabulary().costs[use.kind]
        yield from _unknown(use.costs, known, ("filesystem", "costs"), "cost", document)
        if unread := next((name for name in known if name not in read), None):
            at = document.place_of(("filesystem", "profile")).value
            whose = f"{use.profile}: " if use.profile else ""
            message = f"{whose}nothing of {use.kind} reads the cost '{unread}'"
            yield Problem(at, message, nearest(unread, read))
    yield from _parent_problems(scenario, document)
    yield from _room_problems(scenario, document)
    yield from _fio_problems(scenario, document)
    yield from operation_problems(scenario, document)


def _parent_problems(scenario: Scenario, document: Document) -> Iterator[Problem]:
    use = scenario.filesystem
    if isinstance(use, Xfs) and use.parent:
        kernel = load_kernel(scenario.kernel.profile)
        if not kernel.ruled(scenario.kernel.rules).rules["xfs.parent_pointers"]:
            at = document.place_of(("filesystem", "parent")).value
            yield Problem(
                at,
                f"filesystem.parent: Linux has parent pointers since 6.10, and the kernel is {kernel.name}",
            )


def _room_problems(scenario: Scenario, document: Document) -> Iterator[Problem]:
    """Refuse files that would not fit, of which the operations that only look at them would tell nothing."""
    use = scenario.filesystem
    if isinstance(use, NoFilesystem) or (needed := _bytes_at_first(scenario)) <= use.size:
        return
    at = document.place_of(("workload", "size" if scenario.workload.kind == "fio" else "file_size")).value
    yield Problem(
        at,
        f"the files have {needed / 2**30:,.1f} GiB together, and filesystem.size is {use.size / 2**30:,.1f}",
    )


def _bytes_at_first(scenario: Scenario) -> int:
    """How much data the tasks' files have when a run begins."""
    use = scenario.workload
    if isinstance(use, Fio):
        return use.size * (use.tasks if use.files == "per-task" else 1)
    if isinstance(use, Mix):
        return use.files * (use.file_size or 0) * (use.tasks if use.file_set == "own" else 1)
    return 0


def _fio_problems(scenario: Scenario, document: Document) -> Iterator[Problem]:
    job, kind = scenario.workload, scenario.filesystem.kind
    if not isinstance(job, Fio) or kind == "none":
        return
    if job.iodepth > 1 and kind == "tmpfs":
        at = document.place_of(("workload", "iodepth")).value
        yield Problem(at, "tmpfs has no requests: nobody waits for any")
    if job.written is not None and kind != "btrfs":
        at = document.place_of(("workload", "written")).value
        yield Problem(at, f"only btrfs gives each write a new place, so a file on {kind} has all its blocks")
    if job.unwritten and kind != "ext4" and (kind, job.direct) != ("btrfs", False):
        at = document.place_of(("workload", "unwritten")).value
        yield Problem(at, "unwritten is for writes on ext4, and for those through the page cache on btrfs")


def _device_problems(scenario: Scenario, document: Document) -> Iterator[Problem]:
    if scenario.device is None:
        return
    device_spec(scenario.device)
    if isinstance(scenario.filesystem, NoFilesystem):
        yield Problem(document.place_of(("device",)).key, "there is no filesystem that would use a device")


def _unknown(
    given: Iterable[str], known: Iterable[str], path: Path_, what: str, document: Document
) -> Iterator[Problem]:
    known = list(known)
    for name in given:
        if name not in known:
            near = nearest(name, known)
            others = "" if near else _some_of(name, known)
            yield Problem(document.place_of((*path, name)).key, f"unknown {what} '{name}'{others}", near)


def _some_of(name: str, known: Iterable[str]) -> str:
    """What there is instead of a name like no other: those that begin alike, else how names begin."""
    every = list(known)
    begin = name.partition(".")[0] + "."
    parts = {each.partition(".")[0] + (".*" if "." in each else "") for each in every}
    shown = [each for each in every if each.startswith(begin)] or sorted(parts)
    more = f" and {len(shown) - LISTED} more" if len(shown) > LISTED else ""
    return f"; there are {', '.join(shown[:LISTED])}{more}" if shown else ""
