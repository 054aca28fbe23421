"""Programs in C that tools come with, built as a user would."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from places import ROOT

needs_compiler = pytest.mark.skipif(not shutil.which("gcc"), reason="there is no gcc here")


def compiled(source: str, folder: Path) -> Path:
    """The program of a source, whose path begins in the repository's root, without a warning."""
    path = folder / Path(source).stem
    subprocess.run(["gcc", "-O1", "-Wall", "-Werror", "-o", path, ROOT / source], check=True)
    return path
