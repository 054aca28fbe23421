"""Sphinx: the documentation site. `sphinx-build -W docs docs/_build` makes it; docs/site has what is generated."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parent))

from site_parts import commands, lock_lab, reference
from sphinx.search.en import SearchEnglish

from simfs import __version__

if TYPE_CHECKING:
    from docutils.nodes import document
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


def as_on_the_first_of_them(
    app: Sphinx, page: str, template: str, context: dict[str, Any], tree: document | None
) -> None:
    """Pages of data sets are not in the navigation: it is the same on all of them, and made once for the theme."""
    if page.startswith("predictions/"):
        made: dict[str, str] = app.__dict__.setdefault("simfs_navigation", {})
        make = context["toctree"]

        def once(**asked: object) -> str:
            name = repr(sorted(asked.items()))
            if name not in made:
                made[name] = make(**asked)
            return made[name]

        context["toctree"] = once


# Pages have most words in common: each is stemmed once, and not once for each page.
SearchEnglish.stem = cache(SearchEnglish.stem)  # type: ignore[method-assign]


def setup(app: Sphinx) -> None:
    """Write the generated pages before anything is read, and add the directives that run commands."""
    app.connect("source-read", reached_by_the_table)
    app.connect("html-page-context", as_on_the_first_of_them, priority=400)  # the theme's has 500
    reference.write(Path(app.srcdir) / "generated")
    commands.setup(app)
    lock_lab.setup(app)
