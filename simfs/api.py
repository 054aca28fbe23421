"""simfs from Python: `simfs.load("compile-24").run()`, its tables as pandas and xarray, its figures.

>>> import simfs
>>> answer = simfs.load("lock-cycle", "workload.tasks=4").run(quick=True)
>>> answer.exit_code
0

Tables need pandas, arrays xarray: `pip install 'simfs[notebook]'`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from simfs.arguments import known_variants, one_of, texts, time_of, varied, whole
from simfs.reports.progress import told
from simfs.scenario import Scenario
from simfs.scenario import load as load_scenario
from simfs.scenario.settings import keys_of
from simfs.scenario.suggest import choices

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from simfs.experiments.sweep_design import Kind
    from simfs.experiments.whatif import Change, WhatIf
    from simfs.reports.figures.result import Makers
    from simfs.reports.web.notebook import Shown
    from simfs.reports.web.widget import Explore
    from simfs.results.model import ScenarioResult
    from simfs.results.run import Progress

TABLES = (
    "points", "locks", "lock_sites", "lock_kinds", "lines", "wakes", "delays", "requests", "latency", "latency_curves",
    "measured", "scaling",
)  # fmt: skip


def load(scenario: str | Path | Mapping[str, Any], *settings: str) -> Question:
    """Load a shipped scenario by name, or any by path or as a mapping, with `KEY=VALUE` settings laid over it.

    Files that a mapping names are relative to the current directory. Raises `simfs.scenario.ScenarioError` with
    every problem found.
    """
    given = texts(settings, "settings", "workload.tasks=24")
    return Question(load_scenario(scenario, given), given)


@dataclass(frozen=True, repr=False)
class Question:
    """A scenario that can be run."""

    scenario: Scenario
    settings: tuple[str, ...] = ()

    def run(
        self,
        *,
        variants: Sequence[str] = (),
        quick: bool = False,
        threads: int | None = None,
        progress: Progress | bool = True,
    ) -> Answer:
        """Fit what the scenario declares and run its points, or those of `variants` alone; as `simfs run`.

        `quick` takes a fifth of the time in five replications, `threads` defaults to the CPUs of this
        computer. `progress` is a bar in a terminal or notebook, False for none, or a function of one's own,
        which is given the runs done, the runs known to be needed, and the label of the run that ended.
        Raises ValueError for what the engine or a fit refuses.
        """
        from simfs.experiments.answer import answer

        only = known_variants(self.scenario, variants)
        whole(threads, "threads")
        with told(progress) as report:
            asked, result = answer(
                self.scenario,
                given=self._given(),
                variants=only,
                quick=quick,
                threads=threads,
                progress=report,
            )
        return Answer(result, asked)

    def timeline(
        self,
        *variants: str,
        start: str | None = None,
        length: str | None = None,
        lock: str | None = None,
        quick: bool = False,
    ) -> Figure:
        """Draw who runs, holds and waits around the worst wait for a lock; as `simfs timeline`.

        Each variant has a panel, on one time axis; without any the first is drawn. `start` and `length` are times
        such as `"2 ms"`. `quick` looks at a fifth of the time.
        Raises ValueError for an unknown lock or a run that cannot be looked at.
        """
        from simfs.experiments.answer import titles_of
        from simfs.experiments.points import the_point
        from simfs.experiments.scene import Ask, filmed
        from simfs.reports.timeline.figure import figure

        asked, titles = self.scenario, titles_of(self.scenario)
        asked = asked.quick(self._given()) if quick else asked
        first = tuple(each.name for each in asked.variants[:1])
        named = [(titles.get(name, name), the_point(asked, name)) for name in variants or first]
        begin, span = time_of(start, "start"), time_of(length, "length")
        if span == 0:
            raise ValueError("length: must be more than nothing")
        points = named or [(asked.title or asked.name, the_point(asked))]
        return figure(filmed(points, Ask(begin, span, lock)))

    def sweep(
        self,
        vary: Mapping[str, Sequence[Any] | str] | None = None,
        *,
        design: Kind = "grid",
        points: int | None = None,
        refine: Literal["knee", "crossover"] | None = None,
        between: Sequence[str] = (),
        out: Path | str | None = None,
        quick: bool = False,
        executor: str = "threads",
        threads: int | None = None,
        progress: Progress | bool = True,
    ) -> Answer:
        """Run the points of a design; as `simfs sweep`.

        `vary` gives for each dotted key a list of values or a range as text (`"5 ms..30 ms"`,
        `"1..48:log"`); without it the scenario's own `sweep:` is the design. With `out`, runs are kept in
        that directory and never run again. Raises ValueError for a design, directory or executor that
        cannot be used, `ScenarioError` for values that the scenario refuses.
        """
        from simfs.experiments.executors import executor as opened
        from simfs.experiments.sweep import Plan, open_folder, rows_of_scenario, run
        from simfs.experiments.sweep_design import Factor, Kind, factor, rows_of

        asked = self.scenario
        one_of(design, get_args(Kind), "design")
        whole(points, "points")
        whole(threads, "threads")
        factors = [
            factor(f"{key}={values}") if isinstance(values, str) else Factor(key, tuple(values))
            for key, values in varied(vary).items()
        ]
        if between and refine != "crossover":
            raise ValueError(f"between: {between!r} goes with refine='crossover'")
        if points is not None and design in ("grid", "zip") and not any(each.ends for each in factors):
            raise ValueError(f"points: {points} is for ranges such as '1..48'; here all values are told")
        seed = asked.measure.seed
        rows = rows_of(factors, design, points, seed) if factors else rows_of_scenario(asked)
        given = tuple(sorted(self._given()))
        plan = Plan(asked, rows, refine, tuple(between), quick=quick, given=given)
        store = None if out is None else open_folder(Path(out), plan)
        with opened(executor, threads) as there, told(progress) as report:
            engine = there.engine if store is None else store.remembering(there.engine)
            asked, result = run(plan, engine=engine, threads=there.slots, progress=report)
        return Answer(result, asked)

    def explore(self, *keys: str, quick: bool = True) -> Explore:
        """Sliders for a notebook: curve and locks move with them. Needs `pip install 'simfs[notebook]'`.

        A key is dotted; `KEY=A,B,C` or `KEY=LOW..HIGH` says its values, else they are those of the scenario's sweep,
        or all kinds of a lock. The first is the axis of the curve. Runs are made when they are looked at, and kept.
        Raises ValueError for a key that cannot be explored.
        """
        from simfs.reports.web.explorer import Explorer
        from simfs.reports.web.widget import Explore

        return Explore(Explorer(self, keys, quick))

    def whatif(
        self,
        variant: str | None = None,
        *,
        changes: Sequence[tuple[str, Change]] = (),
        agcounts: Sequence[int] = (),
        quick: bool = False,
        threads: int | None = None,
        progress: Progress | bool = True,
    ) -> WhatIf:
        """What single changes to locks would bring, under the same random streams; as `simfs whatif`.

        `changes` are pairs of a lock class and a change (`"remove"`, `{"hold_scale": 0.5}`, `{"split": 4}`,
        `{"kind": "mutex"}`). Without them and `agcounts` it is the causal profile of all locks.
        """
        from simfs.experiments.answer import fit, operation_of
        from simfs.experiments.points import the_point
        from simfs.experiments.whatif import what_if

        whole(threads, "threads")
        fixed = {"measure", "measure.replications"} & self._given()
        with told(progress) as report:
            asked, _ = fit(self.scenario, given=self._given(), quick=quick, threads=threads, progress=report)
            point = the_point(asked, variant)
            return what_if(
                point,
                asked.measure,
                scenario=asked.name,
                operation=operation_of([point]),
                changes=changes,
                agcounts=agcounts,
                profile=not changes and not agcounts,
                most=None if fixed else asked.measure.max_replications,
                threads=threads,
                progress=report,
            )

    def __repr__(self) -> str:
        """Say what is asked."""
        asked = self.scenario
        return f"<Question {asked.name}: {asked.title}>"

    def _given(self) -> set[str]:
        return keys_of(self.settings)

    def _repr_html_(self) -> str:
        asked = self.scenario
        return f"<p><b>{escape(asked.name)}</b>: {escape(asked.title)}</p><p>{escape(asked.question)}</p>"


@dataclass(frozen=True, repr=False)
class Answer:
    """What came out of a run or a sweep."""

    result: ScenarioResult = field(repr=False)
    scenario: Scenario = field(repr=False)

    @property
    def answer(self) -> str:
        """The answer in words made from the numbers, as `simfs run` prints it first; empty for a sweep."""
        return self.result.answer

    def __repr__(self) -> str:
        """Say what was run, and the answer."""
        points = len(self.result.points)
        said = f": {self.answer}" if self.answer else ""
        return f"<Answer to {self.result.name}, {points} point{'s' if points != 1 else ''}{said}>"

    @property
    def exit_code(self) -> int:
        """0 for a clean result, 3 where a run stalled, else 1 where a law is broken."""
        return self.result.exit_code

    @property
    def points(self) -> pd.DataFrame:
        """A row a point: throughput with its interval, CPU shares, fairness."""
        return self.table("points")

    @property
    def locks(self) -> pd.DataFrame:
        """A row a lock class of a point."""
        return self.table("locks")

    @property
    def measured(self) -> pd.DataFrame:
        """A row a measured number, beside what was simulated for it."""
        return self.table("measured")

    def table(self, name: str) -> pd.DataFrame:
        """One of `TABLES` as pandas; `attrs["units"]` has the unit of each column that has one.

        Raises ValueError for an unknown name.
        """
        from simfs.results.tables import tables, unit

        if name not in TABLES:
            raise ValueError(f"there is no table '{name}'; {choices(name, TABLES)}")
        frame: pd.DataFrame = tables(self.result)[name].to_pandas()
        frame.attrs["units"] = {column: unit(column) for column in frame.columns if unit(column)}
        frame.attrs["title"] = self.scenario.title
        return frame

    def to_xarray(self) -> xr.Dataset:
        """The points as arrays over variant and swept keys where they are a grid, else over `point`.

        Each array has its unit in `attrs["units"]`.
        """
        import xarray as xr

        frame = self.points
        units = frame.attrs["units"]
        axes = ["variant", *self._columns(frame)]
        grid = len(frame) == frame[axes].drop_duplicates().shape[0] == prod(frame[a].nunique() for a in axes)
        arrays: xr.Dataset = xr.Dataset.from_dataframe(frame.set_index(axes if grid else ["point"]))
        for name in map(str, arrays.variables):
            if name in units:
                arrays[name].attrs["units"] = units[name]
        arrays.attrs["title"] = self.scenario.title
        return arrays

    def figures(self) -> dict[str, Figure]:
        """Every figure that makes sense for this answer, by name: those that `simfs run --out` writes."""
        return {name: make() for name, make in self._makers().items()}

    def figure(self, name: str) -> Figure:
        """One figure; ValueError for a name that this answer has none of."""
        known = self._makers()
        if name not in known:
            raise ValueError(f"there is no figure '{name}' of this answer; {choices(name, known)}")
        return known[name]()

    def _makers(self) -> Makers:
        from simfs.reports.figures.factors import sweep_makers
        from simfs.reports.figures.result import makers

        return makers(self.result) | sweep_makers(self.result)

    def lock_views(self, variant: str | None = None) -> Shown:
        """The locks of a variant from all sides, for a notebook to show; of the variant that waits longest by default.

        Raises ValueError for an unknown variant.
        """
        from simfs.reports.web.notebook import lock_views

        return lock_views(self.result, variant)

    def report(self, out: Path | str, *, timeline: bool = True) -> Path:
        """Write one page for a browser, as `simfs report` does; `timeline` runs one point once more for it."""
        from simfs.experiments.briefing import Briefing, recorded, versions_of, with_scenes
        from simfs.reports.web.page import page
        from simfs.results.manifest import software

        about, why = versions_of(software()), recorded(self.result)
        briefing = Briefing(self.result, self.scenario, versions=about, why=why)
        path = Path(out)
        path.write_text(page(with_scenes(briefing) if timeline else briefing), encoding="utf-8")
        return path

    def write(self, out: Path | str) -> list[Path]:
        """Write tables, figures and a manifest into a directory; return the files."""
        from simfs.reports.export import write

        asked = self.scenario
        resolved = asked.model_dump(mode="json", exclude_unset=True)
        return write(self.result, Path(out), scenario=asked.text, seed=asked.measure.seed, resolved=resolved)

    def _columns(self, frame: pd.DataFrame) -> list[str]:
        """The columns of the swept keys: tasks under their short name, quantities with their unit."""
        names = ["tasks" if key.endswith(".tasks") else key for key in self.result.sweep]
        return [
            next(c for c in frame.columns if c in (n, f"{n}_ns", f"{n}_bytes", f"{n}_fraction"))
            for n in names
        ]

    def _repr_html_(self) -> str:
        from simfs.reports.web.notebook import answer

        return answer(self.result, self.scenario.title)
