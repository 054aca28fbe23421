"""What files are called: as the program prints it, so that names have its lengths and their directories its form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from machines import assert_same

from engine import Spec, acquired_each, audited, refused, window
from simfs.scenario import ScenarioError, expand, load, to_run_spec

LABORATORY = "r{task}.{serial}"


def renames(folder: Path, *settings: str, **keys: Any) -> Spec:  # noqa: ANN401
    """24 tasks that rename a file there and back, all in one directory."""
    named = "".join(f"  {key}: {value!r}\n" for key, value in keys.items())
    path = folder / "renames.yaml"
    path.write_text(
        "simfs: 1\nname: renames\ntitle: t\nmachine: {profile: server-24, cpus: 4}\nkernel: linux-6.12\ndevice: nvme\n"
        "filesystem: {kind: xfs}\nworkload:\n  kind: mix\n  tasks: 24\n  files: 1\n"
        f"  operations: [{{op: rename}}]\n{named}"
    )
    (point,) = expand(load(path, settings))
    return to_run_spec(point, 0) | window(2e6)


@pytest.mark.parametrize(
    ("keys", "forks", "locked"),
    [
        ({"name_format": LABORATORY, "names": 2}, "false", 0),
        ({"name_format": LABORATORY, "names": 2}, "true", 1),
        ({}, "false", 1),
    ],
    ids=["in the inode", "beside attributes", "14 letters"],
)
def test_short_names_of_24_files_lie_in_the_inode_that_has_no_attributes(
    tmp_path: Path, keys: dict[str, Any], forks: str, locked: int
) -> None:
    result = audited(renames(tmp_path, f"kernel.rules.xfs.attribute_forks={forks}", **keys))
    assert min(acquired_each(result, "xfs.directory block"), 1) == locked


def test_both_machines_give_the_same_names(tmp_path: Path) -> None:
    assert_same(renames(tmp_path, name_format=LABORATORY, names=2) | {"duration_ns": 2e5})


@pytest.mark.parametrize(
    ("name_format", "told"),
    [
        ("file{task}", "differ only by their {serial}"),
        ("file{serial}", "differ only by their {task}"),
        ("{task}/{serial}", "name_format"),
        ("{task}{number}", "name_format"),
    ],
)
def test_names_that_collide_or_are_none_are_refused(tmp_path: Path, name_format: str, told: str) -> None:
    with pytest.raises(ScenarioError, match=told.replace("{", "\\{").replace("}", "\\}")):
        renames(tmp_path, name_format=name_format)


def test_names_that_are_too_long_are_refused(tmp_path: Path) -> None:
    spec = renames(tmp_path, name_format="a_name_that_is_too_long_{task}_{serial}")
    assert "31 is the most" in refused(spec)
