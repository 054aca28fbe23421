"""What was fitted for each data set, so that a notebook runs its scenario without another fit."""

from __future__ import annotations

import json
from pathlib import Path

from simfs.scenario import load

FITS = Path(__file__).with_name("fits.json")
"""By data set and key, written by docs/predictions.py after `simfs validate`."""


def fitted(scenario: str) -> tuple[str, ...]:
    """Settings `KEY=VALUE` with what `simfs validate` fitted for a scenario; none where nothing is fitted."""
    measured = load(scenario).measured
    fits = json.loads(FITS.read_text("utf-8")).get(measured.dataset if measured else None, {})
    return tuple(f"{key}={value}" for key, value in fits.items())
