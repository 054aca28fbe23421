"""Tasks that do one operation, each on a CPU of its own: their spec, and what locks they take."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine import Spec
from simfs.results.run_result import RunResult
from simfs.scenario import expand, load, to_run_spec

CREATE_UNLINK: dict[str, Any] = {
    "operations": [{"op": "create"}, {"op": "unlink", "on": "made"}],
    "order": "in-turn",
    "files": 0,
}


def spec(
    path: Path,
    op: str = "open",
    tasks: int = 1,
    *,
    kernel: str = "linux-6.12",
    filesystem: str = "tmpfs",
    rules: Mapping[str, Any] | None = None,
    **workload: Any,  # noqa: ANN401
) -> Spec:
    """Tasks on CPUs of their own that do one operation on files of their own."""
    given = {"kind": "mix", "tasks": tasks, "binding": "compact", "operations": [{"op": op}]} | workload
    named = {"profile": kernel, "rules": dict(rules or {})}
    scenario = path / "threads.yaml"
    scenario.write_text(
        f"simfs: 1\nname: m\ntitle: m\nmachine: server-24\nkernel: {json.dumps(named)}\n"
        f"filesystem: {{kind: {filesystem}}}\nworkload: {json.dumps(given)}\n"
    )
    (point,) = expand(load(scenario))
    return to_run_spec(point, 0) | {"warmup_ns": 1e6, "duration_ns": 2e6}


def holds(result: RunResult, name: str = "vfs.file_lock") -> float:
    """Holds of a class of locks, by operation."""
    return sum(lock.acquired for lock in result.locks if lock.name == name) / result.operations
