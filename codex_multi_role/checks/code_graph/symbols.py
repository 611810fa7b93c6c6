"""What one file says of itself: the names it defines, and what it imports, whatever its language."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Import:
    """``name`` as the language writes it; ``names``: what is taken from it; ``level``: dots before a Python name."""

    name: str
    names: tuple[str, ...] = ()
    level: int = 0


@dataclass
class Symbols:
    """``functions`` and ``classes`` in their order, a method as ``Class.method``; ``constants``: other names.

    ``deferred``: what is imported only once a function runs, which is how circles are avoided. ``partly``: the lines
    that could not be read, of a file that otherwise could.
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
    """By path, the files that each file depends on, and those that it uses later; ``outside``: names from elsewhere."""

    dependencies: dict[str, set[str]] = field(default_factory=dict)
    deferred: dict[str, set[str]] = field(default_factory=dict)
    outside: set[str] = field(default_factory=set)

    def __or__(self, other: Connections) -> Connections:
        return Connections(
            self.dependencies | other.dependencies, self.deferred | other.deferred, self.outside | other.outside
        )
