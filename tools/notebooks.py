"""Make notebooks of their scripts and run them: `python tools/notebooks.py notebooks/lessons/01_knee.py ...`.

The script is what one edits; the .ipynb beside it has the same cells and their outputs.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import jupytext
import nbclient

ROOT = Path(__file__).parents[1]


def made(script: Path) -> None:
    """Run a script's cells and write them with their outputs."""
    notebook = jupytext.read(script)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", coalesce_streams=True).execute()
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
        cell.metadata.pop("execution", None)  # when it was run
    notebook.metadata.pop("language_info", None)  # the version of Python
    jupytext.write(notebook, script.with_suffix(".ipynb"))


def main() -> None:
    """Make each notebook that is named, all without a name."""
    os.environ["PYTHONPATH"] = str(ROOT)
    named = [Path(name) for name in sys.argv[1:]]
    for script in named or sorted((ROOT / "notebooks").rglob("*.py")):
        begin = time.monotonic()
        made(script)
        print(f"{script}: {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
