"""What model requests used, in tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class TokenUsage:
    """Tokens of one or more model requests.

    ``cached_input``: the part of ``input`` that the provider read from its cache, for which it may charge less.
    """

    input: int = 0
    cached_input: int = 0
    output: int = 0

    @classmethod
    def of_record(cls, tokens: Mapping[str, int]) -> TokenUsage:
        """The inverse of `as_record`. Earlier versions did not record ``cached_input``."""
        return cls(*(max(tokens.get(name, 0), 0) for name in ("input", "cached_input", "output")))

    @property
    def total(self) -> int:
        """Input and output. What was cached is part of the input."""
        return self.input + self.output

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(self.input + other.input, self.cached_input + other.cached_input, self.output + other.output)

    def as_record(self) -> dict[str, int]:
        """``tokens`` in ``turn.json``."""
        return {"input": self.input, "cached_input": self.cached_input, "output": self.output}
