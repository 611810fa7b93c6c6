"""Counts what model requests used, each exactly once, from the totals that Codex reports."""

from __future__ import annotations

from codex_multi_role.codex.notifications import Counts, TokenUsageUpdated
from codex_multi_role.codex.usage import TokenUsage
from codex_multi_role.dataclass import dataclass

Totals = tuple[int, ...]
NOTHING = (0, 0, 0, 0)


@dataclass(frozen=True)
class TokensUsed:
    """What a turn has used since the one before. ``is_odd``: a count shrank, was negative or not a number.

    Such counts count as zero.
    """

    usage: TokenUsage
    is_odd: bool


class UsageCounter:
    """The totals of all threads of a process, own and of sub-agents, as far as they are counted.

    Codex reports the sum over all requests of a thread, and the last request, after each request. Measured: a report
    may come again; a resumed thread and a fork start with the totals of their past; and the totals restart from zero
    after a request that was too long for the model. A report that was lost is made up for by the next one.
    """

    def __init__(self) -> None:
        self._counted: dict[str, Totals] = {}

    def start(self, thread: str) -> None:
        """Note that ``thread`` is new: it has used nothing yet."""
        self._counted[thread] = NOTHING

    def forget(self, thread: str) -> None:
        """Note that the past of ``thread`` was loaded again, so that its totals are unknown until its next report."""
        self._counted.pop(thread, None)

    def knows(self, thread: str) -> bool:
        return thread in self._counted

    def skip(self, report: TokenUsageUpdated) -> None:
        """Count the totals of ``report`` as used earlier."""
        self._counted[report.thread] = _known(report.totals, NOTHING)

    def count(self, report: TokenUsageUpdated) -> TokensUsed:
        """What was used since the thread's previous report; if its past is unknown, by its last request."""
        now = _known(report.totals, self._counted.get(report.thread, NOTHING))
        last = _known(report.lasts, NOTHING)
        before = self._counted.get(report.thread) or _less(now, last)
        self._counted[report.thread] = now
        is_valid = None not in (*report.totals, *report.lasts) and min(last) >= 0
        grown = _less(now, before)
        if is_valid and now != before and min(_less(grown, last)) < 0 <= min(_less(now, last)):
            grown = now  # the totals have restarted
        used = [max(count, 0) for count in grown]
        cached = min(used[1], used[0])
        usage = TokenUsage(used[0], cached, used[2], min(used[3], used[0] - cached))
        return TokensUsed(usage, is_odd=not is_valid or min(grown) < 0)


def _known(counts: Counts, otherwise: Totals) -> Totals:
    return tuple(other if count is None else count for count, other in zip(counts, otherwise, strict=True))


def _less(totals: Totals, others: Totals) -> Totals:
    return tuple(total - other for total, other in zip(totals, others, strict=True))
