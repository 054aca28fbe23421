"""Sphinx: the documentation site. `sphinx-build -W docs docs/_build` makes it; docs/site has what is generated."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))

from site_parts import commands, lock_lab, reference

from simfs import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "simfs"
author = "the simfs project"
project_copyright = "Apache License 2.0"
release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
smartquotes = False
default_role = "literal"
autodoc_typehints = "signature"
autodoc_typehints_format = "fully-qualified"
autodoc_member_order = "bysource"
exclude_patterns = ["_build", "**/README.md", "generated/left-out.md"]
suppress_warnings = ["myst.strikethrough"]

html_theme = "furo"
html_title = "simfs"
html_static_path = ["static"]
html_css_files = ["wide.css"]
html_copy_source = False


def reached_by_the_table(app: Sphinx, page: str, source: list[str]) -> None:
    """Pages of data sets are in the table of predictions; a hundred of them in every page's navigation help nobody."""
    if page.startswith("predictions/"):
        source[0] = f"---\norphan: true\n---\n\n{source[0]}\n\n[All data sets](../predictions.md)\n"


def setup(app: Sphinx) -> None:
    """Write the generated pages before anything is read, and add the directives that run commands."""
    app.connect("source-read", reached_by_the_table)
    reference.write(Path(app.srcdir) / "generated")
    commands.setup(app)
    lock_lab.setup(app)
