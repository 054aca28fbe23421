"""`requirements.lock`, with which CI installs, has everything that `pyproject.toml` asks for."""

from __future__ import annotations

import re
import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from places import ROOT


def test_the_lock_has_what_is_asked_for_at_a_version_that_will_do() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    about = project["project"]
    asked = [*about["dependencies"], *project["build-system"]["requires"]]
    asked += [each for extra in about["optional-dependencies"].values() for each in extra]
    text = (ROOT / "requirements.lock").read_text("utf-8")
    locked = dict(re.findall(r"^([a-z0-9.-]+)==([^ \\]+)", text, re.M))
    missing = [
        str(wanted)
        for wanted in map(Requirement, asked)
        if wanted.name != "simfs"
        and not wanted.specifier.contains(locked.get(canonicalize_name(wanted.name), "0"))
    ]
    assert missing == [], "run .ci/lock"
    assert text.count("--hash=sha256:") > len(locked)
