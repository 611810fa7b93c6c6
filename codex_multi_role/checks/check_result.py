"""Results of a check, which templates see as ``steps.<id>``."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

ResultT = TypeVar("ResultT", bound=BaseModel)
Fields = dict[str, Any]


class ResultPart(BaseModel):
    """A part of a result: exactly the declared fields, never converted. A field with a default may be missing."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class CheckResult(ResultPart):
    """Base of all check results."""

    status: str


def as_json(result: BaseModel) -> dict[str, object]:
    """The fields that the check gave, under the names that templates use."""
    return result.model_dump(by_alias=True, exclude_unset=True)


def field_names(kind: type[BaseModel]) -> Fields | None:
    """The fields of ``kind``, each with its own if it is such a model, otherwise with None; None if it has any."""
    if kind.model_config.get("extra") == "allow":
        return None
    fields = {field.serialization_alias or name: field.annotation for name, field in kind.model_fields.items()}
    return {name: _names_in(own) for name, own in fields.items()} | dict.fromkeys(kind.model_computed_fields)


def _names_in(annotation: object) -> Fields | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return field_names(annotation)
    return None
