"""`python -m tests.agree`: the command that compares the machines on drawn scenarios says what it did and found."""

from __future__ import annotations

from typing import Any

import agree
import pytest


@pytest.mark.slow
def test_equal_machines_are_told_with_what_was_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    assert agree.main(["--scenarios", "7", "--seed", "3", "--events", "300"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("7 scenarios, ")
    assert "workload lock_cycle" in said
    assert said.endswith("all equal\n")


@pytest.mark.slow
def test_a_difference_is_printed_and_is_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def differ(*_: Any, **__: Any) -> int:  # noqa: ANN401
        raise AssertionError("event 17 differs")

    monkeypatch.setattr(agree, "assert_same", differ)
    assert agree.main(["--scenarios", "10", "--seed", "3"]) == 1
    said = capsys.readouterr().out
    assert "event 17 differs" in said
    assert "all equal" not in said


@pytest.mark.slow
def test_the_same_seed_draws_the_same(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agree, "same", lambda _, most: 1)
    drawn = []
    for seed in ("3", "3", "4"):
        agree.main(["--scenarios", "10", "--seed", seed])
        drawn.append(capsys.readouterr().out.split("\n", 1)[1])
    assert drawn[0] == drawn[1] != drawn[2]
