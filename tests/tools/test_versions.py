"""One version, wherever it is written."""

from __future__ import annotations

import re
import tomllib
from datetime import date

import yaml
from places import ROOT

RELEASE = re.search(r"^## \[(\d+\.\d+\.\d+)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_all_parts_have_the_version_of_the_last_release() -> None:
    assert RELEASE
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    engine = tomllib.loads((ROOT / "engine/Cargo.toml").read_text())["package"]["version"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    (unpacked,) = re.findall(r'return "(\d+\.\d+\.\d+)"', (ROOT / "simfs/__init__.py").read_text())
    assert {project, engine, unpacked, str(cited["version"])} == {RELEASE[1]}
    assert date.fromisoformat(cited["date-released"]) == date.fromisoformat(RELEASE[2])
