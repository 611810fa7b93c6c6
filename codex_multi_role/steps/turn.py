"""One turn, from top to bottom: reserve → prompt → send → read the reply → store; again until Codex answers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from codex_multi_role.catalog import fill
from codex_multi_role.checks.tools.terminate import FAILURE, TERMINATED
from codex_multi_role.codex.client import RoleClient
from codex_multi_role.codex.notifications import ItemCompleted, ItemStarted, ModelRerouted
from codex_multi_role.codex.running_turn import Observed, TurnDeadlines
from codex_multi_role.codex.turn_outcome import LONGEST_PROMPT, TurnOutcome, TurnRequest
from codex_multi_role.codex.usage import TokensUsed, TokenUsage
from codex_multi_role.errors import CodexError, CodexStartFailed, StorageError, ending_for
from codex_multi_role.flow.answer_requirements import removable_nulls, sent_schema
from codex_multi_role.reading.json_types import Json
from codex_multi_role.replies import EMPTY, Reply, read_reply, unusable, without
from codex_multi_role.run_folder import TurnFolder
from codex_multi_role.run_folder.events import RoleRestarted, Warning
from codex_multi_role.run_options import PROVIDER_ATTEMPTS
from codex_multi_role.steps.known_instructions import INSTRUCTIONS, KnownInstructions
from codex_multi_role.steps.protection import TOLD, ProtectedState
from codex_multi_role.steps.recovery import (
    by_budget,
    cut_short,
    failure,
    first_state,
    kept_by_unfinished_attempt,
    next_try,
    pause,
)
from codex_multi_role.steps.resources import RunResources, Stay
from codex_multi_role.steps.turn_events import TurnEvents, TurnUsage, says_done
from codex_multi_role.steps.turn_helpers import TurnHelpers
from codex_multi_role.steps.turn_record import (
    COMPLETED,
    CURRENT_THREAD,
    DECLINED,
    GAVE_UP,
    INVALID,
    NEW_THREAD,
    UNFINISHED,
    TurnPrompt,
    TurnResult,
)

KEPT_CHARACTERS = 100_000
"""At each end of a prompt that is too long: its role comes first, its answer format last."""
ODD_USAGE = "its provider reported invalid token counts (decreasing, negative or not numbers), which count as 0"
NO_USAGE = "its provider reports no usage; its turns count as 0 tokens and have no cost"
MISSED_USAGE = (
    "Codex compacted its conversation and did not report the tokens of that model call, which are therefore not counted"
)


def take_turn(run: RunResources, asked: TurnPrompt) -> TurnResult:
    """Send the prompt until Codex answers it, at most `PROVIDER_ATTEMPTS` times, with growing pauses.

    Raises `RoleFailed` if no attempt was answered, `CodexError` if no process started, `QuotaUsedUp`, and
    `RunInterrupted` if the run is stopping.
    """
    for attempt in range(1, PROVIDER_ATTEMPTS + 1):
        last = attempt == PROVIDER_ATTEMPTS
        try:
            with (
                run.services.fleet.borrowed(asked.instance) as client,
                _running(run, asked.instance),
                run.progress.stays.at(run.workspace.root, may_write=asked.role.writes_itself) as stay,
            ):
                result, outcome = Attempt(run, asked, attempt, client, stay).take()
        except CodexStartFailed as error:
            if last or not error.transient:
                raise
            run.services.events.publish(RoleRestarted(asked.instance, str(error)))
            pause(run.progress.stopping, attempt)
            continue
        if result.answered:
            return result
        again = next_try(run, asked, outcome)
        if again is None or last:
            raise failure(run, asked, outcome)
        asked = again
        pause(run.progress.stopping, attempt, outcome.pause_seconds)
    raise AssertionError("a prompt is sent at least once")


@contextmanager
def _running(run: RunResources, instance: str) -> Iterator[None]:
    """While the block runs, the instance takes a turn and the run's time passes."""
    with run.services.clock.turn():
        run.progress.running_instances.add(instance)
        try:
            yield
        finally:
            run.progress.running_instances.discard(instance)


class Attempt:
    """One attempt at a turn, on a borrowed process. Raises `BudgetUsedUp`, `CodexError` before anything is sent.

    ``stay``: its stay in the workspace. ``before``, ``after``: the workspace, as far as it matters.
    """

    def __init__(self, run: RunResources, asked: TurnPrompt, number: int, client: RoleClient, stay: Stay) -> None:
        self.run, self.asked, self.number, self.stay = run, asked, number, stay
        self.role = asked.role
        self.client = _on_thread(run, asked, client)
        run.services.budget.require_prices(asked.role, self.client.thread.model)
        run.services.budget.reserve_turn(asked.role)
        latest = TurnFolder.latest(run.services.folder, asked.instance)
        self.cut_short = cut_short(run, latest, asked.place)
        self.known = KnownInstructions.of(latest, self.client.thread.continues)
        self.folder = TurnFolder.create(run.services.folder, asked.instance)
        self.began = time.monotonic()
        self.events = TurnEvents(run, asked.role, asked.instance, self.folder.number)
        self.kept = {**asked.kept, **kept_by_unfinished_attempt(self.cut_short, self.client.thread.continues)}
        self.before = self.after = ""
        self.forgot = False
        self.guard: ProtectedState | None = None
        self.used, self.recorded = TurnUsage(run.settings.prices, self.client.thread.model), TokenUsage()
        self.sent = ""
        self.observers = [each.attempt(self) for each in run.services.observers(run)]

    def take(self) -> tuple[TurnResult, TurnOutcome]:
        """Send the prompt and store what comes of it.

        Errors, above all `StorageError`, are also recorded in ``turn.json``, with what the turn used before them.
        """
        try:
            outcome = self._send(self._begin())
            reply = self._read(outcome.text) if outcome.status == COMPLETED else None
            result = self._store(outcome, reply)
            self.events.ended(result, outcome, reply, self._seconds(), self.used)
            return result, outcome
        except Exception as error:
            self._record_failure(error)
            raise

    def _read(self, text: str) -> Reply:
        """The reply, or what to ask about again, also if later steps cannot use it. DONE ends the run without them."""
        reply = read_reply(text, self.role.output_schema, strict=self.role.strict_output)
        if reply.handoff is None or reply.refusal:
            return reply
        if self.role.behaviors.can_finish and says_done(reply.handoff) and not reply.error:
            return reply
        expected = self.asked.expected
        if not self.role.strict_output:
            reply = without(reply, removable_nulls(expected.contract, reply.handoff))
        problems = expected.problems({**(reply.handoff or {}), **self.kept})
        return unusable(reply, problems) if problems else reply

    def _begin(self) -> str:
        """Note what the turn finds; returns the prompt to send."""
        if self.role.writes_itself:
            self.guard = ProtectedState.of(self.run, self.role, self.cut_short)
            self.before = first_state(self.run, self.asked.instance, self.cut_short)
        self.forgot = self.client.thread.forgot and self.asked.thread != NEW_THREAD
        for each in self.observers:
            each.began()
        known = not self.forgot and self.known.suffice_for(self.asked)
        texts = self.asked.texts
        asked = texts.when_known if known else texts.when_forgotten if self.forgot else texts.prompt
        self.sent = prompt = self._sendable(asked)
        self.folder.begin(prompt, self._details())
        if self.kept != self.asked.kept:
            self.folder.write_kept(self.kept)  # for a third attempt, if this one calls no tool
        self.events.started(self.asked, self.number, self.client.thread.model, self.client.thread.id)
        return prompt

    def _sendable(self, prompt: str) -> str:
        """The prompt, or both its ends and where the whole is, if it is too long for Codex."""
        if len(prompt) <= LONGEST_PROMPT:
            return prompt
        left_out, file = len(prompt) - 2 * KEPT_CHARACTERS, self.folder.write_long_prompt(prompt)
        said = f"its prompt has {len(prompt)} characters, Codex accepts {LONGEST_PROMPT}"
        self.warn(f"{said}; the role gets its start and end, and the whole prompt as a file")
        section = self.run.catalog.general_prompts.long_prompt_section
        note = fill(section, {"left_out": str(left_out), "file": str(file)}).strip()
        return f"{prompt[:KEPT_CHARACTERS]}\n\n{note}\n\n{prompt[-KEPT_CHARACTERS:]}"

    def _send(self, prompt: str) -> TurnOutcome:
        """Run the turn until it ends, the run stops, or any turn exceeds a limit of the budget."""
        stopping, limits, budget = self.run.progress.stopping, self.role.limits, self.run.services.budget
        helpers = TurnHelpers(self.run, self.role, self.asked.instance, self.folder, self.kept, self._tell_called)
        deadlines = TurnDeadlines(limits.idle_seconds, min(limits.turn_seconds, budget.seconds_left))
        ends = (stopping, budget.exceeded)
        with stopping.calling(self.client.wake), budget.exceeded.calling(self.client.wake):
            outcome = self.client.run_turn(self._request(prompt), deadlines, self._observe, helpers, ends)
        budget.spend_seconds(self.role.name, self._seconds())
        self._check_usage(outcome)
        return outcome if stopping.is_set() else by_budget(budget, outcome)

    def _check_usage(self, outcome: TurnOutcome) -> None:
        """If the turn's usage is unknown, warn, and admit no further turn under a limit in tokens or money."""
        self.used.is_missing = outcome.status == COMPLETED and bool(outcome.text) and not outcome.usage.total
        if outcome.odd_usage or self.used.is_missing:
            warning = ODD_USAGE if outcome.odd_usage else NO_USAGE
            self.run.services.events.warn_once(self.asked.instance, warning)
            self.run.services.budget.note_unknown_usage(self.role)
        if outcome.missed_usage:
            self.warn(MISSED_USAGE)

    def _observe(self, event: Observed) -> None:
        """Count what the turn uses, and record it when the turn continues, so that it counts even after a kill."""
        match event:
            case ModelRerouted(model=model):
                self.used.model = model
                self.run.services.budget.spend(self.role, model, TokenUsage())
            case TokensUsed(usage, sub_agent_model=sub_agent_model):
                self.used.add(usage, sub_agent_model)
                self.run.services.budget.spend(self.role, sub_agent_model or self.used.model, usage)
            case ItemStarted() | ItemCompleted() if self.used.tokens != self.recorded:
                self.recorded = self.used.tokens
                self.folder.write_running(self._details())
                self.events.counted(self.used)
        for each in self.observers:
            each.observe(event)
        self.events.observe(event)

    def _tell_called(self, tool: str) -> None:
        for each in self.observers:
            each.called(tool)

    def _request(self, prompt: str) -> TurnRequest:
        metadata = {
            "multi_role_role": self.role.name,
            "multi_role_visit": str(self.asked.visit),
            "multi_role_repair": str(self.asked.follows.step + self.asked.follows.repair),
            "multi_role_attempt": str(self.number),
        }
        if self.asked.unit:
            metadata["multi_role_unit"] = self.asked.unit
        return TurnRequest(
            prompt,
            sent_schema(self.role.output_schema, self.asked.expected.contract),
            self.role.reasoning_effort,
            None,
            metadata,
        )

    def _store(self, outcome: TurnOutcome, reply: Reply | None) -> TurnResult:
        self.folder.write_answer(outcome.text, outcome.delta_text, outcome.items_text)
        handoff = None
        if reply and reply.handoff:
            handoff = self.folder.write_handoff(reply.handoff if reply.refusal else {**reply.handoff, **self.kept})
        put_back = self.guard.put_back(self.run, self.asked.instance, self.folder) if self.guard else []
        snapshot, changed = self.before, []
        if snapshot or any(each.compares_workspace for each in self.observers):
            self.after = self.run.snapshots.take()
        if snapshot:
            changed = store_patch(self.run, self.folder, snapshot, self.after)
        elif handoff is not None and "files" in handoff and self.role.behaviors.apply_files:
            snapshot = self.run.snapshots.take()
        status, word, reason = self._ending(outcome, reply)
        may_repair = status == INVALID and self.asked.follows.repair < self.run.settings.repair_attempts
        result = TurnResult(
            role=self.role.name,
            instance=self.asked.instance,
            number=self.folder.number,
            thread_id=self.client.thread.id,
            status=status,
            outcome=word,
            reason=reason,
            handoff=handoff,
            ask_again=status == UNFINISHED or may_repair,
            snapshot=snapshot,
            changed_paths=changed,
            protected_restored=put_back,
            kept=self.kept,
            web_searches=outcome.web_searches,
            error=reply.error if reply else "",
        )
        self._write(result, outcome, reply)
        return result

    def _ending(self, outcome: TurnOutcome, reply: Reply | None) -> tuple[str, str, str]:
        """How the turn ended: `TurnResult.status`, ``outcome`` and ``reason``."""
        if reply is None:
            return outcome.status, outcome.reason or outcome.status, outcome.message
        said = self.kept.get(TERMINATED, {})
        if said.get("status") == FAILURE:
            return GAVE_UP, GAVE_UP, said["reason"] or "no reason given"
        first_answer = self.asked.follows.repair == 0 and self.asked.follows.step < self.role.max_steps
        if reply.only_text and first_answer and TERMINATED not in self.kept:
            return (
                UNFINISHED,
                UNFINISHED,
                "it ended without calling terminate and without its JSON; the turn is continued",
            )
        if reply.problem:
            return INVALID, "empty_answer" if reply.problem == EMPTY else INVALID, reply.problem
        if reply.refusal:
            return DECLINED, DECLINED, reply.refusal
        return COMPLETED, COMPLETED, ""

    def _write(self, result: TurnResult, outcome: TurnOutcome, reply: Reply | None) -> None:
        self.folder.write_result(
            {
                "status": result.status,
                "outcome": result.outcome,
                "reason": result.reason,
                **self._details(),
                "turn_id": outcome.turn_id,
                "seconds": self._seconds(),
                "changed_paths": result.changed_paths,
                TOLD: result.protected_restored,
                "approvals": self.events.approvals,
                "repaired_locally": bool(reply and reply.repaired_locally),
                **self._observed(result, outcome.turn_id),
                "recorded": result.as_json() if result.answered else None,
                INSTRUCTIONS: self._known_afterwards(outcome, result.answered),
            }
        )

    def _observed(self, result: TurnResult, turn_id: str) -> Json:
        told = [each.recorded(result, turn_id) for each in self.observers]
        return {name: value for each in told for name, value in each.items()}

    def _known_afterwards(self, outcome: TurnOutcome, answered: bool) -> Json:
        if outcome.compacted:
            return KnownInstructions().as_json()
        return self.known.after(self.asked, self.sent, self.folder.number if answered else None).as_json()

    def _record_failure(self, error: Exception) -> None:
        if self.folder.unfinished:
            with suppress(StorageError):
                ending = ending_for(error)
                reason = f"{ending.outcome}: {ending.reason}"
                self.folder.write_result({"status": "failed", "reason": reason, **self._details()})

    def _details(self) -> Json:
        return {
            "thread_id": self.client.thread.id,
            "model": self.used.model,
            "attempt": self.number,
            "repair_of": self.asked.follows.repair_of,
            "continues": self.asked.follows.continues,
            "tools": list(self.role.tools),
            "cycle": self.asked.cycle,
            "unit": self.asked.unit,
            "journal_step": self.asked.place,
            "snapshot": self.before,
            "protected": self.guard.tree if self.guard else "",
            INSTRUCTIONS: self.known.after(self.asked, self.sent, None).as_json(),
            **self.used.as_json(),
            "prices": self.run.settings.prices.date,
            "seconds": 0.0,
            "worked_seconds": round(self.run.services.clock.seconds, 3),
        }

    def warn(self, problem: str) -> None:
        self.run.services.events.publish(Warning(f"{self.asked.instance}: {problem}"))

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
    folder.write_changes(before, after)
    return list(run.snapshots.changed_paths(before, after))
