"""How hard Hypothesis tries: `pytest --hypothesis-profile=full` is the long run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

SLOW = [HealthCheck.too_slow]

settings.register_profile("ci", max_examples=200, deadline=None, suppress_health_check=SLOW)
settings.register_profile("full", max_examples=2000, deadline=None, suppress_health_check=SLOW)
settings.load_profile("ci")


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Runs that `simfs validate` keeps go to a place of the tests."""
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        yield cache
