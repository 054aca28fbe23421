"""Find and read the files of `models/`, by name or by path."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from simfs.scenario.models.machine import Machine
from simfs.scenario.models.tables import ClassCounts, Counted, Filesystem, Workload
from simfs.scenario.models.timeline import (
    Kernel,
    Profile,
    Refusal,
    Timeline,
    linux,
    parse_version,
    rule_refusals,
)
from simfs.scenario.paths import MODELS, Kind, find, names
from simfs.scenario.problems import ScenarioError
from simfs.scenario.reading.document import Document
from simfs.scenario.reading.refusals import problem_at, problems_of
from simfs.scenario.reading.remembered import remembered
from simfs.scenario.sections.device import Device
from simfs.scenario.sections.quantity import Quantity
from simfs.scenario.sections.section import Section, shorten
from simfs.scenario.suggest import nearest

TIMELINE = "timeline"
"""The file of `models/kernels` that is no kernel."""

_FOOTPRINTS = {"ext4": ("ext4_", "jbd2_")}
"""Objects whose footprints belong to a filesystem, where they are not just named after it."""

T = TypeVar("T")


@remembered(MODELS / "machines")
def load_machine(name: str | Path) -> Machine:
    """Load a machine by name (``server-24``) or by path."""
    return _load("machines", str(name), Machine, lambda machine: rule_refusals(machine.rules))


@cache
def load_timeline() -> Timeline:
    """Load what Linux does since which version."""
    return _load("kernels", TIMELINE, Timeline)


@remembered(MODELS / "kernels")
def load_kernel(name: str | Path) -> Kernel:
    """Load a kernel: any release of the timeline (``linux-5.11``), or a profile by name or path."""
    timeline, text = load_timeline(), str(name)
    if text == TIMELINE:
        raise _unknown("kernels", text)
    if find(text, MODELS / "kernels") is None and (version := _version_in(text)) in timeline.versions():
        return timeline.kernel(version)
    profile = _load("kernels", text, Profile, timeline.refusals)
    return timeline.of(profile)


@remembered(MODELS / "filesystems")
def load_filesystem(kind: str | Path) -> Filesystem:
    """Load a filesystem and its footprints by kind (``xfs``) or path."""
    own = _load("filesystems", str(kind), Filesystem)
    prefixes = _FOOTPRINTS.get(own.name, (f"{own.name}_",))
    return own.model_copy(update={"constants": own.constants | _footprints(prefixes)})


@remembered(MODELS / "filesystems")
def load_vfs(kind: str | Path) -> Filesystem:
    """Load the VFS around the steps of one filesystem kind: `vfs.costs` of a RunSpec.

    tmpfs has only calls, ``user.loop`` and footprints here, because its own groups hold the whole operation.
    """
    around = load_filesystem(kind).name
    common = _load("filesystems", "vfs", Filesystem)
    shared = ("call.", "user.") if around == "tmpfs" else ("call.", "user.", "writeback.", "memory.")
    own = {
        name.removeprefix(f"{around}."): quantity
        for name, quantity in common.costs.items()
        if name.startswith((f"{around}.", *shared))
    }
    return common.model_copy(update={"costs": own, "constants": _footprints(("vfs_",))})


@remembered(MODELS / "filesystems")
def load_instructions(kind: str | Path) -> dict[str, Quantity]:
    """Load the instructions of a filesystem's steps (`filesystem.costs` of a RunSpec) that were counted."""
    return _load("instructions", load_filesystem(kind).name, Counted).steps


@remembered(MODELS / "filesystems")
def load_vfs_instructions(kind: str | Path) -> dict[str, Quantity]:
    """Load the instructions of the VFS's steps around a filesystem's (`vfs.costs`) that were counted."""
    return _around(load_filesystem(kind).name, _load("instructions", "vfs", Counted).steps)


@remembered(MODELS / "filesystems")
def load_classes(kind: str | Path) -> dict[str, ClassCounts]:
    """Load how many instructions of each class the steps of a filesystem have, and the VFS's around them."""
    name = load_filesystem(kind).name
    own, vfs = (_load("instructions", table, Counted).of_classes for table in (name, "vfs"))
    return own | _around(name, vfs)


def _around(filesystem: str, steps: Mapping[str, T]) -> dict[str, T]:
    """Return the VFS's steps around those of a filesystem, by the names that its programs have for them."""
    shared = {name: step for name, step in steps.items() if name.startswith("user.")}
    prefix = f"{filesystem}."
    return shared | {
        name.removeprefix(prefix): step for name, step in steps.items() if name.startswith(prefix)
    }


@cache
def load_device_instructions(name: str | Path) -> dict[str, Quantity]:
    """Load the instructions of a device's code that were counted, none for most devices."""
    return _device_table(name).steps


@cache
def load_device_classes(name: str | Path) -> dict[str, ClassCounts]:
    """Load how many instructions of each class a device's code has."""
    return _device_table(name).of_classes


def _device_table(name: str | Path) -> Counted:
    device = load_device(name).name
    if find(device, MODELS / "instructions") is None:
        return Counted(name=device, title="", steps={})
    return _load("instructions", device, Counted)


@cache
def load_footprints() -> Filesystem:
    """Load the cache lines that each object's writer leaves dirty: ``<object>.<part>``, in lines."""
    return _load("filesystems", "footprints", Filesystem)


@remembered(MODELS / "devices")
def load_device(name: str | Path) -> Device:
    """Load a block device by name (``nvme``) or by path."""
    return _load("devices", str(name), Device)


@remembered(MODELS / "workloads")
def load_workload(kind: str | Path) -> Workload:
    """Load a workload by kind (``compile``) or by path."""
    return _load("workloads", str(kind), Workload)


def available(what: Kind) -> list[str]:
    """Return the names of all models of one kind: kernels by age, the rest sorted."""
    own = [name for name in names(MODELS / what) if name not in ("vfs", "footprints", TIMELINE)]
    releases = [linux(version) for version in load_timeline().versions()] if what == "kernels" else []
    return [*releases, *(name for name in own if name not in releases)]


M = TypeVar("M", bound=Section)


def _load(
    what: Kind, name: str, model: type[M], refusals: Callable[[M], Iterable[Refusal]] = lambda _: ()
) -> M:
    """Read a model; `ValueError` for an unknown name, `ScenarioError` for what is wrong with the file.

    `refusals` tells what is wrong with a model that has the right form.
    """
    path = find(name, MODELS / what)
    if path is None:
        raise _unknown(what, name)
    document = Document.read(path)
    try:
        loaded = model.model_validate(document.data)
    except ValidationError as error:
        raise ScenarioError(problems_of(error, document)) from None
    if problems := [problem_at(document, *refused) for refused in refusals(loaded)]:
        raise ScenarioError(problems)
    return loaded


def _unknown(what: Kind, name: str) -> ValueError:
    known = available(what)
    version = _version_like(name) if what == "kernels" else ()
    near = linux(load_timeline().nearest(version)) if version else nearest(name, known)
    listed = f"{known[0]} to {known[-1]}" if what == "kernels" else ", ".join(known)
    hint = f"did you mean '{near}'?" if near else f"there are {listed}"
    if near and version:
        hint = f"there are {listed}; {hint}"
    return ValueError(f"unknown {what.removesuffix('s')} '{shorten(name)}'; {hint}")


def _version_in(name: str) -> tuple[int, ...]:
    try:
        return parse_version(name.removeprefix("linux-")) if name.startswith("linux-") else ()
    except ValueError:
        return ()


def _version_like(name: str) -> tuple[int, ...]:
    """The version that somebody meant who wrote `6.12`, `v6.12` or `linux 6.12-rc3`."""
    found = re.search(r"\d+(\.\d+)+", name)
    return _version_in(f"linux-{found[0]}") if found else ()


def _footprints(prefixes: tuple[str, ...]) -> dict[str, Quantity]:
    return {name: q for name, q in load_footprints().costs.items() if name.startswith(prefixes)}
