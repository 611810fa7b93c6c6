"""Prompts that are too long for Codex: send the beginning and the end, and store the whole as a file to read."""

from __future__ import annotations

from codex_multi_role.catalog import fill
from codex_multi_role.codex.turn import LONGEST_PROMPT
from codex_multi_role.run_folder import TurnFolder

KEPT_CHARACTERS = 100_000
"""At each end, because the role comes first, the answer format last, and handoffs and test results in between."""


def sendable(prompt: str, folder: TurnFolder, section: str) -> str:
    """The text to send for ``prompt``: the prompt itself, unless it is too long. Raises `StorageError`.

    ``section``: the catalog's text about the omitted part.
    """
    if len(prompt) <= LONGEST_PROMPT:
        return prompt
    whole = folder.write_long_prompt(prompt)
    left_out = len(prompt) - 2 * KEPT_CHARACTERS
    note = fill(section, {"left_out": str(left_out), "file": str(whole)}).strip()
    return f"{prompt[:KEPT_CHARACTERS]}\n\n{note}\n\n{prompt[-KEPT_CHARACTERS:]}"
