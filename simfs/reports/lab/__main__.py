"""Write the lock laboratory: `python -m simfs.reports.lab lock-lab.html`, after `just web`."""

from __future__ import annotations

import sys
from pathlib import Path

from simfs.reports.lab.page import BUILT, page


def main() -> None:
    """Write the page into the file that the command line names."""
    if len(sys.argv) != 2:
        sys.exit("python -m simfs.reports.lab FILE.html")
    if not BUILT.exists():
        sys.exit(f"there is no {BUILT}: build it with `just web`")
    Path(sys.argv[1]).write_text(page(BUILT.read_bytes()), "utf-8")


main()
