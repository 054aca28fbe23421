"""Chunks of inodes of XFS: who makes and frees them has more to do, and the worker gives blocks back."""

from __future__ import annotations

import pytest

from engine import Spec, simulate, window
from simfs.scenario import expand, load, to_run_spec

CHUNK = 64
DEAR = 640e3


def spec_of(scenario: str, variant: str, **costs: float) -> Spec:
    """A task in the laboratory's XFS, for 200 ms."""
    points = expand(load(scenario, ["sweep.workload.tasks=[1]", "measured=null"]))
    (point,) = (point for point in points if point.variant == variant)
    spec: Spec = to_run_spec(point, 0) | window(200e6)
    filesystem = spec["filesystem"]
    return spec | {"filesystem": filesystem | {"costs": filesystem["costs"] | costs}}


def creating(**costs: float) -> Spec:
    return spec_of("emulated-create", "xfs-shared", **costs)


def making_directories(**costs: float) -> Spec:
    return spec_of("emulated-metadata", "xfs-mkdir-rmdir-per-task", **costs)


def test_each_64th_create_makes_a_chunk() -> None:
    speed = creating()["machine"]["costs"]["speed"]
    cheap, dear = (
        200e6 / simulate(creating(**{"ialloc.chunk": cost / speed})).operations for cost in (0.0, DEAR)
    )
    assert dear - cheap == pytest.approx(DEAR / CHUNK, rel=0.1)


def test_the_last_inode_of_a_chunk_gives_its_blocks_back() -> None:
    run = simulate(making_directories())
    (agf,) = (lock for lock in run.locks if lock.name == "xfs.AGF")
    sites = {site.site: site.acquired for site in agf.sites}
    assert sites["inodegc"] > run.operations / CHUNK
    assert simulate(making_directories(**{"ifree.chunk": DEAR})).operations < 0.9 * run.operations
