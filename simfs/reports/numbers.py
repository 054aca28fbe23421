"""Numbers and lines as people read them."""

from __future__ import annotations

import math
import re

from simfs.results.statistics import Estimate

NOTHING = "-"
"""What stands where there is no number."""


TOGETHER = "\u00a0"
"""A space at which no line ends."""

LARGE, SMALL = "kMGT", "mµn"
"""Prefixes of the SI, each for a thousand times and a thousandth of the one before."""

ROUNDING = 1e-12
"""Part of a mean by which equal observations may differ."""


def plain(value: float | None) -> str:
    """Three significant digits, more where they are whole: `1,499`, `27.3`, `0.00412`."""
    if value is None:
        return NOTHING
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 else f"{value:.2e}"


def with_prefix(value: float) -> str:
    """Three significant digits and a prefix of the SI, for where there is little room: `1.63M`, `128k`, `4.12m`."""
    if value == 0 or not math.isfinite(value):
        return NOTHING if value else "0"
    rounded = float(f"{value:.2e}")
    size = math.floor(math.log10(abs(rounded)) + ROUNDING)
    group = min(max(size // 3, -len(SMALL)), len(LARGE))
    prefix = LARGE[group - 1] if group > 0 else SMALL[-group - 1] if group < 0 else ""
    decimals = min(max(2 - size + 3 * group, 0), 2)
    return f"{rounded / 1000**group:.{decimals}f}{prefix}"


def plus_minus(estimate: Estimate | None) -> str:
    """The half-width of an interval, `± 12`; a mere dash where there is none."""
    if estimate is None or math.isinf(estimate.half_width):
        return NOTHING
    return f"± {half_width(estimate)}"


def half_width(estimate: Estimate) -> str:
    """A half-width with as many decimals as the mean beside it; what the last bits of a double make is none."""
    if estimate.half_width <= ROUNDING * abs(estimate.mean):
        return "0"
    return f"{estimate.half_width:,.0f}" if abs(estimate.mean) >= 100 else f"{estimate.half_width:.2g}"


def percent(value: float | None, signed: bool = False) -> str:
    """A percentage with one decimal, without its sign `%`."""
    if value is None:
        return NOTHING
    if round(value, 1) == 0:
        return "0.0"
    return f"{value:+.1f}" if signed else f"{value:.1f}"


def duration(ns: float) -> str:
    """Nanoseconds in the unit that suits their size: `1.23 ms`."""
    for scale, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if ns >= scale * 0.9995:
            return f"{plain(ns / scale)} {unit}"
    return f"{ns:.0f} ns"


def plural(noun: str) -> str:
    """Plural of what one operation is called."""
    return noun if noun.endswith("s") else noun + "s"


def counted(number: int, noun: str) -> str:
    """So many of something: `1 point`, `2 points`."""
    return f"{number} {noun}{'s' * (number != 1)}"


def together(text: str) -> str:
    """Text that is not folded: its spaces are those at which no line ends."""
    return text.replace(" ", TOGETHER)


def folded(text: str, width: int) -> str:
    """Text in lines of at most `width` characters, broken at spaces, but not at those that hold together."""
    lines = [""]
    for word in re.split(r"[ \t\n]+", text.strip()):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)
