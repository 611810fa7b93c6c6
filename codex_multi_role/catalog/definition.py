"""The base class of everything read from YAML."""

from __future__ import annotations

from functools import cache
from typing import get_args

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator, model_validator


class Definition(BaseModel):
    """A frozen model that rejects unknown keys. A key without a value (``model:``) counts as not given."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _null_is_not_given(cls, data: object) -> object:
        if isinstance(data, dict):
            return {key: value for key, value in data.items() if value is not None}
        return data

    @field_validator("*", mode="before")
    @classmethod
    def _boolean_is_no_number(cls, value: object, field: ValidationInfo) -> object:
        if isinstance(value, bool) and _is_number(cls, str(field.field_name)):
            raise ValueError(f"must be a number, not {str(value).lower()}")
        return value


@cache
def _is_number(model: type[Definition], field: str) -> bool:
    kinds = _types_in(model.model_fields[field].annotation)
    return bool(kinds & {int, float}) and bool not in kinds


def _types_in(annotation: object) -> set[object]:
    """The types that the annotation is made of, also within ``Annotated`` and a union."""
    return {annotation}.union(*map(_types_in, get_args(annotation)))
