"""The names that one file defines and imports, whatever its language."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Import:
    """``name`` as the language writes it; ``names``: imported from it; ``level``: leading dots of a Python name."""

    name: str
    names: tuple[str, ...] = ()
    level: int = 0


@dataclass
class Symbols:
    """``functions`` and ``classes`` in order, a method as ``Class.method``; ``constants``: other names.

    ``deferred``: imports inside functions, which are a way to avoid cycles. ``partly``: the lines that could not be
    read, of a file that otherwise could.
    """

    functions: list[str] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)
    deferred: list[Import] = field(default_factory=list)
    problem: str = ""
    partly: str = ""


@dataclass
class Connections:
    """By path, the files that each file depends on, and those it imports later; ``outside``: names from elsewhere."""

    dependencies: dict[str, set[str]] = field(default_factory=dict)
    deferred: dict[str, set[str]] = field(default_factory=dict)
    outside: set[str] = field(default_factory=set)

    def __or__(self, other: Connections) -> Connections:
        return Connections(
            self.dependencies | other.dependencies, self.deferred | other.deferred, self.outside | other.outside
        )
