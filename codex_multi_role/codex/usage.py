"""What model requests used, in tokens, each counted exactly once from the totals that Codex reports.

What a compaction used is not reported; Codex's own file of the thread, its rollout, has it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from codex_multi_role.codex.notifications import Counts, ModelResponded, TokenUsageUpdated


@dataclass(frozen=True)
class TokenUsage:
    """Tokens of one or more model requests.

    ``cached_input``: the part of ``input`` that the provider read from its cache, for which it may charge less;
    ``cache_write``: the part that it wrote there, for which it may charge more.
    """

    input: int = 0
    cached_input: int = 0
    output: int = 0
    cache_write: int = 0

    @classmethod
    def of_record(cls, tokens: Mapping[str, int]) -> TokenUsage:
        """The inverse of `as_record`. Earlier versions did not record the parts of ``input``."""
        return cls(**{each.name: max(tokens.get(each.name, 0), 0) for each in fields(cls)})

    @property
    def total(self) -> int:
        """Input and output, of which the other two are parts."""
        return self.input + self.output

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(**{name: count + getattr(other, name) for name, count in vars(self).items()})

    def as_record(self) -> dict[str, int]:
        """``tokens`` in ``turn.json``."""
        return asdict(self)


def tokens_by_model(turn: Mapping[str, Any]) -> Mapping[str, Mapping[str, int]]:
    """``tokens`` in ``turn.json``, by the model that used them: all by ``model`` unless several are recorded."""
    found: Mapping[str, Mapping[str, int]] = turn.get("tokens_by_model") or {turn.get("model", ""): turn["tokens"]}
    return found


Totals = tuple[int, ...]
NOTHING = (0, 0, 0, 0)


@dataclass(frozen=True)
class TokensUsed:
    """What was used since the report before. ``is_odd``: a count shrank, was negative or not a number.

    Such counts count as zero. ``sub_agent_model``: of the sub-agent that used it; None if the turn itself did.
    """

    usage: TokenUsage
    is_odd: bool
    sub_agent_model: str | None = None


class UsageCounter:
    """The totals of all threads of a process, own and of sub-agents, as far as they are counted.

    Codex reports the sum over all requests of a thread, and the last request, after each request. Measured: a report
    may come again; a resumed thread and a fork start with the totals of their past; and the totals restart from zero
    after a request that was too long for the model. A report that was lost is made up for by the next one.

    Before that, Codex reports each request of a thread that this process started. This counts at once, and the
    totals count only what they grow by beyond it: nothing, or what a provider used that gives all its responses one id.
    No total contains what a compaction used that the provider did itself (measured).
    """

    def __init__(self) -> None:
        self._counted: dict[str, Totals] = {}
        self._ahead: dict[str, Totals] = {}
        self._responses: dict[str, str] = {}
        self._compacting: set[str] = set()

    def start(self, thread: str) -> None:
        """Note that ``thread`` is new: it has used nothing yet."""
        self._counted[thread] = NOTHING

    def forget(self, thread: str) -> None:
        """Note that the past of ``thread`` was loaded again, so that its totals are unknown until its next report."""
        self._counted.pop(thread, None)
        self._ahead.pop(thread, None)

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
        # What the totals grew by, less what responses have counted ahead. That they restarted is seen by this: they
        # grew by less than the last request used, although they are at least as much. A repeated report grows by
        # nothing.
        grown = _less(now, before)
        if is_valid and now != before and min(_less(grown, last)) < 0 <= min(_less(now, last)):
            grown = now  # the totals have restarted
        ahead = self._ahead.get(report.thread, NOTHING)
        known = tuple(min(max(count, 0), each) for count, each in zip(grown, ahead, strict=True))
        self._ahead[report.thread] = _less(ahead, known)
        return self._used(report.thread, _less(grown, known), is_odd=not is_valid or min(grown) < 0)

    def count_response(self, report: ModelResponded) -> TokensUsed:
        """What the request used, which the totals may contain later."""
        is_repeated = self._responses.get(report.thread) == report.response
        self._responses[report.thread] = report.response
        counts = _known(report.usage, NOTHING) if not is_repeated else NOTHING
        ahead = self._ahead.get(report.thread, NOTHING)
        self._ahead[report.thread] = tuple(one + max(other, 0) for one, other in zip(ahead, counts, strict=True))
        return self._used(report.thread, counts, is_odd=None in report.usage or min(counts) < 0)

    def count_unreported(self, thread: str, usage: Counts) -> TokensUsed:
        """What a request used that no report contains."""
        counts = _known(usage, NOTHING)
        return self._used(thread, counts, is_odd=None in usage or min(counts) < 0)

    def start_compaction(self, thread: str) -> None:
        self._compacting.add(thread)

    def end_compaction(self, thread: str) -> bool:
        """Whether Codex reported what the compaction of ``thread`` used."""
        reported = thread not in self._compacting
        self._compacting.discard(thread)
        return reported

    def _used(self, thread: str, counts: Totals, *, is_odd: bool) -> TokensUsed:
        used = [max(count, 0) for count in counts]
        cached = min(used[1], used[0])
        usage = TokenUsage(used[0], cached, used[2], min(used[3], used[0] - cached))
        if usage.total:
            self._compacting.discard(thread)
        return TokensUsed(usage, is_odd)


def _known(counts: Counts, otherwise: Totals) -> Totals:
    return tuple(other if count is None else count for count, other in zip(counts, otherwise, strict=True))


def _less(totals: Totals, others: Totals) -> Totals:
    return tuple(total - other for total, other in zip(totals, others, strict=True))


USED, COMPACTED = "token_usage_record", "compacted"
COUNTS = ("input_tokens", "cached_input_tokens", "output_tokens", "cache_write_input_tokens")


def compaction_usage(path: Path) -> Counts | None:
    """What the latest compaction in the rollout used, in the order of `ModelResponded`; None if it is not there.

    Codex writes the compaction to the file before it reports its end, and before that, what its model request used
    (measured; the format is not documented).
    """
    try:
        with path.open(encoding="utf-8") as lines:
            return _latest(json.loads(line) for line in lines if USED in line or COMPACTED in line)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _latest(entries: Iterable[Mapping[str, Any]]) -> Counts | None:
    request: Mapping[str, Any] = {}
    found: Counts | None = None
    for entry in entries:
        payload = entry["payload"]
        if entry["type"] == USED:
            request = payload
        elif entry["type"] == COMPACTED:
            is_its_own = request.get("response_id") == payload.get("compaction_response_id", "")
            found = tuple(request["usage"].get(key) for key in COUNTS) if is_its_own else None
    return found
