"""What is told instead of a mistyped word: the nearest first, and of many names only some."""

from __future__ import annotations

import pytest

from simfs.scenario import ScenarioError, load
from simfs.scenario.suggest import MOST, choices, some

MANY = [f"vfs.lock_{n}" for n in range(40)] + ["xfs.AGI"]


def test_the_nearest_comes_before_the_list() -> None:
    assert choices("b1", ["a", "b"]) == "did you mean 'b'? There are a, b"
    assert choices("q", ["a", "b"]) == "there are a, b"
    assert choices("q", []) == "there are none"


def test_of_many_those_most_like_it_are_told_and_who_lists_all() -> None:
    told = choices("xfs.AGJ", MANY, "`simfs locks`")
    assert told.startswith("did you mean 'xfs.AGI'? There are xfs.AGI, ")
    assert told.endswith(f" and {len(MANY) - MOST} more (`simfs locks` lists all)")
    assert some("q", MANY).startswith("vfs.lock_0, vfs.lock_1, ")


def test_a_mistyped_kind_of_a_role_is_told_so_in_short() -> None:
    with pytest.raises(ScenarioError) as refused:
        load("lock-cycle", ["workload.lock=rwsme"])
    told = str(refused.value)
    assert "workload.lock: there is no lock of kind rwsme; did you mean 'rwsem'? There are rwsem, " in told
    assert told.endswith("more (`simfs locks` lists all)")
    assert len(told) < 300
