"""What `simfs measure` and `simfs doctor --machine` print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from simfs.measuring.beside import MachineBeside, quantities
from simfs.measuring.measured import Measured
from simfs.scenario.sections.quantity import Quantity


def to_text(found: Measured, out: Path | None) -> str:
    """The numbers, which of them were not measured, and how to use the file."""
    numbers = quantities(found.machine) | {f"micro.{n}": q for n, q in found.machine.micro.items()}
    rows = [(name, *_cells(q)) for name, q in numbers.items() if not q.source.startswith("not measured")]
    text = _table((f"machine {found.machine.name}", "value", "from", "to", "unit"), rows)
    text += f"\nnot measured, as on {found.stand_in}: {', '.join(found.not_measured)}\n"
    return text + (f"written to {out}; use it as `machine: ./{out.name}`\n" if out else "")


def beside_text(found: MachineBeside) -> str:
    """What, here, nearest, ratio; a star marks numbers that were not measured."""
    rows = [
        (
            line.what if line.measured else f"{line.what} *",
            f"{line.here:.4g}",
            f"{line.nearest:.4g}",
            "" if line.ratio is None else f"{line.ratio:.2f}",
            line.unit,
        )
        for line in found.lines
    ]
    text = _table(("what", found.machine, found.nearest, "ratio", "unit"), rows)
    return f"{text}\n* not measured{'' if any(not x.measured for x in found.lines) else ': none'}\n"


def _cells(q: Quantity) -> tuple[str, str, str, str]:
    return f"{q.value:.4g}", f"{q.range[0]:.4g}", f"{q.range[1]:.4g}", q.unit


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    lines = [
        row[0].ljust(widths[0])
        + "".join(f"  {cell.rjust(w)}" for cell, w in zip(row[1:], widths[1:], strict=True))
        for row in (head, *rows)
    ]
    return "".join(f"{line.rstrip()}\n" for line in lines)
