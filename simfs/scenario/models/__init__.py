"""Load the cost models of `models/`: machines, kernels, filesystems, devices and workloads.

A model is a YAML file of sourced numbers (`Quantity`). `spec()` of each gives the plain numbers, times in
nanoseconds, that the engine takes in the section of the same name of a RunSpec (docs/seams.md).
docs/models.md tells where the numbers come from. Loading raises `ValueError` for an unknown name, and `ScenarioError`
for a file with something wrong in it.
"""

from simfs.scenario.models.loading import (
    TIMELINE,
    available,
    load_classes,
    load_device,
    load_device_classes,
    load_device_instructions,
    load_filesystem,
    load_footprints,
    load_instructions,
    load_kernel,
    load_machine,
    load_timeline,
    load_vfs,
    load_vfs_instructions,
    load_workload,
)
from simfs.scenario.models.machine import Caches, IdleState, Machine, MachineCosts, Topology
from simfs.scenario.models.tables import Class, ClassCounts, Classes, Counted, Filesystem, Workload

__all__ = [
    "TIMELINE",
    "Caches",
    "Class",
    "ClassCounts",
    "Classes",
    "Counted",
    "Filesystem",
    "IdleState",
    "Machine",
    "MachineCosts",
    "Topology",
    "Workload",
    "available",
    "load_classes",
    "load_device",
    "load_device_classes",
    "load_device_instructions",
    "load_filesystem",
    "load_footprints",
    "load_instructions",
    "load_kernel",
    "load_machine",
    "load_timeline",
    "load_vfs",
    "load_vfs_instructions",
    "load_workload",
]
