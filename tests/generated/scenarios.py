"""Scenarios as somebody could write them, on any machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from engine import Spec
from generated.kernels import kernels, other_locks
from generated.machines import machines
from generated.workloads import ON_FILES, ON_LOCKS, Section, flags, groups, on_files, on_locks, placed
from simfs.scenario import Point, Scenario, to_run_spec
from simfs.scenario.models import available, load_kernel


@dataclass(frozen=True)
class Drawn:
    """A scenario, and a machine that no profile has."""

    scenario: Section
    machine: dict[str, Any]

    def spec(self) -> Spec:
        """Its RunSpec."""
        point = Point("drawn", "drawn", {}, Scenario.model_validate(self.scenario))
        return to_run_spec(point, 0) | {"machine": self.machine}


def _xfs() -> st.SearchStrategy[Section]:
    return st.fixed_dictionaries(
        {
            "size": st.sampled_from(["1 GiB", "8 GiB"]),
            "agcount": st.sampled_from([2, 4, 8]),
            "log_size": st.sampled_from([None, "10 MiB", "32 MiB"]),
            "log_su": st.sampled_from([None, None, "4 KiB", "32 KiB"]),
            "iolock": st.sampled_from(["rwsem", "rwsem", "none", "interval-tree", "btree", "optimistic"]),
            "buffered_io": st.sampled_from(["locked", "reads-unlocked", "writes-shared", "prewarmed"]),
        }
    )


FILESYSTEMS: dict[str, st.SearchStrategy[Section]] = {
    "xfs": _xfs(),
    "btrfs": st.fixed_dictionaries(
        {
            "size": st.sampled_from(["1 GiB", "8 GiB"]),
            "nodatacow": flags,
            "new_directories": flags,
            "subvolumes": flags,
        }
    ),
    "ext4": st.fixed_dictionaries({"size": st.sampled_from(["512 MiB", "8 GiB"]), "journal": flags}),
    "tmpfs": st.just({}),
}

devices = st.fixed_dictionaries(
    {"profile": st.sampled_from(available("devices"))},
    optional={
        "parallelism": st.sampled_from([1, 3]),
        "flush": st.sampled_from(["0 ns", "20 us", "1 ms"]),
        "write": st.sampled_from([{"time": "3 us", "cv": 0.0}, {"time": "50 us", "cv": 1.0}]),
        "read": st.just({"cv": 2.0}),
    },
)
"""`device:` of a scenario: each kind that there is, often with other times."""


@st.composite
def lock_scenarios(draw: st.DrawFn) -> Drawn:
    """Tasks that take locks alone."""
    kind = draw(st.sampled_from(sorted(ON_LOCKS)))
    machine = draw(machines())
    workload = {"kind": kind, **draw(on_locks(kind)), **draw(placed(machine["cpus"], kind))}
    sections = {"kernel": draw(kernels()), "workload": workload, "groups": draw(groups(kind))}
    return Drawn(_around(draw, machine, sections), machine)


@st.composite
def file_scenarios(draw: st.DrawFn) -> Drawn:
    """Tasks that use files."""
    machine = draw(machines())
    filesystem = draw(st.sampled_from(sorted(FILESYSTEMS)))
    kind = draw(st.sampled_from(sorted(ON_FILES)))
    kernel = draw(kernels(f"{filesystem}."))
    roles = {
        role: of
        for role, of in load_kernel(kernel["profile"]).locks.items()
        if role.startswith((f"{filesystem}.", "vfs."))
    }
    sections = {
        "kernel": kernel,
        "filesystem": {"kind": filesystem, **draw(FILESYSTEMS[filesystem])},
        "device": draw(st.one_of(st.none(), devices)),
        "locks": draw(other_locks(roles)),
        "workload": {"kind": kind, **draw(on_files(kind, filesystem)), **draw(placed(machine["cpus"], kind))},
        "groups": draw(groups(kind, filesystem)),
    }
    return Drawn(_around(draw, machine, sections), machine)


def _around(draw: st.DrawFn, machine: dict[str, Any], sections: Section) -> Section:
    """The rest of a scenario. The machine's number of CPUs scales the scheduler's times."""
    return {
        "simfs": 1,
        "name": "drawn",
        "title": "Drawn",
        "machine": {"profile": "server-24", "cpus": machine["cpus"]},
        **sections,
        "measure": {"seed": draw(st.integers(0, 2**32)), "duration": "1 ms", "warmup": "0 ns"},
    }
