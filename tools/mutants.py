"""Put faults into a copy of simfs and see which of them no test notices.

The faults stand in `tests/faults.py`: a text of the source and what to put in its place. They all go into one engine
and one copy of the package, each behind a switch, so that there is one build; the source itself stays as it is. For
each fault the tests of its part run until one fails.

    python tools/mutants.py                  all, half an hour on two CPUs
    python tools/mutants.py --only btrfs     those whose name has this in it

Exit code 1 where a fault survives.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from faults import FAULTS, TESTS, Fault  # noqa: E402

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
QUICKLY = {"LTO": "off", "CODEGEN_UNITS": "16", "OPT_LEVEL": "2"}
NOTHING = 5
"""What pytest says where there is no test."""

LIMIT_S = 600
"""A run of tests that lasts longer has met a fault that hangs."""


def copy_with_faults(to: Path) -> None:
    """The files that git knows, with all faults in them."""
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


def noticed(at: Path, number: int, tests: tuple[str, ...]) -> str | None:
    """The first test that fails with a fault switched on, or None: the fast ones first, then those that are slow."""
    return failing(at, number, tests, "not slow") or failing(at, number, tests, "slow")


def failing(at: Path, number: int, tests: tuple[str, ...], marked: str) -> str | None:
    """The first test with such a mark that fails."""
    files = [f"tests/test_{name}.py" for name in tests]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-n0",
        "-m",
        marked,
        "-p",
        "no:cacheprovider",
        *files,
    ]
    environment = os.environ | {SWITCH: str(number), "PYTHONPATH": str(at)}
    try:
        run = subprocess.run(
            command, cwd=at, env=environment, capture_output=True, text=True, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return "hangs"
    if run.returncode in (0, NOTHING):
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.MULTILINE)
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
    every = tuple(dict.fromkeys(test for tests in TESTS.values() for test in tests))
    if failed := noticed(given.at, 0, every):
        print(f"without a fault {failed} fails")
        return 2
    chosen = [(n, fault) for n, fault in enumerate(FAULTS, start=1) if given.only in fault.name]
    with ThreadPoolExecutor(given.jobs) as pool:
        answers = list(pool.map(lambda at: tell(given.at, *at), chosen))
    survivors = [fault.name for (_, fault), answer in zip(chosen, answers, strict=True) if answer is None]
    print(f"{len(chosen)} faults, {len(survivors)} survive")
    for name in survivors:
        print(f"  {name}")
    return 1 if survivors else 0


def tell(at: Path, number: int, fault: Fault) -> str | None:
    """Try a fault and print what came of it."""
    answer = noticed(at, number, TESTS[fault.part])
    print(f"{number:3} {fault.name}: {answer or 'SURVIVES'}", flush=True)
    return answer


if __name__ == "__main__":
    sys.exit(main())
