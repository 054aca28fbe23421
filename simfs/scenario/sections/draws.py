"""Times that are drawn: distributions, and how requests arrive."""

from operator import mul
from typing import Annotated, Self

from pydantic import Field, StrictFloat, model_validator

from simfs.scenario.sections.columns import MAX_VALUES, from_file
from simfs.scenario.sections.section import Section, refusal, word_as
from simfs.scenario.sections.units import Duration, Rate

Weights = Annotated[
    tuple[Annotated[StrictFloat, Field(ge=0, le=1e12)], ...], Field(min_length=1, max_length=MAX_VALUES)
]


class Distribution(Section):
    """A drawn duration: '15 us', by its mean {exponential: 15 us} or {lognormal: 15 us, cv: 0.5}, or of a list.

    A list is {empirical: [1 us, 20 us], weights: [3, 1]}, or of a CSV file: {empirical: holds.csv, column: ns}.
    """

    constant: Duration | None = Field(default=None, description="This duration every time.")
    exponential: Duration | None = Field(
        default=None, description="Exponentially distributed with this mean."
    )
    lognormal: Duration | None = Field(default=None, description="Log-normally distributed with this mean.")
    gamma: Duration | None = Field(
        default=None,
        description="Gamma-distributed with this mean; cv 0.5 is an Erlang distribution of four phases.",
    )
    cv: Annotated[StrictFloat, Field(gt=0, le=10)] | None = Field(
        default=None, description="Standard deviation of lognormal or gamma, relative to its mean."
    )

    empirical: Annotated[tuple[Duration, ...], Field(min_length=1, max_length=MAX_VALUES)] | None = Field(
        default=None, description="One of these durations; in a file: the values of one of its columns."
    )
    weights: Weights | None = Field(
        default=None, description="How often each is drawn, relative to the others; all alike when absent."
    )

    @model_validator(mode="before")
    @classmethod
    def _read(cls, data: object) -> object:
        return from_file(data) if isinstance(data, dict) and isinstance(data.get("empirical"), str) else data

    @model_validator(mode="after")
    def _one(self) -> Self:
        given = [kind for kind in SHAPES if getattr(self, kind) is not None]
        if len(given) != 1:
            raise refusal(f"give one of {', '.join(SHAPES)}")
        if (self.cv is not None) != (given[0] in ("lognormal", "gamma")):
            raise refusal("lognormal and gamma need their cv, and no other has one")
        if self.weights is not None:
            if self.empirical is None or len(self.weights) != len(self.empirical):
                raise refusal("weights: one for each of the durations of empirical")
            if sum(self.weights) <= 0:
                raise refusal("weights: one at least must be above 0")
        return self

    @property
    def kind(self) -> str:
        """Which distribution it is."""
        return next(kind for kind in SHAPES if getattr(self, kind) is not None)

    @property
    def mean(self) -> float:
        """The mean in nanoseconds."""
        if self.empirical is None:
            return float(getattr(self, self.kind))
        weights = self.weights or (1.0,) * len(self.empirical)
        return float(sum(map(mul, self.empirical, weights)) / sum(weights))


SHAPES = ("constant", "exponential", "lognormal", "gamma", "empirical")
"""How times are distributed."""

Draws = Annotated[Distribution, word_as("constant", Distribution)]

ARRIVALS = ("poisson", "every", "trace")
"""How it is said when requests arrive."""

MAX_TRACE = 10_000


class Arrivals(Section):
    """When requests arrive, which the tasks then serve: {poisson: 5000 /s}, times between them, or a list of these."""

    poisson: Rate | None = Field(
        default=None, description="Independently of each other, so many in the mean."
    )
    every: Draws | None = Field(
        default=None, description="The time from one to the next; a plain one is a clock."
    )
    trace: Annotated[tuple[Duration, ...], Field(min_length=1, max_length=MAX_TRACE)] | None = Field(
        default=None, description="Times from one to the next, in turn, and again from the first."
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        given = [key for key in ARRIVALS if getattr(self, key) is not None]
        if len(given) != 1:
            raise refusal(f"give one of {', '.join(ARRIVALS)}")
        if self.gap == 0:
            raise refusal("requests that all arrive at once are none that could be served")
        return self

    @property
    def gap(self) -> float:
        """The mean time from one to the next, in nanoseconds."""
        if self.poisson is not None:
            return 1e9 / self.poisson
        if self.every is not None:
            return self.every.mean
        return sum(self.trace or ()) / len(self.trace or (1,))
