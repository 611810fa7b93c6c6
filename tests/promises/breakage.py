"""A promise broken on purpose: one place of the package changed, and the tests that must notice."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PACKAGE = "codex_multi_role"


@dataclass(frozen=True)
class Breakage:
    """``clause`` of the ``promise`` (its number in the design) no longer holds once ``old`` reads ``new`` in ``file``.

    ``file`` lies below the package. ``tests`` are pytest's ids below ``tests/``; each of them must fail then.
    """

    promise: int
    clause: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.promise}. {self.clause}"

    def broken(self, root: Path) -> str:
        """The file's text as broken, in the tree at ``root``. Raises `ValueError` unless ``old`` stands there once."""
        text = (root / PACKAGE / self.file).read_text(encoding="utf-8")
        if (count := text.count(self.old)) != 1:
            raise ValueError(f"{self}: {self.file} has {count} times, not once: {self.old!r}")
        return text.replace(self.old, self.new)

    def apply(self, root: Path) -> None:
        broken = self.broken(root)
        (root / PACKAGE / self.file).write_text(broken, encoding="utf-8")

    def ids(self) -> list[str]:
        return [f"tests/{test}" for test in self.tests]
