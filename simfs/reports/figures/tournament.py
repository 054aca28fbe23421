"""Locks under the same loads as a picture."""

from __future__ import annotations

from matplotlib.figure import Figure

from simfs.reports.figures.drawing import MARKERS, OKABE_ITO, new_figure, style
from simfs.reports.numbers import plural
from simfs.results.model import ScenarioResult
from simfs.results.tournament import LOCK


def tournament_figure(result: ScenarioResult) -> Figure:
    """One panel a load, one row a lock: throughput relative to the best lock of the panel, a mark a task count."""
    locks = list(dict.fromkeys(str(p.values[LOCK]) for p in result.points))
    counts = sorted({p.tasks for p in result.points})
    with style():
        figure = new_figure(1.3 + 1.35 * len(result.variants), 0.9 + 0.17 * len(locks))
        panels = figure.subplots(1, len(result.variants), sharey=True, squeeze=False)[0]
        for axes, variant in zip(panels, result.variants, strict=True):
            points = result.of(variant)
            best = max(p.throughput.mean for p in points) or 1.0
            for index, count in enumerate(counts):
                same = [p for p in points if p.tasks == count]
                axes.plot(
                    [p.throughput.mean / best for p in same],
                    [locks.index(str(p.values[LOCK])) for p in same],
                    MARKERS[index],
                    color=OKABE_ITO[index],
                    label=f"{count} tasks",
                    alpha=0.8,
                )
            axes.set_xlim(0, 1.05)
            axes.set_title(result.title(variant).replace(": ", ":\n"), fontsize=7.5)
            axes.set_yticks(range(len(locks)), locks)
        panels[0].invert_yaxis()
        figure.supxlabel(f"{plural(result.operation)} per second, relative to the best", fontsize=9)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(counts))
        return figure
