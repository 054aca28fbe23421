"""A share of `python -m tests.fuzz`: damaged input is answered or refused in plain lines."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from fuzz.__main__ import main
from fuzz.inputs import KINDS, made
from fuzz.judge import outcome
from fuzz.mutations import ODD, mutated


@pytest.mark.slow
def test_hundreds_of_damaged_inputs(capfd: pytest.CaptureFixture[str]) -> None:
    code = main(["--inputs", "300", "--environments", "1"])
    told = capfd.readouterr().out
    assert code == 0, told
    assert "300 inputs and 1 commands" in told
    assert all(f"{kind}: refused" in told for kind in KINDS)
    assert " run\n" in told


@pytest.mark.slow
def test_an_input_is_the_same_each_time(tmp_path: Path) -> None:
    for number in range(20):
        folders = [tmp_path / f"{number}-{turn}" for turn in "ab"]
        for folder in folders:
            folder.mkdir()
        (one, asked), (other, again) = (made(1, number, folder) for folder in folders)
        assert (one, asked.settings) == (other, again.settings)
        files = [{p.name: p.read_bytes() for p in folder.iterdir()} for folder in folders]
        assert files[0] == files[1]


def test_what_should_not_be_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, given = made(1, 0, tmp_path)
    monkeypatch.setattr("fuzz.judge.load", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        outcome(given, run=False)


def test_what_is_put_in_stays_as_it_is() -> None:
    before = repr(ODD)
    tree = {"a": {"b": 1}, "c": [1, 2]}
    for seed in range(300):
        mutated(Random(seed), tree, [tree])
    assert repr(ODD) == before
