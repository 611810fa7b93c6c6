"""Options of a check (its step's ``with``), read into a model; each mistake is reported with a hint."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from codex_multi_role.checks.contract import CheckContext
from codex_multi_role.errors import UsageError
from codex_multi_role.reading.nearest import no_such
from codex_multi_role.workspace import PathRefused, Workspace

OptionsT = TypeVar("OptionsT", bound="CheckOptions")
_SHOWN_CHARACTERS = 60


class CheckOptions(BaseModel):
    """Base of all check options: unknown options are rejected, and values are never converted to another type.

    A field's description is the hint shown for a mistake in it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _know_every_name(cls, data: object) -> object:
        known = _fields(cls)
        for name in data if isinstance(data, dict) else ():
            if name not in known:
                raise _unknown(str(name), list(known))
        return data


def require_option_names(kind: type[BaseModel], given: Collection[str]) -> None:
    """Raise `UsageError` if ``given`` has a name that is not an option of ``kind``, or lacks a required one."""
    known = _fields(kind)
    for name in given:
        if name not in known:
            raise UsageError(*no_such("option", name, known))
    for name, field in known.items():
        if field.is_required() and name not in given:
            raise UsageError(f'the option "{name}" is missing', f"{name}: {field.description}")


def read_options(kind: type[OptionsT], context: CheckContext, check: str) -> OptionsT:
    """Read the options that ``context`` gives the check called ``check``.

    Raises UsageError beginning with ``check <name>: <option>:`` for the first mistake; unknown options come first.
    """
    try:
        return kind.model_validate(dict(context.options))
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in detail["loc"])
        message = ": ".join(part for part in (f"check {check}", place.removeprefix("."), _words(detail)) if part)
        raise UsageError(message, _hint(kind, detail)) from error


def inside(workspace: Workspace, relative: str, option: str) -> Path:
    """The path of ``relative``, a file or folder of the workspace. Raises UsageError that begins with ``option``."""
    given = relative.rstrip("/")
    try:
        if os.path.isdir(workspace.root / given):  # noqa: PTH112 - Path.is_dir raises for an impossible file name
            return workspace.resolve_inside(f"{given}/x").parent
        return workspace.resolve_inside(given)
    except PathRefused as error:
        hint = "Name a file or a folder of the workspace, relative to it."
        raise UsageError(f"{option}: {error.reason} {given!r}", hint) from error


def _fields(kind: type[BaseModel]) -> dict[str, FieldInfo]:
    return {field.alias or name: field for name, field in kind.model_fields.items()}


def _unknown(name: str, known: list[str]) -> PydanticCustomError:
    problem, hint = no_such("option", name, known)
    context = {"problem": problem, "hint": hint}
    return PydanticCustomError("unknown_option", "{problem}", context)


def _words(detail: ErrorDetails) -> str:
    if detail["type"] == "missing":
        return "is missing"
    if detail["type"] == "unknown_option":
        return detail["msg"]
    if detail["type"] == "value_error":
        return str(detail["ctx"]["error"])
    shown = repr(detail["input"])
    shown = shown if len(shown) <= _SHOWN_CHARACTERS else f"{shown[:_SHOWN_CHARACTERS]}…"
    return f"{detail['msg'][:1].lower()}{detail['msg'][1:]}, not {shown}"


def _hint(kind: type[CheckOptions], detail: ErrorDetails) -> str:
    if detail["type"] == "unknown_option":
        return str(detail["ctx"]["hint"])
    described = {name: field.description for name, field in _fields(kind).items()}
    options = detail["loc"][:1] or described
    return "; ".join(f"{option}: {described[str(option)]}" for option in options if described[str(option)])
