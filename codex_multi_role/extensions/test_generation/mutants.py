"""A mutant of a Python file: the same text with one small change, which good tests notice."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

from codex_multi_role.errors import how_to_add

HOW_TO_INSTALL = f"mutants need libcst: {how_to_add('mutation')}"


@dataclass(frozen=True)
class Mutant:
    """``id`` is ``line.number``, stable for the same file text; ``text`` is that of the whole file.

    ``lines`` of the original: whoever executes what changed executes one of them.
    """

    id: str
    line: int
    lines: range
    operator: str
    text: str
    diff: str

    def as_json(self) -> dict[str, object]:
        """The fields reported for a survivor."""
        return {"id": self.id, "line": self.line, "operator": self.operator, "diff": self.diff}


def is_installed() -> bool:
    """Whether the extra ``mutation`` is installed."""
    return find_spec("libcst") is not None
