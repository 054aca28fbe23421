"""What results say of themselves where no measurement stands beside them: the record of what others measured."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from types import ModuleType

import pytest
from places import ROOT

import simfs
from simfs.reports.accuracy import ENOUGH, Direction, Level, directions, levels, recorded
from simfs.reports.text import sentences
from simfs.results.validation import Row

SHORT = "measure={duration: 2 ms, warmup: 0 s, replications: 2}"


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of docs/ that makes the record."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    import prediction_record

    return prediction_record


def row(measured: float, predicted: float, series: str = "one", x: float = 1) -> Row:
    return Row("set", series, x, "predict", "operations_per_s", "1/s", measured, predicted)


def test_half_of_the_predictions_lie_within_one_factor_and_nine_of_ten_within_another(
    record: ModuleType,
) -> None:
    """Up or down alike: a half is as far off as twice as much."""
    rows = [row(100, 100 * factor) for factor in (1, 1.1, 1 / 1.2, 1.3, 2, 1 / 2, 2, 3, 1 / 4, 10)]
    assert record.level(rows) == Level(rows=10, half=2.0, most=4.0)
    calibrate = replace(row(100, 900), role="calibrate")
    assert record.level([calibrate]) is None


def test_changes_are_told_by_what_was_predicted_not_by_what_was_measured(record: ModuleType) -> None:
    """A reader has a prediction and asks how often one of its size came true."""

    class Found:
        rows = (row(100, 100), row(150, 101, "two"), row(300, 200, x=2), row(200, 300, "two", 2))

    told = list(record.directions([Found()]))
    assert told == [
        Direction(below=2, changes=1, right=1),
        Direction(below=5, changes=0, right=0),
        Direction(below=20, changes=0, right=0),
        Direction(below=None, changes=1, right=0),
    ]


def test_a_result_says_how_far_such_results_were_off() -> None:
    result = simfs.load("lock-cycle", "workload.tasks=1", SHORT).run().result
    assert result.filesystems == ("none",)
    (said,) = levels(result.filesystems, fitted=False)
    assert said in list(sentences(result))
    level = recorded().unfitted["none"]
    assert f"of {level.rows} throughputs that others measured without a filesystem" in said
    assert (
        f"within a factor of {level.half:.2f} of the prediction, nine of ten within {level.most:.1f}" in said
    )


def test_nothing_is_said_of_a_filesystem_with_too_few_measurements(monkeypatch: pytest.MonkeyPatch) -> None:
    few = Level(rows=ENOUGH - 1, half=1.1, most=1.2)
    known = recorded().model_copy(update={"unfitted": {"xfs": few}})
    monkeypatch.setattr("simfs.reports.accuracy.recorded", lambda: known)
    assert not list(levels(["xfs", "ext4"], fitted=False))


def test_the_classes_of_changes_follow_each_other_and_the_last_one_is_open() -> None:
    *ends, last = (each.below for each in recorded().directions)
    assert last is None
    assert all(low < high for low, high in pairwise(end or 0 for end in ends))
    assert f"below {ends[0]:g} %" in directions()
    assert f"above {ends[-1]:g} %" in directions()
