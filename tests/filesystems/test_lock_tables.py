"""Each operation of each filesystem takes the kernel's locks, on the kernel's side and in its order.

Both machines run the same programs, so that only a table from elsewhere sees a lock that is missing.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest
from lock_steps import operations
from places import DATA
from ruamel.yaml import YAML

TABLES: dict[str, Any] = YAML(typ="safe").load(DATA / "lock_tables.yaml")
DESCENTS: dict[str, str] = TABLES.pop("descents")
CASES = [(filesystem, operation) for filesystem, table in TABLES.items() for operation in table]

GROUPS = (
    ("create", "unlink"), ("mkdir", "rmdir"), ("append", "open", "fsync", "read", "stat", "utimes", "readdir"),
    ("rename",), ("link",), ("reflink",), ("open_creat",), ("open_rdwr",), ("move",),
    ("lseek", "seek_hole"), ("sync",), ("chmod", "chown"), ("truncate",), ("fallocate", "shorten"), ("fiemap",),
)  # fmt: skip
"""Operations that follow each other in one run; what a group leaves unsettled would change what others find."""


def expanded(steps: str) -> str:
    """A sequence with the descents of trees written out."""
    written = re.sub(
        r"\b(read|insert_first|insert|delete)\((\w+)\)", lambda m: DESCENTS[m[1]].format(m[2]), steps
    )
    return " ".join(written.split())


@cache
def found(filesystem: str, group: tuple[str, ...]) -> dict[str, dict[str, int]]:
    size = "16 KiB" if group == ("reflink",) else ""  # an extent to share
    found = operations(filesystem, *group, kernel="linux-6.12", file_size=size)
    return {name: dict(of) for name, of in found.items()}


def sequences(filesystem: str, operation: str) -> dict[str, int]:
    (group,) = [group for group in GROUPS if operation in group]
    return found(filesystem, group)[operation]


@pytest.mark.parametrize(("filesystem", "operation"), CASES)
def test_an_operation_takes_the_locks_of_the_kernel_in_its_order(filesystem: str, operation: str) -> None:
    table = [expanded(steps) for steps in TABLES[filesystem][operation]["locks"]]
    met: dict[str, int] = {}
    for steps, times in sequences(filesystem, operation).items():
        without = " ".join(step for step in steps.split() if step != ".")
        met[without] = met.get(without, 0) + times
    most = max(met, key=lambda steps: met[steps])
    assert most in table
    assert table[0] in met
    known = sum(times for steps, times in met.items() if steps in table)
    assert known >= 0.75 * sum(met.values()), {s: n for s, n in met.items() if s not in table}


def test_a_writer_who_closes_gives_back_what_it_had_allocated_ahead() -> None:
    freed = expanded(TABLES["xfs"]["open"]["locks"][1]).split()
    assert any([s for s in steps.split() if s != "."] == freed for steps in sequences("xfs", "open"))


@pytest.mark.parametrize("filesystem", TABLES)
def test_freeze_protection_of_an_unlink_lasts_until_the_inode_is_evicted(filesystem: str) -> None:
    for steps in sequences(filesystem, "unlink"):
        after = steps.split("-i_rwsem(dir)", 1)[1]
        assert after.strip().endswith("-freeze")
        assert "." in after.split()
