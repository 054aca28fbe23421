"""Commands in surroundings that are not as they should be: each must end in a line and with the right code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

SIMFS = f"{sys.executable} -c 'from simfs.cli import main; main()'"
SHORT = "--quick --set measure.duration='1 ms' --set sweep.workload.tasks=[2] --set measure.replications=2"
COMMANDS = [
    f"run lock-cycle {SHORT}",
    f"run lock-cycle {SHORT} --format json",
    f"run lock-cycle {SHORT} --out {{folder}}/out",
    f"sweep lock-cycle {SHORT} --out {{folder}}/sweep",
    f"sweep lock-cycle {SHORT} --vary workload.tasks=1..3 --out {{folder}}/other",
    f"run - {SHORT} < {{folder}}/lock-cycle.yaml",
    "trace lock-cycle --variant mutex --length '50 us'",
    "locks",
    "schema",
    "--help",
    "run no-such-scenario",
]
OUTPUTS = [
    "",
    "",
    "> /dev/full",
    ">&-",
    "| head -c 10",
    "| true",
    "> {folder}/text",
    "2>&-",
    "2> /dev/full",
    "<&-",
]
ENVIRONMENTS: list[dict[str, str]] = [
    {}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"LC_ALL": "POSIX"},
    {"LANG": "de_DE.ISO-8859-1"},
    {"PYTHONIOENCODING": "ascii"}, {"PYTHONIOENCODING": "latin-1"}, {"TERM": "dumb"},
    {"COLUMNS": "5"}, {"COLUMNS": "0"},
    {"HOME": "/nonexistent", "XDG_CACHE_HOME": "/proc/none"}, {"TZ": "Nowhere/Else"}, {"PYTHONHASHSEED": "7"},
    {"NO_COLOR": "1", "FORCE_COLOR": "1"}, {"MPLBACKEND": "nonsense"}, {"TMPDIR": "/nonexistent"},
]  # fmt: skip
LIMITS = ["", "", "", "ulimit -f 1;", "ulimit -f 100;", "ulimit -n 16;"]
"""Among them files of 1 and 100 KiB at most, and few open ones."""


def tried(random: Random, folder: Path) -> str:
    """Run a command in odd surroundings; what it was. AssertionError where it does not end as it should."""
    command, output = random.choice(COMMANDS), random.choice(OUTPUTS)
    around, limit = random.choice(ENVIRONMENTS), random.choice(LIMITS)
    line = f"{limit} {SIMFS} {command} {output}".format(folder=folder)
    # A write beyond the limit on files is an error (EFBIG) instead of a signal, as a full disk would be.
    done = subprocess.run(
        ["bash", "-c", f"trap '' XFSZ; {line}; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        env=os.environ | around,
        timeout=120,
    )
    what = f"{around} {limit} simfs {command} {output}: exit {done.returncode}"
    said = done.stderr.decode("utf-8", "replace")
    assert done.returncode in (0, 2, 4), f"{what}\n{said}"
    assert "Traceback" not in said, f"{what}\n{said}"
    assert done.returncode == 0 or said.strip() or "2>" in output or "2>&-" in output, f"{what}: and no word"
    return what
