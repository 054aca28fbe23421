"""What the engine is asked: the RunSpec of a point as JSON text, always the same text for the same run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_OPEN = ("batches", "replication", "seed", "warmup_ns")
"""What differs between runs of one point; all else is long, and written once."""


class Request:
    """The runs of one point, each as canonical text: what a store of results may take as its name."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        """Take the RunSpec of any replication of the point."""
        self._head = {key: value for key, value in spec.items() if key in _OPEN}
        self._rest = _canonical({key: value for key, value in spec.items() if key not in _OPEN})

    def text(self, **changes: float) -> str:
        """The RunSpec with `changes` to replication, warm-up, batches or seed; times in nanoseconds."""
        if unknown := set(changes) - set(_OPEN):
            raise TypeError(f"not open in a request: {', '.join(sorted(unknown))}")
        return f"{_canonical(self._head | changes)[:-1]},{self._rest[1:]}"


def _canonical(data: Mapping[str, Any]) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"))
