"""A whole report as one file: answer, curves, locks, what-ifs, time lines, latency, model card. Needs no network."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from simfs.experiments.briefing import Briefing, waited
from simfs.experiments.whatif import WhatIf
from simfs.reports import whatif as what_if_report
from simfs.reports.layout import Sheet
from simfs.reports.numbers import NOTHING, counted, duration, percent, plain, plural, plus_minus
from simfs.reports.text import curves as curve_sheets
from simfs.reports.text import expectations, sentences
from simfs.reports.text import measured as measured_sheet
from simfs.reports.timeline import html as timeline_html
from simfs.reports.tournament import tournament
from simfs.reports.web import curves, locks
from simfs.reports.web.card import card
from simfs.reports.web.tables import bar, table
from simfs.reports.why import chains_sheet, owners_sheet, path_sheet
from simfs.results.focus import focus
from simfs.results.model import PointResult, ScenarioResult
from simfs.results.tournament import is_tournament

_HERE = Path(__file__).parent
MOST_VARIANTS = 24
"""Variants whose locks are shown."""

Section = tuple[str, str, str]
"""Anchor, heading, HTML."""


def page(briefing: Briefing) -> str:
    """The report as a document."""
    sections = [section for section in _sections(briefing) if section[2]]
    nav = "".join(f'<a href="#{name}">{escape(title)}</a>' for name, title, _ in sections)
    body = "".join(
        f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{escape(title)}</h2>'
        f"{text}</section>"
        for name, title, text in sections
    )
    title = escape(briefing.scenario.title or briefing.result.name)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{title}</title>'
        f"<style>{_read('uplot.css')}{timeline_html.STYLE}"
        f"{_read('colours.css')}{_read('charts.css')}{_read('report.css')}</style>"
        f"<script>{_read('uplot.js')}</script><script>{timeline_html.SCRIPT}</script></head>\n"
        f'<body><header>{_head(briefing)}</header><nav aria-label="sections">{nav}</nav>\n'
        f"<main>{body}</main>\n<script>{_read('report.js')}\nsimfsReport();</script></body></html>\n"
    )


def _read(name: str) -> str:
    return (_HERE / name).read_text("utf-8")


def embedded(kind: str, document: object) -> str:
    """Data for a script, which nothing in it can end."""
    text = json.dumps(document, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" data-kind="{kind}">{text}</script>'


def _sections(briefing: Briefing) -> Iterator[Section]:
    result = briefing.result
    yield "curves", "Curves", _curves(result)
    yield "locks", "Locks", _locks(briefing)
    yield "what-if", "What if", "".join(map(_what_if, briefing.what_ifs))
    yield "time-line", "Time line", _scenes(briefing)
    yield "latency", "Latency", _latency(result)
    measured = measured_sheet(result) if any(p.measured for p in result.points) else Sheet()
    yield "measured", "Measured", table(measured) if len(measured) else ""
    yield "expected", "Expected", table(expectations(result)) if result.expected else ""
    yield "card", "Model card", card(briefing)


# ── The first page ──


def _head(briefing: Briefing) -> str:
    asked, result = briefing.scenario, briefing.result
    answer = f'<p class="answer">{escape(result.answer)}</p>' if result.answer else ""
    chips = "".join(f'<li class="{kind}">{escape(text)}</li>' for kind, text in verdicts(result))
    notes = "".join(f"<li>{escape(line)}</li>" for line in sentences(result))
    return (
        f'<p class="name">{escape(result.name)}</p><h1>{escape(asked.title or asked.name)}</h1>'
        f'<p class="question">{escape(asked.question)}</p>{answer}<ul class="chips" aria-label="verdicts">{chips}</ul>'
        f"{summary(result)}<details><summary>Notes</summary><ul>{notes}</ul></details>"
    )


def verdicts(result: ScenarioResult) -> Iterator[tuple[str, str]]:
    """What to know before any number: laws, stalls, fits, bistable and unsettled points."""
    kinds = [finding.kind for finding in result.findings]
    for kind, bad in (("law", "laws broken"), ("stall", "runs stalled"), ("empty", "windows empty")):
        if kind in kinds:
            yield "bad", f"{kinds.count(kind)} {bad}"
    if not kinds:
        yield "good", "all laws kept"
    if missed := sum(bool(each.failed) for each in result.expected):
        yield "bad", f"{counted(missed, 'expectation')} not met"
    elif result.expected:
        yield "good", "all expectations met"
    fitted = sum(len(fit.values) for fit in result.fits)
    yield "plain", f"{counted(fitted, 'number')} fitted" if fitted else "nothing fitted"
    errors = sorted(
        abs(c.error_percent)
        for p in result.points
        for c in p.measured
        if c.row.role == "predict" and c.error_percent is not None and not c.row.metric.endswith("_percent")
    )
    if errors:
        rows = counted(len(errors), "predicted row")
        yield "plain", f"{rows}: median error {errors[len(errors) // 2]:.1f} %"
    if bistable := sum(p.groups is not None for p in result.points):
        yield "care", counted(bistable, "bistable point")
    if unsettled := sum(p.unsettled for p in result.points):
        yield "care", f"{counted(unsettled, 'point')} perhaps not settled"


def summary(result: ScenarioResult) -> str:
    """The variants at the point of most interest, as a table."""
    if is_tournament(result):
        return "".join(map(table, tournament(result)))
    points = list(focus(result))
    rate = f"{plural(result.operation)}/s"
    sheet = Sheet(_where(points))
    sheet.add_column("variant")
    for name in (rate, "±", "lost against the best %", "idle %"):
        sheet.add_column(name, justify="right")
    sheet.add_column("most waited for")
    for point in points:
        asked = (point.tasks, point.setting, curves.operations(point))
        alike = [p for p in points if (p.tasks, p.setting, curves.operations(p)) == asked]
        best = max(alike, key=lambda p: p.throughput.mean)
        lost = curves.loss(point, best)[0]
        longest = max((k for k in point.locks if k.contended), key=lambda k: k.wait_total_ns, default=None)
        sheet.add_row(
            result.title(point.variant), plain(point.throughput.mean),
            plus_minus(point.throughput).removeprefix("± "), percent(lost) if len(alike) > 1 else NOTHING,
            percent(point.shares.idle.mean), longest.name if longest else NOTHING,
        )  # fmt: skip
    return table(sheet, {rate: bar(max(point.throughput.mean for point in points))})


def _where(points: Sequence[PointResult]) -> str:
    places = {(p.tasks, p.cpus) for p in points}
    (tasks, cpus), *more = sorted(places)
    return "The variants" if more else f"{counted(tasks, 'task')} on {counted(cpus, 'CPU')}"


# ── The parts ──


def _curves(result: ScenarioResult) -> str:
    charts = curves.throughput(result)
    drawn = "".join(f'<div class="chart-set">{embedded("curves", chart)}</div>' for chart in charts)
    sheets = curve_sheets(result)
    listed = "".join(map(table, sheets))
    if not charts:
        return listed
    return f"{drawn}<details><summary>All numbers</summary>{listed}</details>"


def _locks(briefing: Briefing) -> str:
    result = briefing.result
    points = sorted(focus(result), key=waited, reverse=True)[:MOST_VARIANTS]
    found = {result.title(p.variant): locks.views(p) for p in points}
    for title, why in briefing.why.items():
        if why.waits:
            runs = counted(why.replications, "run")
            said = f"<p>{escape(why.sentence[:1].upper() + why.sentence[1:])} ({runs}).</p>"
            found.setdefault(title, {}).update(
                {
                    "Chains": said + table(chains_sheet(why)) + table(path_sheet(why)),
                    "Owners": table(owners_sheet(why)),
                }
            )
    if not any(found.values()):
        return ""
    parts = "".join(
        f'<div class="view" data-variant="{escape(title)}" data-view="{name}">'
        f"<h3>{escape(title)}: {name}</h3>{text}</div>"
        for title, views in found.items()
        for name, text in views.items()
    )
    return f'<div class="views">{parts}</div>'


def _what_if(answer: WhatIf) -> str:
    chart = curves.ladder(answer)
    drawn = f'<div class="chart-set">{embedded("ladder", chart)}</div>' if chart else ""
    head = "".join(f"<p>{escape(line)}</p>" for line in what_if_report.heading(answer))
    said = "".join(f"<li>{escape(line)}</li>" for line in what_if_report.sentences(answer))
    tables = "".join(map(table, what_if_report.sheets(answer)))
    return f"<h3>{escape(answer.scenario)}, {escape(answer.variant)}</h3>{head}<ul>{said}</ul>{drawn}{tables}"


def _scenes(briefing: Briefing) -> str:
    if not briefing.scenes:
        return f"<p>No time line: {escape(briefing.no_scene)}.</p>" if briefing.no_scene else ""
    scenes = briefing.scenes
    return "".join(timeline_html.fragment(s, f"scene-{at}", len(scenes)) for at, s in enumerate(scenes))


def _latency(result: ScenarioResult) -> str:
    chart = curves.latency(result)
    drawn = f'<div class="chart-set">{embedded("latency", chart)}</div>' if chart else ""
    return drawn + table(_latencies(result))


def _latencies(result: ScenarioResult) -> Sheet:
    sheet = Sheet("Latency of operations, all replications together")
    for name in ("variant", "operation"):
        sheet.add_column(name)
    for name in ("count", "mean", "p50", "p90", "p99", "longest"):
        sheet.add_column(name, justify="right")
    for point in focus(result):
        for operation, took in point.latency.items():
            times = (took.mean_ns, took.p50_ns, took.p90_ns, took.p99_ns, took.max_ns)
            names = (result.title(point.variant), operation)
            sheet.add_row(*names, f"{took.count:,}", *map(duration, times))
    return sheet
