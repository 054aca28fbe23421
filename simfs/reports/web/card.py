"""The model card of a report: what was fitted, which numbers matter, what is not modelled, how to repeat it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from simfs.experiments.briefing import Briefing, Number
from simfs.reports.layout import Sheet
from simfs.reports.numbers import duration, plain
from simfs.reports.web.tables import table
from simfs.results.model import Fit


def card(briefing: Briefing) -> str:
    """All of it, each part under a heading."""
    parts = {
        "What was fitted": _fits(briefing.result.fits),
        "Numbers that matter most" if briefing.sensitivity else "Sourced numbers": _numbers(briefing),
        "What is not modelled for this scenario": _left_out(briefing),
        "Laws checked": _laws(briefing),
        "To repeat this": _repeat(briefing),
    }
    return "".join(f"<h3>{escape(name)}</h3>{text}" for name, text in parts.items())


def _fits(fits: Iterable[Fit]) -> str:
    said = [
        f"<li>{escape(fit.sentence)}; root mean square error {100 * fit.objective:.1f} %</li>" for fit in fits
    ]
    return (
        f"<ul>{''.join(said)}</ul>" if said else "<p>Nothing: every number is predicted from the models.</p>"
    )


def _numbers(briefing: Briefing) -> str:
    found = briefing.numbers()
    if not found:
        return "<p>The scenario gives all of its numbers itself.</p>"
    known = briefing.sensitivity is not None
    how = (
        f"Ranked by how much {escape(_asked(briefing))} moves when a number goes through its whole range."
        if known
        else "Ranked by the width of the range: which of them the answer hangs on is not known here. "
        f"<code>simfs sensitivity {escape(briefing.scenario.name)} --out DIR</code> finds out; give its directory to "
        "<code>simfs report</code> as well."
    )
    sheet = Sheet("Ten sourced numbers")
    sheet.add_column("number")
    for name in ("value", "from", "to", *(["effect %", "beyond noise"] if known else [])):
        sheet.add_column(name, justify="right")
    sheet.add_column("source")
    for each in found:
        sheet.add_row(*_row(each))
    return f"<p>{how}</p>{table(sheet)}"


def _asked(briefing: Briefing) -> str:
    found = briefing.sensitivity
    return f"{found.metric} of {found.point}" if found else ""


def _row(number: Number) -> list[str]:
    p = number.parameter
    cells = [_quantity(value, p.unit) for value in (p.value, p.low, p.high)]
    effect = (
        []
        if number.effect_percent is None
        else [f"{number.effect_percent:.2f}", "yes" if number.matters else "no"]
    )
    return [p.name, *cells, *effect, p.source]


def _quantity(value: float, unit: str) -> str:
    return duration(value) if unit == "ns" else f"{plain(value)} {unit}".strip()


def _left_out(briefing: Briefing) -> str:
    sheet = Sheet("Left out, by filesystem, workload, kernel and machine")
    for name in ("left out", "because"):
        sheet.add_column(name)
    for each in briefing.left_out():
        sheet.add_row(each.what.replace("`", ""), each.why.replace("`", ""))
    return table(sheet)


def _laws(briefing: Briefing) -> str:
    broken = [f for f in briefing.result.findings if f.kind == "law"]
    said = [f"<li>broken: {escape(f.sentence)}</li>" for f in broken]
    named = f": {escape(', '.join(briefing.laws))}" if briefing.laws else ""
    verdict = "" if broken else f"<p>Checked exactly at the end of every run, and kept{named}.</p>"
    return verdict + (f"<ul>{''.join(said)}</ul>" if said else "")


def _repeat(briefing: Briefing) -> str:
    result = briefing.result
    events = sum(point.events for point in result.points)
    runs = sum(point.replications for point in result.points)
    facts: Mapping[str, Any] = {"seed": briefing.scenario.measure.seed, **briefing.versions}
    listed = "".join(f"<dt>{escape(k)}</dt><dd>{escape(str(v))}</dd>" for k, v in facts.items())
    command = f"<pre>{escape(briefing.command)}</pre>" if briefing.command else ""
    return (
        f"{command}<p>{len(result.points)} points, {runs:,} runs, {events:,} events. Same command, same version: "
        f'the same numbers.</p><dl class="facts">{listed}</dl>'
    )
