"""Settings `KEY=VALUE`, as of `--set`."""

from __future__ import annotations

from collections.abc import Iterable


def keys_of(settings: Iterable[str]) -> set[str]:
    """Return the keys that settings set: what is given by hand is not fitted."""
    return {setting.partition("=")[0].strip() for setting in settings}
