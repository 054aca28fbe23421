"""Damaged scenarios: whatever is done to a file, it loads or is refused with a reason."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simfs.scenario import Problem, ScenarioError, expand, load, paths
from simfs.scenario.document import Document

SHIPPED = sorted(paths.SCENARIOS.glob("*.yaml"))
ODD_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from([0, -1, 10**40, "", "0", "15", "-3 us", "1e400 s", "99999999 TiB", "../x.yaml"]),
    st.sampled_from([[], {}, [[]], {"kind": 1}]),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
)  # fmt: skip
KNOWN_KEYS = [
    "calibrate", "filesystem.kind", "kernel.tick", "locks", "machine", "machine.cpus", "measure.warmup",
    "measured", "name", "simfs", "sweep", "sweep.workload.tasks", "variants", "variants.0",
    "variants.ticket.workload", "workload.hold", "workload.kind", "workload.tasks",
]  # fmt: skip
relaxed = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def loads_or_is_refused(name: Path | str, options: tuple[str, ...] = ()) -> None:
    problems = refusals(name, options)
    assert all(problem.where and problem.message and "\n" not in str(problem) for problem in problems)


def refusals(name: Path | str, options: tuple[str, ...]) -> tuple[Problem, ...]:
    try:
        expand(load(name, options))
    except ScenarioError as error:
        return error.problems or (Problem("", ""),)
    return ()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "scenario.yaml"


@pytest.mark.slow
@relaxed
@given(data=st.data())
def test_values_replaced_keys_dropped_and_renamed(file: Path, data: st.DataObject) -> None:
    tree = copy.deepcopy(Document.read(data.draw(st.sampled_from(SHIPPED))).data)
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(list(places(tree)) or [("simfs",)]))
        holder: Any = tree
        for step in path[:-1]:
            holder = holder[step]
        act = data.draw(st.sampled_from(["drop", "replace", "rename", "wrap"]))
        if act == "replace":
            holder[path[-1]] = data.draw(ODD_VALUES)
        elif act == "wrap":
            holder[path[-1]] = data.draw(st.sampled_from([[holder[path[-1]]], {"x": holder[path[-1]]}]))
        elif act == "rename" and isinstance(holder, dict):
            holder[data.draw(st.text(min_size=1, max_size=12))] = holder.pop(path[-1])
        else:
            del holder[path[-1]]
    file.write_text(json.dumps(tree), "utf-8")
    loads_or_is_refused(file)


@relaxed
@given(
    source=st.sampled_from(SHIPPED),
    cut=st.integers(0, 3000),
    insert=st.binary(max_size=6),
    at=st.integers(0, 3000),
)
def test_bytes_cut_and_inserted(file: Path, source: Path, cut: int, insert: bytes, at: int) -> None:
    content = source.read_bytes()
    file.write_bytes(content[:at] + insert + content[at : max(at, len(content) - cut)])
    loads_or_is_refused(file)


@pytest.mark.slow
@relaxed
@given(
    source=st.sampled_from(SHIPPED),
    at=st.integers(0, 3000),
    char=st.sampled_from(list("{}[]:,&*!|>'\"%@`#-?\t\n ")),
)
def test_a_character_replaced(file: Path, source: Path, at: int, char: str) -> None:
    text = source.read_text("utf-8")
    at %= len(text)
    file.write_text(text[:at] + char + text[at + 1 :], "utf-8")
    loads_or_is_refused(file)


@relaxed
@given(key=st.text(max_size=30), value=st.text(max_size=30))
def test_any_option(key: str, value: str) -> None:
    loads_or_is_refused("lock-cycle", (f"{key}={value}",))


@pytest.mark.slow
@relaxed
@given(key=st.sampled_from(KNOWN_KEYS), value=ODD_VALUES)
def test_any_value_of_a_known_key(key: str, value: object) -> None:
    loads_or_is_refused("lock-cycle", (f"{key}={json.dumps(value)}",))
