"""One attempt at a prompt: send it, observe the turn, read the reply, and store everything in the turn's folder."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from codex_multi_role.codex.client import RoleClient
from codex_multi_role.codex.running_turn import TurnDeadlines
from codex_multi_role.codex.turn import LONGEST_PROMPT, TurnOutcome, TurnRequest
from codex_multi_role.errors import CodexError, CodexMultiRoleError, StorageError
from codex_multi_role.reading.json_types import Json
from codex_multi_role.replies import Reply, read_reply, with_error
from codex_multi_role.run_folder import TurnFolder
from codex_multi_role.run_folder.events import Warning
from codex_multi_role.steps.long_prompt import sendable
from codex_multi_role.steps.protection import TOLD, ProtectedState
from codex_multi_role.steps.resources import RunResources
from codex_multi_role.steps.turn_events import TurnEvents
from codex_multi_role.steps.turn_helpers import TurnHelpers
from codex_multi_role.steps.turn_prompt import CURRENT_THREAD, NEW_THREAD, TurnPrompt
from codex_multi_role.steps.turn_result import (
    UNFINISHED,
    TurnEnd,
    TurnResult,
    cut_short,
    end_of,
    first_state,
    gave_up,
    kept_when_cut_short,
)
from codex_multi_role.tools.terminate import TERMINATED

ODD_USAGE = (
    "its provider reported token counts that shrink, are negative or no numbers; they count as 0, so --max-tokens may "
    "not stop this run; --max-turns and --max-seconds do"
)
COMPLETED, INVALID = "completed", "invalid_reply"


class Attempt:
    """One attempt at a turn, on a borrowed process. Raises `BudgetUsedUp`, `CodexError` before anything is sent."""

    def __init__(self, run: RunResources, asked: TurnPrompt, attempt: int, client: RoleClient) -> None:
        self.run, self.asked, self.attempt = run, asked, attempt
        self.role = asked.role
        self.instance = asked.instance
        self.client = _on_thread(run, asked, client)
        run.services.budget.reserve_turn(asked.role.name)
        self.cut_short = cut_short(run, asked.instance, asked.place)
        self.folder = TurnFolder.create(run.services.folder, asked.instance)
        self.began = time.monotonic()
        self.told = TurnEvents(run, asked.role, asked.instance, self.folder.number)
        self.kept = {**asked.kept, **kept_when_cut_short(self.cut_short)}
        self.before = ""
        self.guard: ProtectedState | None = None

    def take(self) -> tuple[TurnResult | None, TurnOutcome]:
        """Send the prompt. The result is None if Codex did not answer, for the reason in the outcome.

        Errors, above all `StorageError`, are also recorded in ``turn.json``.
        """
        try:
            return self._take()
        except CodexMultiRoleError as error:
            self._record_failure(error)
            raise

    def _record_failure(self, error: CodexMultiRoleError) -> None:
        if self.folder.unfinished:
            with suppress(StorageError):
                reason = f"{error.reason}: {error}"
                self.folder.write_result({"status": "failed", "reason": reason, **self._details()})

    def _take(self) -> tuple[TurnResult | None, TurnOutcome]:
        self.guard = ProtectedState.of(self.run, self.role, self.cut_short) if self.role.writes_itself else None
        before = self.before = first_state(self.run, self.instance, self.cut_short) if self.role.writes_itself else ""
        forgot = self.client.thread.forgot and self.asked.thread != NEW_THREAD
        prompt = self._sendable(self.asked.when_forgotten if forgot else self.asked.prompt)
        self.folder.begin(prompt, self._details())
        self.told.started(self.asked, self.attempt, self.client.thread)
        with self.run.progress.stopping.calling(self.client.wake):
            outcome = self.client.run_turn(
                self._request(prompt),
                self._deadlines(),
                self.told.observe,
                TurnHelpers(self.run, self.role, self.instance, self.folder, self.kept),
                self.run.progress.stopping,
            )
        self.run.services.budget.spend(self.role.name, outcome.input_tokens + outcome.output_tokens, self._seconds())
        if outcome.odd_usage and self.run.services.budget.doubt():
            self.run.services.events.publish(Warning(f"{self.instance}: {ODD_USAGE}"))
        reply = read_reply(outcome.text, self.role.output_schema) if outcome.status == "completed" else None
        turn = self._store(outcome, reply, before)
        self.told.ended(self._end(outcome, reply), outcome, reply, self._seconds())
        return turn, outcome

    def _sendable(self, prompt: str) -> str:
        sent = sendable(prompt, self.folder, self.run.catalog.general_prompts.long_prompt_section)
        if sent != prompt:
            said = f"its prompt has {len(prompt)} characters, Codex takes {LONGEST_PROMPT}"
            self.run.services.events.publish(
                Warning(f"{self.instance}: {said}; it is sent both ends, and the whole as a file")
            )
        return sent

    def _request(self, prompt: str) -> TurnRequest:
        metadata = {
            "multi_role_role": self.role.name,
            "multi_role_visit": str(self.asked.visit),
            "multi_role_repair": str(self.asked.step + self.asked.repair),
            "multi_role_attempt": str(self.attempt),
        }
        if self.asked.unit:
            metadata["multi_role_unit"] = self.asked.unit
        return TurnRequest(prompt, with_error(self.role.output_schema), self.role.reasoning_effort, None, metadata)

    def _deadlines(self) -> TurnDeadlines:
        return TurnDeadlines(self.role.limits.idle_seconds, self.role.limits.turn_seconds)

    def _details(self) -> Mapping[str, Any]:
        return {
            "thread_id": self.client.thread.id,
            "model": self.client.thread.model,
            "attempt": self.attempt,
            "repair_of": self.asked.repair_of,
            "continues": self.asked.continues,
            "tools": list(self.role.tools),
            "cycle": self.asked.cycle,
            "unit": self.asked.unit,
            "journal_step": self.asked.place,
            "snapshot": self.before,
            "protected": self.guard.tree if self.guard else "",
            "tokens": {"input": 0, "output": 0},
            "seconds": 0.0,
            "worked_seconds": round(self.run.services.clock.seconds, 3),
        }

    def _store(self, outcome: TurnOutcome, reply: Reply | None, before: str) -> TurnResult | None:
        self.folder.write_answer(outcome.text, outcome.delta_text, outcome.items_text)
        handoff = None
        if reply and reply.handoff:
            handoff = self.folder.write_handoff(reply.handoff if reply.refusal else {**reply.handoff, **self.kept})
        put_back = self.guard.put_back(self.run, self.instance, self.folder) if self.guard else []
        changed = self._store_changes(before) if before else []
        if not before and handoff is not None and "files" in handoff and self.role.behaviors.apply_files:
            before = self.run.snapshots.take()
        end = self._end(outcome, reply)
        turn = self._result(reply, end, handoff, before, changed, put_back) if reply is not None else None
        turn = replace(turn, web_searches=outcome.web_searches) if turn else None
        self.folder.write_result(
            {
                **end._asdict(),
                **self._details(),
                "turn_id": outcome.turn_id,
                "tokens": {"input": outcome.input_tokens, "output": outcome.output_tokens},
                "seconds": self._seconds(),
                "changed_paths": changed,
                TOLD: put_back,
                "approvals": self.told.approvals,
                "repaired_locally": bool(reply and reply.repaired_locally),
                "recorded": turn.as_json() if turn else None,
            }
        )
        return turn

    def _result(
        self, reply: Reply, end: TurnEnd, handoff: Json | None, before: str, changed: list[str], put_back: list[str]
    ) -> TurnResult:
        return TurnResult(
            instance=self.instance,
            turn=self.folder.number,
            thread_id=self.client.thread.id,
            handoff=handoff,
            problem="" if end.status == COMPLETED else end.reason,
            ask_again=self._is_open(reply)
            or (end.status == INVALID and self.asked.repair < self.run.settings.repair_attempts),
            snapshot=before,
            changed_paths=changed,
            protected_restored=put_back,
            outcome=end.outcome,
            kept=self.kept,
            unfinished=self._is_open(reply),
        )

    def _is_open(self, reply: Reply) -> bool:
        """Whether neither an answer nor ``terminate`` ended the turn's work, and the role may continue."""
        first_answer = self.asked.repair == 0 and self.asked.step < self.role.max_steps
        return reply.only_text and first_answer and TERMINATED not in self.kept

    def _end(self, outcome: TurnOutcome, reply: Reply | None) -> TurnEnd:
        if reply is None:
            return end_of(outcome, reply)
        return gave_up(self.kept) or (UNFINISHED if self._is_open(reply) else end_of(outcome, reply))

    def _store_changes(self, before: str) -> list[str]:
        after = self.run.snapshots.take()
        return store_patch(self.run, self.folder, before, after)

    def _seconds(self) -> float:
        return round(time.monotonic() - self.began, 3)


def _on_thread(run: RunResources, asked: TurnPrompt, client: RoleClient) -> RoleClient:
    """The process on the thread for the turn. A process that breaks while it changes threads is replaced once.

    Raises `CodexError`.
    """
    if asked.thread == CURRENT_THREAD or asked.opened:
        return client
    thread, folder = None if asked.thread == NEW_THREAD else asked.thread, str(run.workspace.root)
    try:
        client.use_thread(thread, folder)
    except CodexError:
        if not client.broken:
            raise
        client = run.services.fleet.client(asked.instance)
        client.use_thread(thread, folder)
    return client


def store_patch(run: RunResources, folder: TurnFolder, before: str, after: str) -> list[str]:
    """Write ``changes.patch`` from one state of the workspace to another; returns the paths that differ."""
    if after == before:
        return []
    run.snapshots.write_patch(before, after, folder.patch_path)
    return list(run.snapshots.changed_paths(before, after))
