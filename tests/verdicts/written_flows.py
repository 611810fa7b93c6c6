"""Flows with right answers of their roles, such as those in ``written_flows/<domain>.yaml``, as people write them.

What contracts must do is measured here without regard to how they do it. A mutation is one right answer with a single
wrong value. It is judged as its turn would judge it, and the rest of the run is played without contracts, so that the
template engine says which answers the templates can use.
"""

from __future__ import annotations

import json
from collections import defaultdict
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
from codex_multi_role.errors import DefinitionError, Ending, RoleFailed
from codex_multi_role.flow import ExpectedAnswer
from codex_multi_role.lifecycle.team_loading import load_team
from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.places import Place
from codex_multi_role.steps.ask import Ask
from tests.support.scripted import Play, Result, Said, Script, Walked
from tests.support.teams import TeamFolder, with_flow
from tests.verdicts.playing import Answers, read, reply_of, results_of, walk

FOLDER = Path(__file__).with_suffix("")
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


class Mutation(NamedTuple):
    """An answer with ``value`` at a ``path``, or without what is `REMOVED`, instead of the ``right`` value there."""

    path: tuple[str | int, ...]
    value: object
    right: object
    answer: Json

    @property
    def keeps_type(self) -> bool:
        """Whether it leaves something out, and has no value of another type."""
        return self.value is REMOVED or type(self.value) is type(self.right)

    def __str__(self) -> str:
        shown = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path).removeprefix(".")
        return f"{shown or 'all'} {'removed' if self.value is REMOVED else f'= {json.dumps(self.value)}'}"


def mutations(answer: Json) -> Iterator[Mutation]:
    """Every value at every depth missing, null, empty or of another type; and nothing of the answer."""
    yield Mutation((), REMOVED, answer, {"summary": "fine"})
    for path, value in _values(answer, ()):
        others = WRONG_TYPES.get(type(value), lambda _: [])(value)
        for other in ([REMOVED] if isinstance(path[-1], str) else []) + [None, *others]:
            if other != value:
                yield Mutation(path, other, value, _changed(answer, path, other))


def _values(value: object, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], object]]:
    if path:
        yield path, value
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from _values(each, (*path, key))


def _changed(value: Any, path: Sequence[str | int], other: object) -> Any:
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
    """What a mutation of an answer leads to. ``role``: with the number of its answer.

    ``refusal``: why the turn would ask again; ``by_schema``: because of the author's schema alone.
    ``is_same``: without contracts every template is filled in, and the run ends as with the right answer.
    ``was_right``: the right answer is not refused.
    """

    flow: str
    role: str
    mutation: Mutation
    refusal: str
    by_schema: bool
    played: Played
    is_same: bool
    was_right: bool

    @property
    def is_wrong_value(self) -> bool:
        return not self.refusal and self.played.ending.exit_code == 3

    @property
    def is_needlessly_refused(self) -> bool:
        """The templates can use the answer. Null counts as missing, and use gives the type."""
        is_refused = bool(self.refusal) and self.was_right and not self.by_schema
        return is_refused and self.is_same and self.mutation.value is not None

    def __str__(self) -> str:
        why = self.refusal or self.played.ending.reason
        return f"{self.flow}: {self.role} {self.mutation}: {' '.join(why.split())}"


@dataclass
class Game:
    """The first of ``flows`` with the right answers of all who take part.

    ``checks`` and ``merges``: as in `Script`. ``ends``: exit code and outcome; empty if any outcome will do.
    """

    name: str
    folder: Path
    flows: Mapping[str, FlowSpec]
    catalog: RoleSpecCatalog
    answers: Mapping[str, Sequence[Json]]
    checks: Mapping[str, Sequence[Result]]
    people: Sequence[Said]
    inputs: Json
    merges: Mapping[str, Sequence[Json]]
    ends: tuple[int, str]

    def play(self, answers: Mapping[str, Sequence[Json]] | None = None, *, judged: bool = False) -> Played:
        """Walk the flow with these answers of some roles, otherwise with the right ones."""
        plays: dict[str, Sequence[Play]] = {**self.answers, **(answers or {})}
        script = Script(self.folder, plays, self.checks, self.people, self.merges, judged=judged)
        name, failed = next(iter(self.flows)), list[str]()
        with pytest.MonkeyPatch.context() as patch:
            real = template_failures.failure

            def recorded(
                where: Place | str, error: Exception | str, text: str, context: Mapping[str, object]
            ) -> Exception:
                failed.append(text)
                return real(where, error, text, context)

            patch.setattr(template_failures, "failure", recorded)
            walked = script.walk_loaded(name, self.flows, self.catalog, self.inputs)
            self._show_result(walked)
        return Played(walked.ending, failed, script.asks)

    def _show_result(self, walked: Walked) -> None:
        declared = self.flows[next(iter(self.flows))].result
        known = {**walked.state.context(), "files": [], "tests": {"passed": 1, "failed": 0, "errors": 0}}
        for template in (declared.title, declared.text, declared.figures):
            with suppress(DefinitionError):
                render(template, known, "result")

    @cached_property
    def right(self) -> Played:
        return self.play()

    def judge(self, every: int = 1) -> Iterator[Judged]:
        """Every mutation of every right answer that the run asks for, or one of so many."""
        asked = {(ask.role.name, ask.visit): ask for ask in self.right.asks}
        found = (
            (asked[role, number], each)
            for role, answers in self.answers.items()
            for number, right in enumerate(answers, 1)
            if (role, number) in asked
            for each in mutations(right)
        )
        return (self._judge(*each) for each in islice(found, len(self.name) % every, None, every))

    def _judge(self, ask: Ask, mutation: Mutation) -> Judged:
        answers, number, text = self.answers[ask.role.name], ask.visit - 1, json.dumps(mutation.answer)
        reply = read(text, ask)
        refusal = reply.problem or reply.refusal
        by_schema = bool(refusal) and bool(
            (plain := read(text, replace(ask, expected=ExpectedAnswer()))).problem or plain.refusal
        )
        used = mutation.answer if refusal else reply.handoff or {}
        later = answers[number + 1 :] or answers[number:]
        played = self.play({ask.role.name: [*answers[:number], used, *later]})
        is_same = not played.failed and played.end == self.right.end
        was_right = not read(json.dumps(answers[number]), ask).problem
        role = f"{ask.role.name}[{number}]"
        return Judged(self.name, role, mutation, refusal, by_schema, played, is_same, was_right)


def written_flows() -> dict[str, Json]:
    """The documents by name: ``roles`` with their schemas, ``flows``, of which the first is run, right ``answers``.

    ``checks``: results by step. ``source``: the public project and file that the idea is from.
    """
    texts = (path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.yaml")))
    return {each.pop("name"): each for text in texts for each in yaml.safe_load_all(text)}


def written(name: str, document: Json, folder: Path) -> Game:
    """Load what one document says. Raises `DefinitionError`."""
    roles = {role: {"output_schema": schema} if schema else {} for role, schema in document["roles"].items()}
    team = TeamFolder(folder, roles, {})
    for each, flow in document["flows"].items():
        with_flow(team, flow, each)
    checks = {step: results_of(given) for step, given in document.get("checks", {}).items()}
    people = [Said(**each) for each in document.get("reviews", ())]
    exit_code, outcome = document.get("ends", (0, "success"))
    loaded = load_team(next(iter(document["flows"])), team.folder / "roles")
    inputs = document.get("inputs", {})
    return Game(name, folder, *loaded, document["answers"], checks, people, inputs, {}, (exit_code, outcome))


def ported(name: str, roles: Path, flow: str, answers: Answers, folder: Path) -> Game:
    """A flow with a playbook, whose answers are those that it gives in a run without mistakes."""
    flows, catalog = load_team(flow, roles)
    said = defaultdict[str, dict[int, Json]](dict)

    def reply(question: Ask) -> Json | RoleFailed:
        found = reply_of(answers.playbook, question)
        said[question.role.name][question.visit] = found if isinstance(found, dict) else {}
        return found

    walk(roles, answers, folder, {role.name: [reply] for role in catalog.roles}, flow)
    right = {role: [found[visit] for visit in sorted(found)] for role, found in said.items()}
    checks = {step: results_of(given) for step, given in answers.checks.items()}
    more = (checks, answers.reviews, answers.inputs, answers.merges, (0, ""))
    return Game(name, folder, flows, catalog, {role.name: right.get(role.name, [{}]) for role in catalog.roles}, *more)
