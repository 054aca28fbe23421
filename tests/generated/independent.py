"""Hypothesis without its habit to try variations of what it drew: five of six examples are such."""

from __future__ import annotations

from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS

INDEPENDENT = "independent"
"""A backend that draws each example anew: its own one has another name here, so it is not known to vary examples."""

AVAILABLE_PROVIDERS[INDEPENDENT] = AVAILABLE_PROVIDERS["hypothesis"]
