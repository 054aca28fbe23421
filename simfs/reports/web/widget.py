"""An explorer as a widget of notebooks: Jupyter, JupyterLab, VS Code, marimo. Needs anywidget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import traitlets

from simfs.reports.web.explorer import Explorer

_HERE = Path(__file__).parent


def _read(*names: str) -> str:
    return "\n".join((_HERE / name).read_text("utf-8") for name in names)


SCRIPTS = ("uplot.js", "report.js", "explore.js")
OUTER, INNER = ("uplot.css", "colours.css", "explore.css"), ("charts.css",)


class Explore(anywidget.AnyWidget):  # type: ignore[misc]  # anywidget has no types
    """Sliders; `at` is where they stand, `shown` what is seen there."""

    _esm = f"{_read(*SCRIPTS)}\nexport default {{render: simfsExplore}};"
    _css = f"{_read(*OUTER)}.simfs-explore {{ {_read(*INNER)} }}"
    factors = traitlets.List().tag(sync=True)
    at = traitlets.List(traitlets.Int()).tag(sync=True)
    shown = traitlets.Dict().tag(sync=True)

    def __init__(self, explorer: Explorer) -> None:
        self._explorer = explorer
        start = explorer.start()
        super().__init__(factors=explorer.factors(), at=start, shown=explorer.look(start))
        self.add_class("simfs")
        self.observe(self._moved, names="at")

    def _moved(self, change: dict[str, Any]) -> None:
        try:
            self.shown = self._explorer.look(change["new"])
        except ValueError as problem:
            self.shown = {"problem": str(problem)}
