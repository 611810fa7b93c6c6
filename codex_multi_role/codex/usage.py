"""What model requests used, in tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True)
class TokenUsage:
    """Tokens of one or more model requests.

    ``cached_input``: the part of ``input`` that the provider read from its cache, for which it may charge less;
    ``cache_write``: the part that it wrote there, for which it may charge more.
    """

    input: int = 0
    cached_input: int = 0
    output: int = 0
    cache_write: int = 0

    @classmethod
    def of_record(cls, tokens: Mapping[str, int]) -> TokenUsage:
        """The inverse of `as_record`. Earlier versions did not record the parts of ``input``."""
        return cls(**{each.name: max(tokens.get(each.name, 0), 0) for each in fields(cls)})

    @property
    def total(self) -> int:
        """Input and output, of which the other two are parts."""
        return self.input + self.output

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(**{name: count + getattr(other, name) for name, count in vars(self).items()})

    def as_record(self) -> dict[str, int]:
        """``tokens`` in ``turn.json``."""
        return asdict(self)


def tokens_by_model(turn: Mapping[str, Any]) -> Mapping[str, Mapping[str, int]]:
    """``tokens`` in ``turn.json``, by the model that used them: all by ``model`` unless several are recorded."""
    found: Mapping[str, Mapping[str, int]] = turn.get("tokens_by_model") or {turn.get("model", ""): turn["tokens"]}
    return found
