"""Reads what a scenario expects: comparisons of sums of products of metrics and numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from simfs.scenario.sections.expectation import (
    ORDERS,
    UNITS,
    Expectation,
    Join,
    Number,
    Order,
    Part,
    Term,
    unit_of,
    value_of,
)
from simfs.scenario.suggest import choices

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:[.]\d*)?(?:[eE][+-]?\d+)?)\s*(?P<unit>%|/s\b|[A-Za-z]+(?:/s\b)?)?"
    r"|(?P<name>[A-Za-z_]\w*)\s*(?:\[(?P<at>[^\]]*)\])?"
    r"|(?P<order><=|>=|<|>)|(?P<sign>[-+*/()]))",
    re.ASCII,
)


def parse(text: str) -> Expectation:
    """Read an expectation; raises ValueError with what is wrong, and in which part of it."""
    return _Parser(text).read()


class _Parser:
    """Reads comparisons of sums of products; as in every language, `*` and `/` bind tighter."""

    def __init__(self, text: str) -> None:
        self.text = " ".join(text.split())
        self.tokens: list[re.Match[str]] = []
        at = 0
        while at < len(self.text):
            found = _TOKEN.match(self.text, at)
            if found is None:
                raise ValueError(f"cannot read '{self.text[at : at + 20].strip()}'")
            self.tokens.append(found)
            at = found.end()
        self.next = 0

    def read(self) -> Expectation:
        """Read all of it."""
        sides: list[Part] = [self._sum()]
        orders: list[Order] = []
        while order := self._take("order"):
            orders.append(ORDERS[order])
            sides.append(self._sum())
        if self.next < len(self.tokens):
            raise ValueError(f"cannot read '{self.tokens[self.next][0].strip()}' here")
        if not orders:
            raise ValueError("nothing is compared: write, for example, 'throughput > 1000'")
        found = Expectation(self.text, tuple(sides), tuple(orders))
        if not found.terms:
            raise ValueError("names no metric: write, for example, 'throughput > 1000'")
        units = [value_of(side, lambda term: Number(1, 1, 1, unit_of(term.metric))) for side in sides]
        for left, right in pairwise(units):
            left.to(right.unit)
        return found

    def _take(self, what: str, among: str = "") -> str:
        if self.next < len(self.tokens):
            found = self.tokens[self.next][what]
            if found and (not among or found in among):
                self.next += 1
                return found
        return ""

    def _sum(self) -> Part:
        part = self._product()
        while sign := self._take("sign", "+-"):
            part = Join(sign, part, self._product())
        return part

    def _product(self) -> Part:
        part = self._atom()
        while sign := self._take("sign", "*/"):
            part = Join(sign, part, self._atom())
        return part

    def _atom(self) -> Part:
        if self.next == len(self.tokens):
            raise ValueError("ends where a number or a metric should stand")
        if self._take("sign", "("):
            part = self._sum()
            if not self._take("sign", ")"):
                raise ValueError("a ')' is missing")
            return part
        token = self.tokens[self.next]
        self.next += 1
        if token["number"]:
            return _number(token)
        if token["name"]:
            unit_of(token["name"])
            return Term(token["name"], tuple(_places(token["at"])))
        raise ValueError(f"'{token[0].strip()}' stands where a number or a metric should")


def _number(token: re.Match[str]) -> Number:
    unit, value = token["unit"] or "", float(token["number"])
    if unit and unit not in UNITS:
        raise ValueError(f"there is no unit '{unit}'; {choices(unit, UNITS)}")
    return Number(value, value, value, unit)


def _places(written: str | None) -> Iterator[tuple[str, str]]:
    for word in (written or "").split(","):
        key, equals, value = word.partition("=")
        if word.strip():
            yield (key.strip(), value.strip()) if equals else ("", word.strip())
