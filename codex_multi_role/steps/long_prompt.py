"""A prompt that is longer than Codex takes: its beginning and its end are sent, and the whole is a file to read in."""

from __future__ import annotations

from codex_multi_role.catalog import fill
from codex_multi_role.codex.turn import LONGEST_PROMPT
from codex_multi_role.run_folder import TurnFolder

KEPT_CHARACTERS = 100_000
"""At either end: who is asked what stands first, the form of the answer last; handoffs and test results in between."""


def sendable(prompt: str, folder: TurnFolder, section: str) -> str:
    """What is sent for ``prompt``: itself, unless it is too long. Raises `StorageError`.

    ``section``: the catalog's text for what is left out.
    """
    if len(prompt) <= LONGEST_PROMPT:
        return prompt
    whole = folder.write_long_prompt(prompt)
    left_out = len(prompt) - 2 * KEPT_CHARACTERS
    note = fill(section, {"left_out": str(left_out), "file": str(whole)}).strip()
    return f"{prompt[:KEPT_CHARACTERS]}\n\n{note}\n\n{prompt[-KEPT_CHARACTERS:]}"
