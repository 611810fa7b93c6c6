"""The quality of documents as one figure, and what each part and each document costs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

WEIGHTS = {"files": 0.2, "pages": 0.1, "mermaid": 0.15, "links": 0.15, "sections": 0.2, "claims": 0.2}
MINIMUMS = {"files": 1.0, "pages": 0.9, "mermaid": 0.8, "links": 0.8, "sections": 1.0, "claims": 0.8}
"""No other part compensates for these: every requested page and section, and most of their claims."""
MAX_PROBLEMS = 100
MOST_REFINED = 12
_NOTHING = {
    "files": "there are no source files",
    "pages": "there are no source files",
    "mermaid": "no document has a Mermaid diagram",
    "links": "no document has a link",
    "sections": "no section is required",
    "claims": "no document names anything from the code in code font",
}


@dataclass
class ScorePart:
    """One part of the score: ``good`` of ``of`` items. ``problems``: the document and what is wrong, one per item."""

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
    """``parts`` by name; those ``unjudged`` have no score and do not count.

    ``first``: the document blamed for what no document has.
    """

    def __init__(self, parts: Mapping[str, ScorePart], unjudged: Collection[str], first: str) -> None:
        self._parts = parts
        self._first = first
        whole = sum(weight for name, weight in WEIGHTS.items() if name not in unjudged)
        self._weights = {name: 0.0 if name in unjudged else weight / whole for name, weight in WEIGHTS.items()}

    @property
    def total(self) -> float:
        """From 0 to 1."""
        return round(self.exact, 4)

    @property
    def exact(self) -> float:
        """Like `total`, but unrounded, to compare: one page of thousands changes less than `total` shows."""
        return sum(self._weights[name] * part.score for name, part in self._parts.items())

    @property
    def below(self) -> list[dict[str, object]]:
        """The parts below their minimum."""
        return [
            {"part": name, "score": round(part.score, 4), "minimum": MINIMUMS[name]}
            for name, part in self._parts.items()
            if self._is_below(name)
        ]

    def parts(self) -> list[dict[str, object]]:
        """Each part with its figures and its problems."""
        return [
            {
                "name": name,
                "weight": round(self._weights[name], 4),
                "score": round(part.score, 4) if self._weights[name] else None,
                "minimum": MINIMUMS[name],
                "good": part.good,
                "of": part.of,
                "costs": round(self._weights[name] * (1 - part.score), 4),
                "problems": [{"document": path, "problem": each} for path, each in self._problems(name)[:MAX_PROBLEMS]],
            }
            for name, part in self._parts.items()
        ]

    def costliest(self) -> list[dict[str, object]]:
        """The documents that cost most, with their problems. Every problem of a part costs the same.

        Documents that keep a part below its minimum come first.
        """
        urgent: set[str] = set()
        costs: dict[str, float] = {}
        problems: dict[str, list[str]] = {}
        for name, part in self._parts.items():
            for path, problem in self._problems(name):
                costs[path] = costs.get(path, 0.0) + self._weights[name] / (part.of or 1)
                problems.setdefault(path, []).append(problem)
                if self._is_below(name):
                    urgent.add(path)
        paths = sorted(costs, key=lambda path: (path not in urgent, -costs[path], path))[:MOST_REFINED]
        shown = {path: list(dict.fromkeys(problems[path]))[:MAX_PROBLEMS] for path in paths}
        return [{"path": path, "problems": shown[path], "costs": round(costs[path], 4)} for path in paths]

    def _is_below(self, name: str) -> bool:
        return self._weights[name] > 0 and self._parts[name].score < MINIMUMS[name]

    def _problems(self, name: str) -> list[tuple[str, str]]:
        part = self._parts[name]
        nothing = not part.of and self._weights[name] > 0
        return [(self._first, _NOTHING[name])] if nothing else part.problems
