"""One item of a fan-out: its own resources, events and cancellation, and what templates see of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from codex_multi_role.catalog import StepSpec
from codex_multi_role.catalog.shown_fields import ItemStatus, OfItem
from codex_multi_role.engine.askers import Scope
from codex_multi_role.engine.journal_slots import ItemCancelled, JournalSlots, RunHalted, refuse_when_stopping
from codex_multi_role.engine.step_limit import StepLimit
from codex_multi_role.errors import RunStatus
from codex_multi_role.flow import FlowState, name_of
from codex_multi_role.flow.state import shown_item
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import Cancellations
from codex_multi_role.run_folder.items import ItemResults
from codex_multi_role.run_folder.states import COMPLETED, FAILED, SKIPPED, ItemStates
from codex_multi_role.steps import StepOutcome
from codex_multi_role.steps.cancellation_token import CancellationToken


class FanOutItem:
    """One item: its own resources, events and cancellation.

    ``key``: its unit key; ``value``: the element of the list at ``index``, of which its ask gets the ``content``;
    ``row``: its slots in the journal. Its ``run`` is ``stopping`` if the ``outer`` one is, or if this item alone must
    stop.
    """

    def __init__(
        self,
        outer: Scope,
        step: StepSpec,
        key: str,
        index: int,
        value: Any,  # noqa: ANN401
        content: Json | None,
        row: JournalSlots,
    ) -> None:
        self.key = key
        self.index = index
        self.value = value
        self.run = replace(outer.run, progress=replace(outer.run.progress, stopping=CancellationToken()))
        self.asker = outer.asker.fork(self.run, outer.state, step, content)
        self.states = ItemStates(outer.run.services.states, key, name_of(value, index))
        may_start = partial(refuse_when_stopping, self.run)
        self._ids = row.with_hook(may_start).with_hook(self.states.publish).cancellable(self._cancelled)
        self._outer = outer
        self._reason = ""
        self.limit = StepLimit(step, self.run, self._ids)

    def scope(self, state: FlowState) -> Scope:
        return replace(self._outer, run=self.run, ids=self._ids, asker=self.asker, state=state)

    def keep(self, outcome: StepOutcome) -> StepOutcome:
        """Take over the outcome that the item had in the parent run."""
        return self._ended(outcome)

    def outcome(self, work: Callable[[], StepOutcome]) -> StepOutcome:
        """The outcome of ``work``; skipped if somebody cancelled the item before it ended."""
        try:
            with self._running():
                outcome = work()
        except ItemCancelled as cancelled:
            if cancelled.unit != self.key:  # an enclosing item was
                self._report(SKIPPED, cancelled.reason)
                raise
            outcome = StepOutcome({}, cancelled.reason, skipped=True)
        except RunHalted as halt:
            if halt.ending.status == RunStatus.FAILED:
                self._report(FAILED, halt.ending.reason)
            raise
        return self._ended(outcome)

    def _ended(self, outcome: StepOutcome) -> StepOutcome:
        ItemResults(self.run.services.folder.path).write(self.key, self.value, outcome.as_json())
        state = SKIPPED if outcome.skipped else FAILED if outcome.error else COMPLETED
        self._report(state, outcome.error or outcome.flaw)
        return outcome

    def cancel(self, reason: str) -> None:
        """End its work, which then counts as cancelled for this reason."""
        self._reason = reason
        self.run.progress.stopping.set()

    def _cancelled(self) -> ItemCancelled | None:
        if self._reason:
            return ItemCancelled(self.key, self._reason)
        asked = Cancellations(self.run.services.folder.path).find(self.key)
        return ItemCancelled(self.key, asked.reason) if asked is not None else None

    @contextmanager
    def _running(self) -> Iterator[None]:
        self.run.progress.running_items[self.key] = self.run.progress.stopping
        try:
            with self._outer.run.progress.stopping.calling(self.run.progress.stopping.set):
                yield
        finally:
            del self.run.progress.running_items[self.key]

    def fail(self, reason: str) -> None:
        """Report that it failed after it had ended: its copy could not be merged."""
        self._report(FAILED, reason)

    def _report(self, state: str, reason: str) -> None:
        self.states.become(state, reason)
        self.states.publish()


def seen_item(index: int, outcome: StepOutcome, role: str = "") -> Json:
    """An item as templates see it, with the ``role`` that was chosen for it."""
    status: ItemStatus = "skipped" if outcome.skipped else "failed" if outcome.error else "done"
    own: OfItem = {"index": index, "status": status, "error": outcome.error}
    if role:
        own["role"] = role
    return shown_item(outcome.output, own, is_answer=outcome.turn is not None, bad=bool(outcome.bad))
