"""The pages that people read, and what they tell them to type and to write."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).parents[2]
MANY_MACHINES = "docs/how-to/many-machines.md"
EXTENSIONS = "docs/development/extensions.md"
HOW_TO_ADD = "docs/development/how-to-add.md"
OPERATION = "docs/explanation/many-machines.md"
BLOCK = re.compile(r'^```(sh|yaml|python)(?: title="([^"]+)")?\n(.*?)^```', re.MULTILINE | re.DOTALL)
PREPARE = re.compile(r"^python3 -m venv \.venv && \.venv/bin/pip install --quiet -e \S+ && \.venv/bin/")
"""What a newcomer types first; the tests run in such an environment."""


@dataclass(frozen=True)
class Block:
    """A fenced block. ``title``: the file that it is the content of."""

    language: str
    title: str
    text: str

    @property
    def commands(self) -> list[str]:
        """The commands of a shell block, without what makes the environment."""
        lines = self.text.splitlines() if self.language == "sh" else []
        return [PREPARE.sub("", line) for line in lines if line and not line.startswith("#")]


def page_names() -> list[str]:
    """The README and every page of the documentation and the examples, relative to the repository."""
    pages = [*TOP.glob("docs/**/*.md"), *TOP.glob("examples/**/*.md")]
    return ["README.md", *sorted(page.relative_to(TOP).as_posix() for page in pages)]


def blocks(name: str) -> list[Block]:
    """The blocks of a page, in order."""
    return [Block(*found) for found in BLOCK.findall((TOP / name).read_text(encoding="utf-8"))]


def commands(name: str) -> list[str]:
    """The commands of a page, in order."""
    return [command for block in blocks(name) for command in block.commands]
