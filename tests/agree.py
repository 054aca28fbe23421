"""Compares the two machines on drawn scenarios: `python -m tests.agree --scenarios 2000`.

A seed draws the same scenarios again; other seeds draw others, so that a long run can be cut into pieces. The exit code
is 1 where the machines differ; the scenario is printed, made as simple as it gets with `--shrink`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "support"))

from generated.independent import INDEPENDENT
from generated.programs import GeneratedProgram, programs
from generated.scenarios import Drawn, file_scenarios, lock_scenarios
from machines import ALL, assert_same, short

EVENTS = 4000
"""Most events of a drawn scenario, about, where nothing else is asked for."""

PARTS: tuple[tuple[SearchStrategy[Any], float], ...] = (
    (lock_scenarios(), 0.3),
    (programs(), 0.1),
    (file_scenarios(), 0.6),
)
"""What is drawn, and its share."""


def main(words: list[str] | None = None) -> int:
    """Compare as many as are asked for; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.agree", description="Compares the two machines.")
    parser.add_argument("--scenarios", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--events", type=int, default=EVENTS, help="most events of a scenario, about")
    parser.add_argument("--shrink", action="store_true", help="make what differs as simple as it gets")
    asked = parser.parse_args(words)
    os.environ["SIMFS_CHECK"] = "1"  # structures are looked at, too
    seen, began = Counter[str](), time.monotonic()
    wrong = [
        difference
        for strategy, part in PARTS
        if (difference := compare(strategy, round(part * asked.scenarios), asked, seen))
    ]
    print(f"{seen['scenarios']} scenarios, {seen['events']} events, {time.monotonic() - began:.0f} s")
    for what, count in sorted(seen.items()):
        print(f"  {count:8} {what}")
    print("\n".join(wrong) or "all equal")
    return 1 if wrong else 0


def compare(strategy: SearchStrategy[Any], number: int, asked: argparse.Namespace, seen: Counter[str]) -> str:
    """Compare on so many; what differs first, if anything does."""
    independent = settings(
        max_examples=number,
        phases=[Phase.generate, *([Phase.shrink] if asked.shrink else [])],
        backend=INDEPENDENT,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )

    @hypothesis.seed(asked.seed)
    @independent
    @given(strategy)
    def each(drawn: Drawn | GeneratedProgram) -> None:
        events = same(drawn, asked.events)
        seen.update(traits(drawn))
        seen.update({"scenarios": 1, "events": events, "with fewer than 100 events": int(events < 100)})

    try:
        each()
    except Exception as error:
        notes: list[str] = getattr(error, "__notes__", [])
        return "\n".join([f"{type(error).__name__}: {error}", *notes])
    return ""


def same(drawn: Drawn | GeneratedProgram, most: float = EVENTS) -> int:
    """Compare on one, in about so many events at most. How many it had; AssertionError at what differs first."""
    if isinstance(drawn, Drawn):
        return assert_same(short(drawn.spec(), most), most=ALL)
    return assert_same(drawn.spec, drawn.worker, drawn.setup, most=ALL)


def traits(drawn: Drawn | GeneratedProgram) -> Iterator[str]:
    """What was drawn, for a table."""
    spec = drawn.spec() if isinstance(drawn, Drawn) else drawn.spec
    kernel, workload = spec["kernel"], spec["workload"]
    yield f"workload {workload['kind']}"
    yield f"kernel {kernel['name'].rpartition('.')[0] or kernel['name']}.x"
    yield f"groups {kernel['rules']['sched.groups']}"
    yield f"filesystem {spec['filesystem']['kind']}"
    if spec.get("device"):
        yield f"device served by {spec['device']['served_by']}"
    if kernel.get("kernel_threads"):
        yield "with kernel threads"
    if workload["kind"] == "lock_cycle":
        yield f"lock {kernel['locks']['lock']}"


if __name__ == "__main__":
    sys.exit(main())
