"""Put faults into a copy of simfs and see which of them no test notices.

The faults stand in `tests/faults`: a text of the source and what to put in its place. They all go into one engine
and one copy of the package, each behind a switch, so that there is one build; the source itself stays as it is. For
each fault the test that noticed it last time (`tests/faults/seen_by.json`) runs first, then those of its part until one
fails, in a process that is forked when all modules are loaded. At the end those tests have to pass without a fault.

    python tools/mutants.py                  all, and writes anew which test sees which
    python tools/mutants.py --only btrfs     those whose name has this in it
    python tools/mutants.py --new            those that no test has noticed yet

Exit code 1 where a fault survives, or the tests of one last longer than `--limit`.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from faults import FAULTS, Fault, files_of, part_of  # noqa: E402

SEEN_BY = ROOT / "tests/faults/seen_by.json"
SEEN: dict[str, str] = json.loads(SEEN_BY.read_text("utf-8")) if SEEN_BY.exists() else {}
"""The test that noticed a fault last time, by the fault's name."""

SWITCH = "SIMFS_FAULT"
RUST = f"""//! Which fault is switched on.
static CHOSEN: std::sync::LazyLock<u32> =
    std::sync::LazyLock::new(|| std::env::var("{SWITCH}").ok().and_then(|n| n.parse().ok()).unwrap_or(0));
/// Whether it is this one.
pub fn on(number: u32) -> bool {{
    *CHOSEN == number
}}
"""
PYTHON = f"""import os

CHOSEN = int(os.environ.get("{SWITCH}", "0"))


def on(number):
    return CHOSEN == number
"""
QUICKLY = {"LTO": "off", "CODEGEN_UNITS": "16", "OPT_LEVEL": "2", "INCREMENTAL": "true"}
NOTHING = (4, 5)
UNDECIDED = "not decided in the time"
"""What pytest says where there is no such test."""

LIMIT_S = 1200
"""For the tests of one fault, in seconds."""


def copy_with_faults(to: Path) -> None:
    """The files that git knows, with all faults in them."""
    for folder in ("engine/src", "simfs", "tests"):  # what has moved since the last time must not stay
        shutil.rmtree(to / folder, ignore_errors=True)
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    for name in filter(None, files.stdout.split("\0")):
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        (to / name).unlink(missing_ok=True)
        shutil.copy2(ROOT / name, to / name, follow_symlinks=False)
    for number, fault in enumerate(FAULTS, start=1):
        put(fault, number, to)
    library = to / "engine/src/lib.rs"
    library.write_text(library.read_text() + "\npub mod faults;\n")
    (to / "engine/src/faults.rs").write_text(RUST)
    (to / "simfs/faults.py").write_text(PYTHON)


def put(fault: Fault, number: int, to: Path) -> None:
    """One fault behind its switch; ValueError where the text that it replaces does not stand there once."""
    path = to / fault.file
    text = path.read_text()
    if text.count(fault.old) != 1:
        raise ValueError(f"{fault.name}: its text stands {text.count(fault.old)} times in {fault.file}")
    is_rust = path.suffix == ".rs"
    switch = f"crate::faults::on({number})" if is_rust else f"faults.on({number})"
    text = text.replace(fault.old, re.sub(r"\bFAULT\b", switch, fault.new))
    if not is_rust and "from simfs import faults" not in text:
        lines = text.splitlines(keepends=True)
        lines.insert(_first_import(text), "from simfs import faults\n")
        text = "".join(lines)
    path.write_text(text)


def _first_import(text: str) -> int:
    """Lines before the first import of a Python file that is not from the future."""
    imports = (node for node in ast.parse(text).body if isinstance(node, (ast.Import, ast.ImportFrom)))
    return next(node.lineno - 1 for node in imports if getattr(node, "module", "") != "__future__")


def build(at: Path) -> None:
    """The engine of the copy, quickly: without optimisation across its parts."""
    quickly = {f"CARGO_PROFILE_RELEASE_{name}": value for name, value in QUICKLY.items()}
    command = ["cargo", "build", "--release", "--quiet", "--package", "simfs-python"]
    environment = os.environ | quickly | {"PYO3_PYTHON": sys.executable}
    subprocess.run(command, cwd=at / "engine", check=True, env=environment)
    shutil.copy2(at / "engine/target/release/libsimfs_python.so", at / "simfs/_engine.abi3.so")


def load(at: Path) -> None:
    """Import what tests need, from the copy, so that a process that is forked has it."""
    os.chdir(at)
    os.environ["PYTHONPATH"] = str(at)
    sys.path[:] = [str(at), *(each for each in sys.path if ROOT not in (Path(each), Path(each).parent))]
    for name in ("hypothesis", "scipy.stats", "matplotlib.figure", "simfs.cli", "simfs.api", "simfs.machine"):
        importlib.import_module(name)


def try_one(number: int, fault: Fault, answer: Path) -> None:
    """Write the first test that fails with a fault switched on into a file; for a process of its own."""
    begun = time.monotonic()
    os.environ[SWITCH] = str(number)
    if switch := sys.modules.get("simfs.faults"):
        vars(switch)["CHOSEN"] = number
    seen = noticed(fault)
    print(f"{number:3} {fault.name}: {seen or 'SURVIVES'} ({time.monotonic() - begun:.0f} s)", flush=True)
    answer.write_text(seen or "", "utf-8")


def noticed(fault: Fault) -> str | None:
    """The first test that fails, or None."""
    files = files_of(part_of(fault))
    known = [[SEEN[fault.name]]] if fault.name in SEEN else []
    tries = (*known, ["-m", "not slow", *files], ["-m", "slow", *files])
    return next(filter(None, map(failing, tries)), None)


class First:
    """Keeps the name of the first test that fails."""

    name: str | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Called for each test."""
        if report.failed and self.name is None:
            self.name = report.nodeid


def failing(tests: Sequence[str]) -> str | None:
    """The first of these tests that fails."""
    first = First()
    options = ["-x", "-n0", "--tb=no", "-p", "no:cacheprovider", "--hypothesis-profile=first"]
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        code = pytest.main([*options, *tests], plugins=[first])
    return first.name or (None if code in (0, *NOTHING) else f"exit code {code}")


def answers(
    chosen: Sequence[tuple[int, Fault]], jobs: int, limit: float
) -> Iterator[tuple[Fault, str | None]]:
    """What came of each fault, so many tried at a time."""
    context, waiting = multiprocessing.get_context("fork"), list(reversed(chosen))
    running: list[tuple[Fault, BaseProcess, Path, float]] = []
    with TemporaryDirectory() as folder:
        while waiting or running:
            while waiting and len(running) < jobs:
                number, fault = waiting.pop()
                answer = Path(folder) / str(number)
                process = context.Process(target=try_one, args=(number, fault, answer))
                process.start()
                running.append((fault, process, answer, time.monotonic() + limit))
            time.sleep(0.05)
            for one in [one for one in running if not one[1].is_alive() or time.monotonic() > one[3]]:
                running.remove(one)
                yield one[0], outcome(*one[:3])


def outcome(fault: Fault, process: BaseProcess, answer: Path) -> str | None:
    """What a process that has ended, or lasts too long, has found."""
    hangs = process.is_alive()
    process.kill()
    process.join()
    if answer.exists():
        return answer.read_text("utf-8") or None
    told = UNDECIDED if hangs else "crashes"
    print(f"    {fault.name}: {told}", flush=True)
    return told


def note(fault: Fault, seen: str) -> None:
    """Write down which test notices a fault."""
    SEEN[fault.name] = seen
    known = {each.name: SEEN[each.name] for each in FAULTS if each.name in SEEN}
    SEEN_BY.write_text(json.dumps(known, indent=1) + "\n", "utf-8")


def main() -> int:
    """Report each fault, and the survivors at the end."""
    parser = argparse.ArgumentParser(description="Which faults does no test notice?")
    parser.add_argument("--only", default="", help="faults whose name has this in it")
    parser.add_argument("--new", action="store_true", help="faults that no test has noticed yet")
    parser.add_argument("--at", type=Path, default=ROOT / "target/mutants", help="where the copy goes")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="faults tried at a time")
    parser.add_argument("--built", action="store_true", help="only tests have changed since the last run")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds for the tests of a fault")
    given = parser.parse_args()
    at = given.at.resolve()
    if given.built and not (at / "simfs/_engine.abi3.so").exists():
        parser.error(f"--built: nothing is built in {at}")
    if given.built:
        shutil.copytree(ROOT / "tests", at / "tests", dirs_exist_ok=True)
    else:
        copy_with_faults(at)
        build(at)
    load(at)
    chosen = [
        (n, fault)
        for n, fault in enumerate(FAULTS, start=1)
        if given.only in fault.name and not (given.new and fault.name in SEEN)
    ]
    survivors, tests = [], set()
    for fault, seen in answers(chosen, given.jobs, given.limit):
        if seen in (None, UNDECIDED):
            survivors.append(f"{fault.name} ({seen})" if seen else fault.name)
        elif "::" in seen:
            tests.add(seen)
            note(fault, seen)
    if tests and (failed := failing(sorted(tests))):
        print(f"without a fault {failed} fails")
        return 2
    print(f"{len(chosen)} faults, {len(survivors)} survive")
    for name in survivors:
        print(f"  {name}")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
