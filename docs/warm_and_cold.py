"""Write what warmth of caches does to `compile-24` on docs/machine/warmth.md, between the marks.

    python docs/warm_and_cold.py            # some 10 s of CPU
    python docs/warm_and_cold.py --check    # fails where a number on the page is no longer near

24 tasks compile with what was fitted on ext4 (`simfs/lessons/fits.json`), the same on warm caches. Times under the AGI
of creates and unlinks are medians of a trace. The worker of inodegc mostly sleeps or waits for a CPU with the AGI, so
of it the mean time is taken for which it runs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

from simfs import _engine
from simfs.machine import Event
from simfs.scenario import expand, load, to_run_spec

PAGE = Path(__file__).parent / "machine/warmth.md"
FITS = Path(__file__).parents[1] / "simfs/lessons/fits.json"
MARKS = "<!-- written by docs/warm_and_cold.py -->\n", "<!-- end -->"
CASES = {"as computed": (), "always warm": ("machine.caches.code_lines=0",)}
REPLICATIONS = 2
WINDOW = {"warmup_ns": 2e8, "duration_ns": 4e9}
"""The tasks go in step: in a second each compiles 50 or 51 times."""

TRACED = {"warmup_ns": 0.0, "duration_ns": 3e8}
TRACED_FROM = 200_000_000_000
"""Picoseconds."""

NEAR = 0.15
"""How far a number may be from the page's: runs on XFS go one of two ways."""

Row = tuple[str, Mapping[str, float]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Rewrite or check the page; the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing, fail where the page is stale")
    parser.add_argument("--page", type=Path, default=PAGE, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    text = options.page.read_text("utf-8")
    before, _, rest = text.partition(MARKS[0])
    written, _, after = rest.partition(MARKS[1])
    found = list(rows())
    if options.check:
        far = list(differences(written, found))
        print("\n".join([*far, "run `python docs/warm_and_cold.py`"] if far else ["still so"]))
        return int(bool(far))
    options.page.write_text(before + MARKS[0] + table(found) + MARKS[1] + after, "utf-8")
    return 0


def rows() -> Iterator[Row]:
    """What the table says: a name, and a number for each case."""
    measured = {case: {**rates(*settings), **holds(*settings)} for case, settings in CASES.items()}
    for name in next(iter(measured.values())):
        yield name, {case: found[name] for case, found in measured.items()}


def table(found: Sequence[Row]) -> str:
    """The rows as the page has them."""
    lines = [f"| 24 tasks | {' | '.join(CASES)} |", "| --- |" + " ---: |" * len(CASES)]
    lines += [f"| {name} | {' | '.join(shown(values[case]) for case in CASES)} |" for name, values in found]
    return "\n".join([*lines, ""])


def shown(value: float) -> str:
    """A number as the page has it."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def differences(written: str, found: Sequence[Row]) -> Iterator[str]:
    """What of the table is not on the page, or not near enough."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in written.splitlines()[2:]]
    on_page = {name: [float(cell.replace(",", "")) for cell in rest] for name, *rest in cells}
    for name, values in found:
        new, old = [values[case] for case in CASES], on_page.get(name, [])
        near = len(old) == len(new) and all(
            abs(a - b) <= NEAR * b + 0.05 for a, b in zip(old, new, strict=True)
        )
        if not near:
            yield f"{name}: {', '.join(map(shown, new))}, on the page {', '.join(map(shown, old)) or 'nothing'}"


def spec(variant: str, *settings: str) -> dict[str, Any]:
    """The RunSpec of a variant with 24 tasks."""
    fit = json.loads(FITS.read_text("utf-8"))["seed-xfs-compile-2024"]
    given = [f"{key}={value}" for key, value in fit.items()]
    points = expand(load("compile-24", ["sweep.workload.tasks=[24]", *given, *settings]))
    return to_run_spec(next(point for point in points if point.variant == variant), 0)


def rates(*settings: str) -> dict[str, float]:
    """Compiles, idle time, and how long the worker of inodegc runs with the AGI."""
    runs = {
        variant: [
            json.loads(_engine.run(json.dumps(spec(variant, *settings) | WINDOW | {"replication": number})))
            for number in range(count)
        ]
        for variant, count in (("ext4", 1), ("xfs", REPLICATIONS))
    }
    speed = {
        variant: fmean(each["operations"] / each["window_ns"] * 1e9 for each in runs[variant])
        for variant in runs
    }
    agis = [lock for run in runs["xfs"] for lock in run["locks"] if lock["name"] == "xfs.AGI"]
    workers = [kind for agi in agis for kind in agi["kinds"] if kind["kind"] == "bound"]
    ran = sum(kind["running_ns"] for agi in agis for kind in agi["kinds"])
    cpu = [run["cpu_ns"] for run in runs["xfs"]]
    return {
        "compiles a second, ext4": speed["ext4"],
        "compiles a second, XFS": speed["xfs"],
        "CPUs idle, XFS (%)": 100 * fmean(each["idle"] / sum(each.values()) for each in cpu),
        "AGI held by who runs (% of the time)": 100 * ran / sum(run["window_ns"] for run in runs["xfs"]),
        "inodegc runs with the AGI (us)": sum(each["running_ns"] for each in workers)
        / sum(each["acquired"] for each in workers)
        / 1e3,
    }


def holds(*settings: str) -> dict[str, float]:
    """How long creates and unlinks have the AGI, of a trace."""
    events = _engine.watch(json.dumps(spec("xfs", *settings) | TRACED), start=TRACED_FROM)[2]
    found: dict[str, list[float]] = {"create": [], "unlink": []}
    for call, held in agi_holds(events):
        found[call].append(held)
    return {f"{call} holds the AGI (us)": median(times) for call, times in found.items()}


def agi_holds(events: Sequence[Event]) -> Iterator[tuple[str, float]]:
    """Calls and microseconds. Who has a directory calls; a create looks into trees of inodes, an unlink does not."""
    in_directory: set[int] = set()
    begun: dict[int, tuple[int, str]] = {}
    for time, task, _, what, about in events:
        if task is None or what not in ("acquire", "release"):
            continue
        lock = about.partition("#")[0]
        if lock == "vfs.i_rwsem (directory)":
            (in_directory.add if what == "acquire" else in_directory.discard)(task)
        elif lock in ("xfs.inobt", "xfs.finobt") and task in begun:
            begun[task] = begun[task][0], "create"
        elif lock == "xfs.AGI" and what == "acquire" and task in in_directory:
            begun[task] = time, "unlink"
        elif lock == "xfs.AGI" and what == "release" and task in begun:
            since, call = begun.pop(task)
            yield call, (time - since) / 1e6


if __name__ == "__main__":
    sys.exit(main())
