"""Make the data sets `scenarios/measured/emulated-*.yaml` from consoles: `python -m laboratory.dataset --help`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from laboratory.plan import KERNELS
from laboratory.results import Console, Result, read_console

EMULATOR = "QEMU 10.0.13+ds (Debian 13's source package) with parallel-time.patch"
METRICS = {"rate": ("{operation}_per_s", "1/s", 5), "idle": ("idle_percent", "%", 4),
           "switches": ("context_switches_per_operation", "1", 4)}  # fmt: skip
"""What a RESULT line calls it, the metric, its unit, digits that are kept."""


@dataclass(frozen=True)
class Form:
    """What a data set is made of: which rows, and which variant and values of a scenario a row is."""

    name: str
    title: str
    operation: str
    prefix: str
    series: Callable[[str, Result], tuple[str, str, dict[str, str]] | None]
    notes: tuple[str, ...] = ()


def filesystem_of(result: Result) -> str:
    """Return the variant's name: filesystem, groups, and whose directories."""
    number = result.numbers
    groups = "-49" if number["agcount"] == 49 else ""
    return f"{result.words['filesystem']}{groups}-{'per-task' if number['own'] else 'shared'}"


def _files(_guest: str, result: Result) -> tuple[str, str, dict[str, str]]:
    variant, kind = filesystem_of(result), result.words["kind"]
    return f"{kind}, {variant}", variant, {"workload.kind": kind}


def _compile(guest: str, result: Result) -> tuple[str, str, dict[str, str]]:
    filesystem = filesystem_of(result).removesuffix("-shared")
    kernel = guest.removeprefix("compile-")
    return f"{filesystem}, {kernel}", f"{filesystem}-{kernel}", {}


FORMS = (
    Form(
        "emulated-files",
        "Creating, unlinking and writing small files by 1 to 24 processes on 24 emulated CPUs, Linux 6.12",
        "operations",
        "files-",
        _files,
    ),
    Form(
        "emulated-compile",
        "24 compile-like processes in one directory on 24 emulated CPUs, by scheduler settings",
        "compiles",
        "compile-",
        _compile,
        (
            "A loop is a compile-like program (guest/compile.c): 10.5 million user instructions, 720 page faults, "
            "three processes, calls as of gcc. It is not gcc.",
        ),
    ),
)


def rows(form: Form, consoles: Iterable[Console]) -> Iterator[tuple[str, str, dict[str, str], str]]:
    """Yield series, variant, values and text of each row."""
    for console in consoles:
        for result in console.results:
            place = form.series(console.guest, result)
            if place is None:
                continue
            for name, (metric, unit, digits) in METRICS.items():
                if name in result.numbers:
                    yield (
                        *place,
                        _row(place[0], result, metric.format(operation=form.operation), unit, name, digits),
                    )


def _row(series: str, result: Result, metric: str, unit: str, name: str, digits: int) -> str:
    tasks = int(result["tasks"])
    role = "predict" if tasks > 1 else "calibrate" if name == "rate" else "info"
    value = float(f"{result[name]:.{digits}g}")
    unit = f'"{unit}"' if unit in ("%", "1") else unit
    return (
        f'{{series: "{series}", x: {tasks}, metric: {metric}, unit: {unit}, value: {value:g}, role: {role}}}'
    )


def document(form: Form, consoles: list[Console], date: str, seed: int) -> str:
    """Return the data set as YAML."""
    found = list(rows(form, consoles))
    kernels = sorted({console.info["kernel"] for console in consoles})
    packages = ", ".join(name for name in KERNELS.values() if any(k in name for k in kernels))
    load = form.prefix.removesuffix("-")
    lines = [
        f"# Made by laboratory/dataset.py from consoles of `just emulate {load} --seed {seed}`: docs/laboratory.md",
        f"name: {form.name}",
        f"title: {form.title}",
        "evidence: emulated",
        "source:",
        "  author: the simfs project",
        f'  date: "{date}"',
        f"  where: own measurement in emulation, {EMULATOR}",
        f"  read_from: consoles of python tools/emulated-kernel/emulate.py {load} --seed {seed}",
        "machine: 24 emulated CPUs, one instruction a nanosecond, free caches and line transfers; loop on tmpfs",
        f'kernel: "Debian {packages}; HZ=250, preempt=voluntary"',
        "x: workload.tasks",
        "series:",
    ]
    for series, (variant, values) in {s: (v, w) for s, v, w, _ in found}.items():
        shown = ", ".join(f"{key}: {value}" for key, value in values.items())
        lines.append(f'  "{series}": {{variant: {variant}{f", values: {{{shown}}}" if shown else ""}}}')
    lines += ["rows:", *(f"  - {text}" for *_, text in sorted(found, key=lambda row: row[0]))]
    if form.notes:
        lines += ["notes:", *(f"  - {note}" for note in form.notes)]
    return "\n".join([*lines, ""])


def main() -> None:
    """Write the data sets of a folder of consoles."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("consoles", type=Path, help="folder with the logs of one seed")
    parser.add_argument("into", type=Path, help="scenarios/measured")
    parser.add_argument("--date", required=True, help="when they were run")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for form in FORMS:
        consoles = [read_console(path) for path in sorted(options.consoles.glob(f"{form.prefix}*.log"))]
        whole = [console for console in consoles if console.complete]
        if whole:
            text = document(form, whole, options.date, options.seed)
            (options.into / f"{form.name}.yaml").write_text(text)


if __name__ == "__main__":
    main()
