"""Flows as people write them: no right answer is refused, and hardly a wrong one makes a later step fail.

What contracts must do is measured without regard to how they do it. A mutation is one right answer with a single wrong
value. It is judged as its turn would judge it, and the rest of the run is played without contracts, so that the
template engine says which answers the templates can use.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from codex_multi_role.catalog import FlowSpec, RoleSpecCatalog, render, template_failures
from codex_multi_role.errors import DefinitionError, Ending
from codex_multi_role.flow import ExpectedAnswer
from codex_multi_role.lifecycle.team_loading import load_team
from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.places import Place
from codex_multi_role.steps.ask import Ask
from tests.support.scripted import Said, Script
from tests.support.teams import TeamFolder, with_flow
from tests.verdicts.playing import read, results_of

FILE = Path(__file__).with_name("written_flows.yaml")
DOCUMENTS: Mapping[str, Json] = {each["name"]: each for each in yaml.safe_load_all(FILE.read_text(encoding="utf-8"))}
SAMPLE = 20
"""One of so many mutations is played in the gate."""
MOST_WRONG_VALUES = 0.02
WRONG_TYPES: Mapping[type, Any] = {
    bool: lambda value: [str(value).lower(), [value]],
    int: lambda value: [str(value), "high", [value]],
    float: lambda value: [str(value), "high", [value]],
    str: lambda value: ["", 7, True, [value], {"text": value}],
    list: lambda value: [[], ", ".join(map(str, value)), len(value), {"items": value}],
    dict: lambda value: [{}, "x", [value]],
}
"""What a model may answer instead of a value of a type."""
REMOVED = object()
PathInAnswer = tuple[str | int, ...]


class Mutation(NamedTuple):
    """An answer with ``value`` at a ``path``, or without what is `REMOVED`, instead of the ``right`` value there."""

    path: PathInAnswer
    value: object
    right: object
    answer: Json

    @property
    def keeps_type(self) -> bool:
        """Whether it leaves something out, and has no value of another type."""
        return self.value is REMOVED or type(self.value) is type(self.right)


def mutations(answer: Json) -> Iterator[Mutation]:
    """Every value at every depth missing, null, empty or of another type; and nothing of the answer."""
    yield Mutation((), REMOVED, answer, {"summary": "fine"})
    for path, value in _values(answer, ()):
        others = WRONG_TYPES.get(type(value), lambda _: [])(value)
        for other in ([REMOVED] if isinstance(path[-1], str) else []) + [None, *others]:
            if other != value:
                yield Mutation(path, other, value, _changed(answer, path, other))


def _values(value: object, path: PathInAnswer) -> Iterator[tuple[PathInAnswer, object]]:
    if path:
        yield path, value
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from _values(each, (*path, key))


def _changed(value: Any, path: PathInAnswer, other: object) -> Any:
    if not path:
        return other
    copied: Any = dict(value) if isinstance(value, dict) else list(value)
    if other is REMOVED and len(path) == 1:
        del copied[path[0]]
    else:
        copied[path[0]] = _changed(value[path[0]], path[1:], other)
    return copied


class Played(NamedTuple):
    """``failed``: the templates that could not be filled in; ``asks``: what the roles were asked, in order."""

    ending: Ending
    failed: list[str]
    asks: list[Ask]

    @property
    def end(self) -> tuple[int, str]:
        return int(self.ending.exit_code), self.ending.outcome


class Judged(NamedTuple):
    """What a mutation of the answer to ``ask`` leads to. ``refusal``: why the turn would ask again.

    ``is_used``: without contracts every template is filled in, and the run ends as with the right answer.
    """

    ask: Ask
    mutation: Mutation
    refusal: str
    played: Played
    is_used: bool

    @property
    def is_wrong_value(self) -> bool:
        return not self.refusal and self.played.ending.exit_code == 3

    @property
    def is_needlessly_refused(self) -> bool:
        """The templates can use the answer. Null counts as missing, and use gives the type."""
        if not self.refusal or not self.is_used or not self.mutation.keeps_type or self.mutation.value is None:
            return False
        return not _refusal(self.mutation.answer, replace(self.ask, expected=ExpectedAnswer()))  # but by its schema


def _refusal(answer: Json, ask: Ask) -> str:
    reply = read(json.dumps(answer), ask)
    return reply.problem or reply.refusal


@dataclass
class Game:
    """The first flow of a document with the right answers of all who take part."""

    document: Json
    folder: Path

    @cached_property
    def loaded(self) -> tuple[dict[str, FlowSpec], RoleSpecCatalog]:
        roles = {name: {"output_schema": schema} if schema else {} for name, schema in self.document["roles"].items()}
        team = TeamFolder(self.folder, roles, {})
        for name, flow in self.document["flows"].items():
            with_flow(team, flow, name)
        return load_team(next(iter(self.document["flows"])), team.folder / "roles")

    def play(self, changed: Mapping[str, Sequence[Json]] | None = None, *, judged: bool = False) -> Played:
        """Walk the flow with these answers of some roles, otherwise with the right ones."""
        checks = {step: results_of(given) for step, given in self.document.get("checks", {}).items()}
        people = [Said(**each) for each in self.document.get("reviews", ())]
        script = Script(self.folder, {**self.document["answers"], **(changed or {})}, checks, people, judged=judged)
        failed, real = list[str](), template_failures.failure

        def recorded(where: Place | str, error: Exception | str, text: str, context: Json) -> Exception:
            failed.append(text)
            return real(where, error, text, context)

        flows, catalog = self.loaded
        name = next(iter(flows))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(template_failures, "failure", recorded)
            walked = script.walk_loaded(name, flows, catalog, self.document.get("inputs", {}))
            shown, tests = flows[name].result, {"passed": 1, "failed": 0, "errors": 0}
            known = {**walked.state.context(), "files": [], "tests": tests}
            for template in (shown.title, shown.text, shown.figures):
                with suppress(DefinitionError):
                    render(template, known, "result")
        return Played(walked.ending, failed, script.asks)

    @cached_property
    def right(self) -> Played:
        return self.play()

    def judge(self, every: int) -> Iterator[Judged]:
        """One of so many mutations of the right answers that the run asks for."""
        found = [
            (ask, each)
            for ask in {(ask.role.name, ask.visit): ask for ask in self.right.asks}.values()
            for right in self.document["answers"][ask.role.name][ask.visit - 1 : ask.visit]
            for each in mutations(right)
        ]
        return (self._judge(*each) for each in islice(found, len(self.document["name"]) % every, None, every))

    def _judge(self, ask: Ask, mutation: Mutation) -> Judged:
        answers, number = self.document["answers"][ask.role.name], ask.visit - 1
        refusal = _refusal(mutation.answer, ask)
        used = (None if refusal else read(json.dumps(mutation.answer), ask).handoff) or mutation.answer
        played = self.play({ask.role.name: [*answers[:number], used, *(answers[number + 1 :] or answers[number:])]})
        return Judged(ask, mutation, refusal, played, not played.failed and played.end == self.right.end)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_right_answers_are_not_refused(name: str, tmp_path: Path) -> None:
    game = Game(DOCUMENTS[name], tmp_path)
    assert not game.right.failed
    for played in (game.right, game.play(judged=True)):
        assert played.end == tuple(DOCUMENTS[name].get("ends", (0, "success"))), played.ending


@pytest.mark.parametrize(
    "every",
    [
        SAMPLE,
        pytest.param(1, marks=pytest.mark.long),
    ],
)
def test_wrong_answer_is_refused_or_used(every: int, tmp_path: Path) -> None:
    """None is a wrong usage, even without contracts, and what templates can use is accepted."""
    found = [each for name in DOCUMENTS for each in Game(DOCUMENTS[name], tmp_path / name).judge(every)]
    assert len(found) >= 1_200 // every
    ends = [each.played.ending for each in found]
    assert not [each for each in ends if each.exit_code not in (0, 1, 3) or "_error" in each.outcome]
    assert not [each for each in found if each.is_needlessly_refused]
    wrong = [each for each in found if each.is_wrong_value]
    assert len(wrong) <= MOST_WRONG_VALUES * len(found), wrong
