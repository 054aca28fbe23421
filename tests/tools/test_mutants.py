"""The faults of `tools/mutants.py` still fit the source; that tests notice them takes a run of the tool."""

from __future__ import annotations

import ast
import json
import re
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest
from faults import FAULTS, TESTS, Fault, files_of, part_of
from places import ROOT


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_what_a_fault_replaces_stands_in_the_source_once(fault: Fault) -> None:
    assert (ROOT / fault.file).read_text().count(fault.old) == 1
    assert "FAULT" in fault.new


def test_faults_have_names_and_tests_of_their_own() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 60
    assert all(len(files_of(part)) == len(set(names)) for part, names in TESTS.items())
    assert {part_of(fault) for fault in FAULTS} == set(TESTS)


def test_what_saw_a_fault_is_still_there() -> None:
    seen: dict[str, str] = json.loads((ROOT / "tests/faults/seen_by.json").read_text("utf-8"))
    assert set(seen) <= {fault.name for fault in FAULTS}
    for test in set(seen.values()):
        file, _, name = test.partition("::")
        function = re.escape(name.partition("[")[0])
        assert re.search(rf"^ *def {function}\(", (ROOT / file).read_text("utf-8"), re.MULTILINE), test


@pytest.mark.parametrize(
    "fault", [fault for fault in FAULTS if fault.file.endswith(".py")], ids=lambda fault: fault.name
)
def test_a_fault_in_python_knows_its_switch(fault: Fault, tmp_path: Path) -> None:
    """Else any test that comes by would notice, not the fault but a name that is not defined."""
    tool = runpy.run_path(str(ROOT / "tools/mutants.py"))
    copy = tmp_path / fault.file
    copy.parent.mkdir(parents=True)
    copy.write_text((ROOT / fault.file).read_text())
    tool["put"](fault, 1, tmp_path)
    body = ast.parse(copy.read_text()).body
    imported = [at for at in body if isinstance(at, ast.ImportFrom) and at.module == "simfs"]
    assert [name.name for at in imported for name in at.names] == ["faults"]


@pytest.mark.skipif(shutil.which("rustfmt") is None, reason="rustfmt is not installed")
def test_files_with_faults_in_them_are_rust(tmp_path: Path) -> None:
    """A fault that fitted an expression once may stand among others today; one that does not parse stops the tool."""
    tool = runpy.run_path(str(ROOT / "tools/mutants.py"))
    faults = [(number, fault) for number, fault in enumerate(FAULTS, 1) if fault.file.endswith(".rs")]
    for file in {fault.file for _, fault in faults}:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text((ROOT / file).read_text())
    for number, fault in faults:
        tool["put"](fault, number, tmp_path)
    unparsed = []
    for path in {tmp_path / fault.file for _, fault in faults}:
        command = ["rustfmt", "--edition=2021", "--emit=stdout"]
        parsed = subprocess.run(command, input=path.read_text(), capture_output=True, text=True)
        unparsed += [f"{path}: {parsed.stderr}"] if parsed.returncode else []
    assert not unparsed, unparsed[0]
