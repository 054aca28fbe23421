"""Notebooks run from top to bottom, and each is the same as its paired script."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from places import ROOT

from simfs.lessons import LESSONS
from simfs.lessons.catalogue import find

if TYPE_CHECKING:
    from nbclient import NotebookClient
    from nbformat import NotebookNode

jupytext = pytest.importorskip("jupytext")
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

SCRIPTS = sorted((ROOT / "notebooks").rglob("*.py"))
LESSON_SCRIPTS = [path for path in SCRIPTS if path.parent.name == "lessons"]
LESSON_NOTEBOOKS = {f"{find(name).notebook}.py" for name in LESSONS}


def sources(path: Path) -> list[tuple[str, str]]:
    return [(cell.cell_type, cell.source) for cell in jupytext.read(path).cells]


def kinds(notebook: NotebookNode) -> list[list[object]]:
    """What kind of output each cell has: text and where it goes, a table, a picture."""
    return [
        [
            (output.output_type, output.get("name"), sorted(output.get("data", ())))
            for output in cell.get("outputs", ())
        ]
        for cell in notebook.cells
    ]


def test_each_lesson_has_a_notebook() -> None:
    assert {path.name for path in LESSON_SCRIPTS} == LESSON_NOTEBOOKS


@pytest.mark.parametrize("script", LESSON_SCRIPTS, ids=lambda path: path.stem)
def test_a_lesson_has_all_its_parts_and_ends_in_a_result(script: Path) -> None:
    cells = jupytext.read(script.with_suffix(".ipynb")).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    headings = ["## Predict", "## Reveal", "## Exercises", "## Sources", "## Result"]
    assert [line for line in text.splitlines() if line in headings] == headings
    assert text.count("<details><summary>Answer</summary>") == text.count("</details>") >= 3
    (said,) = cells[-1].outputs
    assert re.search(r"\d", said.text)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_is_its_script(script: Path) -> None:
    assert sources(script.with_suffix(".ipynb")) == sources(script)


def test_no_notebook_has_the_values_of_an_old_fit() -> None:
    """Those of seven lessons were a week old, and one of them was fitted no more: `fitted` has today's."""
    for script in LESSON_SCRIPTS:
        assert not re.search(r"(machine|filesystem)\.(speed|costs\S*)=|FITTED", script.read_text()), script


LESS = '"sweep.workload.tasks=[1, 8, 24]", "measure={duration: 40 ms, warmup: 10 ms, replications: 3}"'
SHORT = '"measure={duration: 4 ms, warmup: 8 ms, replications: 1}"'
SHORTEST = '"measure={duration: 2 ms, warmup: 1 ms, replications: 1}"'
CREATIONS = '"emulated-create-unlink", "sweep.workload.tasks=[1, 4, 24]"'
FEWER = {
    "compile_24": {
        'simfs.load("compile-24")': f'simfs.load("compile-24", {LESS})',
        "points=24": "points=4",
    },
    "01_knee": {
        '*fitted("inode-hash")': f'*fitted("inode-hash"), {SHORTEST}',
        'progress=False)\nmeasured.figure("': 'progress=False, variants=["global"])\nmeasured.figure("',
    },
    "04_convoy": {CREATIONS: f"{CREATIONS}, {SHORTEST}"},
    "06_preempted": {'12 ms").timeline("user", length="10 ms")': '4 ms").timeline("user", length="2 ms")'},
    "09_btree": {CREATIONS: f"{CREATIONS}, {SHORTEST}"},
    "10_groups": {CREATIONS: f"{CREATIONS.replace(', 24', '')}, {SHORTEST}"},
    "11_whatif": {'*fitted("xfs-cil")': f'*fitted("xfs-cil"), {SHORT}'},
    "12_design": {
        'mine.py:Patient", 2_000': 'mine.py:Patient", 200',
        "{{warmup: 1 ms, duration: 6 ms, replications: 2}}": "{{warmup: 1 ms, duration: 2 ms, replications: 1}}",
    },
}
"""What makes a notebook ask for less here than for its reader."""


COARSE = "from simfs.reports.figures import drawing; drawing.DPI = 40"
"""That there are pictures is looked at, not what they show."""

RIGHT = """
assert asked.result.exit_code == 0
assert asked.mark(asked.curve).score == 100
assert len(set(asked.curve.values())) > 1
"""
"""The answer of a lesson is clean and, as a guess, right."""


@pytest.fixture(scope="module")
def kernel() -> Iterator[NotebookClient]:
    """One kernel for all: to start it and to import everything takes longer than most notebooks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        # How many pieces a cell prints in is a matter of time: the kernel sends what there is now and again.
        client = nbclient.NotebookClient(
            nbformat.v4.new_notebook(), timeout=300, kernel_name="python3", coalesce_streams=True
        )
        with client.setup_kernel():
            client.nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(COARSE)])
            client.execute(cleanup_kc=False)
            yield client


def ran(notebook: NotebookNode, kernel: NotebookClient, after: str = "") -> None:
    """Run all cells and some code after them, with no name left of the notebook before."""
    afresh, last = (nbformat.v4.new_code_cell(code) for code in ("%reset -f", after))
    kernel.nb = nbformat.v4.new_notebook(cells=[afresh, *notebook.cells, last])
    kernel.execute(cleanup_kc=False)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_its_figures(script: Path, kernel: NotebookClient) -> None:
    notebook = jupytext.read(script.with_suffix(".ipynb"))
    stored = kinds(notebook)
    for asked, fewer in FEWER.get(script.stem, {}).items():
        (cell,) = (cell for cell in notebook.cells if asked in cell.source)
        cell.source = cell.source.replace(asked, fewer)
    is_lesson = script.parent.name == "lessons"
    ran(notebook, kernel, RIGHT if is_lesson else "")
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 2
    assert not [output for output in outputs if output.output_type == "error"]
    if is_lesson:
        assert kinds(notebook) == stored, "python tools/notebooks.py makes it anew"
