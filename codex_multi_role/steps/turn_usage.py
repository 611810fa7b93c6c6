"""What a running turn used, and what that costs at the prices of the models that answered."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal

from codex_multi_role.catalog.prices import PriceList
from codex_multi_role.codex.usage import TokenUsage
from codex_multi_role.run_folder.cost import Cost


class TurnUsage:
    """``model``: the one that answers now, which counts for sub-agents as well; a provider may change it.

    ``is_missing``: the provider did not report it, so that the cost is unknown.
    """

    def __init__(self, prices: PriceList, model: str) -> None:
        self._prices = prices
        self._by_model: dict[str, TokenUsage] = defaultdict(TokenUsage)
        self.model = model
        self.is_missing = False

    def add(self, usage: TokenUsage) -> None:
        self._by_model[self.model] += usage

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
