"""What guards each line of a file: the tests that fail when a mutant changes it, as a run that judged mutants recorded.

The figures count for exactly the text that was judged: if the file has changed since, nothing is known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from codex_multi_role.extensions.results.run_history import RunHistory
from codex_multi_role.reading.json_files import read_json
from codex_multi_role.run_folder import RunFolder

RESULTS = "results.json"
"""Where the flow testgen keeps its figures, in the run folder."""


@dataclass(frozen=True)
class LineGuards:
    """``tests`` fail when one of the ``killed`` mutants of the line replaces it; no test notices the ``survived``."""

    tests: tuple[str, ...] = ()
    killed: tuple[str, ...] = ()
    survived: tuple[str, ...] = ()


class _Part(BaseModel):
    """A part of the results; what reads it is built with the first results, because most runs judge no mutants."""

    model_config = ConfigDict(defer_build=True)


class _Survivor(_Part):
    id: str


class _Judged(_Part):
    """The ``mutation`` of a file in the results. Mutants are named ``<line>.<number>``; ``matrix``: those by test."""

    ids: list[str] = []
    survivors: list[_Survivor] = []
    matrix: dict[str, list[str]] = {}


class _File(_Part):
    file: str
    mutation: _Judged


class _Results(_Part):
    results: list[_File]


def recorded_guards(histories: Sequence[RunHistory], path: str, now: Path | None = None) -> dict[int, LineGuards]:
    """By line number, for the lines with judged mutants in ``path``; empty if no run judged its present text.

    ``now``: the file as it is today, otherwise its text in the latest recorded state. The latest run counts.
    """
    for history in reversed(histories):
        judged = _judged(history, path)
        if judged.ids and _has_same_text(history, path, now, histories[-1]):
            return _by_line(judged)
    return {}


def judged_files(folder: RunFolder) -> list[str]:
    """The files whose mutants the run judged."""
    return [each.file for each in _results(folder) if each.mutation.ids]


def _judged(history: RunHistory, path: str) -> _Judged:
    return next((each.mutation for each in _results(history.folder) if each.file == path), _Judged())


def _results(folder: RunFolder) -> list[_File]:
    found = read_json(folder.path / RESULTS)
    with suppress(ValidationError):  # another flow may write a file of that name
        return _Results.model_validate(found).results if found is not None else []
    return []


def _has_same_text(history: RunHistory, path: str, now: Path | None, latest: RunHistory) -> bool:
    judged = _blob(history, path)
    if now is None:
        return bool(judged) and judged == _blob(latest, path)
    return judged == history.git().run("hash-object", "--no-filters", str(now)).stdout.decode().strip()


def _blob(history: RunHistory, path: str) -> str:
    found = history.git().run("rev-parse", "--verify", "--quiet", f"{history.states.last}:{path}", allowed=(0, 1, 128))
    return found.stdout.decode().strip()


def _by_line(judged: _Judged) -> dict[int, LineGuards]:
    survived = {each.id for each in judged.survivors}
    tests: dict[int, set[str]] = defaultdict(set)
    for test, killed in judged.matrix.items():
        for mutant in killed:
            tests[_line(mutant)].add(test)
    mutants: dict[int, list[str]] = defaultdict(list)
    for mutant in judged.ids:
        mutants[_line(mutant)].append(mutant)
    return {
        line: LineGuards(
            tuple(sorted(tests[line])),
            tuple(each for each in of_line if each not in survived),
            tuple(each for each in of_line if each in survived),
        )
        for line, of_line in mutants.items()
    }


def _line(mutant: str) -> int:
    return int(mutant.partition(".")[0])
