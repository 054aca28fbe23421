"""How hard Hypothesis tries, and on how many CPUs the tests run.

The default draws the same examples every time, so that the verdict depends on the code alone. Look for new ones
with `--hypothesis-profile=explore`, or `full` for a long run.
"""

from __future__ import annotations

import gc
import io
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings

from simfs.reports import export

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from simfs.results.model import ScenarioResult

SLOW = [HealthCheck.too_slow]

settings.register_profile("ci", max_examples=200, deadline=None, suppress_health_check=SLOW, derandomize=True)
settings.register_profile("explore", settings.get_profile("ci"), derandomize=False)
settings.register_profile("full", settings.get_profile("explore"), max_examples=2000)
# The first example that fails will do: whether any does is all that `tools/mutants.py` asks.
FIRST = [Phase.explicit, Phase.generate]
settings.register_profile("first", settings.get_profile("ci"), phases=FIRST)
settings.load_profile("ci")

# Shells start what is in the background without it, and so are its children, which tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """A worker for each CPU, but for tests that are named: for a few files, workers would cost more than they save."""
    whole = all(Path(name).is_dir() for name in config.args)
    return (os.cpu_count() or 1) if whole else 0


LONG = ("test_two_machines.py", "test_notebooks.py", "test_btrfs_mkfs_oracle.py", "test_xfs_mkfs_oracle.py")
"""Files with tests of ten seconds and more."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests come first, so that workers have short ones to share at the end."""
    items.sort(key=lambda item: item.path.name not in LONG)


def pytest_collection_finish() -> None:
    """Python need not look through all tests and modules for garbage whenever a test has made many objects.

    The machine in Python makes thousands of locks and lines that live as long as it does.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With SIMFS_ORACLES=1, as CI sets it, a comparison with a real tool fails that lacks what it needs."""
    report = yield
    if report.skipped and os.environ.get("SIMFS_ORACLES") == "1" and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if reason.startswith("needs ") and item.get_closest_marker("oracle"):
            report.outcome, report.longrepr = "failed", f"SIMFS_ORACLES=1, and skipped: {reason}"
    return report


@pytest.fixture(scope="session", autouse=True)
def structures_are_looked_at() -> Iterator[None]:
    """When a native run is over, the filesystem's structures are compared with the files that exist."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIMFS_CHECK", "1")
        yield


@pytest.fixture(autouse=True)
def tables_are_as_wide_as_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the terminal that the tests are started from."""
    monkeypatch.delenv("COLUMNS", raising=False)


def _as_png(name: str, figure: Figure) -> dict[str, bytes]:
    out = io.BytesIO()
    figure.set_layout_engine(None)
    figure.savefig(out, format="png", dpi=20)
    return {f"figures/{name}.png": out.getvalue()}


_PICTURES: dict[str, list[tuple[str, bytes]]] = {}
"""The pictures of each result: many tests of commands get the same one."""


def _pictures_of(result: ScenarioResult) -> Iterator[tuple[str, bytes]]:
    text = export.to_json(result)
    if text not in _PICTURES:
        _PICTURES[text] = list(_drawn_anew(result))
    yield from _PICTURES[text]


_drawn_anew = export._figures


def _coarse() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("simfs.reports.figures.drawing.pictures", _as_png)
        patch.setattr(export, "_figures", _pictures_of)
        yield


@pytest.fixture
def png_alone() -> Iterator[None]:
    """Figures are coarse PNG alone, and of one result drawn once, where a command is tried and not what it draws."""
    yield from _coarse()


@pytest.fixture(scope="module")
def png_alone_in_file() -> Iterator[None]:
    """The same for all tests of a file."""
    yield from _coarse()


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Runs that `simfs validate` keeps go to a place of the tests."""
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        yield cache
