"""`manifest.json`: what a result was made from, so that it can be made again.

Everything outside the `wall` section depends on the inputs and the computer's software alone.
"""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from simfs.results.model import ScenarioResult
from simfs.results.store import engine_version
from simfs.scenario.reading.files import digests

PACKAGES = ("simfs", "numpy", "scipy", "pydantic", "pyarrow", "matplotlib")
"""Packages whose version can change a result or a figure."""


def manifest(
    result: ScenarioResult,
    *,
    scenario: str,
    seed: int,
    command: Sequence[str] = (),
    resolved: Mapping[str, Any] | None = None,
    engine: str = "native",
) -> dict[str, Any]:
    """Return the manifest of `result` as JSON-ready data.

    `scenario` is the text of the scenario file, `resolved` the scenario after profiles and overrides,
    `seed` the one all streams derive from, `command` the command line, `engine` the machine that ran it.
    """
    return {
        "simfs": 1,
        "name": result.name,
        "scenario": {"sha256": sha256(scenario), "text": scenario, "resolved": resolved},
        "command": list(command),
        "seeds": {"seed": seed, "replications": {p.id: list(range(p.replications)) for p in result.points}},
        "fitted": [{**fit.model_dump(mode="json"), "sentence": fit.sentence} for fit in result.fits],
        "findings": [f.model_dump(mode="json") for f in result.findings],
        "events": sum(p.events for p in result.points),
        **software(engine),
        "wall": {"finished": datetime.now(UTC).isoformat(timespec="seconds"), **result.wall.model_dump()},
    }


def software(engine: str = "native") -> dict[str, Any]:
    """The machine that ran, versions and files of everything that can change a result, the platform; for JSON."""
    return {
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
        "engine": {"name": engine, "version": _engine_version()},
        "read": digests(),
        "platform": {"system": platform.system(), "machine": platform.machine(), "byte_order": sys.byteorder},
    }


def sha256(text: str) -> str:
    """Hexadecimal SHA-256 of a text in UTF-8."""
    return hashlib.sha256(text.encode()).hexdigest()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _engine_version() -> str | None:
    return engine_version() if "simfs._engine" in sys.modules else None
