"""Record a turn of an earlier run as a turn of this one, with its changes made in the workspace."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace

from codex_multi_role.codex.usage import TokenUsage
from codex_multi_role.extensions.replays.reuse.earlier_turns import EarlierTurn
from codex_multi_role.extensions.replays.reuse.hidden_changes import are_same_hidden_files
from codex_multi_role.extensions.replays.reuse.hidden_files import hidden_files
from codex_multi_role.extensions.replays.reuse.turn_inputs import position_of
from codex_multi_role.host.atomic import storage_errors
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import TurnFolder
from codex_multi_role.run_folder.states import end_of
from codex_multi_role.run_folder.turn_folder import ANALYSIS, ANALYSIS_PATH, REUSED
from codex_multi_role.steps.known_instructions import INSTRUCTIONS
from codex_multi_role.steps.recovery import cut_short, first_state
from codex_multi_role.steps.resources import RunResources
from codex_multi_role.steps.turn_events import TurnEvents
from codex_multi_role.steps.turn_record import INVALID, TurnPrompt, TurnResult

KEPT_FILES = ("assistant_text.txt", "delta_text.txt", "items_text.md", "kept.json", "tool_calls.jsonl")
"""What a turn's folder has besides its prompt, handoff, changes and ``turn.json``."""


@dataclass(frozen=True)
class TurnTaking:
    """One turn being taken over. ``placed`` replaces the earlier run's paths by this run's."""

    run: RunResources
    asked: TurnPrompt
    turn: EarlierTurn
    placed: Callable[[Json], Json]

    def take(self) -> TurnResult | None:
        """None if the workspace is not in the state that the turn looked at."""
        run, recorded = self.run, self.turn.recorded
        stay = run.progress.stays.at(run.workspace.root, may_write=self.asked.role.writes_itself)
        with stay, run.progress.workspace_lock:
            before = self._before(recorded)
            if self.turn.basis.workspace and not self._fits(before):
                return None
            folder = TurnFolder.create(run.services.folder, self.asked.instance)
            self._start(folder, before)
            changed = self._change_workspace(folder, before)
        self._copy_files(folder)
        handoff = self._handoff(folder, recorded)
        may_repair = self.asked.follows.repair < run.settings.repair_attempts
        result = replace(
            recorded,
            instance=self.asked.instance,
            number=folder.number,
            handoff=handoff,
            snapshot=before if recorded.snapshot else "",
            changed_paths=changed,
            ask_again=may_repair if recorded.status == INVALID else recorded.ask_again,
        )
        self._end(folder, before, result)
        return result

    def _before(self, recorded: TurnResult) -> str:
        """The current state, without what an interrupted attempt left; empty if the turn does not depend on it."""
        if not (recorded.snapshot or self.turn.basis.workspace):
            return ""
        latest = TurnFolder.latest(self.run.services.folder, self.asked.instance)
        return first_state(self.run, self.asked.instance, cut_short(self.run, latest, self.asked.place))

    def _fits(self, before: str) -> bool:
        """Whether the workspace is in the state that the turn looked at, and the one it left still exists."""
        basis, snapshots = self.turn.basis, self.run.snapshots
        if before != basis.workspace:
            return False
        is_same = are_same_hidden_files(basis.hidden, hidden_files(snapshots, self.run.workspace))
        return is_same and snapshots.find_in(self.turn.run.repositories, basis.after)

    def _start(self, folder: TurnFolder, before: str) -> None:
        folder.begin(self.asked.texts.prompt, self._details(folder, before))
        events = TurnEvents(self.run, self.asked.role, self.asked.instance, folder.number)
        events.started(self.asked, 1, str(self.turn.result["model"]), str(self.turn.result["thread_id"]))

    def _change_workspace(self, folder: TurnFolder, before: str) -> list[str]:
        basis, snapshots = self.turn.basis, self.run.snapshots
        if not basis.workspace or basis.after == before:
            return []
        snapshots.restore(basis.after)
        snapshots.write_patch(before, basis.after, folder.patch_path)
        folder.write_changes(before, basis.after)
        return list(snapshots.changed_paths(before, basis.after))

    def _copy_files(self, folder: TurnFolder) -> None:
        for name in KEPT_FILES:
            source = self.turn.folder.path / name
            if source.exists():
                with storage_errors(folder.path / name):
                    shutil.copyfile(source, folder.path / name)

    def _handoff(self, folder: TurnFolder, recorded: TurnResult) -> Json | None:
        if recorded.handoff is None:
            return None
        handoff = {key: value for key, value in recorded.handoff.items() if key != ANALYSIS_PATH}
        analysis = self.turn.folder.path / ANALYSIS
        if ANALYSIS_PATH in recorded.handoff and analysis.exists():
            with storage_errors(analysis):
                handoff["analysis_md"] = analysis.read_text(encoding="utf-8")
        elif ANALYSIS_PATH in recorded.handoff:
            handoff = recorded.handoff
        return folder.write_handoff(self.placed(handoff))

    def _details(self, folder: TurnFolder, before: str) -> Json:
        earlier = self.turn.result
        return {
            **{name: earlier[name] for name in ("thread_id", "model", "tools", "turn_id")},
            REUSED: self.turn.origin,
            "attempt": 1,
            "repair_of": self.asked.follows.repair_of,
            "continues": self.asked.follows.continues,
            "cycle": self.asked.cycle,
            "unit": self.asked.unit,
            "journal_step": self.asked.place,
            "snapshot": before,
            INSTRUCTIONS: self._instructions(folder),
            "tokens": TokenUsage().as_record(),
            "cost": 0.0,
            "reused_tokens": self.turn.tokens,
            "reused_tokens_by_model": self.turn.tokens_by_model,
            "seconds": 0.0,
            "worked_seconds": round(self.run.services.clock.seconds, 3),
        }

    def _instructions(self, folder: TurnFolder) -> Json:
        """What the conversation has of the role's instructions. The prompt of a taken turn shows all of them."""
        known: Json = self.turn.result.get(INSTRUCTIONS, {})
        return {**known, "turn": folder.number} if known.get("digest") else known

    def _end(self, folder: TurnFolder, before: str, result: TurnResult) -> None:
        basis = replace(self.turn.basis, position=position_of(self.asked))
        folder.write_result(
            {
                "status": result.status,
                "outcome": result.outcome,
                "reason": result.reason,
                **self._details(folder, before),
                "changed_paths": result.changed_paths,
                "protected_restored": result.protected_restored,
                "approvals": self.turn.result.get("approvals", []),
                "repaired_locally": self.turn.result.get("repaired_locally", False),
                "basis": basis.as_json(),
                "recorded": result.as_json(),
            }
        )
        self.run.services.events.publish(end_of(result.instance, folder))
