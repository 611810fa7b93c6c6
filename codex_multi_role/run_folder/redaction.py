"""Keeping secrets out of the artifacts: by the value of what the environment calls a secret, and by shape."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL)", re.IGNORECASE)
# In JSON the letter of an escaped line break stands right before what begins the next line.
BEGINNING = r"(?:(?<![A-Za-z0-9])|(?<=\\[bfnrt])|(?<=\\u[0-9a-fA-F]{4}))"
SECRET_SHAPE = re.compile(
    BEGINNING + r"(?:sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|AKIA[0-9A-Z]{16})(?![A-Za-z0-9])"
)
SHORTEST_SECRET = 8
MASK = "[redacted]"


class Redactor:
    """Replaces secrets in text about to be stored, plain or inside JSON."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        values = {v for name, v in environment.items() if SECRET_NAME.search(name) and len(v) >= SHORTEST_SECRET}
        values |= {json.dumps(value, ensure_ascii=False)[1:-1] for value in values}
        longest_first = sorted(values, key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, longest_first))) if values else None

    def __call__(self, text: str) -> str:
        """``text`` with every known secret masked."""
        if self._values is not None:
            text = self._values.sub(MASK, text)
        return SECRET_SHAPE.sub(MASK, text)
