"""Price lists for tests."""

from __future__ import annotations

from pathlib import Path

import yaml

from codex_multi_role.catalog.prices import PriceList
from codex_multi_role.lifecycle.model_providers import PLAYBOOK_MODEL

NO_PRICES = PriceList(Path("prices.yaml"), "2026-01-31", {})


def write_prices(file: Path, **models: tuple[float, float, float]) -> Path:
    """Write a price list: by model, the prices of input, cached input and output tokens."""
    prices = {name: dict(zip(("input", "cached_input", "output"), each, strict=True)) for name, each in models.items()}
    file.write_text(yaml.safe_dump({"date": "2026-01-31", "currency": "USD", "source": "a test", "models": prices}))
    return file


def price_playbook(file: Path, price: float = 1000.0) -> Path:
    """Write a list in which every token of a playbook costs ``price`` dollars per million."""
    return write_prices(file, **{PLAYBOOK_MODEL: (price, price, price)})
