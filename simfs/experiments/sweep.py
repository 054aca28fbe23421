"""A sweep: a scenario at the rows of a design, in a directory that it can be resumed and merged from.

The directory holds `sweep.json` (the plan: what is run), `store/` (every run that has ended), and in the end the
files of a result. Its tables follow from the plan alone: threads, shards, executors and kills leave no trace
in them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import ValidationError

from simfs.experiments.answer import fit, run_points
from simfs.experiments.sweep_design import DesignError, Listed, Row, distinct
from simfs.experiments.sweep_refine import Refinement, refinement
from simfs.results.model import ScenarioResult, Wall
from simfs.results.run import Engine, Progress
from simfs.results.store import DISK_FAILURES, Store, engine_version, write_whole
from simfs.scenario import Point, Scenario, points_at
from simfs.scenario.points import sets, variants_of
from simfs.scenario.reading.loader import check_point

Goal = Literal["knee", "crossover"]
"""What refinement looks for."""

PLAN = "sweep.json"
"""The file that marks a directory as a sweep."""

STORE = "store"


class SweepError(ValueError):
    """A directory that this sweep cannot use; the message begins with it."""


@dataclass(frozen=True)
class Plan:
    """What a sweep runs: a scenario, the rows of its design, what to refine, and keys that were `given` by hand."""

    scenario: Scenario
    rows: tuple[Row, ...]
    goal: Goal | None = None
    between: tuple[str, ...] = ()
    rounds: int = 8
    quick: bool = False
    version: str = ""
    given: tuple[str, ...] = ()
    option: str = "--vary"
    """The option that the rows came from, for messages."""
    only: tuple[str, ...] = ()
    """The variants that are run; all without any."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The varied keys, in the order of the design."""
        return tuple(dict.fromkeys(key for row in self.rows for key in row))

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of the variants that are run."""
        return self.only or variants_of(self.scenario)

    def chosen(self, asked: Scenario) -> Scenario:
        """A scenario with the variants that are run."""
        kept = tuple(variant for variant in asked.variants if variant.name in self.only)
        return asked.model_copy(update={"variants": kept}) if self.only else asked

    def undone(self) -> dict[str, list[str]]:
        """Varied keys that variants set themselves, with their names: `--vary` overrides them."""
        variants = self.settings().get("variants", [])
        own = {variant["name"]: variant for variant in variants if variant["name"] in self.variants}
        found = {key: [name for name, changes in own.items() if sets(changes, key)] for key in self.keys}
        return {key: names for key, names in found.items() if names}

    def points(self) -> tuple[Point, ...]:
        """All points, without those that refinement adds; raise ScenarioError for a row that is refused."""
        return points_at(self.chosen(self.scenario), self.rows, told=self.told, check=check_point)

    def told(self, key: str, row: Row) -> str:
        """A varied key, as messages name it."""
        return f"{self.option}{row.told(key) if isinstance(row, Listed) else f' {key}'}"

    def refinement(self, shard: tuple[int, int] = (1, 1)) -> Refinement | None:
        """What to refine in shard i of n; raise DesignError where that cannot be."""
        if self.goal is None:
            return None
        if shard[1] > 1:
            raise DesignError(
                "--refine: looks at all points; run the shards without it, merge, then refine the merged"
            )
        return refinement(self.goal, self.rows, self.variants, self.between, self.rounds)

    def settings(self) -> dict[str, Any]:
        """The scenario as it would be written."""
        return self.scenario.model_dump(mode="json", exclude_unset=True)

    def to_json(self) -> bytes:
        """The plan as the file `sweep.json`."""
        document = {
            "simfs": 1,
            "version": self.version or engine_version(),
            "scenario": self.settings(),
            "quick": self.quick,
            "given": list(self.given),
            "variants": list(self.only),
            "rows": [dict(row) for row in self.rows],
            "refine": {"goal": self.goal, "between": list(self.between), "rounds": self.rounds},
        }
        return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the plan of a directory; raise SweepError where there is none that can be read."""
        try:
            data: dict[str, Any] = json.loads((folder / PLAN).read_text("utf-8"))
            refine = data["refine"]
            return cls(
                Scenario.model_validate(data["scenario"]),
                tuple(data["rows"]),
                refine["goal"],
                tuple(refine["between"]),
                refine["rounds"],
                data["quick"],
                data["version"],
                tuple(data["given"]),
                only=tuple(data.get("variants", ())),
            )
        except FileNotFoundError:
            raise SweepError(f"{folder}: is not the directory of a sweep") from None
        except NotADirectoryError:
            raise SweepError(f"{folder}: is a file, not the directory of a sweep") from None
        except OSError as error:
            raise SweepError(f"{folder / PLAN}: cannot be read: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, ValidationError):
            raise SweepError(f"{folder / PLAN}: is not a plan that this simfs can read") from None


def rows_of_scenario(scenario: Scenario) -> tuple[Row, ...]:
    """The grid of the scenario's own `sweep:`; one empty row where it has none."""
    rows: list[dict[str, object]] = [{}]
    for key, values in scenario.sweep.items():
        rows = [{**row, key: value} for row in rows for value in values]
    return distinct(rows)


def open_folder(folder: Path, plan: Plan) -> Store:
    """Begin or resume the sweep `plan` in `folder` and return its store; raise SweepError for another's."""
    path = folder / PLAN
    if path.exists():
        if difference := _difference(plan, Plan.read(folder)):
            raise SweepError(
                f"{folder}: holds another sweep ({difference}); choose another directory, or delete this one"
            )
    elif folder.is_dir() and any(folder.iterdir()):
        raise SweepError(f"{folder}: is not empty and not a sweep; choose another directory")
    try:
        write_whole(path, plan.to_json(), sync=True)
    except OSError as error:
        if error.errno in DISK_FAILURES:
            raise
        raise SweepError(f"{folder}: cannot be written: {error.strerror}") from None
    return Store(folder / STORE)


def _difference(mine: Plan, theirs: Plan) -> str:
    """What two plans differ in, in a few words; empty if in nothing that matters for what is run."""
    if (mine.settings(), mine.quick, mine.given) != (theirs.settings(), theirs.quick, theirs.given):
        return "its scenario or settings differ"
    if mine.only != theirs.only:
        return "its variants differ"
    if list(map(dict, mine.rows)) != list(map(dict, theirs.rows)):
        return "its points differ"
    if (mine.goal, mine.between, mine.rounds) != (theirs.goal, theirs.between, theirs.rounds):
        return "its refinement differs"
    return ""


def run(
    plan: Plan,
    *,
    engine: Engine | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    shard: tuple[int, int] = (1, 1),
) -> tuple[Scenario, ScenarioResult]:
    """Run a sweep, or shard i of n of it; return the scenario with what was fitted, and the result.

    Raises ValueError and ImportError as `answer`, and DesignError for a refinement of less than everything.
    """
    options: dict[str, Any] = {"engine": engine, "threads": threads, "progress": progress}
    refine = plan.refinement(shard)
    given = {*plan.keys, *plan.given}
    asked, fits = fit(plan.scenario, given=given, quick=plan.quick, **options)
    points = points_at(plan.chosen(asked), plan.rows, told=plan.told)[shard[0] - 1 :: shard[1]]
    result = run_points(asked, points, plan.keys, **options)
    if refine:
        result = _refined(refine, asked, plan, result, options)
    return asked, result.with_fits(fits)


def _refined(
    refine: Refinement, asked: Scenario, plan: Plan, result: ScenarioResult, options: Mapping[str, Any]
) -> ScenarioResult:
    for _ in range(refine.rounds):
        wanted = refine.wanted(plan.rows, result.points)
        points = [
            p
            for variant, rows in wanted.items()
            for p in points_at(plan.chosen(asked), rows)
            if p.variant == variant
        ]
        if not points:
            break
        result = _joined(result, run_points(asked, points, plan.keys, **options), refine)
    return result


def _joined(one: ScenarioResult, other: ScenarioResult, refine: Refinement) -> ScenarioResult:
    """Both results as one, the points of each curve rising in the refined key."""
    variants = {name: i for i, name in enumerate(one.variants)}
    points = sorted(
        (*one.points, *other.points),
        key=lambda p: (
            variants[p.variant],
            [str(value) for key, value in p.values.items() if key != refine.key],
            refine.scale.read(p.values[refine.key]),
        ),
    )
    answered = {c.row.model_dump_json() for p in points for c in p.measured}
    return one.model_copy(
        update={
            "points": tuple(points),
            "findings": (*one.findings, *other.findings),
            "wall": Wall(
                total_s=one.wall.total_s + other.wall.total_s,
                points_s=one.wall.points_s | other.wall.points_s,
                threads=one.wall.threads,
            ),
            "unmatched": tuple(row for row in one.unmatched if row.model_dump_json() not in answered),
        }
    )


def merge(folders: Sequence[Path], out: Path) -> tuple[Plan, Store]:
    """Pour the stores of the shards of one sweep together in `out`; raise SweepError where they are not one's."""
    plans = {folder: Plan.read(folder) for folder in folders}
    first, plan = next(iter(plans.items()))
    for folder, other in plans.items():
        if difference := _difference(plan, other):
            raise SweepError(f"{folder}: is no shard of the sweep in {first} ({difference})")
        if other.version != engine_version():
            raise SweepError(f"{folder}: was run by {other.version}, and this is {engine_version()}")
    store = open_folder(out, plan)
    for folder in folders:
        if folder.resolve() != out.resolve():
            store.adopt(Store(folder / STORE))
    return plan, store


def places(plan: Plan, result: ScenarioResult) -> Iterator[str]:
    """What refinement found, a line each."""
    refine = plan.refinement()
    if refine is None:
        return
    what = {"knee": "knee between", "crossover": "cross between"}[refine.goal]
    found = False
    for who, setting, low, high in refine.places(plan.rows, result.points):
        found = True
        at = "".join(f", {key}={value}" for key, value in setting.items())
        yield f"{who}{at}: {what} {refine.scale.write(low)} and {refine.scale.write(high)} {refine.key}"
    if not found:
        yield f"no {refine.goal} in the range of {refine.key}"
