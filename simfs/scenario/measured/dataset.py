"""Published measurements as data, and which point of a scenario each row belongs to."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr, ValidationError, model_validator

from simfs.scenario import paths
from simfs.scenario.measured.metrics import TOTALS, metric
from simfs.scenario.problems import Problem, ScenarioError
from simfs.scenario.reading.document import Document
from simfs.scenario.reading.overlay import plain_value
from simfs.scenario.reading.refusals import problems_of
from simfs.scenario.reading.remembered import remembered
from simfs.scenario.schema import MeasuredUse
from simfs.scenario.sections.section import Section, refusal, refusal_at, shorten
from simfs.scenario.sections.units import Duration
from simfs.scenario.suggest import nearest

Value = StrictBool | StrictInt | StrictFloat | StrictStr | None


Role = Literal["calibrate", "predict", "info"]
"""What a row is for; `info` is shown beside the prediction and counts for nothing."""

Evidence = Literal["published", "measured", "emulated"]
"""Where a data set comes from: others' publication, our own machines, or a real kernel in emulation."""


class Source(Section):
    """Where the figures come from."""

    author: str
    date: str
    where: str = Field(description="Mailing list, paper or machine.")
    url: str | None = None
    read_from: str | None = Field(default=None, description="What was read to take the figures over.")


class Series(Section):
    """What a series of rows was measured on, as keys of a scenario."""

    variant: str | None = Field(
        default=None, description="Which variant it is; the name of the series when absent."
    )
    values: dict[str, Value] = Field(default={}, description="Dotted key -> value, besides the dataset's x.")
    operations: Annotated[StrictFloat, Field(gt=0)] | None = Field(
        default=None,
        description="Operations of the whole measured run, for metrics that are its totals, and with `pause`.",
    )
    pause: Duration | None = Field(
        default=None,
        description="Time within the measured run in which the benchmark sleeps before its tasks start.",
    )

    @model_validator(mode="after")
    def _pause_of_a_run(self) -> Self:
        if self.pause is not None and self.operations is None:
            raise refusal("pause: how much of the run it is, only the operations of the run can tell")
        return self


class Base(Section):
    """The row's place that a ratio is over."""

    series: str
    x: StrictFloat = Field(description="Value of the dataset's x key.")


TABLES = (".csv", ".tsv", ".json", ".txt")
"""Ends of names of files that people have measurements in."""

RATIO = "ratio"
"""The unit of a row that says how often its metric is that of another place."""


class Row(Section):
    """One published number."""

    series: str
    x: StrictFloat = Field(description="Value of the dataset's x key.")
    metric: Annotated[str, Field(pattern=r"^[a-z][A-Za-z0-9_]*$")]
    unit: str = Field(
        description="That of the metric, or 'ratio' of what is over another; so that a reader need not know it."
    )
    value: Annotated[StrictFloat, Field(ge=0)]
    low: StrictFloat | None = Field(default=None, description="Lowest of the runs.")
    high: StrictFloat | None = Field(default=None, description="Highest of the runs.")
    approx: StrictBool = False
    role: Role = "info"
    over: Base | None = Field(
        default=None,
        description="The value is the metric here over the metric there, as published relative to it.",
    )
    note: str = ""

    @model_validator(mode="after")
    def _in_its_unit(self) -> Self:
        try:
            known = metric(self.metric)
        except ValueError as error:
            message, _, hint = str(error).partition("; did you mean '")
            raise refusal(message, hint.removesuffix("'?") or None) from None
        unit = known.unit if self.over is None else RATIO
        if self.unit != unit:
            raise refusal(f"{self.metric} is given in {unit}, not in '{self.unit}'", unit)
        return self

    @model_validator(mode="after")
    def _of_amounts(self) -> Self:
        if self.over is not None and metric(self.metric).unit == "%":
            raise refusal(f"over: {self.metric} is a share already, and no ratio is made of it")
        if self.over is not None and self.role == "calibrate":
            raise refusal("over: nothing is fitted to a ratio; its role is predict or info")
        if (
            self.over is not None
            and self.role == "predict"
            and self.over == Base(series=self.series, x=self.x)
        ):
            raise refusal("over: is the row's own place, where every ratio is 1; its role is info")
        return self

    @model_validator(mode="after")
    def _inside(self) -> Self:
        low = self.value if self.low is None else self.low
        high = self.value if self.high is None else self.high
        if not low <= self.value <= high:
            raise refusal(f"value {self.value:g} lies outside {low:g} to {high:g}")
        return self


class Dataset(Section):
    """Measurements to hold predictions against. Only rows with role `calibrate` may ever be fitted on."""

    name: str
    title: str
    evidence: Evidence = Field(
        default="published",
        description="By others, on a machine of ours, or of a real kernel in emulation (docs/laboratory.md).",
    )
    source: Source
    machine: str
    kernel: str
    x: str = Field(default="workload.tasks", description="Dotted key that `x` of the rows stands for.")
    series: dict[str, Series]
    rows: Annotated[tuple[Row, ...], Field(min_length=1)]
    fit: tuple[str, ...] = Field(
        default=(), description="Dotted keys that may be fitted on the calibrate rows; any, when absent."
    )
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _rows_once(self) -> Self:
        """A row that stands twice would count twice; with another value it is another measurement."""
        seen: dict[tuple[object, ...], int] = {}
        for number, row in enumerate(self.rows):
            over = row.over and (row.over.series, row.over.x)
            first = seen.setdefault((row.series, row.x, row.metric, row.value, over), number)
            if first != number:
                raise refusal_at(
                    ("rows", number), f"{row.metric} of this place and value is rows.{first} already"
                )
        return self

    @model_validator(mode="after")
    def _rows_have_series(self) -> Self:
        for number, row in enumerate(self.rows):
            at = ("rows", number, "series")
            for name in [row.series] if row.over is None else [row.series, row.over.series]:
                if name not in self.series:
                    raise refusal_at(at, f"there is no series '{shorten(name)}'", nearest(name, self.series))
            if metric(row.metric).quantity in TOTALS and self.series[row.series].operations is None:
                what = f"{row.metric} is the total of a run: series '{row.series}' must give its operations"
                raise refusal_at(at, what)
        return self


@dataclass(frozen=True)
class PlacedRow:
    """A measured row with the variant and sweep values of the point it belongs to."""

    dataset: str
    series: str
    variant: str
    values: dict[str, bool | int | float | str]
    metric: str
    value: float
    role: Role
    approx: bool = False
    note: str = ""
    low: float | None = None
    high: float | None = None
    operations: float | None = None
    pause_s: float | None = None


@remembered(paths.MEASURED)
def load_dataset(name_or_path: str, beside: Path | None = None) -> Dataset:
    """Load a dataset by name, or by path (relative ones also to `beside`); raise `ScenarioError`."""
    path = paths.find(name_or_path, paths.MEASURED, beside)
    if path is None and name_or_path.lower().endswith(TABLES):
        said = "is no data set: that is a YAML file with rows; `simfs import` makes one of a table"
        raise ScenarioError([Problem(shorten(name_or_path), said)])
    if path is None:
        near = nearest(name_or_path, paths.names(paths.MEASURED))
        raise ScenarioError([Problem(shorten(name_or_path), "there is no such measured dataset", near)])
    document = Document.read(path)
    try:
        return Dataset.model_validate(document.data)
    except ValidationError as error:
        raise ScenarioError(problems_of(error, document)) from None


def placed_rows(use: MeasuredUse | None) -> tuple[PlacedRow, ...]:
    """Return the rows of the dataset a scenario names, each with its place in that scenario; without ratios."""
    return tuple(row for row, base in with_bases(use) if base is None)


def with_bases(use: MeasuredUse | None) -> tuple[tuple[PlacedRow, PlacedRow | None], ...]:
    """Return all rows of the dataset a scenario names with their places, and of a ratio the place it is over."""
    if use is None:
        return ()
    dataset = load_dataset(use.dataset)
    return tuple((_placed(row, dataset, use), _base(row, dataset, use)) for row in dataset.rows)


def _base(row: Row, dataset: Dataset, use: MeasuredUse) -> PlacedRow | None:
    if row.over is None:
        return None
    return _placed(row.model_copy(update={"series": row.over.series, "x": row.over.x}), dataset, use)


def _placed(row: Row, dataset: Dataset, use: MeasuredUse) -> PlacedRow:
    series = dataset.series[row.series]
    label = series.variant or row.series
    values = {dataset.x: int(row.x) if row.x.is_integer() else row.x, **series.values}
    return PlacedRow(
        dataset=dataset.name,
        series=row.series,
        variant=use.variants.get(label, label),
        values={key: plain_value(value) for key, value in values.items()},
        metric=row.metric,
        value=row.value,
        role=row.role,
        approx=row.approx,
        note=row.note,
        low=row.low,
        high=row.high,
        operations=series.operations,
        pause_s=None if series.pause is None else series.pause / 1e9,
    )
