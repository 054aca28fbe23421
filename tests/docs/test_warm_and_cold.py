"""The page on warmth says what compilers do with and without it."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from places import ROOT


@pytest.fixture
def written() -> Iterator[ModuleType]:
    """What writes the table."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        yield importlib.import_module("warm_and_cold")


@pytest.mark.slow
def test_the_page_says_what_runs_say(written: ModuleType) -> None:
    assert written.main(["--check"]) == 0


def test_a_number_that_is_no_longer_so_is_found(
    written: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [("compiles a second", {"as computed": 1200.0, "always warm": 1235.0})]
    monkeypatch.setattr(written, "rows", lambda: iter(found))
    page = tmp_path / "warmth.md"
    shutil.copy(written.PAGE, page)
    before, after = page.read_text().split(written.MARKS[0])[0], page.read_text().split(written.MARKS[1])[1]
    arguments = ["--page", str(page)]
    assert written.main([*arguments, "--check"]) == 1
    assert "compiles a second: 1,200, 1,235, on the page nothing" in capsys.readouterr().out
    assert written.main(arguments) == 0
    assert "| compiles a second | 1,200 | 1,235 |" in page.read_text()
    assert page.read_text().startswith(before)
    assert page.read_text().endswith(after)
    assert written.main([*arguments, "--check"]) == 0
    page.write_text(page.read_text().replace("1,235", "1,600"))
    assert written.main([*arguments, "--check"]) == 1


def test_creates_and_unlinks_are_told_apart_and_others_are_not_counted(written: ModuleType) -> None:
    events = [
        (0, 1, 0, "acquire", "vfs.i_rwsem (directory)#1"),
        (1_000_000, 1, 0, "acquire", "xfs.AGI#2"),
        (2_000_000, 1, 0, "acquire", "xfs.finobt#3"),
        (5_000_000, 1, 0, "release", "xfs.AGI#2"),
        (6_000_000, 2, 0, "acquire", "xfs.AGI#2"),
        (7_000_000, 2, 0, "release", "xfs.AGI#2"),
        (8_000_000, 1, 0, "acquire", "xfs.AGI#2"),
        (9_000_000, 1, 0, "release", "xfs.AGI#2"),
        (9_000_000, 1, 0, "release", "vfs.i_rwsem (directory)#1"),
    ]
    assert list(written.agi_holds(events)) == [("create", 4.0), ("unlink", 1.0)]
