"""Wall time of `simfs run compile-24`, as a user waits for it: on all cores, with all result files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec

from measure import options


def main() -> int:
    """Measure and print; return 0 also where the installed package has no engine, with a note."""
    parser = options(__doc__)
    parser.add_argument("--scenario", default="compile-24", help="scenario to run")
    asked = parser.parse_args()
    name: str = asked.scenario
    if find_spec("simfs") is None or find_spec("simfs._engine") is None:
        print(f"{name}: skipped, the simfs package is not installed with its engine")
        return 0
    with tempfile.TemporaryDirectory() as results:
        command = [sys.executable, "-c", "from simfs.cli import main; main()", "run", name, "--out", results]
        started = time.monotonic()
        ended = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        seconds = time.monotonic() - started
    if ended.returncode != 0:
        print(f"{name}: failed with exit code {ended.returncode}\n{ended.stderr}", file=sys.stderr)
        return 1
    if asked.format == "json":
        print(json.dumps({"scenario": name, "seconds": seconds, "cores": os.cpu_count()}))
    else:
        print(f"simfs run {name}: {seconds:.1f} s on {os.cpu_count()} cores")
    return 0


if __name__ == "__main__":
    sys.exit(main())
