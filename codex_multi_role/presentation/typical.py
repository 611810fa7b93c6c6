"""What a run of a flow takes, as measured: the medians of its earlier runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from codex_multi_role.presentation.recorded import Records
from codex_multi_role.presentation.wording import duration, plural
from codex_multi_role.run_folder.cost import Cost, dollars
from codex_multi_role.run_folder.folder import has_reached_end


@dataclass(frozen=True)
class TypicalRun:
    """``turns`` and ``seconds``: the medians of that many ``runs``; ``cost``: that of the ``priced_runs``, if any."""

    runs: int
    turns: float
    seconds: float
    cost: float | None = None
    priced_runs: int = 0

    @property
    def in_words(self) -> str:
        """``typically 8 turns in 3 min 20 s, the median of 12 runs``."""
        known = f"the median of {self.runs} runs" if self.runs > 1 else "as in the only run so far"
        cost = "" if self.cost is None else f" for {dollars(self.cost)}"
        if 0 < self.priced_runs < self.runs:
            cost += f" (known for {plural(self.priced_runs, 'run')})"
        return f"typically {plural(self.turns, 'turn')} in {duration(self.seconds)}{cost}, {known}"


def typical_runs(runs_dir: Path) -> dict[str, TypicalRun]:
    """By flow, from the runs below ``runs_dir`` whose flow ended and that asked a model for all of their turns."""
    totals: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for run in Records(runs_dir).look():
        if has_reached_end(run.record) and _paid_for_all(run.record):
            totals[str(run.record.get("flow"))].append(run.record.get("totals") or {})
    return {flow: _typical(each) for flow, each in totals.items()}


def _paid_for_all(record: Mapping[str, Any]) -> bool:
    """Whether no turn was played or replayed, inherited by a fork, or possibly taken over from an earlier run."""
    return not any(record.get(name) for name in ("playbook", "recording", "forked_from"))


def _typical(totals: list[Mapping[str, Any]]) -> TypicalRun:
    turns, seconds = (median(float(each.get(name) or 0) for each in totals) for name in ("turns", "seconds"))
    costs = [float(cost) for each in totals if (cost := Cost.of_totals(each).known) is not None]
    return TypicalRun(len(totals), turns, seconds, median(costs) if costs else None, len(costs))
