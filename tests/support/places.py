"""Where the project, its tests and what they read are."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
DATA = TESTS / "data"
SAMPLES = TESTS / "samples"
