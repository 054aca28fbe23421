"""A calibration as text."""

from __future__ import annotations

from rich.console import Group
from rich.text import Text

from simfs.experiments.identify import Calibration
from simfs.reports.layout import new_table, report_console
from simfs.reports.numbers import percent, plain
from simfs.results.model import quantity


def print_calibration(found: Calibration) -> None:
    """Print what was fitted, how well it is known, and what stands against it."""
    fitted = new_table(f"{found.scenario}: fitted ({100 * found.confidence:g} % intervals)")
    for name in ("parameter", "value", "from", "to", "bounds", "source"):
        fitted.add_column(name)
    for p in found.parameters:
        low, high = (quantity(x, p.unit) for x in p.bounds)
        fitted.add_row(
            p.parameter,
            *(quantity(x, p.unit) for x in (p.value, p.low, p.high)),
            f"{low} to {high}",
            p.source,
        )
    rows = new_table("on these rows")
    for name in ("row", "metric", "measured", "simulated", "error %"):
        rows.add_column(name)
    for r in found.rows:
        rows.add_row(
            r.row.label,
            r.row.metric,
            plain(r.row.value),
            plain(r.simulated),
            percent(r.error_percent, signed=True),
        )
    told = [Text(f"warning: {warning}", "yellow") for warning in found.warnings]
    told += [Text(f"note: {note}") for note in found.notes]
    report_console().print(Group(fitted, rows, *told))
