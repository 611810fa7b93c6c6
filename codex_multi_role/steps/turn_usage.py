"""What a running turn used, and what that costs at the prices of the models that answered."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal

from codex_multi_role.catalog.prices import PriceList
from codex_multi_role.codex.usage import TokenUsage
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder.cost import Cost, as_number


class TurnUsage:
    """``model``: the one that answers the role now; a provider may change it. Sub-agents may have others.

    ``is_missing``: the provider did not report it, so that the cost is unknown.
    """

    def __init__(self, prices: PriceList, model: str) -> None:
        self._prices = prices
        self._by_model: dict[str, TokenUsage] = defaultdict(TokenUsage)
        self.model = model
        self.is_missing = False

    def add(self, usage: TokenUsage, sub_agent_model: str | None = None) -> None:
        self._by_model[sub_agent_model or self.model] += usage

    @property
    def tokens(self) -> TokenUsage:
        return sum(self._by_model.values(), TokenUsage())

    @property
    def cost(self) -> Decimal | None:
        """In US dollars; None if it is unknown, or ``model``, or another one that was used, has no price."""
        if self.is_missing:
            return None
        used = {self.model: TokenUsage(), **self._by_model}
        return sum((Cost.of(self._prices.cost(*each)) for each in used.items()), Cost()).known

    def as_json(self) -> Json:
        """``tokens`` and ``cost`` in ``turn.json``; ``tokens_by_model`` if they are not all those of one ``model``."""
        by_model = {model: tokens.as_record() for model, tokens in self._by_model.items()}
        more = {"tokens_by_model": by_model} if by_model.keys() - {self.model} else {}
        return {"tokens": self.tokens.as_record(), **more, "cost": as_number(self.cost)}
