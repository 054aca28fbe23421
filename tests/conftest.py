"""How hard Hypothesis tries: `pytest --hypothesis-profile=full` is the long run."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

SLOW = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}

settings.register_profile("ci", max_examples=200, **SLOW)
settings.register_profile("full", max_examples=2000, **SLOW)
settings.load_profile("ci")
