"""The pages of predictions say what the recorded tables say, and the tables what the data sets ask."""

from __future__ import annotations

import csv
import importlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from places import ROOT

from simfs.scenario.checks import source_ranges
from simfs.scenario.checks.source_ranges import source_range
from simfs.scenario.schema import Scenario

DATASET = "nfs-dir-create-latency-2022"


@dataclass
class Done:
    """How the command ended."""

    returncode: int
    stdout: str
    stderr: str


Command = Callable[..., Done]


@pytest.fixture(scope="module")
def main() -> Iterator[Callable[[list[str]], int]]:
    """The command. All data sets and the ranges of their fits are read once, which takes most of its time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        module = importlib.import_module("predictions")
        pairs = module.predicted([])
        patch.setattr(module, "predicted", lambda _names: pairs)
        ranges: dict[tuple[str, str], tuple[float, float] | None] = {}

        def once(scenario: Scenario, key: str) -> tuple[float, float] | None:
            if (scenario.name, key) not in ranges:
                ranges[scenario.name, key] = source_range(scenario, key)
            return ranges[scenario.name, key]

        patch.setattr(source_ranges, "source_range", once)
        yield module.main


@pytest.fixture
def predictions(main: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*arguments: object) -> Done:
        capsys.readouterr()
        code = main(list(map(str, arguments)))
        return Done(code, *capsys.readouterr())

    return run


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A copy of the recorded tables and of the pages."""
    for name in ("predictions.md", "predictions.csv", "predictions-fits.csv"):
        shutil.copy(ROOT / "docs" / name, tmp_path)
    shutil.copytree(ROOT / "docs" / "predictions", tmp_path / "predictions")
    return tmp_path


@pytest.mark.slow
def test_the_pages_say_what_the_tables_say(predictions: Command) -> None:
    done = predictions("--check")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_run_of_one_data_set_renews_its_page_and_the_sums_and_no_other_page(
    predictions: Command, docs: Path
) -> None:
    run = docs / "run"
    run.mkdir()
    with (docs / "predictions.csv").open() as lines:
        rows = [row for row in csv.DictReader(lines) if row["dataset"] == DATASET]
    rows[0]["predicted"] = "1234567"
    with (run / "rows.csv").open("w") as out:
        writer = csv.DictWriter(out, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    (run / "fits.csv").write_text(f"dataset,parameter,value,unit\n{DATASET},workload.nothing,2000,ns\n")
    assert predictions("--docs", docs, "--check").returncode == 0
    done = predictions("--docs", docs, run)
    written = {Path(line.removesuffix(": written")) for line in done.stdout.splitlines()}
    assert written == {docs / "predictions.md", docs / "predictions" / f"{DATASET}.md"}, done.stderr
    assert "1,234,567" in (docs / "predictions" / f"{DATASET}.md").read_text()
    assert "workload.nothing,2000,ns" in (docs / "predictions-fits.csv").read_text()
    assert predictions("--docs", docs, "--check").returncode == 0


@pytest.mark.slow
def test_each_measured_value_stands_once_on_its_page() -> None:
    """A rate and a ratio of rates are one metric in two units; each row of the table had both."""
    page = (ROOT / "docs/predictions/xfs-dio-size-lock-2021.md").read_text()
    rows = [
        line.split("|")[1:] for line in page.split("<!-- end -->")[0].splitlines() if line.startswith("| ios")
    ]
    assert [sum(bool(cell.strip()) for cell in row) for row in rows] == [3, 3]


def test_a_number_that_was_changed_by_hand_is_found(predictions: Command, docs: Path) -> None:
    page = docs / "predictions" / f"{DATASET}.md"
    page.write_text(page.read_text().replace("| 10 |", "| 11 |"))
    done = predictions("--docs", docs, "--check")
    assert done.returncode == 1
    assert done.stdout == f"{page}: stale: run `python docs/predictions.py`\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("predictions.csv", ",2.4,", ",2.5,", f"its rows of {DATASET} are not those of the data set"),
        ("predictions.csv", DATASET, "strange-data", "there is no data set strange-data"),
        (f"predictions/{DATASET}.md", "<!-- end -->", "", "needs one line"),
    ],
)
def test_a_record_that_does_not_fit_is_told(
    predictions: Command, docs: Path, file: str, old: str, new: str, said: str
) -> None:
    text = (docs / file).read_text()
    assert old in text
    (docs / file).write_text(text.replace(old, new))
    done = predictions("--docs", docs, "--check")
    assert done.returncode == 1
    assert said in done.stderr


@pytest.mark.slow
def test_a_data_set_without_a_page_is_told(predictions: Command, docs: Path) -> None:
    (docs / "predictions" / f"{DATASET}.md").unlink()
    done = predictions("--docs", docs, "--check")
    assert done.returncode == 1
    assert "needs a page" in done.stderr
