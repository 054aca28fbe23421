"""How hard Hypothesis tries: `pytest --hypothesis-profile=full` is the long run."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

SLOW = [HealthCheck.too_slow]

settings.register_profile("ci", max_examples=200, deadline=None, suppress_health_check=SLOW)
settings.register_profile("full", max_examples=2000, deadline=None, suppress_health_check=SLOW)
settings.load_profile("ci")
