"""Make the data sets `scenarios/measured/emulated-*.yaml` from consoles: `python -m laboratory.dataset --help`."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from laboratory.held import Measure, of_trace
from laboratory.plan import KERNELS, TRACED
from laboratory.results import Console, Result, read_console

EMULATOR = "QEMU 10.0.13+ds (Debian 13's source package) with parallel-time.patch"
Place = tuple[str, dict[str, float | str]]
"""A series, and the values of a scenario that it stands for, `variant` among them if it is not the series' name."""


@dataclass(frozen=True)
class Form:
    """What a data set is made of: consoles by the start of their names, and the place of each row, or none."""

    name: str
    title: str
    operation: str
    prefix: str
    place: Callable[[str, Result], Place | None]
    x: tuple[str, str] = ("tasks", "workload.tasks")
    """What a RESULT line calls it, and the key of a scenario."""
    notes: tuple[str, ...] = ()
    cpus: int = 24
    device: str = "loop on tmpfs"
    rates_only: bool = False
    """Windows are too short to count idle ticks and switches."""


def filesystem_of(result: Result) -> str:
    """Return the variant's name: filesystem, groups, and whose directories."""
    number = result.numbers
    groups = "-49" if number["agcount"] == 49 else ""
    return f"{result.words['filesystem']}{groups}-{'per-task' if number['own'] else 'shared'}"


def _of_kind(kind: str) -> Callable[[str, Result], Place | None]:
    return lambda _guest, result: (filesystem_of(result), {}) if result.words["kind"] == kind else None


def _metadata(_guest: str, result: Result) -> Place | None:
    filesystem, _, whose = filesystem_of(result).partition("-")
    return f"{filesystem}-{result.words['kind'].replace('_', '-')}-{whose}", {}


def _rounds(guest: str, result: Result) -> Place | None:
    return _metadata(guest, result) if guest == "rounds-100" else None


def _operation(_guest: str, result: Result) -> Place | None:
    filesystem, (whose, _, loop) = result.words["filesystem"], result.words["kind"].partition(":")
    series = f"{loop}, {filesystem}" + (", one directory" if whose == "one" else "")
    directories = "shared" if whose == "one" else "per-task"
    return series, {"variant": loop, "filesystem.kind": filesystem, "workload.directories": directories}


def _compile(guest: str, result: Result) -> Place | None:
    settings = guest.removeprefix("compile-").removesuffix(TRACED)
    return f"{filesystem_of(result).removesuffix('-shared')}-{settings}", {}


def _chain(guest: str, result: Result) -> Place | None:
    if result.words["kind"] != "chain":
        return None
    tasks = result["tasks"]
    return f"{guest.removeprefix('scheduler-')}, {tasks:g} tasks", {
        "workload.tasks": tasks,
        "workload.params.tasks": tasks,
    }


def _forks(guest: str, result: Result) -> Place | None:
    if result.words["kind"] != "forks":
        return None
    load, work = result["percent"] * CPUS / 100, result["us"]
    pause = round(1000 * work * (result["tasks"] / load - 1))
    return f"{guest.removeprefix('scheduler-')}, {result['percent']:g} %", {"workload.params.pause": pause}


def _dbench(guest: str, result: Result) -> Place | None:
    return result.words["filesystem"] + guest.removeprefix("dbench"), {}


def _sync(guest: str, result: Result) -> Place | None:
    if guest.endswith(TRACED):
        return None
    device, filesystem = guest.split("-")[1:3]
    return f"{filesystem}-{result.words['kind'].replace('_', '-')}-{device}", {}


def _rwsem(guest: str, result: Result) -> Place | None:
    filesystem, (_, _, readers) = result.words["filesystem"], result.words["kind"].partition(":")
    filesystem += "-6.1" if guest.endswith("-6.1") else ""
    if not readers:
        return filesystem, {}
    return f"{filesystem}-readers-{readers}", {}


CPUS = 24
_TICKS = (
    "Idle time of a window of 100 ms is counted in ticks of 10 ms of all 24 CPUs: steps of 0.4 points.",
)
_MORE = "by 1 to 24 processes on 24 emulated CPUs, Linux 6.12"
FORMS = (
    Form(
        "emulated-create", f"Creating files {_MORE}", "operations", "files-", _of_kind("create"), notes=_TICKS
    ),
    Form(
        "emulated-create-unlink",
        f"Creating and unlinking files {_MORE}",
        "operations",
        "files-",
        _of_kind("create_unlink"),
        notes=_TICKS,
    ),
    Form(
        "emulated-tmpfile",
        f"Creating, writing and unlinking files {_MORE}",
        "operations",
        "files-",
        _of_kind("tmpfile"),
        notes=_TICKS,
    ),
    Form(
        "emulated-metadata",
        f"Renames, directories, stat and fsync {_MORE}",
        "operations",
        "metadata-",
        _metadata,
        notes=_TICKS,
    ),
    Form(
        "emulated-rounds",
        "Short locks and convoys on 24 emulated CPUs that take turns of 100 ns, Linux 6.12",
        "operations",
        "rounds-",
        _rounds,
        notes=(
            "Turns of the emulator's CPUs are of 100 ns; in other sets they are of 1 us.",
            "Idle time of a window of 50 ms is counted in ticks of 10 ms of all 24 CPUs: steps of 0.8 points.",
        ),
    ),
    Form(
        "emulated-operations",
        "Twenty-five loops of operations on files by one and two processes on 24 emulated CPUs, Linux 6.12",
        "operations",
        "operations-",
        _operation,
        notes=(
            "The loops are those of tools/file-operations, of which guest-operations is the same on a real guest.",
        ),
        rates_only=True,
    ),
    Form(
        "emulated-sync",
        f"Appends, new files and overwrites with an fsync each on a device of a known time, {_MORE}",
        "operations",
        "sync-",
        _sync,
        notes=(
            *_TICKS,
            "A series' name has what a request of the device takes; there is no write cache.",
        ),
        device="null_blk",
    ),
    Form(
        "emulated-flush",
        f"Appends, new files and overwrites with an fsync each on a device with a cache to flush, {_MORE}",
        "operations",
        "flush-",
        _sync,
        notes=(
            "A series' name has what a flush takes: 12 ticks, as SYNCHRONIZE CACHE of scsi_debug (F_SYNC_DELAY); "
            "other requests take 20 us.",
        ),
        device="scsi_debug, one queue, 32 commands",
        rates_only=True,
    ),
    Form(
        "emulated-compile",
        "24 compile-like processes in one directory on 24 emulated CPUs, by scheduler settings",
        "compiles",
        "compile-",
        _compile,
        notes=(
            "A loop is a compile-like program (guest/compile.c): 10.5 million user instructions, 720 page faults, "
            "three processes, calls as of gcc. It is not gcc.",
        ),
    ),
    Form(
        "emulated-chain",
        "Tokens that go round a ring of tasks on 24 emulated CPUs",
        "operations",
        "scheduler-",
        _chain,
        ("tokens", "workload.params.tokens"),
        ("Who has a token computes for 20 us and passes it on by a futex.",),
    ),
    Form(
        "emulated-forks",
        "Forks and execs at 60 to 110 % load of 24 emulated CPUs",
        "operations",
        "scheduler-",
        _forks,
        notes=(
            "A task forks and execs a process that computes for 2 ms, waits for it, and sleeps so long that all tasks "
            "would keep that share of the CPUs busy.",
        ),
    ),
    Form(
        "emulated-rwsem",
        f"Reads and writes of one file {_MORE} and 6.1",
        "operations",
        "rwsem-",
        _rwsem,
        notes=(
            "Turns of the emulator's CPUs are of 50 to 150 ns, drawn: the load comes into step with equal ones.",
            "Latencies are those of all calls that began and ended in the window: tasks by calls a second, less the "
            "loop's own code.",
            "Idle time of a window of 200 ms is counted in units of 10 ms of all 24 CPUs: steps of 0.2 points.",
        ),
    ),
    Form(
        "emulated-dbench",
        "dbench by eight clients on eight emulated CPUs, Linux 6.12",
        "operations",
        "dbench",
        _dbench,
        notes=(
            "Debian's dbench 4.0 for a second, with the first 100,000 calls of its load file; rate: all calls.",
            "Switches are counted from before the clients are forked until they have cleaned up.",
        ),
        cpus=8,
    ),
)


def measures(form: Form, console: Console, result: Result) -> Iterator[Measure]:
    """Yield what a RESULT line gives, or the trace of its window: there, tracing has taken time from the rest."""
    number = result.numbers
    if console.guest.endswith(TRACED) and console.trace:
        yield from of_trace(console.trace)
        return
    yield f"{form.operation}_per_s", "1/s", f"{number['rate']:.5g}"
    if form.rates_only:
        return
    if "idle" in number:
        yield "idle_percent", '"%"', f"{number['idle']:.4g}"
    yield "context_switches_per_operation", '"1"', f"{number['switches']:.4g}"
    yield from _by_side(number)
    if "flush_us" in number:
        yield "flush_avg_latency_us", "us", f"{number['flush_us']:.5g}"
    if "p50_us" in number:  # the line has the time beyond the process's own work
        for statistic in ("p50", "p99"):
            yield f"fork_{statistic}_latency_us", "us", f"{number[f'{statistic}_us'] + number['us']:.5g}"


def _by_side(number: dict[str, float]) -> Iterator[Measure]:
    """How long a read and a write take, where some tasks only read and all others only write."""
    if "reads" not in number:
        return
    readers, reads = number["readers"], number["reads"]
    for side, tasks, rate in (
        ("read", readers, reads),
        ("write", number["tasks"] - readers, number["rate"] - reads),
    ):
        if tasks and rate > 0:
            yield f"{side}_avg_latency_us", "us", f"{1e6 * tasks / rate - LOOP_US:.5g}"


LOOP_US = 0.046
"""Instructions of guest/readers.c and of the C library's pread from one call to the next."""


def rows(form: Form, consoles: Iterable[Console]) -> Iterator[tuple[Place, str]]:
    """Yield the place and the text of each row, by rising x; of several seeds the median and the range."""
    found: dict[tuple[str, float, str, str], list[float]] = defaultdict(list)
    places: dict[str, Place] = {}
    for console in consoles:
        for result in console.results:
            if place := form.place(console.guest, result):
                places[place[0]] = place
                for metric, unit, value in measures(form, console, result):
                    found[place[0], result[form.x[0]], metric, unit].append(float(value))
    for (series, x, metric, unit), values in sorted(found.items(), key=lambda row: row[0][1]):
        role = "predict" if x > 1 else "calibrate" if metric.endswith("s_per_s") else "info"
        yield (
            places[series],
            f'{{series: "{series}", x: {x:g}, metric: {metric}, unit: {unit}, {_amount(values)}, role: {role}}}',
        )


def _amount(values: list[float]) -> str:
    value = f"value: {median(values):g}"
    return value if len(values) == 1 else f"{value}, low: {min(values):g}, high: {max(values):g}"


def document(form: Form, consoles: list[Console], date: str, seeds: str) -> str:
    """Return the data set as YAML."""
    found = sorted(rows(form, consoles), key=lambda row: row[0][0])
    kernels = sorted({console.info["kernel"] for console in consoles})
    packages = ", ".join(name for name in KERNELS.values() if any(k in name for k in kernels))
    load = form.prefix.removesuffix("-")
    lines = [
        f"# Made by laboratory/dataset.py from consoles of `just emulate {load} --seed {seeds}`: docs/laboratory.md",
        f"name: {form.name}",
        f"title: {form.title}",
        "evidence: emulated",
        "source:",
        "  author: the simfs project",
        f'  date: "{date}"',
        f"  where: own measurement in emulation, {EMULATOR}",
        f"  read_from: consoles of python tools/emulated-kernel/emulate.py {load} --seed {seeds}",
        f"machine: {form.cpus} emulated CPUs, one instruction a nanosecond, free caches and line transfers; "
        f"{form.device}",
        f'kernel: "Debian {packages}; HZ=250, preempt=voluntary"',
        f"x: {form.x[1]}",
        "series:",
    ]
    for series, values in dict(place for place, _ in found).items():
        lines.append(f'  "{series}": {{{_stands_for(values)}}}')
    lines += ["rows:", *(f"  - {text}" for _, text in found)]
    cut = [f"{c.guest} was ended after {len(c.results)} rows." for c in consoles if not c.complete]
    if form.notes or cut:
        lines += ["notes:", *(f'  - "{note}"' for note in (*form.notes, *cut))]
    return "\n".join([*lines, ""])


def _stands_for(values: dict[str, float | str]) -> str:
    shown = ", ".join(
        f"{key}: {value if isinstance(value, str) else f'{value:g}'}"
        for key, value in values.items()
        if key != "variant"
    )
    parts = [f"variant: {values['variant']}"] if "variant" in values else []
    return ", ".join([*parts, *([f"values: {{{shown}}}"] if shown else [])])


def main() -> None:
    """Write the data sets of a folder of consoles."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("consoles", type=Path, nargs="+", help="folders with the logs of a seed each")
    parser.add_argument("into", type=Path, help="scenarios/measured")
    parser.add_argument("--date", required=True, help="when they were run")
    parser.add_argument("--seed", default="1", help="those seeds")
    parser.add_argument("--partial", action="store_true", help="take rows of consoles that were cut off, too")
    options = parser.parse_args()
    for form in FORMS:
        logs = [path for folder in options.consoles for path in sorted(folder.glob(f"{form.prefix}*.log"))]
        consoles = [read_console(path) for path in logs]
        used = [c for c in consoles if c.results and (c.complete or options.partial)]
        if any(form.place(c.guest, result) for c in used for result in c.results):
            text = document(form, used, options.date, options.seed)
            (options.into / f"{form.name}.yaml").write_text(text)


if __name__ == "__main__":
    main()
