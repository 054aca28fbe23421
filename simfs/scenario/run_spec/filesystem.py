"""The `filesystem` and `vfs` sections of a RunSpec."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from simfs.scenario.models import (
    load_classes,
    load_filesystem,
    load_instructions,
    load_machine,
    load_vfs,
    load_vfs_instructions,
    load_workload,
)
from simfs.scenario.run_spec.counted import counted
from simfs.scenario.schema import Scenario
from simfs.scenario.sections.filesystem import Btrfs, Ext4, NoFilesystem, Tmpfs, Xfs
from simfs.vocabulary import vocabulary


def filesystem_spec(scenario: Scenario, machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return `filesystem` and `vfs`: the profile, counted times and what the scenario says laid over it."""
    use = scenario.filesystem
    if isinstance(use, NoFilesystem):
        return {"filesystem": {"kind": "none"}}
    vfs = dict(_vfs_costs(use.kind))
    costs = filesystem_costs(use)
    if load_machine(scenario.machine.profile).steps == "counted":
        kind = use.profile or use.kind
        classes = load_classes(kind)
        vfs["vfs_hash.new_index"] = vfs["vfs_dentry.index"]  # traced steps have it
        costs |= counted(load_instructions(kind), classes, scenario.machine, machine)
        vfs |= counted(load_vfs_instructions(use.kind), classes, scenario.machine, machine)
    costs |= use.costs
    if not isinstance(use, Tmpfs) and use.cached_inodes is not None:
        costs["cached_inodes"] = use.cached_inodes
    spec: dict[str, Any] = {"kind": use.kind, "size_bytes": use.size, "costs": costs}
    if not isinstance(use, Tmpfs) and use.free is not None:
        spec["free_bytes"] = use.free
    if isinstance(use, Xfs):
        spec |= {key: getattr(use, key) for key in ("agcount", "iolock", "buffered_io")}
        if use.log_size is not None:
            spec["log_bytes"] = use.log_size
        if "logbsize" in use.model_fields_set:
            spec["logbsize"] = use.logbsize
        if use.log_su is not None:
            spec["log_su"] = use.log_su
        if use.parent:
            spec["parent"] = True
        if "dirblksize" in use.model_fields_set:
            spec["dirblksize"] = use.dirblksize
    if isinstance(use, Ext4):
        spec |= {key: getattr(use, key) for key in ("journal", "inode_ratio", "orphan_file")}
        if use.hash_seed is not None:
            spec["hash_seed"] = use.hash_seed_words
        if use.below is not None:
            spec["below"] = use.below
    if isinstance(use, Btrfs):
        spec |= {key: getattr(use, key) for key in ("nodatacow", "new_directories", "subvolumes")}
    return {"filesystem": spec, "vfs": {"costs": vfs}}


def filesystem_costs(use: Xfs | Btrfs | Ext4 | Tmpfs) -> dict[str, float]:
    """Return the costs of a filesystem by name; XFS may have a range lock, whose costs are those of `range_lock`."""
    costs = dict(_costs(use.profile or use.kind))
    if isinstance(use, Xfs):
        work = load_workload("range_lock").spec()
        costs |= {f"range_lock.{name}": ns for name, ns in work.items() if name.endswith("_work_ns")}
    return costs


# A profile has hundreds of costs and a sweep thousands of points: turning the one into numbers is done once.
@cache
def _costs(profile: str) -> Mapping[str, float]:
    return load_filesystem(profile).spec()


@cache
def _vfs_costs(kind: str) -> Mapping[str, float]:
    read = vocabulary().costs[kind]  # the footprints of the VFS are those of all filesystems
    return {name: value for name, value in load_vfs(kind).spec().items() if name in read}
