"""The table of all variants side by side, which a report with several curves begins with."""

from __future__ import annotations

import io

from rich.console import Console
from test_figures import CURVE

from simfs.reports.lock_sheets import locks_of_all, waited
from simfs.reports.text import print_report
from simfs.reports.variants import side_by_side
from simfs.results.focus import focus
from simfs.results.model import ScenarioResult


def printed(result: ScenarioResult, *, details: bool = True) -> str:
    out = io.StringIO()
    print_report(result, Console(file=out, width=118), details=details)
    return out.getvalue()


def test_each_variant_has_a_line_with_its_throughput_at_each_number_of_tasks() -> None:
    sheet = side_by_side(CURVE)
    assert [column.name for column in sheet.columns] == [
        "variant",
        *(str(p.tasks) for p in CURVE.of(CURVE.variants[0])),
    ]
    assert len(sheet) == len(CURVE.variants)
    assert printed(CURVE).index(sheet.title) < printed(CURVE).index(" tasks ")


def test_a_single_curve_is_not_told_twice() -> None:
    one = CURVE.model_copy(update={"points": CURVE.of(CURVE.variants[0])})
    assert side_by_side(one).title not in printed(one)


def test_other_swept_keys_make_further_lines() -> None:
    points = tuple(
        point.model_copy(update={"values": {**point.values, "machine.cpus": cpus}})
        for point in CURVE.points
        for cpus in (4, 8)
    )
    sheet = side_by_side(CURVE.model_copy(update={"points": points}))
    assert len(sheet) == 2 * len(CURVE.variants)


def test_several_curves_are_compared_and_their_own_tables_are_there_for_who_asks() -> None:
    brief = printed(CURVE, details=False)
    assert side_by_side(CURVE).title in brief
    assert "At " in brief
    assert "--details" in brief
    for point in focus(CURVE):
        own = f"{CURVE.title(point.variant)}: locks by total wait"
        assert own not in brief
        assert (own in printed(CURVE)) == bool(waited(point))
    assert len(brief.splitlines()) < len(printed(CURVE).splitlines())
    assert "--details" not in printed(CURVE)


def test_of_one_curve_everything_is_printed() -> None:
    one = CURVE.model_copy(update={"points": CURVE.of(CURVE.variants[0])})
    assert printed(one, details=False) == printed(one)


def test_a_lock_that_was_waited_for_stands_beside_its_variant() -> None:
    (sheet,) = locks_of_all(CURVE)
    names = [str(cell) for cell in sheet.columns[1].cells]
    assert {waited(point)[0].name for point in focus(CURVE) if waited(point)} <= set(names)
