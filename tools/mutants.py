"""Put faults into a copy of simfs and see which of them no test notices.

The faults stand in `tests/faults`: a text of the source and what to put in its place. They all go into one engine
and one copy of the package, each behind a switch, so that there is one build; the source itself stays as it is. For
each fault the test that noticed it last time (`tests/faults/seen_by.json`) runs first, then those of its part until one
fails. A test that fails without the fault too does not count.

    python tools/mutants.py                  all, and writes anew which test sees which
    python tools/mutants.py --only btrfs     those whose name has this in it

Exit code 1 where a fault survives.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from faults import FAULTS, TESTS, Fault, part_of  # noqa: E402

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
"""What pytest says where there is no such test."""

LIMIT_S = 600
"""A run of tests that lasts longer has met a fault that hangs."""


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
        last = "from __future__ import annotations\n"
        text = text.replace(last, last + "from simfs import faults\n", 1)
    path.write_text(text)


def build(at: Path) -> None:
    """The engine of the copy, quickly: without optimisation across its parts."""
    quickly = {f"CARGO_PROFILE_RELEASE_{name}": value for name, value in QUICKLY.items()}
    command = ["cargo", "build", "--release", "--quiet", "--features", "python", "--lib"]
    environment = os.environ | quickly | {"PYO3_PYTHON": sys.executable}
    subprocess.run(command, cwd=at / "engine", check=True, env=environment)
    shutil.copy2(at / "engine/target/release/libsimfs_engine.so", at / "simfs/_engine.abi3.so")


def noticed(at: Path, number: int, fault: Fault) -> str | None:
    """The first test that fails with a fault switched on, or None."""
    files = [f"tests/test_{name}.py" for name in TESTS[part_of(fault)]]
    known = [SEEN[fault.name]] if fault.name in SEEN else []
    for tests in (known, ["-m", "not slow", *files], ["-m", "slow", *files]):
        if tests and (failed := failing(at, number, tuple(tests))):
            if "::" in failed and failing(at, 0, (failed,)):
                raise SystemExit(f"{failed} fails without a fault")
            return failed
    return None


@cache
def failing(at: Path, number: int, tests: Sequence[str]) -> str | None:
    """The first of these tests that fails with a fault, or with none if its number is 0."""
    options = ["-x", "-n0", "--tb=no", "-p", "no:cacheprovider", "--hypothesis-profile=first"]
    environment = os.environ | {SWITCH: str(number), "PYTHONPATH": str(at)}
    try:
        run = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=at,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return "hangs"
    if run.returncode in (0, *NOTHING):
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", run.stdout, re.MULTILINE)
    return failed[1] if failed else f"exit code {run.returncode}"


def main() -> int:
    """Report each fault, and the survivors at the end."""
    parser = argparse.ArgumentParser(description="Which faults does no test notice?")
    parser.add_argument("--only", default="", help="faults whose name has this in it")
    parser.add_argument("--at", type=Path, default=ROOT / "target/mutants", help="where the copy goes")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="faults tried at a time")
    given = parser.parse_args()
    copy_with_faults(given.at)
    build(given.at)
    chosen = [(n, fault) for n, fault in enumerate(FAULTS, start=1) if given.only in fault.name]
    survivors = []
    with ThreadPoolExecutor(given.jobs) as pool:
        for (_, fault), seen in zip(chosen, pool.map(lambda at: tell(given.at, *at), chosen), strict=True):
            if seen is None:
                survivors.append(fault.name)
            elif "::" in seen:
                note(fault, seen)
    print(f"{len(chosen)} faults, {len(survivors)} survive")
    for name in survivors:
        print(f"  {name}")
    return 1 if survivors else 0


def tell(at: Path, number: int, fault: Fault) -> str | None:
    """Try a fault and print what came of it."""
    begun = time.monotonic()
    seen = noticed(at, number, fault)
    print(f"{number:3} {fault.name}: {seen or 'SURVIVES'} ({time.monotonic() - begun:.0f} s)", flush=True)
    return seen


def note(fault: Fault, seen: str) -> None:
    """Write down which test notices a fault."""
    SEEN[fault.name] = seen
    known = {each.name: SEEN[each.name] for each in FAULTS if each.name in SEEN}
    SEEN_BY.write_text(json.dumps(known, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
