"""A folder for files that are measured. Each process of a load imports it, so it needs little."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """A folder of its own, gone afterwards."""
    own = Path(tempfile.mkdtemp(prefix="simfs-measure-", dir=folder))
    try:
        yield own
    finally:
        shutil.rmtree(own, ignore_errors=True)
