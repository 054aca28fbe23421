"""Which scenario predicts which data set: the one whose `measured:` names it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from simfs.scenario import paths
from simfs.scenario.measured.dataset import Dataset, load_dataset
from simfs.scenario.problems import Problem, ScenarioError
from simfs.scenario.reading.document import Document
from simfs.scenario.reading.loader import load
from simfs.scenario.schema import Scenario
from simfs.scenario.suggest import nearest


@dataclass(frozen=True)
class Predicted:
    """A data set and the scenario that predicts it; None where no scenario names it."""

    dataset: Dataset
    scenario: Scenario | None


def predicted(names: Sequence[str], overrides: Sequence[str] = ()) -> tuple[Predicted, ...]:
    """Return what `names` stand for, each once: data sets or scenarios, shipped by name or any by path.

    Without names it is every shipped data set. `overrides` are laid over the scenarios. Raises ScenarioError
    for a name that stands for nothing, a scenario without measured data, a named data set that no scenario
    predicts, and one that several do.
    """
    if not names:
        return tuple(_of_dataset(name, overrides) for name in paths.names(paths.MEASURED))
    found = [_of_name(name, overrides) for name in names]
    for name, one in zip(names, found, strict=True):
        if one.scenario is None:
            raise ScenarioError([Problem(name, "no scenario names this data set under 'measured:'")])
    return tuple({(p.dataset.name, p.scenario and p.scenario.name): p for p in found}.values())


def _of_name(name: str, overrides: Sequence[str]) -> Predicted:
    datasets, scenarios = paths.names(paths.MEASURED), paths.names(paths.SCENARIOS)
    if name in datasets:
        return _of_dataset(name, overrides)
    if name in scenarios:
        return _of_scenario(name, overrides)
    if paths.is_name(name) or "\0" in name or not Path(name).exists():
        what = "there is no data set or scenario of this name" if paths.is_name(name) else "no such file"
        raise ScenarioError([Problem(name or "''", what, nearest(Path(name).stem, [*datasets, *scenarios]))])
    if Document.read(Path(name)).is_dataset:
        return _of_dataset(name, overrides)
    return _of_scenario(name, overrides)


def _of_scenario(name: str, overrides: Sequence[str]) -> Predicted:
    scenario = load(name, overrides)
    if scenario.measured is None:
        raise ScenarioError([Problem(name, "this scenario has no measured data ('measured:')")])
    return Predicted(load_dataset(scenario.measured.dataset), scenario)


def _of_dataset(name: str, overrides: Sequence[str]) -> Predicted:
    file = predictor(name)
    return Predicted(load_dataset(name), load(file, overrides) if file else None)


def predictor(name: str) -> Path | None:
    """The scenario of a shipped data set, a shipped one, or of one's own: beside it or one folder up."""
    if paths.is_name(name):
        users = _users(name, paths.SCENARIOS.glob("*.yaml"))
    else:
        folder = Path(name).resolve().parent
        users = _users(name, [*folder.glob("*.yaml"), *folder.parent.glob("*.yaml")])
    if len(users) > 1:
        several = " and ".join(user.stem for user in users)
        raise ScenarioError(
            [Problem(name, f"several scenarios name this data set: {several}; name one of them")]
        )
    return users[0] if users else None


def _users(name: str, files: Iterable[Path]) -> list[Path]:
    wanted = name if paths.is_name(name) else Path(name).resolve()
    return sorted(file for file in files if _named_by(file, file.stat().st_mtime_ns) == wanted)


@cache
def _named_by(file: Path, changed_ns: int) -> str | Path | None:
    """The data set that a scenario's file names, once for each change of it: a shipped one by name, else a file."""
    try:
        data: dict[str, Any] = Document.read(file).data
    except ScenarioError:  # not a scenario that could be meant
        return None
    use = data.get("measured")
    name = use.get("dataset") if isinstance(use, dict) else use
    if "simfs" not in data or not isinstance(name, str):
        return None
    return name if paths.is_name(name) else (file.parent / name).resolve()
