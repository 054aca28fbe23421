"""A real machine beside a simulation, as plain text."""

from __future__ import annotations

from itertools import groupby

from simfs.experiments.compare_real import RealComparison, RealLine
from simfs.reports.numbers import plain

SHOWN = 8


def to_text(comparison: RealComparison) -> str:
    """Return the table by lock class or series, what only one side has, and where they differ most."""
    rows = [f"real: {comparison.real}", f"simulated: {comparison.simulated}", ""]
    rows.append(f"{'':34}{'real':>14}{'simulated':>14}{'ratio':>10}")
    for name, lines in groupby(comparison.lines, key=lambda line: line.of):
        rows += [name, *map(_row, lines)]
    rows += [""]
    for title, names in (
        ("only real", comparison.only_real),
        ("only simulated", comparison.only_simulated),
    ):
        if names:
            rows.append(f"{title}: {', '.join(names)}")
    if comparison.unmapped:
        rows.append("real waits for no lock of simfs:")
        rows += [f"  {line}" for line in comparison.unmapped[:SHOWN]]
        more = len(comparison.unmapped) - SHOWN
        rows += [f"  and {more} more"] if more > 0 else []
    if comparison.sentence:
        rows += ["", comparison.sentence]
    return "\n".join(rows) + "\n"


def _row(line: RealLine) -> str:
    ratio = "-" if line.ratio is None else f"{line.ratio:.3g}"
    return f"  {line.quantity:<32}{plain(line.real):>14}{plain(line.simulated):>14}{ratio:>10}"
