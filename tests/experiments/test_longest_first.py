"""The longest data sets begin first, so that none is left alone at the end."""

from __future__ import annotations

from pathlib import Path

import pytest
from validating import invoke, rows_of, write

from simfs.experiments.longest_first import longest_first, seconds
from simfs.scenario.measured.predicting import predicted


def test_what_takes_minutes_begins_before_what_takes_a_second() -> None:
    names = [
        "vfs-open-refs-2024",
        "seed-btrfs-rwsem-2020",
        "uprobes-srcu-2024",
        "btrfs-log-csum-contention-2020",
    ]
    pairs = predicted(names)
    assert [names[number] for number in longest_first(pairs)] == [names[i] for i in (3, 1, 2, 0)]


@pytest.mark.parametrize(
    ("change", "more"),
    [("measure.replications=4", 2.0), ("measure.warmup=22 ms", 2.0), ("measure.duration=1 ms", 2 / 21)],
)
def test_a_data_set_takes_as_long_as_its_simulated_time(tmp_path: Path, change: str, more: float) -> None:
    dataset, _ = write(tmp_path)
    fixed = ["measure.replications=2", "measure.duration=20 ms", "measure.warmup=1 ms"]
    (before,) = predicted([str(dataset)], fixed)
    (after,) = predicted([str(dataset)], [*fixed, change])
    assert seconds(after) / seconds(before) == pytest.approx(more, rel=1e-3)


def test_results_are_in_the_order_that_was_asked_for() -> None:
    names = ["vfs-open-refs-2024", "qrwlock-readers-2015"]
    for order in (names, names[::-1]):
        asked = invoke(*order, "--quick", "--format", "json")
        assert list(dict.fromkeys(row["dataset"] for row in rows_of(asked))) == order
