"""One running item of a fan-out: its own parts, its events, and its own cancellation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from codex_multi_role.engine.halt import RunHalted
from codex_multi_role.engine.journal_slots import ItemCancelled, JournalSlots
from codex_multi_role.errors import RoleFailed
from codex_multi_role.flow import name_of
from codex_multi_role.run_folder import Cancellations
from codex_multi_role.run_folder.item_results import ItemResults
from codex_multi_role.run_folder.states import COMPLETED, FAILED, SKIPPED, ItemStates
from codex_multi_role.steps import RunResources, StepOutcome
from codex_multi_role.steps.cancellation_token import CancellationToken


class FanOutItem:
    """``key``: its unit key; ``value``: the element of the list at ``index``; ``row``: its slots in the journal.

    Its ``run`` is ``stopping`` if the ``outer`` one is, or if this item alone must stop.
    """

    def __init__(self, outer: RunResources, key: str, index: int, value: object, row: JournalSlots) -> None:
        self.key = key
        self.index = index
        self.value = value
        self.run = replace(outer, progress=replace(outer.progress, stopping=CancellationToken()))
        self.told = ItemStates(outer.services.states, key, name_of(value, index))
        self.ids = row.with_hook(self.told.tell).cancellable(self._cancelled)
        self._outer = outer

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
                self._tell(SKIPPED, cancelled.reason)
                raise
            outcome = StepOutcome({}, cancelled.reason, skipped=True)
        except RunHalted as halt:
            if halt.ending.exit_code == RoleFailed.exit_code:
                self._tell(FAILED, halt.ending.reason)
            raise
        return self._ended(outcome)

    def _ended(self, outcome: StepOutcome) -> StepOutcome:
        ItemResults(self.run.services.folder.path).write(self.key, self.value, outcome.as_json())
        self._tell(SKIPPED if outcome.skipped else FAILED if outcome.error else COMPLETED, outcome.error)
        return outcome

    def _cancelled(self) -> ItemCancelled | None:
        asked = Cancellations(self.run.services.folder.path).find(self.key)
        return ItemCancelled(self.key, asked.reason) if asked is not None else None

    @contextmanager
    def _running(self) -> Iterator[None]:
        self.run.progress.running_items[self.key] = self.run.progress.stopping
        try:
            with self._outer.progress.stopping.calling(self.run.progress.stopping.set):
                yield
        finally:
            del self.run.progress.running_items[self.key]

    def _tell(self, state: str, reason: str) -> None:
        self.told.become(state, reason)
        self.told.tell()
