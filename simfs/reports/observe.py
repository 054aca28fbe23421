"""What `simfs observe` prints."""

from __future__ import annotations

from collections.abc import Iterator

from simfs.experiments.observe import Observation, Order
from simfs.reports.numbers import plain


def to_text(found: Observation) -> str:
    """The commands, what each decides, and the command that reads what it prints."""
    return "".join(f"{line}\n" for line in _lines(found))


def _lines(found: Observation) -> Iterator[str]:
    yield f"{found.scenario}, {found.point}: {found.metric} {plain(found.predicted.mean)} predicted"
    yield ""
    yield "Does it hold? Run on the real machine (perf and bpftrace as root):"
    for number, order in enumerate(found.tests, start=1):
        yield from _order(number, order)
    yield ""
    if not found.narrowing:
        yield "No sourced number moves the prediction by more than noise: nothing would narrow it."
        return
    yield "What would narrow the prediction, the most first:"
    for number, order in enumerate(found.narrowing, start=len(found.tests) + 1):
        yield from _order(number, order)
    if found.left_percent:
        yield f"Numbers that no command measures move it by {found.left_percent:.1f} %."


def _order(number: int, order: Order) -> Iterator[str]:
    yield ""
    by = (
        ""
        if order.narrows_percent is None
        else f": {order.narrows_percent:.1f} %, by {', '.join(order.numbers[:4])}"
    )
    yield f"{number}. {order.what}{by}"
    yield from (f"   $ {command}" for command in order.commands)
    yield f"   decides {order.decides}" if order.narrows_percent is None else f"   tells {order.decides}"
    if order.compare:
        yield f"   $ {order.compare}"
