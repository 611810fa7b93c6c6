"""Flows as people write them, with right answers of their roles: ``written_flows/<domain>.yaml``, one per document.

What contracts must do is measured here without regard to how they do it. A mutation is one right answer with a single
wrong value. It is judged as its turn would judge it, and the rest of the run is played without contracts, so that the
template engine says which answers the templates can use.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from codex_multi_role.catalog import FlowSpec, RoleSpecCatalog, render, template_failures
from codex_multi_role.errors import DefinitionError, Ending
from codex_multi_role.lifecycle.team_loading import load_team
from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.places import Place
from codex_multi_role.steps.ask import Ask
from tests.support.scripted import Said, Script, Walked
from tests.support.teams import TeamFolder, with_flow
from tests.verdicts.playing import read, results_of

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
    """``path``: which value of the right answer differs; ``value``: what is there instead
    of what is ``right``, or `REMOVED`."""

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
        return f"{shown} {'removed' if self.value is REMOVED else f'= {json.dumps(self.value)}'}"


def mutations(answer: Json) -> Iterator[Mutation]:
    """Every value at every depth missing, null, empty or of another type."""
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
    """A mutation of an answer in a flow, and what became of it. ``role``: with the number of its answer.

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


@dataclass(frozen=True)
class Written:
    """One document. ``flows``: the first one is run; ``checks``: results by step, as in `Script`.

    ``source``: where the idea is from. ``ends``: exit code and outcome with the right answers.
    """

    name: str
    roles: Mapping[str, Json]
    flows: Mapping[str, Json]
    answers: Mapping[str, list[Json]]
    source: str = ""
    checks: Mapping[str, list[Json]] = field(default_factory=dict)
    reviews: Sequence[Json] = ()
    inputs: Json = field(default_factory=dict)
    ends: tuple[int, str] = (0, "success")

    def load(self, folder: Path) -> Loaded:
        roles = {name: {"output_schema": schema} if schema else {} for name, schema in self.roles.items()}
        team = TeamFolder(folder, roles, {})
        for name, flow in self.flows.items():
            with_flow(team, flow, name)
        return Loaded(self, folder, *load_team(next(iter(self.flows)), team.folder / "roles"))


@dataclass
class Loaded:
    written: Written
    folder: Path
    flows: Mapping[str, FlowSpec]
    catalog: RoleSpecCatalog

    def play(self, answers: Mapping[str, Sequence[Json]] | None = None, *, judged: bool = False) -> Played:
        """Walk the flow with these answers of some roles, otherwise with the right ones."""
        written = self.written
        checks = {step: results_of(given) for step, given in written.checks.items()}
        people = [Said(**each) for each in written.reviews]
        script = Script(self.folder, {**written.answers, **(answers or {})}, checks, people, judged=judged)
        name, failed = next(iter(self.flows)), list[str]()
        with pytest.MonkeyPatch.context() as patch:
            real = template_failures.failure

            def recorded(
                where: Place | str, error: Exception | str, text: str, context: Mapping[str, object]
            ) -> Exception:
                failed.append(text)
                return real(where, error, text, context)

            patch.setattr(template_failures, "failure", recorded)
            walked = script.walk_loaded(name, self.flows, self.catalog, written.inputs)
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
            for role, answers in self.written.answers.items()
            for number, right in enumerate(answers, 1)
            if (role, number) in asked
            for each in mutations(right)
        )
        return (self._judge(*each) for each in islice(found, len(self.written.name) % every, None, every))

    def _judge(self, ask: Ask, mutation: Mutation) -> Judged:
        answers, number, text = self.written.answers[ask.role.name], ask.visit - 1, json.dumps(mutation.answer)
        reply = read(text, ask)
        refusal = reply.problem or reply.refusal
        by_schema = bool(refusal) and bool((plain := read(text, replace(ask, contract=()))).problem or plain.refusal)
        used = mutation.answer if refusal else reply.handoff or {}
        later = answers[number + 1 :] or answers[number:]
        played = self.play({ask.role.name: [*answers[:number], used, *later]})
        is_same = not played.failed and played.end == self.right.end
        was_right = not read(json.dumps(answers[number]), ask).problem
        role = f"{ask.role.name}[{number}]"
        return Judged(self.written.name, role, mutation, refusal, by_schema, played, is_same, was_right)


def written_flows() -> list[Written]:
    documents = (each for path in sorted(FOLDER.glob("*.yaml")) for each in yaml.safe_load_all(path.read_text("utf-8")))
    return [Written(**{**each, "ends": tuple(each.get("ends", (0, "success")))}) for each in documents]
