"""Quantities with units: read exactly, written back unchanged, refused without a unit."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simfs.scenario.sections.units import (
    duration,
    format_duration,
    format_percentage,
    format_size,
    percentage,
    size,
)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("15 us", 15_000),
        ("15us", 15_000),
        ("15 µs", 15_000),
        ("15 μs", 15_000),
        ("2.4ms", 2_400_000),
        ("3 s", 3e9),
        ("1 min", 60e9),
        ("1 h", 3600e9),
        ("0.5 ns", 0.5),
        ("500 ps", 0.5),
        ("1e3 ns", 1000),
        (".5 us", 500),
        ("+2 us", 2000),
        (" 2 us ", 2000),
        ("15.3 us", 15_300),
        (0, 0),
    ],
)
def test_durations(text: object, ns: float) -> None:
    assert duration(text) == ns


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("8 GiB", 8 << 30),
        ("4KiB", 4096),
        ("1 MB", 10**6),
        ("512 B", 512),
        ("0.5 KiB", 512),
        ("2 TiB", 2 << 40),
    ],
)
def test_sizes(text: str, count: int) -> None:
    assert size(text) == count


def test_percentages() -> None:
    assert percentage("5 %") == 0.05
    assert percentage("99.9%") == 0.999


@pytest.mark.parametrize(
    "value", [15, 1.5, -3, True, None, [], {}, "15", "us", "", "1 2 us", "1.2.3 us", "0x10 us"]
)
def test_what_is_no_duration(value: object) -> None:
    with pytest.raises(ValueError, match=r"duration|unit"):
        duration(value)


@pytest.mark.parametrize(
    ("unit", "meant"), [("usec", "us"), ("US", "us"), ("mss", "ms"), ("mins", "min"), ("Ms", "ms")]
)
def test_a_wrong_unit_is_told_with_the_nearest(unit: str, meant: str) -> None:
    with pytest.raises(ValueError, match="unknown unit") as refused:
        duration(f"3 {unit}")
    assert refused.value.context["suggestion"] == meant  # type: ignore[attr-defined]


@given(st.floats(min_value=1e-3, max_value=1e15))
def test_a_duration_is_written_as_it_is_read(ns: float) -> None:
    rounded = duration(f"{ns!r} ns")
    assert duration(format_duration(rounded)) == rounded
    assert rounded == pytest.approx(ns, rel=1e-11)


@given(st.integers(min_value=1, max_value=2**39))
def test_a_size_is_written_as_it_is_read(count: int) -> None:
    assert size(format_size(count)) == count


@given(st.integers(min_value=1, max_value=1000))
def test_a_percentage_is_written_as_it_is_read(thousandths: int) -> None:
    fraction = percentage(f"{thousandths / 10} %")
    assert percentage(format_percentage(fraction)) == fraction


@pytest.mark.slow
@given(st.text(max_size=200))
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    with suppress(ValueError):
        assert duration(text) == duration(text)
