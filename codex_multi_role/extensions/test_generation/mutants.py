"""A mutant of a Python file: the same text with one small change, which good tests notice."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

from pydantic import Field

from codex_multi_role.checks import CheckOptions
from codex_multi_role.errors import how_to_add

HOW_TO_INSTALL = f"mutants need libcst: {how_to_add('mutation')}"


class MutantOptions(CheckOptions):
    """Which mutants of ``target`` are judged, as in `MutationOptions`."""

    target: str = Field(min_length=1, description="a Python file of the workspace")
    max_mutants: int = Field(default=100, ge=1, le=2_000, description="a number from 1 to 2000")
    seed: int = Field(default=0, description="a whole number")
    mutants: list[str] | None = Field(default=None, description="ids of mutants from an earlier result")
    concurrency: int = Field(default=2, ge=1, le=32, description="number of mutants at once, 1 to 32")
    timeout_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False, description="a number of seconds")


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
