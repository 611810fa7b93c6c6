"""The base class of everything read from YAML."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, model_validator


class Definition(BaseModel):
    """A frozen model that rejects unknown keys. A key without a value (``model:``) counts as not given."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _null_is_not_given(cls, data: object) -> object:
        if isinstance(data, dict):
            return {key: value for key, value in data.items() if value is not None}
        return data
