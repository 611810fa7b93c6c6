"""How good documents are, as one figure, with what each part of it and each document costs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

FILES, MERMAID, LINKS, SECTIONS, CLAIMS = "files", "mermaid", "links", "sections", "claims"
WEIGHTS = {FILES: 0.3, MERMAID: 0.15, LINKS: 0.15, SECTIONS: 0.2, CLAIMS: 0.2}
MAX_PROBLEMS = 100
MOST_REFINED = 12
_NOTHING = {
    FILES: "there is no source file",
    MERMAID: "no document has a Mermaid diagram",
    LINKS: "no document has a link",
    SECTIONS: "no section is asked for",
    CLAIMS: "no document names anything of the code in code font",
}


@dataclass
class Part:
    """One part of the score: ``good`` of ``of`` things. ``problems``: the document and what is wrong, one for each."""

    good: int = 0
    of: int = 0
    problems: list[tuple[str, str]] = field(default_factory=list)

    def count(self, good: bool, document: str, problem: str) -> None:
        self.of += 1
        self.good += good
        if not good:
            self.problems.append((document, problem))

    @property
    def score(self) -> float:
        return self.good / self.of if self.of else 0.0


class Score:
    """``parts`` by name; those ``unjudged`` do not count. ``first``: the document that lacks what no document has."""

    def __init__(self, parts: Mapping[str, Part], unjudged: Collection[str], first: str) -> None:
        self._parts = parts
        self._first = first
        whole = sum(weight for name, weight in WEIGHTS.items() if name not in unjudged)
        self._weights = {name: 0.0 if name in unjudged else weight / whole for name, weight in WEIGHTS.items()}

    @property
    def total(self) -> float:
        """From 0 to 1."""
        return round(sum(self._weights[name] * part.score for name, part in self._parts.items()), 4)

    def parts(self) -> list[dict[str, object]]:
        """Each with its figures and its problems."""
        return [
            {
                "name": name,
                "weight": round(self._weights[name], 4),
                "score": round(part.score, 4),
                "good": part.good,
                "of": part.of,
                "costs": round(self._weights[name] * (1 - part.score), 4),
                "problems": [
                    {"document": path, "problem": problem} for path, problem in self._problems(name)[:MAX_PROBLEMS]
                ],
            }
            for name, part in self._parts.items()
        ]

    def dearest(self) -> list[dict[str, object]]:
        """The documents that cost most, and what is wrong with each. Every problem of a part costs the same."""
        costs: dict[str, float] = {}
        problems: dict[str, list[str]] = {}
        for name, part in self._parts.items():
            for path, problem in self._problems(name):
                costs[path] = costs.get(path, 0.0) + self._weights[name] / (part.of or 1)
                problems.setdefault(path, []).append(problem)
        paths = sorted(costs, key=lambda path: (-costs[path], path))[:MOST_REFINED]
        return [
            {"path": path, "problems": problems[path][:MAX_PROBLEMS], "costs": round(costs[path], 4)} for path in paths
        ]

    def _problems(self, name: str) -> list[tuple[str, str]]:
        part = self._parts[name]
        nothing = not part.of and self._weights[name] > 0
        return [(self._first, _NOTHING[name])] if nothing else part.problems
