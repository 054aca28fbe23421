"""From the refusals of the models to problems with a place in the file."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from simfs.scenario.problems import Problem
from simfs.scenario.reading.document import Document, Path_


def problems_of(error: ValidationError, document: Document) -> Iterator[Problem]:
    """Yield a problem for each refusal, at the place where the refused key or value was written."""
    for detail in error.errors(include_url=False):
        yield _problem(detail, document)


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
    return Problem(place.key if about_key else place.value, message, suggestion)


def _is_option_of(where: str, key: str) -> bool:
    """Whether a place is an option that has the key in it already."""
    return where.startswith("--") and (where.endswith(f" {key}") or where.startswith(f"--set {key}="))
