"""Which sourced numbers a prediction hangs on, and how far it may be off because of them.

*Screening* (M. D. Morris, *Technometrics* 33, 1991): parameters are changed one after the other along random
paths through their ranges; the mean absolute effect (mu*, Campolongo et al. 2007) ranks them, the spread of
effects (sigma) shows interaction or curvature. *Sobol indices* (scipy.stats.sobol_indices, Saltelli's estimator)
share out the variance for uniform parameters: the first order alone, the total with all interactions. *Bands*
are quantiles over Latin-hypercube draws of all parameters at once. Ranges are those of `models/`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy import stats
from scipy.stats import qmc

from simfs.experiments.points import Varied, common_runs, run_varied
from simfs.results.model import Value
from simfs.results.run import Engine, Progress, Runs
from simfs.results.run_result import Strict
from simfs.results.statistics import Estimate, interval, stddev
from simfs.scenario import Measure, Point, to_run_spec
from simfs.scenario.measured.metrics import metric as known_metric
from simfs.scenario.models import load_filesystem, load_kernel, load_machine, load_vfs, load_workload
from simfs.scenario.sections.lock_tasks import LockCycle
from simfs.scenario.sections.quantity import Quantity
from simfs.scenario.sections.workload import PythonTasks, profile_of
from simfs.scenario.suggest import nearest

DEFAULT = ("machine.*", "kernel.*", "workload.*")
"""Parameters that are varied unless told otherwise; a filesystem has hundreds of step costs besides."""

LEVELS = 4
STEP = LEVELS / (2 * (LEVELS - 1))
"""Morris's grid and step: two thirds of a range."""

BAND = (0.05, 0.95)

Vector = NDArray[np.float64]
Evaluate = Callable[[Sequence[Vector]], list[float]]


class NoOutputError(ValueError):
    """A metric that runs of the point do not have, or not so that others could be compared with it."""


@dataclass(frozen=True)
class Parameter:
    """A sourced number, where it stands in the RunSpec, and its range there."""

    name: str
    path: tuple[str, ...]
    value: float
    low: float
    high: float
    source: str
    unit: str = ""

    def at(self, share: float) -> float:
        """The value this far into the range."""
        return self.low + share * (self.high - self.low)


class Screened(Strict):
    """Morris's measures of one parameter, in per cent of the output for its whole range."""

    parameter: str
    low: float
    high: float
    mu_star: Estimate
    mu: float
    sigma: float
    matters: bool = Field(description="mu* is above what noise alone would give")
    source: str


class Share(Strict):
    """Sobol indices of one parameter, with 95 % bootstrap intervals."""

    parameter: str
    first: Estimate
    total: Estimate


class Band(Strict):
    """A predicted point with its noise and with its parameters' uncertainty."""

    values: dict[str, Value]
    tasks: int
    predicted: Estimate
    low: float = Field(description="5 % quantile over parameter draws")
    median: float
    high: float = Field(description="95 % quantile")


class Sensitivity(Strict):
    """The answer of `simfs sensitivity`."""

    scenario: str
    point: str
    operation: str
    metric: str
    output: Estimate
    noise_percent: float = Field(description="mu* that noise alone gives")
    trajectories: int
    screened: tuple[Screened, ...]
    shares: tuple[Share, ...] = ()
    bands: tuple[Band, ...] = ()
    draws: int = 0
    seed: int


def parameters(point: Point, patterns: Sequence[str] = DEFAULT) -> list[Parameter]:
    """Return the sourced numbers behind `point` whose names match; those the scenario sets itself are left out.

    Raises ValueError where a pattern matches nothing.
    """
    known = [p for p in _known(point) if p.high > p.low]
    for pattern in patterns:
        if pattern not in DEFAULT and not any(fnmatchcase(p.name, pattern) for p in known):
            names = [p.name for p in known]
            near = nearest(pattern, names)
            hint = f" (did you mean '{near}'?)" if near else ""
            raise ValueError(f"--parameter {pattern}: matches none of {', '.join(names[:12])}, ...{hint}")
    return [p for p in known if any(fnmatchcase(p.name, pattern) for pattern in patterns)]


@dataclass(frozen=True)
class _Output:
    """One metric of a simulation, as it answers to parameters; every run has the same random streams."""

    metric: str
    runs: Runs
    options: dict[str, Any]

    def of(self, points: Sequence[Varied]) -> list[Estimate]:
        """Simulate these points."""
        done = run_varied(points, self.runs, metrics=[self.metric], **self.options)
        found = [p.estimate(self.metric) for p in done.points]
        if any(estimate is None for estimate in found):
            raise NoOutputError(f"--metric: this simulation has no {self.metric}, or no operation finished")
        return [estimate for estimate in found if estimate is not None]

    def nominal(self, point: Point) -> Estimate:
        """With all parameters as they are; it must be one that others can be compared with."""
        (nominal,) = self.of([Varied(point, "nominal")])
        if not nominal.mean:
            raise NoOutputError(f"--metric: '{self.metric}' is 0 here")
        if nominal.low is None:
            raise NoOutputError(
                f"--metric: '{self.metric}' has no interval: two replications must have it, or run longer"
            )
        return nominal

    def over(self, point: Point, varied: Sequence[Parameter]) -> Evaluate:
        """The output as a function of how far each parameter is into its range."""

        def evaluate(shares: Sequence[Vector]) -> list[float]:
            return [e.mean for e in self.of([_at(point, varied, x, str(i)) for i, x in enumerate(shares)])]

        return evaluate


def sensitivity(
    point: Point,
    measure: Measure,
    *,
    scenario: str,
    operation: str = "operation",
    metric: str = "throughput_per_s",
    patterns: Sequence[str] = DEFAULT,
    trajectories: int = 10,
    sobol: int = 0,
    top: int = 4,
    bands: int = 0,
    curve: Sequence[Point] = (),
    threads: int | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> Sensitivity:
    """Screen the parameters of `point`; with `sobol` samples also share out variance among the `top` ones.

    With `bands` draws the points of `curve` get bands. Raises ValueError for an unknown metric or parameter.
    """
    varied, runs = _to_vary(point, patterns, metric), common_runs(point, measure, engine)
    output = _Output(metric, runs, {"threads": threads, "progress": progress, "engine": engine})
    nominal = output.nominal(point)
    noise = _noise_percent(nominal, runs)
    screened = morris(varied, output.over(point, varied), nominal.mean, trajectories, measure.seed, noise)
    return Sensitivity(
        scenario=scenario,
        point=point.id,
        operation=operation,
        metric=metric,
        output=nominal,
        noise_percent=noise,
        trajectories=trajectories,
        screened=tuple(screened),
        shares=_shares(point, varied, [s.parameter for s in screened[:top]], output, sobol, measure.seed),
        bands=tuple(_band(p, patterns, bands, measure.seed, output.of) for p in curve) if bands else (),
        draws=bands,
        seed=measure.seed,
    )


def _shares(
    point: Point, varied: Sequence[Parameter], names: Sequence[str], output: _Output, samples: int, seed: int
) -> tuple[Share, ...]:
    """How much of the variance each of the parameters named is for, if samples are asked for."""
    leading = [next(p for p in varied if p.name == name) for name in names]
    return tuple(sobol_shares(leading, output.over(point, leading), samples, seed)) if samples else ()


def _to_vary(point: Point, patterns: Sequence[str], metric: str) -> list[Parameter]:
    try:
        known_metric(metric)
    except ValueError as error:
        raise ValueError(f"--metric: {error}") from None
    varied = parameters(point, patterns)
    if not varied:
        raise ValueError("--parameter: nothing is left to vary")
    return varied


def morris(
    varied: Sequence[Parameter],
    evaluate: Evaluate,
    nominal: float,
    trajectories: int,
    seed: int,
    noise: float,
) -> list[Screened]:
    """Screen by elementary effects, the strongest first; effects are relative to `nominal`, in per cent."""
    rng = np.random.default_rng(seed)
    paths = [_trajectory(len(varied), rng) for _ in range(trajectories)]
    outputs = np.array(evaluate([x for path, _ in paths for x in path])).reshape(trajectories, -1)
    effects = np.zeros((trajectories, len(varied)))
    for row, ((path, order), values) in enumerate(zip(paths, outputs, strict=True)):
        for step, index in enumerate(order):
            moved = path[step + 1][index] - path[step][index]
            effects[row, index] = 100 * (values[step + 1] - values[step]) / moved / nominal
    found = []
    for parameter, effect in zip(varied, effects.T, strict=True):
        mu_star = interval(np.abs(effect))
        found.append(
            Screened(
                parameter=parameter.name,
                low=parameter.low,
                high=parameter.high,
                mu_star=mu_star,
                mu=float(effect.mean()),
                sigma=float(effect.std(ddof=1)) if trajectories > 1 else 0.0,
                matters=mu_star.low is not None and mu_star.low > noise,
                source=parameter.source,
            )
        )
    return sorted(found, key=lambda s: (-s.mu_star.mean, s.parameter))


def sobol_shares(varied: Sequence[Parameter], evaluate: Evaluate, samples: int, seed: int) -> list[Share]:
    """Sobol indices for parameters uniform on their ranges; `samples` is a power of two."""

    def function(x: Vector) -> Vector:
        return np.array([evaluate(list(x.reshape(len(varied), -1).T))])

    uniform: Any = stats.uniform()  # its stub and that of sobol_indices disagree
    found = stats.sobol_indices(func=function, n=samples, dists=[uniform] * len(varied), rng=seed)
    spread = found.bootstrap(confidence_level=0.95)
    shares = []
    for i, parameter in enumerate(varied):
        pair = []
        for values, about in (
            (found.first_order, spread.first_order),
            (found.total_order, spread.total_order),
        ):
            low, high = about.confidence_interval
            pair.append(
                Estimate(
                    mean=float(np.ravel(values)[i]),
                    low=float(np.ravel(low)[i]),
                    high=float(np.ravel(high)[i]),
                    n=samples,
                )
            )
        shares.append(Share(parameter=parameter.name, first=pair[0], total=pair[1]))
    return sorted(shares, key=lambda s: (-s.total.mean, s.parameter))


def _trajectory(count: int, rng: np.random.Generator) -> tuple[list[Vector], list[int]]:
    """A path on the grid in which each coordinate moves once, by two thirds up or down; and their order."""
    x = rng.integers(0, LEVELS, count) / (LEVELS - 1)
    order = [int(i) for i in rng.permutation(count)]
    path = [x.copy()]
    for index in order:
        x[index] += STEP if x[index] < 0.5 else -STEP
        path.append(x.copy())
    return path, order


def _noise_percent(nominal: Estimate, runs: Runs) -> float:
    """Mean |difference| of two means of this noise, for the whole range: what mu* is where nothing matters."""
    error = (stddev(nominal, runs.confidence) or 0.0) / math.sqrt(nominal.n)
    return 100 * error * math.sqrt(2) * math.sqrt(2 / math.pi) / STEP / abs(nominal.mean)


def _band(
    point: Point,
    patterns: Sequence[str],
    draws: int,
    seed: int,
    simulate: Callable[[Sequence[Varied]], list[Estimate]],
) -> Band:
    varied = parameters(point, patterns)
    shares = qmc.LatinHypercube(len(varied), rng=seed).random(draws)
    predicted, *drawn = simulate(
        [Varied(point, "nominal"), *(_at(point, varied, x, str(i)) for i, x in enumerate(shares))]
    )
    low, median, high = np.quantile([e.mean for e in drawn], (BAND[0], 0.5, BAND[1]))
    return Band(
        values=dict(point.values),
        tasks=point.scenario.tasks,
        predicted=predicted,
        low=float(low),
        median=float(median),
        high=float(high),
    )


def _at(point: Point, varied: Sequence[Parameter], shares: Vector, name: str) -> Varied:
    patch = {p.path: p.at(float(share)) for p, share in zip(varied, shares, strict=True)}
    return Varied(point, f"{point.id} #{name}", patch)


def _known(point: Point) -> list[Parameter]:
    spec, use = to_run_spec(point, 0), point.scenario
    machine, kernel = load_machine(use.machine.profile), load_kernel(use.kernel.profile)
    tables: list[tuple[tuple[str, ...], dict[str, Quantity]]] = [
        (("machine", "costs"), {k: q for k, q in machine.costs if isinstance(q, Quantity)}),
        (("kernel", "constants"), kernel.constants),
        (("kernel",), {"tick_ns": kernel.tick}),
    ]
    if machine.caches is not None:
        tables.append((("machine", "caches"), machine.caches.quantities))
    if not isinstance(use.workload, LockCycle | PythonTasks):
        tables.append((("workload", "params"), load_workload(profile_of(use.workload)).params))
    if use.filesystem.kind != "none":
        tables.append(
            (("filesystem", "costs"), load_filesystem(use.filesystem.profile or use.filesystem.kind).costs)
        )
        tables.append((("vfs", "costs"), load_vfs(use.filesystem.kind).costs))
    found = []
    for path, quantities in tables:
        holder = spec
        for step in path:
            holder = holder[step]
        for name, quantity in quantities.items():
            if holder.get(name) == quantity.plain:
                low, high = quantity.plain_range
                full = (*path, name)
                about = (quantity.source, quantity.plain_unit)
                found.append(Parameter(".".join(full), full, quantity.plain, low, high, *about))
    return found
