"""Which turns a rerun asks, as far as the YAML that its run kept tells: nothing runs, and no other file is compared."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import zip_longest
from typing import Any

from codex_multi_role.catalog import EVERY_ROLE, FlowSpec, RoleSpecCatalog
from codex_multi_role.catalog.flow_spec import with_called
from codex_multi_role.codex.usage import TokenUsage
from codex_multi_role.extensions.replays.prepare_rerun import rerun_options, rerun_workspace
from codex_multi_role.extensions.replays.reuse.earlier_turns import EarlierTurn
from codex_multi_role.extensions.replays.reuse.sources import earlier_run
from codex_multi_role.lifecycle.definitions import Definitions, load_definitions
from codex_multi_role.lifecycle.team_loading import load_catalog, load_flow_and_called
from codex_multi_role.option import options_in
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import RunFolder, beginnings, events_with_inherited, list_turns
from codex_multi_role.run_folder.cost import Cost, as_number
from codex_multi_role.run_folder.folder import has_reached_end
from codex_multi_role.run_options import RunAnswers, RunOptions, RunTests

COMPARED = {name for group in (RunOptions, RunAnswers, RunTests) for name in options_in(group)} - {"playbook"}
"""The options that a prompt or a result can depend on. A playbook is compared as a file."""
OF_FILE = {"source", "former_keys"}
"""The fields of a flow that say nothing of what it does."""
OF_PROMPTS = {"ask", "with_", "prompt", "prompt_replaces", "reply"}
"""The fields of a step that its prompt is made from."""


@dataclass(frozen=True)
class ExpectedTurn:
    """A turn of the earlier run that is asked again, or may be. ``tokens``: what it used there.

    ``certain``: its role or step was edited, or it can never be taken over. ``model``: that of the rerun. ``cost``: of
    those tokens, in US dollars; None if the model has no price.
    """

    position: str
    role: str
    reason: str
    certain: bool
    tokens: Mapping[str, int]
    model: str = ""
    cost: Decimal | None = None

    def as_json(self) -> Json:
        return {
            "type": "turn", "position": self.position, "role": self.role, "certain": self.certain,
            "reason": self.reason, "tokens": dict(self.tokens), "model": self.model,
            "cost": as_number(self.cost),
        }  # fmt: skip


@dataclass(frozen=True)
class Forecast:
    """``taken``: how many turns come before every change; ``asked``: those that are, or may be, asked.

    ``definitions``: those of the new run, with the limits that apply to it. ``more_may_follow``: turns that the earlier
    run does not have, or that cannot be compared.
    """

    definitions: Definitions
    taken: int
    asked: Sequence[ExpectedTurn]
    more_may_follow: bool

    @property
    def asks_nothing(self) -> bool:
        return not (self.more_may_follow or self.asked)

    @property
    def tokens(self) -> Mapping[str, int]:
        """What all turns that are or may be asked used in the earlier run."""
        return {kind: sum(turn.tokens[kind] for turn in self.asked) for kind in ("input", "output")}

    @property
    def cost(self) -> Cost:
        return sum((Cost.of(turn.cost) for turn in self.asked), Cost())

    def as_json(self) -> Json:
        certain = sum(turn.certain for turn in self.asked)
        numbers = {"taken": self.taken, "asked": certain, "possible": len(self.asked) - certain}
        unknown = {"more_may_follow": self.more_may_follow}
        return {"type": "forecast", **numbers, **unknown, "tokens": dict(self.tokens), **self.cost.as_json()}


def forecast_rerun(parent: RunFolder, changes: Mapping[str, Any]) -> Forecast:
    """What `prepare_rerun` with these ``changes`` probably leads to. Raises what that raises; nothing is changed."""
    record = parent.record()
    options = rerun_options(parent, record, changes)
    place = rerun_workspace(parent, record, options, changes).check()
    now = load_definitions(options.changed(workspace=place))
    edits, run = _Edits(parent, record, now), earlier_run(parent)
    cause, since = edits.first()
    known = run.turns if run else []
    is_partial = not has_reached_end(record) or len(known) < len([*list_turns(parent)])
    asked, turns = [], sorted(filter(edits.keeps, known), key=_place)
    for turn in turns:
        if reason := edits.of_turn(turn) or turn.basis.refused:
            cause, since = (f"turn {turn.basis.position}", _place(turn)) if _place(turn) < since else (cause, since)
            asked.append(_expected(turn, reason, now, certain=True))
        elif _place(turn) > since:
            asked.append(_expected(turn, f"it comes after a change: {cause}", now, certain=False))
    return Forecast(now, len(turns) - len(asked), asked, bool(cause) or is_partial)


def _place(turn: EarlierTurn) -> int:
    return turn.result.get("journal_step") or 0


def _expected(turn: EarlierTurn, reason: str, now: Definitions, *, certain: bool) -> ExpectedTurn:
    name, own = turn.recorded.role, str(turn.result["model"])
    role = next((role for role in now.catalog.roles if role.name == name), None)
    model = (role.resolved_model(os.environ, now.options.answers.model) if role else None) or own
    used = [(model if name == own else name, tokens) for name, tokens in turn.tokens_by_model.items()]
    costs = (Cost.of(now.prices.cost(name, TokenUsage.of_record(tokens))) for name, tokens in used)
    return ExpectedTurn(turn.basis.position, name, reason, certain, turn.tokens, model, sum(costs, Cost()).known)


class _Edits:
    """What was edited since a run, compared with what it kept. ``roles``, ``steps``: those whose prompts differ."""

    def __init__(self, parent: RunFolder, record: Mapping[str, Any], now: Definitions) -> None:
        self._parent, self._now, self._options = parent, now, RunOptions.from_record(record["options"])
        self._kept = (parent.catalog_path / record["catalog_file"]).parent
        catalog = load_catalog(parent.catalog_path / record["catalog_file"])
        self._flows, self._catalog = load_flow_and_called(self._options.flow, catalog)
        self._flow = self._flows[self._options.flow]
        self.roles = _differing(_roles(self._catalog), _roles(now.catalog))
        self.steps = _differing(_prompts(self._flow), _prompts(now.flow)) & {step.id for step in now.flow.steps}

    def of_turn(self, turn: EarlierTurn) -> str:
        """Why the turn is asked for certain, or empty."""
        role, step = turn.recorded.role, _own_step(turn)
        return f"changed: role {role}" if role in self.roles else f"changed: step {step}" if step in self.steps else ""

    def keeps(self, turn: EarlierTurn) -> bool:
        """Whether the flow still has the step of the turn, as far as that is one of its own."""
        return _own_step(turn) in {"", *(step.id for step in self._now.flow.steps)}

    def first(self) -> tuple[str, float]:
        """What differs first besides roles, and the place in the journal after which turns may depend on it."""
        if general := ", ".join(self._general()):
            return general, -1
        now, flow = self._now, self._flow
        pairs = zip_longest(_steps(self._flows, flow, self._catalog), _steps(now.flows, now.flow, now.catalog))
        index = next((at for at, (one, other) in enumerate(pairs) if one != other), None)
        if index is None:
            return "", math.inf
        places = {each.step: each.place for each in reversed(beginnings(events_with_inherited(self._parent)))}
        since = min((places.get(step.id, math.inf) for step in flow.steps[index:]), default=math.inf)
        return f"step {(flow.steps[index:] or now.flow.steps[index:])[0].id}", since

    def _general(self) -> Iterator[str]:
        """What every turn may depend on."""
        now, then, given = self._now, self._options.as_keywords(), self._now.options.as_keywords()
        yield from (name for name in sorted(COMPARED) if then[name] != given[name])
        if self._catalog.general_prompts != now.catalog.general_prompts:
            yield "general_prompts"
        files = {each.name: each.read_text() for each in now.settings}
        files |= {f"playbooks/{now.playbook.source.name}": now.playbook.text} if now.playbook else {}
        kept = {name: (self._kept / name).read_text() for name in files if (self._kept / name).is_file()}
        yield from sorted(_differing(files, kept))
        if len({str(flow.model_dump(exclude={*OF_FILE, "steps"})) for flow in (self._flow, now.flow)}) > 1:
            yield f"the flow {now.flow.name}"


def _differing(some: Mapping[str, object], others: Mapping[str, object]) -> set[str]:
    return {name for name, each in some.items() if each != others.get(name)}


def _roles(catalog: RoleSpecCatalog) -> dict[str, object]:
    return {
        role.name: (role.model_dump(exclude={"source", "limits"}), [catalog.skills[each] for each in role.skills])
        for role in catalog.roles
    }


def _prompts(flow: FlowSpec) -> dict[str, object]:
    return {step.id: step.model_dump(include=OF_PROMPTS) for step in flow.steps}


def _steps(flows: Mapping[str, FlowSpec], flow: FlowSpec, catalog: RoleSpecCatalog) -> Iterator[object]:
    """The steps, with what they call and whom they ask."""
    for step in flow.steps:
        called = with_called(flows, step.call) if step.call else ()
        order = catalog.dependencies() if step.ask == EVERY_ROLE else {}
        yield step, [each.model_dump(exclude=OF_FILE) for each in called], order


def _own_step(turn: EarlierTurn) -> str:
    """The step that asked it; empty if another flow has that step, or it asks every role."""
    unit = str(turn.result.get("unit") or "")
    return "" if "/" in unit else unit.partition(".")[0]
