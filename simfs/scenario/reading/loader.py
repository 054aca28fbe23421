"""Loading a scenario: a `Scenario` comes back, or every problem of the file is told with its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from simfs.scenario import paths
from simfs.scenario.checks.fits import check_calibration
from simfs.scenario.checks.names import (
    check_expectations,
    check_group,
    check_groups,
    check_measured,
    check_points,
    check_profiles,
)
from simfs.scenario.points import drafts, group_drafts
from simfs.scenario.problems import Problem, ScenarioError
from simfs.scenario.reading.document import Document
from simfs.scenario.reading.extends import extended
from simfs.scenario.reading.files import STANDARD_INPUT
from simfs.scenario.reading.overlay import set_option
from simfs.scenario.reading.refusals import problems_of
from simfs.scenario.schema import VERSION, Scenario, Written
from simfs.scenario.sections.kernel import OWN_LOCK
from simfs.scenario.sections.section import shorten
from simfs.scenario.suggest import nearest


def load(scenario: str | Path | Mapping[str, Any], overrides: Sequence[str] = ()) -> Scenario:
    """Load a shipped scenario by name, or any by path or as a mapping, with `KEY=VALUE` overrides laid over it.

    Raises `ScenarioError` with every problem found: `file:line:column: message (did you mean 'x'?)`.
    """
    written = Document.of(scenario) if isinstance(scenario, Mapping) else Document.read(_find(str(scenario)))
    return made(written, overrides)


def made(document: Document, overrides: Sequence[str] = ()) -> Scenario:
    """Return the scenario of a document, as `load` does; what it names is relative to the folder of its name."""
    if document.is_dataset:
        what = f"is a data set, no scenario; a scenario names it: measured: {document.name}"
        raise ScenarioError([Problem(document.name, what)])
    document = extended(document, _prepare)
    _set_all(document, overrides)
    _check_version(document)
    _anchor_paths(document, document.folder)
    found = check(document)
    if not overrides:  # an override may leave out what is expected of
        _refuse(check_expectations(found, document))
    found._written = Written(document.text)
    return found


def _prepare(base: Document) -> None:
    """Make what another scenario extends independent of where it is."""
    _check_version(base)
    _anchor_paths(base, base.folder.absolute())


def check(document: Document) -> Scenario:
    """Return the scenario in `document`; raise `ScenarioError` with every problem found."""
    scenario: Scenario | None = None
    problems: list[Problem] = []
    try:
        scenario = Scenario.model_validate(document.data)
    except ValidationError as error:
        problems += problems_of(error, document)
        if any(
            detail["loc"][:1] in (("variants",), ("sweep",), ("points",), ()) for detail in error.errors()
        ):
            raise ScenarioError(problems) from None
    problems += _variant_problems(document)
    if scenario is not None:
        problems += check_points(scenario, document)
        problems += check_measured(scenario, document)
        problems += check_calibration(scenario, document)
    if problems or scenario is None:
        raise ScenarioError(problems)
    return scenario


def _refuse(problems: Iterable[Problem]) -> None:
    if found := list(problems):
        raise ScenarioError(found)


def _variant_problems(document: Document) -> Iterator[Problem]:
    seen: set[Any] = set()
    for index, variant in enumerate(document.data.get("variants") or []):
        if variant["name"] in seen:
            at = document.place_of(("variants", index, "name")).value
            yield Problem(at, f"there is already a variant '{variant['name']}'")
        seen.add(variant["name"])
    try:
        for draft in drafts(document):
            try:
                point = Scenario.model_validate(draft.document.data)
            except ValidationError as error:
                yield from problems_of(error, draft.document)
            else:
                yield from check_point(point, draft.document)
    except ScenarioError as error:
        yield from error.problems


def check_point(point: Scenario, document: Document) -> Iterator[Problem]:
    """Yield what does not fit what a point names, in the point itself and in each of its groups."""
    yield from check_profiles(point, document)
    yield from check_groups(point, document)
    for draft in group_drafts(document):
        try:
            group = Scenario.model_validate(draft.data)
        except ValidationError as error:
            yield from problems_of(error, draft)
        else:
            yield from check_profiles(group, draft)
            yield from check_group(point, group, draft)


def _find(name: str) -> Path:
    path = STANDARD_INPUT if name == "-" else paths.find(name, paths.SCENARIOS)
    if path is not None:
        return path
    known = paths.names(paths.SCENARIOS)
    if paths.is_name(name) and paths.exists(Path(name)) and Path(name).is_file():
        what = (
            "this file is no scenario: the name of one ends in .yaml (or give its path, ./ before the name)"
        )
        raise ScenarioError([Problem(shorten(name), what)])
    if name and paths.is_name(name) and paths.exists(Path(name)) and Path(name).is_dir():
        raise ScenarioError([Problem(shorten(name), _of_folder(Path(name)))])
    near = nearest(Path(name).stem, known) or _beside(Path(name))
    listed = "" if near else f"; `simfs list` names all {len(known)}"
    what = f"there is no scenario of this name{listed}" if paths.is_name(name) else "no such file"
    if paths.is_name(name) and (ending := Path(name).suffix[1:]).isalpha():  # not a version, as of linux-6.12
        what = f"no such file, and {what}" if ending else what
    raise ScenarioError([Problem(shorten(name) or "''", what, near)])


def _of_folder(folder: Path) -> str:
    """What is said of a folder where a scenario is expected."""
    if paths.exists(folder / "result.json"):
        return "this is the folder of a result, not a scenario; `simfs compare` and `simfs report` read it"
    return "this is a folder, not a scenario; name a file in it that ends in .yaml"


def _beside(path: Path) -> str | None:
    """The file in the same folder whose name is most like that of a missing one."""
    try:
        files = {each.name: str(each) for each in path.parent.glob("*.y*ml")}
    except OSError:
        return None
    return files.get(nearest(path.name, files) or "")


def _check_version(document: Document) -> None:
    version = document.data.get("simfs")
    # A mistyped or missing key is told with all other problems; another version makes them meaningless.
    if isinstance(version, int) and version != VERSION:
        at = document.place_of(("simfs",)).value
        raise ScenarioError(
            [Problem(at, f"version {shorten(version)} is not supported; this simfs reads {VERSION}")]
        )


def _set_all(document: Document, options: Sequence[str]) -> None:
    problems: list[Problem] = []
    for option in options:
        try:
            set_option(document, option)
        except ScenarioError as error:
            problems += error.problems
    if "extends" in document.data:
        at = document.place_of(("extends",)).key
        problems.append(Problem(at, "extends: only the scenario itself can say what it extends"))
    if problems:
        raise ScenarioError(problems)


def _anchor_paths(document: Document, folder: Path) -> None:
    """Make paths in the file, which are relative to its folder, paths of this process."""
    holders = [document.data, *(v for v in _list(document.data.get("variants")) if isinstance(v, dict))]
    for holder in holders:
        for section, key in (
            ("machine", "profile"),
            ("kernel", "profile"),
            ("filesystem", "profile"),
            ("device", "profile"),
            ("measured", "dataset"),
        ):
            _anchor(holder, section, key, folder)
        locks = holder.get("locks")
        if isinstance(locks, dict):
            holder["locks"] = {role: _anchored_lock(use, folder) for role, use in locks.items()}
        workload = holder.get("workload")
        if isinstance(workload, dict) and isinstance(program := workload.get("program"), str):
            workload["program"] = _anchored_program(program, folder)
        for load in (
            workload,
            *(group.get("workload") for group in _list(holder.get("groups")) if isinstance(group, dict)),
        ):
            _anchor_draws(load, folder)


def _anchor_draws(value: object, folder: Path) -> None:
    """The same of files of durations, wherever in a workload they stand."""
    if isinstance(value, dict):
        if isinstance(file := value.get("empirical"), str) and "\0" not in file:
            value["empirical"] = str(folder / file)
        for inner in value.values():
            _anchor_draws(inner, folder)
    for inner in _list(value):
        _anchor_draws(inner, folder)


def _anchor(holder: dict[str, Any], section: str, key: str, folder: Path) -> None:
    inner = holder.get(section)
    if isinstance(inner, str):
        holder[section] = _anchored(inner, folder)
    elif isinstance(inner, dict) and isinstance(inner.get(key), str):
        inner[key] = _anchored(inner[key], folder)


def _anchored(name: str, folder: Path) -> str:
    if paths.is_name(name) or "\0" in name or Path(name).is_absolute():
        return name
    return str(folder / name)


def _anchored_lock(use: object, folder: Path) -> object:
    own = isinstance(use, str) and OWN_LOCK.fullmatch(use)
    return str(folder / str(use)) if own else use


def _anchored_program(program: str, folder: Path) -> str:
    file = program.rpartition(":")[0]
    if not file or "\0" in file or Path(file).is_absolute():
        return program
    return str(folder / program)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
