"""Run a load in a real kernel with many CPUs, in emulation, and print what it measured.

    python tools/emulated-kernel/emulate.py compile

builds what is missing (Debian 12, root for apt), runs the load's guests one after the other, and prints a table. The
same command gives the same numbers on any machine; `--seed` draws other hash seeds. See docs/laboratory.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from laboratory.guest import Laboratory
from laboratory.packages import install_host_packages
from laboratory.plan import LOADS, Guest
from laboratory.results import read_console, table

FOLDER = Path.home() / ".cache/simfs-laboratory"


def main() -> int:
    """Run the load that the command line names."""
    options = arguments()
    laboratory = Laboratory(options.folder.resolve())
    guests = [guest for guest in LOADS[options.load] if options.only in guest.name]
    if options.list:
        print("\n".join(f"{guest.name}\n{guest.plan()}" for guest in guests))
        return 0
    install_host_packages()
    laboratory.prepare()
    into = (options.out or laboratory.folder / "results" / f"{options.load}-{options.seed}").resolve()
    logs = [run(laboratory, guest, into, options) for guest in guests]
    consoles = [read_console(log) for log in logs]
    print(table(consoles))
    print(f"consoles: {into}")
    return 0 if all(console.complete for console in consoles) else 1


def run(laboratory: Laboratory, guest: Guest, into: Path, options: argparse.Namespace) -> Path:
    """Run a guest, unless its console is there already."""
    log = into / f"{guest.name}.log"
    if not options.again and log.exists() and read_console(log).complete:
        return log
    began = time.monotonic()
    laboratory.run(guest, into, options.seed)
    print(f"{guest.name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return log


def arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("load", choices=sorted(LOADS))
    parser.add_argument("--only", default="", metavar="TEXT", help="guests whose name has this text")
    parser.add_argument("--list", action="store_true", help="print the guests and what they do, run nothing")
    parser.add_argument("--seed", type=int, default=1, help="of everything random in the guest (default: 1)")
    parser.add_argument("--again", action="store_true", help="run guests whose results are there already")
    parser.add_argument("--out", type=Path, help="folder for consoles and traces")
    parser.add_argument(
        "--folder", type=Path, default=FOLDER, help=f"downloads and builds (default: {FOLDER})"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
