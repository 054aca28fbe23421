"""From the refusals of the models to problems with a place in the file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from simfs.scenario.problems import Problem
from simfs.scenario.reading.document import Document, Path_

_AS_WELL = " as well"


def problems_of(error: ValidationError, document: Document) -> Iterator[Problem]:
    """Yield a problem for each refusal, at the place where the refused key or value was written."""
    problems = [_problem(detail, document) for detail in error.errors(include_url=False)]
    begun = {problem.where for problem in problems if _begins_a_section(problem)}
    for problem in problems:
        if problem.where not in begun or _begins_a_section(problem):
            yield problem


def _begins_a_section(problem: Problem) -> bool:
    """Whether an option is for a section that the scenario does not have: then that is what is wrong."""
    return problem.where.startswith("--set ") and problem.message.endswith(_AS_WELL)


def _problem(detail: ErrorDetails, document: Document) -> Problem:
    context = detail.get("ctx", {})
    return problem_at(
        document, detail["loc"], str(context.get("message", detail["msg"])), context.get("suggestion")
    )


def problem_at(document: Document, location: Path_, message: str, suggestion: str | None) -> Problem:
    """Return a problem at the place where what is at `location` was written."""
    path = document.locate(location)
    about_key = message.startswith(("unknown key", "key '"))
    place = document.place_of(path)
    key = ".".join(map(str, path))
    if key and not about_key and not _is_option_of(place.value, key):
        message = f"{key}: {message}"
    missing = re.fullmatch("key '(.*)' is missing", message)
    if missing and place.key.startswith("--set ") and isinstance(document.data.get(key), dict):
        message = f"{message}: set {key}.{missing[1]}{_AS_WELL}"
    return Problem(place.key if about_key else place.value, message, suggestion)


def _is_option_of(where: str, key: str) -> bool:
    """Whether a place is an option that has the key in it already."""
    return where.startswith("--") and (where.endswith(f" {key}") or where.startswith(f"--set {key}="))
