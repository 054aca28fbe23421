"""Output of real tools, in and out: each format is a module with `is_mine`, `read` and, where it can, `write`.

`docs/how-to/perf.md` shows the way from `perf` to simfs and back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from simfs.interchange.reading import Reading, UnreadableError
from simfs.scenario.suggest import choices

if TYPE_CHECKING:
    from simfs.results.model import PointResult, ScenarioResult
    from simfs.scenario import Scenario


class Format(Protocol):
    """A module of `simfs.interchange`."""

    def is_mine(self, text: str) -> bool:
        """Whether the text looks like this format: a heading that no other tool prints."""

    def read(self, text: str) -> Reading:
        """Read a text that `is_mine`; never fails on what is broken in it, but skips and counts the line."""


FORMATS = {
    "perf-lock": "perf_lock",
    "perf-script": "perf_script",
    "lock_stat": "lock_stat",
    "klockstat": "klockstat",
    "offcputime": "offcputime",
    "bpftrace": "bpftrace",
    "fio": "fio",
    "fs_mark": "fs_mark",
    "dbench": "dbench",
    "will-it-scale": "will_it_scale",
    "fxmark": "fxmark",
    "xfs_info": "xfs_info",
    "dumpe2fs": "dumpe2fs",
    "btrfs": "btrfs_usage",
    "lscpu": "lscpu",
    "fio-job": "fio_job",
    "lkp": "lkp",
    "table": "table",
}
"""Names of the formats and their modules; the first that knows a text reads it."""

WRITERS = {
    "perf-lock": "perf_lock:write",
    "perf-lock-x": "perf_lock:write_csv",
    "lock_stat": "lock_stat:write",
    "klockstat": "klockstat:write",
    "fio": "fio:write",
    "fs_mark": "fs_mark:write",
    "dbench": "dbench:write",
    "will-it-scale": "will_it_scale:write",
    "fxmark": "fxmark:write",
    "lkp": "lkp_out:write",
}
"""What `simfs run --as` writes, and the functions that do it."""


MOST_BLANKS = 200
_BLANKS = re.compile(rf"[ \t]{{{MOST_BLANKS},}}")
"""Longer runs of blanks are cut: no tool prints them, and patterns would take quadratic time over them."""


def load(name: str) -> Format:
    """Return the module of a format."""
    return cast(Format, import_module(f"simfs.interchange.{FORMATS[name]}"))


def read(text: str, name: str | None = None) -> Reading:
    """Read the output of a tool, of `name` or of whichever knows it.

    Raises UnreadableError where nobody does, and where not a line of it could be used; BadCellsError for a table.
    """
    text = _BLANKS.sub(" " * MOST_BLANKS, text)
    for each in [name] if name else FORMATS:
        module = load(each)
        if name or module.is_mine(text):
            reading = module.read(text)
            if reading.matched == 0:
                raise UnreadableError(
                    f"looks like {each}, but none of its {reading.skipped} lines could be used"
                )
            return reading
    own = "a table of your own begins with a line such as 'series,tasks,value', see docs/how-to/own-data.md"
    raise UnreadableError(f"is output of no tool that simfs knows: {', '.join(FORMATS)}; {own}")


_OF_ALL_VARIANTS = ("lkp",)


def refuse(scenario: Scenario, name: str, variant: str | None = None) -> None:
    """Raise UnreadableError for what `write` will refuse of a scenario's result, as far as it is known before a run."""
    from simfs.scenario.points import variants_of

    _refuse(name, variant, variants_of(scenario))
    if name == "fio":
        load("fio").refuse(scenario.workload)  # type: ignore[attr-defined]


def _refuse(name: str, variant: str | None, variants: Sequence[str]) -> None:
    if name not in WRITERS:
        raise UnreadableError(f"there is no format '{name}'; {choices(name, WRITERS)}")
    if variant is None and len(variants) > 1 and name not in _OF_ALL_VARIANTS:
        raise UnreadableError(f"there are several variants: name one of {', '.join(variants)} with --variant")
    if variant is not None and variant not in variants:
        raise UnreadableError(f"there is no variant '{variant}'; {choices(variant, variants)}")


Writer = Callable[["ScenarioResult", tuple["PointResult", ...]], str]
"""Makes the text of a tool from points of a result, in order of the sweep."""


def write(result: ScenarioResult, name: str, variant: str | None = None) -> str:
    """Return a result as a tool would print it; the variant must be named where there are several.

    Tables of locks are of one point: that with as many tasks as CPUs, else with the most. Raises UnreadableError for a
    format or variant that there is not, and where nothing is left to write.
    """
    _refuse(name, variant, result.variants)
    everything = name in _OF_ALL_VARIANTS and variant is None
    points = result.points if everything else result.of(variant or result.variants[0])
    module, _, function = WRITERS[name].partition(":")
    return cast(Writer, getattr(import_module(f"simfs.interchange.{module}"), function))(result, points)
