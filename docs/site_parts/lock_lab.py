"""The lock laboratory beside the pages of the site: `lock-lab.html`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from simfs.reports.lab.page import BUILT, page

if TYPE_CHECKING:
    from sphinx.application import Sphinx

NOT_BUILT = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>The lock lab</title></head>
<body><p>This site was built without the engine as WebAssembly: <code>just web</code>, then again.</p></body></html>
"""


def setup(app: Sphinx) -> None:
    """Write the page when the site has been built."""
    app.connect("build-finished", lambda site, problem: None if problem else write(Path(site.outdir)))


def write(folder: Path) -> None:
    """Write the page, or a page that says why there is none."""
    text = page(BUILT.read_bytes()) if BUILT.exists() else NOT_BUILT
    (folder / "lock-lab.html").write_text(text, "utf-8")
