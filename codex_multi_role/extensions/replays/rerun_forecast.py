"""Which turns a rerun would ask, and why, found without a model in a temporary copy of the workspace."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from codex_multi_role.codex.usage import TokenUsage
from codex_multi_role.engine.flow_walk import CallableFlows
from codex_multi_role.engine.journal_slots import Past
from codex_multi_role.engine.rehearsal import PathEnded
from codex_multi_role.errors import CodexMultiRoleError
from codex_multi_role.extensions.replays.forecast_walk import past_with_units, walk_forecast
from codex_multi_role.extensions.replays.prepare_rerun import first_visit, make_rerun, rerun_options, workspace_of
from codex_multi_role.extensions.replays.reuse.earlier_turns import EarlierTurn
from codex_multi_role.extensions.replays.reuse.observer import Reuse
from codex_multi_role.extensions.replays.reuse.role_inputs import RoleReader
from codex_multi_role.extensions.replays.reuse.sources import earlier_run, earlier_turns
from codex_multi_role.extensions.replays.reuse.turn_inputs import RoleInputsReader, position_of
from codex_multi_role.flow import new_state
from codex_multi_role.lifecycle.assembly import idle_parts, with_first_protected
from codex_multi_role.lifecycle.definitions import Definitions
from codex_multi_role.lifecycle.forking.prepare import Fork
from codex_multi_role.lifecycle.forking.workspace import ForkWorkspace
from codex_multi_role.lifecycle.journals import journals_for
from codex_multi_role.lifecycle.steering import Steering
from codex_multi_role.lifecycle.team_loading import load_catalog, load_flow_and_called
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.cost import Cost, as_number
from codex_multi_role.run_options import RunOptions
from codex_multi_role.steps import RunResources
from codex_multi_role.steps.turn_record import TurnPrompt, TurnResult
from codex_multi_role.workspace import FORK_MARK, Worktrees

OF_CHECKS = ("run_tests", "pytest_cmd", "python", "test_sandbox", "test_seconds")
"""The options of a run that the results of its checks and tests depend on."""
DEPENDS = "it depends on a turn that is asked, or on a result that may be another"


@dataclass(frozen=True)
class ExpectedTurn:
    """A turn of a rerun. ``tokens``: what it used in the earlier run; None if that has no such turn.

    ``certain``: it will be asked; otherwise it may be. ``model``: that of the rerun. ``cost``: of those tokens, in US
    dollars; None if the model has no price.
    """

    position: str
    role: str
    reason: str
    certain: bool
    tokens: Mapping[str, int] | None
    model: str = ""
    cost: Decimal | None = None

    def as_json(self) -> Json:
        tokens = None if self.tokens is None else dict(self.tokens)
        return {
            "type": "turn", "position": self.position, "role": self.role, "certain": self.certain,
            "reason": self.reason, "tokens": tokens, "model": self.model,
            "cost": as_number(self.cost),
        }  # fmt: skip


@dataclass
class Forecast:
    """``taken``: how many turns are taken over; ``asked``: those that are, or may be, asked.

    ``definitions``: those of the new run, with the limits that apply to it. ``is_whole``: the forecast reached the end
    of the flow; otherwise turns that the earlier run does not have may follow.
    """

    definitions: Definitions
    taken: int = 0
    asked: list[ExpectedTurn] = field(default_factory=list)
    is_whole: bool = True

    @property
    def asks_nothing(self) -> bool:
        return self.is_whole and not self.asked

    @property
    def tokens(self) -> Mapping[str, int]:
        """What all turns that are or may be asked used in the earlier run."""
        known = [turn.tokens for turn in self.asked if turn.tokens is not None]
        return {kind: sum(each[kind] for each in known) for kind in ("input", "output")}

    @property
    def cost(self) -> Cost:
        """Of these tokens; a turn that the earlier run does not have is unpriced."""
        return sum((Cost.of(turn.cost) for turn in self.asked), Cost())

    def as_json(self) -> Json:
        certain = sum(turn.certain for turn in self.asked)
        numbers = {"taken": self.taken, "asked": certain, "possible": len(self.asked) - certain}
        unknown = {"more_may_follow": not self.is_whole}
        return {"type": "forecast", **numbers, **unknown, "tokens": dict(self.tokens), **self.cost.as_json()}


def forecast_rerun(parent: RunFolder, changes: Mapping[str, Any]) -> Forecast:
    """What `prepare_rerun` with these ``changes`` leads to. Nothing of the project is changed, and nothing is started.

    Results of checks and answers of people are assumed to stay as they are if their steps do, or else unknown. Raises
    what `prepare_rerun` raises.
    """
    original = workspace_of(parent.record())
    with (
        tempfile.TemporaryDirectory(prefix="codex-multi-role-") as runs,
        # Beside the workspace, because what is in the folders above both is an input, too.
        tempfile.TemporaryDirectory(prefix=f"{original.name}{FORK_MARK}", dir=original.parent) as workspace,
    ):
        made = _in_temporary_folders(parent, changes, Path(runs).resolve(), Path(workspace).resolve())
        for name in ("checks", "tests"):  # prompts name files of theirs, and the results are assumed to be the same
            (made.folder.path / name).symlink_to(parent.path / name)
        steering = Steering.of(made.definitions, made.definitions.catalog.source.resolve(), made.folder.path)
        with idle_parts(made.definitions, made.folder, steering) as parts:
            return _walk(made.definitions, made.folder, parent, with_first_protected(parts))


def _in_temporary_folders(parent: RunFolder, changes: Mapping[str, Any], runs: Path, workspace: Path) -> Fork:
    record, beginning = parent.record(), first_visit(parent)
    options = rerun_options(parent, record, changes).changed(runs_dir=runs)
    if "workspace" in changes:
        ForkWorkspace(workspace_of(record), options.place.workspace, beginning.workspace).check()
    given = workspace if beginning.workspace else options.place.workspace if "workspace" in changes else None
    return make_rerun(parent, options, ForkWorkspace(workspace_of(record), given, beginning.workspace), beginning)


def _walk(definitions: Definitions, folder: RunFolder, parent: RunFolder, parts: RunResources) -> Forecast:
    options = definitions.options
    reader = RoleReader(definitions, parts.services.catalog_now, parts.settings.protect)
    reuse = _ForecastReuse(folder, definitions, reader.read, parent)
    worktrees = Worktrees(folder.worktrees_path, parts.workspace, parts.snapshots, folder.run_id)
    run = replace(parts, services=replace(parts.services, observers=lambda _: [reuse], worktrees=worktrees))
    past = journals_for(options).steps(parent)
    known = reuse.placed_names(_named_past(definitions, parent, past))
    state = new_state(definitions.flow, options.goal, definitions.inputs, options.cycles)
    flows = CallableFlows(definitions.flows, cache(definitions.bound))
    is_whole = walk_forecast(flows, state, run, known, reuse.assumed)
    return reuse.forecast(is_whole=is_whole)


def _before(definitions: Definitions, parent: RunFolder) -> Definitions:
    """``definitions`` with the flows, roles, inputs and options that ``parent`` had. Raises `UsageError`."""
    record = parent.record()
    options = RunOptions.from_record(record["options"])
    kept = load_catalog(parent.catalog_path / record["catalog_file"])
    flows, catalog = load_flow_and_called(options.flow, kept)
    return replace(definitions, flows=flows, catalog=catalog, inputs=record["inputs"], options=options)


def _settings_of_checks(definitions: Definitions) -> object:
    """What the results of all checks and tests depend on, besides their steps and the workspace."""
    options = definitions.options.as_record()
    protect = {glob for flow in definitions.flows.values() for glob in flow.protect}
    files = {path.name: path.read_bytes() for path in definitions.settings}
    return [options[name] for name in OF_CHECKS], protect, files


def _named_past(definitions: Definitions, parent: RunFolder, past: Past) -> Past:
    """The ``past`` as `walk_forecast` needs it; empty if what all results depend on has changed, or is unknown."""
    with suppress(CodexMultiRoleError), tempfile.TemporaryDirectory(prefix="codex-multi-role-") as scratch:
        before = _before(definitions, parent)
        if _settings_of_checks(before) == _settings_of_checks(definitions):
            options, flows = before.options, CallableFlows(before.flows, cache(before.bound))
            state = new_state(before.flow, options.goal, before.inputs, options.cycles)
            with idle_parts(before, RunFolder.create(Path(scratch))) as parts:
                return past_with_units(flows, state, parts, past)
    return {}


class _ForecastReuse(Reuse):
    """Takes turns over like a run does, and notes those that would be asked."""

    def __init__(
        self, folder: RunFolder, definitions: Definitions, read_role: RoleInputsReader, parent: RunFolder
    ) -> None:
        self._definitions = definitions
        self._parent = earlier_run(parent)
        self._turns = earlier_turns(lambda: [parent])
        super().__init__(folder, definitions.workspace, read_role, self._turns)
        self._asked: list[ExpectedTurn] = []
        self._assumes_changes = False

    def assumed(self, result: Json) -> Json:
        """The result of a check, with the paths of this run. Assume that it changed the workspace as it did before."""
        self._assumes_changes = True
        return result if self._parent is None else self.placed(result, self._parent)

    def placed_names(self, past: Past) -> Past:
        """The ``past`` with the paths of this run in its names."""
        if self._parent is None:
            return past
        names = self.placed({str(number): step.name for number, step in past.items()}, self._parent)
        return {number: replace(step, name=names[str(number)]) for number, step in past.items()}

    def take(self, run: RunResources, asked: TurnPrompt, *, may_decline: bool) -> TurnResult | None:
        role, position = self.read_role(asked.role, run.workspace.root), position_of(asked)
        reason = self.why_asked(run, asked, role, may_decline=may_decline)
        before = self._turns.at(position)
        if self._assumes_changes and before is not None and before.basis.workspace:
            self._assumes_changes = False
            if run.snapshots.find_in(before.run.repositories, before.basis.workspace):
                run.snapshots.restore(before.basis.workspace)
        if not reason and (taken := super().take(run, asked, may_decline=may_decline)):
            return taken
        why = reason or "changed: the files of the workspace"
        self._asked.append(self._expected(position, asked.role.name, why, before, certain=True))
        raise PathEnded(why)

    def _expected(
        self, position: str, role_name: str, reason: str, before: EarlierTurn | None, *, certain: bool
    ) -> ExpectedTurn:
        """A turn that is asked, with the figures of the turn ``before``."""
        if before is None:
            return ExpectedTurn(position, role_name, reason, certain, None)
        role = next((role for role in self._definitions.catalog.roles if role.name == role_name), None)
        now = role.resolved_model(os.environ, self._definitions.options.answers.model) if role else None
        own = str(before.result["model"])
        model, prices = now or own, self._definitions.prices
        used = [(model if name == own else name, tokens) for name, tokens in before.tokens_by_model.items()]
        costs = (Cost.of(prices.cost(name, TokenUsage.of_record(tokens))) for name, tokens in used)
        return ExpectedTurn(position, role_name, reason, certain, before.tokens, model, sum(costs, Cost()).known)

    def forecast(self, *, is_whole: bool) -> Forecast:
        """``is_whole``: the walk reached the end of the flow, so that no other turn can be asked."""
        possible = () if is_whole else self._possible()
        return Forecast(self._definitions, len(self.taken), [*self._asked, *possible], is_whole)

    def _possible(self) -> Iterator[ExpectedTurn]:
        """The earlier turns that the walk did not get to."""
        named = {turn.position for turn in self._asked}
        for turn in sorted(self._turns, key=lambda turn: turn.result.get("journal_step") or 0):
            if turn.turn_id not in self.taken and turn.basis.position not in named:
                yield self._expected(turn.basis.position, turn.recorded.role, DEPENDS, turn, certain=False)
