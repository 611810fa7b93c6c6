"""The price list: what models cost per million tokens, on a date."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal, Protocol

from pydantic import Field, WithJsonSchema

from codex_multi_role.catalog.definition import DAY, NUMBER, Definition
from codex_multi_role.catalog.source_files import settings_file
from codex_multi_role.reading.shipped import packaged_roles
from codex_multi_role.reading.yaml_source import load_yaml, validate

PRICES_FILE = "prices.yaml"
MILLION = 1_000_000
MAX_PRICE = 1_000_000
"""In US dollars for a million tokens. With higher prices, costs would have too many digits to be rounded exactly."""
SMALLEST_AMOUNT = Decimal("1E-9")
"""Costs are rounded to it; amounts below a million dollars then pass through JSON unchanged."""

Price = Annotated[
    Decimal,
    Field(ge=0, le=MAX_PRICE),
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": MAX_PRICE}),
    NUMBER,
]


class Tokens(Protocol):
    """How many tokens; ``cached_input`` and ``cache_write`` are parts of ``input``."""

    @property
    def input(self) -> int: ...
    @property
    def cached_input(self) -> int: ...
    @property
    def cache_write(self) -> int: ...
    @property
    def output(self) -> int: ...


class ModelPrice(Definition):
    """What a million tokens of a model cost."""

    input: Price = Field(description="Input tokens that were not cached.")
    cached_input: Price = Field(description="Input tokens that the provider had in its cache.")
    cache_write: Price | None = Field(
        default=None, description="Input tokens that the provider wrote to its cache; by default as `input`."
    )
    output: Price = Field(description="Output tokens, reasoning included.")

    def cost(self, tokens: Tokens) -> Decimal:
        """In US dollars."""
        cached = min(tokens.cached_input, tokens.input)
        written = min(tokens.cache_write, tokens.input - cached)
        of_input = self.input * (tokens.input - cached - written) + self.cached_input * cached + self._write * written
        return ((of_input + self.output * tokens.output) / MILLION).quantize(SMALLEST_AMOUNT)

    @property
    def _write(self) -> Decimal:
        return self.input if self.cache_write is None else self.cache_write

    @property
    def highest(self) -> Decimal:
        """The price of a million tokens, whatever they are."""
        return max(self.input, self.cached_input, self._write, self.output)


class PricesFile(Definition):
    """A price list as written. Only exact names count: a model that is not listed has no price."""

    date: Annotated[datetime.date, DAY] = Field(
        description="When the prices were valid. It is recorded with every cost."
    )
    currency: Literal["USD"] = Field(description="The currency; no other is supported.")
    source: str = Field(min_length=1, description="Where the prices come from, and what they leave out.")
    models: dict[str, ModelPrice] = Field(description="The prices of each model, by its exact name.")


@dataclass(frozen=True)
class PriceList:
    """The price list in ``file``. ``date``: as recorded, ``2026-11-23``."""

    file: Path
    date: str
    models: Mapping[str, ModelPrice]

    @classmethod
    def load(cls, given: Path | None, folder: Path) -> PriceList:
        """Load the list ``given``, otherwise that in the catalog's ``folder``, otherwise the shipped one.

        Raises one `DefinitionError` for all mistakes in it.
        """
        file = given or settings_file(PRICES_FILE, folder) or packaged_roles() / PRICES_FILE
        written = validate(PricesFile, load_yaml(file), file)
        return cls(file, written.date.isoformat(), written.models)

    def cost(self, model: str, tokens: Tokens) -> Decimal | None:
        """What the tokens cost; None if the model has no price."""
        price = self.models.get(model)
        return None if price is None else price.cost(tokens)
