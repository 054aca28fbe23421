"""The base of every section of a scenario: unknown keys are refused with the nearest valid one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    TypeAdapter,
    ValidationError,
    create_model,
    model_validator,
)
from pydantic_core import CoreSchema, ErrorDetails, InitErrorDetails, PydanticCustomError, core_schema

from simfs.scenario.suggest import nearest, some

Text = Annotated[str, Field(min_length=1, max_length=2000)]
"""Something that people read, or the name of a file."""


class Section(BaseModel):
    """A frozen mapping with known keys; its errors are worded for the author of a scenario."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    MOVED: ClassVar[Mapping[str, str]] = {}
    """Keys that this section had once -> where what they said is said now."""

    ELSEWHERE: ClassVar[Mapping[str, str]] = {}
    """Keys of another program that has such a section -> what to write here."""

    @model_validator(mode="wrap")
    @classmethod
    def _reworded(cls, data: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        # Here and not where errors are printed: only here the valid keys of this section are at hand.
        try:
            return handler(data)
        except ValidationError as error:
            details = _causes(error.errors(include_url=False))
            raise ValidationError.from_exception_data(
                cls.__name__, [_reword(d, cls) for d in details]
            ) from None


class Word:
    """Lets a plain word stand for a mapping with one key, as the JSON Schema says: made when it is asked for."""

    def __init__(self, key: str, section: Callable[[], type[Section]]) -> None:
        """`key` is that of the word, `section` the mapping."""
        self.key = key
        self.section = section

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Widen a word before anything is checked."""
        return core_schema.no_info_before_validator_function(self._widen, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """A string or the mapping."""
        either: Any = str | self.section()
        return handler(TypeAdapter(either).core_schema)

    def _widen(self, value: object) -> object:
        return {self.key: value} if isinstance(value, (str, int, float)) else value


def word_as(key: str, section: type[Section]) -> Word:
    """Let a plain word stand for a mapping with this one key."""
    return Word(key, lambda: section)


def changes_of(section: type[Section]) -> Word:
    """Let a plain word stand for a profile's name, or some keys for what differs from another's."""
    return Word("profile", lambda: _changes(section))


@cache
def _changes(section: type[Section]) -> type[Section]:
    profile: Any = (Text | None, Field(default=None, description="Name of another profile."))
    return create_model(
        f"{section.__name__}Changes", __base__=section, __doc__=section.__doc__, profile=profile
    )


def refusal(message: str, suggestion: str | None = None) -> PydanticCustomError:
    """Return the error a validator raises: what is wrong, and what was probably meant."""
    # A context keeps braces in the user's text from being read as placeholders.
    return PydanticCustomError("refused", "{message}", {"message": message, "suggestion": suggestion})


def refusal_at(
    location: tuple[str | int, ...], message: str, suggestion: str | None = None
) -> ValidationError:
    """Return the same error of what is at a place within the section."""
    of = InitErrorDetails(type=refusal(message, suggestion), loc=location, input=None)
    return ValidationError.from_exception_data("", [of])


def _causes(details: list[ErrorDetails]) -> list[ErrorDetails]:
    """The errors without that of a list whose entries were refused: it would have them else."""

    def inside(outer: ErrorDetails, inner: ErrorDetails) -> bool:
        depth = len(outer["loc"])
        return depth < len(inner["loc"]) and inner["loc"][:depth] == outer["loc"]

    return [d for d in details if d["type"] != "too_short" or not any(inside(d, each) for each in details)]


def _reword(detail: ErrorDetails, section: type[Section]) -> InitErrorDetails:
    # A wrong kind is told where the kind is written, not where its section begins.
    of_kind = ("kind",) if detail["type"] == "union_tag_invalid" else ()
    return InitErrorDetails(
        type=_refusal(detail, section), loc=(*detail["loc"], *of_kind), input=detail["input"]
    )


def _refusal(detail: ErrorDetails, section: type[Section]) -> PydanticCustomError:
    kind, loc, context = detail["type"], detail["loc"], detail.get("ctx", {})
    if "message" in context:
        return refusal(context["message"], context["suggestion"])
    if kind == "extra_forbidden" and loc[-1] in section.MOVED:
        return refusal(f"unknown key '{loc[-1]}': it is {section.MOVED[str(loc[-1])]} now")
    if kind == "extra_forbidden" and loc[-1] in section.ELSEWHERE:
        return refusal(f"unknown key '{loc[-1]}': {section.ELSEWHERE[str(loc[-1])]}")
    if kind == "extra_forbidden":
        return refusal(f"unknown key '{shorten(loc[-1])}'", nearest(loc[-1], _keys(section)))
    if kind == "missing":
        return refusal(f"key '{loc[-1]}' is missing" if isinstance(loc[-1], str) else "a value is missing")
    if kind in ("model_type", "dict_type", "model_attributes_type"):
        return refusal(f"expected a mapping (key: value), got {shorten(detail['input'])}")
    if kind in ("tuple_type", "list_type"):
        return refusal(f"expected a list ([A, B]), got {shorten(detail['input'])}")
    if kind == "too_short":
        least = context["min_length"]
        return refusal(f"needs at least {least} entr{'y' if least == 1 else 'ies'}")
    if kind in ("literal_error", "union_tag_invalid"):
        return _not_a_choice(context, detail["input"])
    if kind == "union_tag_not_found":
        return refusal(f"key {context['discriminator']} is missing")
    message = detail["msg"].removeprefix("Value error, ").replace("Input should", "should")
    return refusal(f"{message}, got {_given(detail['input'])}")


def _keys(section: type[Section]) -> list[str]:
    return [field.alias or name for name, field in section.model_fields.items()]


def _not_a_choice(context: dict[str, Any], given: object) -> PydanticCustomError:
    listed = context.get("expected") or context["expected_tags"]
    choices = re.findall(r"'([^']*)'", listed)
    got = context.get("tag", given)
    return refusal(f"{_given(got)} is not one of {some(got, choices) or listed}", nearest(got, choices))


def _given(value: object) -> str:
    """What was given, as it may appear in a message; quoted where a text looks like a number, or like nothing."""
    is_odd = isinstance(value, str) and not re.search("[^\\W\\d]", value)
    return f"'{shorten(value)}'" if is_odd else shorten(value)


def shorten(value: object) -> str:
    """Return `value` as it may appear in a message: on one line and not long."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    if value is None:
        return "nothing"
    if isinstance(value, int) and abs(value) >= 10**30:
        return "a huge number"
    text = " ".join(str(value).split())
    return text if len(text) <= 60 else text[:57] + "..."
