"""Random streams of usage reports, against a provider that only adds up its requests; and counts that are odd."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.codex.notifications import ModelResponded, TokenUsageUpdated, event_of
from codex_multi_role.codex.usage import TokensUsed, TokenUsage, UsageCounter, compaction_usage
from tests.codex.write_usage_logs import Recorder, as_usage, compacted_by_the_provider_after_a_resumption
from tests.support.codex import Harness

NOTHING = [0, 0, 0, 0]
STREAMS = 1_000


@dataclass
class SimulatedThreads:
    """What Codex reports of its threads, and ``provider``: the sums of all requests of this run.

    ``reporting``: threads whose requests it reports one by one. ``has_ids``: each response has its own id.
    """

    random: Random
    has_ids: bool
    counter: UsageCounter = field(default_factory=UsageCounter)
    provider: list[int] = field(default_factory=lambda: [*NOTHING])
    counted: TokenUsage = field(default_factory=TokenUsage)
    reporting: set[str] = field(default_factory=set)
    responses: int = 0
    totals: dict[str, list[int]] = field(default_factory=dict)
    lasts: dict[str, list[int]] = field(default_factory=dict)

    def start(self) -> None:
        thread = f"thread {len(self.totals)}"
        self.totals[thread], self.lasts[thread] = [*NOTHING], [*NOTHING]
        self.counter.start(thread)
        if self.random.random() < 0.5:
            self.reporting.add(thread)

    def request(self) -> None:
        """One request, or several of which only the last one's report arrives."""
        thread = self._any()
        for _ in range(self.random.choice((1, 1, 1, 2))):
            counts = self._respond(thread)
            if self.random.random() < 0.2:
                self._report(thread)  # Codex repeats the earlier totals
            self.lasts[thread] = counts
            self.totals[thread] = [*map(sum, zip(self.totals[thread], counts, strict=True))]
        self._report(thread)

    def compact(self) -> None:
        """The provider compacts the conversation itself; no total contains that."""
        thread = self._any()
        if thread in self.reporting and self.has_ids:
            self._respond(thread)
            self.lasts[thread] = [*NOTHING]
            self._report(thread)

    def _respond(self, thread: str) -> list[int]:
        """A request of ``thread``, reported by itself if Codex was asked for that."""
        size = self.random.randrange(1, 1_000)
        cached = self.random.randrange(size + 1)
        written = self.random.randrange(size - cached + 1)
        counts = [size, cached, self.random.randrange(100), written]
        self.provider[:] = map(sum, zip(self.provider, counts, strict=True))
        self.responses += self.has_ids
        if thread in self.reporting:
            report = ModelResponded(thread, f"r{self.responses}", tuple(counts))
            for _ in range(self.random.choice((1, 1, 1, 2))):
                self._add(self.counter.count_response(report))
        return counts

    def repeat(self) -> None:
        self._report(self._any())

    def estimate(self) -> None:
        """After a compaction, Codex reports the same totals with a last request of nothing."""
        thread = self._any()
        self.lasts[thread] = [*NOTHING]
        self._report(thread)

    def restart(self) -> None:
        """A request was too long for the model."""
        thread = self._any()
        self.totals[thread], self.lasts[thread] = [*NOTHING], [*NOTHING]
        self._report(thread)

    def resume(self) -> None:
        """Another process resumes the threads; Codex reports the past of some."""
        self.counter = UsageCounter()
        self.reporting.clear()
        for thread in self.totals:
            if self.random.random() < 0.5:
                self.counter.skip(self._reported(thread))
            else:  # its first report in this process is that of a single request
                self._request_once(thread)

    def fork(self) -> None:
        """A thread that starts with the totals of another one, and whose first report is that of a single request."""
        parent, thread = self._any(), f"thread {len(self.totals)}"
        self.totals[thread], self.lasts[thread] = [*self.totals[parent]], [*NOTHING]
        self._request_once(thread)

    def _request_once(self, thread: str) -> None:
        self.lasts[thread] = [self.random.randrange(1, 1_000), 0, 3, 1]
        for sums in (self.totals[thread], self.provider):
            sums[:] = map(sum, zip(sums, self.lasts[thread], strict=True))
        self._report(thread)

    def _any(self) -> str:
        return self.random.choice([*self.totals])

    def _reported(self, thread: str) -> TokenUsageUpdated:
        return TokenUsageUpdated(thread, tuple(self.totals[thread]), tuple(self.lasts[thread]))

    def _report(self, thread: str) -> None:
        self._add(self.counter.count(self._reported(thread)))

    def _add(self, used: TokensUsed) -> None:
        assert not used.is_odd
        self.counted += used.usage


def test_sums_of_random_streams_are_those_of_the_provider() -> None:
    for seed in range(STREAMS):
        threads = SimulatedThreads(Random(seed), has_ids=bool(seed % 4))
        threads.start()
        steps = (threads.request,) * 4 + (threads.repeat, threads.estimate, threads.restart, threads.compact)
        for _ in range(threads.random.randrange(40)):
            threads.random.choice((*steps, threads.resume, threads.fork, threads.start))()
            assert threads.counted == TokenUsage(*threads.provider), f"stream {seed}"


def reported(total: object, last: object) -> TokenUsageUpdated:
    usage = {
        "total": {"inputTokens": total, "cachedInputTokens": 0, "outputTokens": 10},
        "last": {"inputTokens": last, "cachedInputTokens": 0, "outputTokens": 0},
    }
    params = {"threadId": "one", "tokenUsage": usage}
    event = event_of({"method": "thread/tokenUsage/updated", "params": params})
    assert isinstance(event, TokenUsageUpdated)
    return event


ODD = st.integers(-1_000, 1_000) | st.sampled_from([None, "7", 1.5, True])


@given(st.lists(st.tuples(ODD, ODD)))
def test_odd_counts_never_take_anything_back(counts: list[tuple[object, object]]) -> None:
    counter = UsageCounter()
    for total, last in counts:
        used = counter.count(reported(total, last))
        assert min(used.usage.input, used.usage.cached_input, used.usage.output) >= 0
        assert used.is_odd or (type(total) is int and type(last) is int and last >= 0)


@pytest.mark.parametrize(("total", "last"), [(-50, -60), (90, -10), (None, 5), (95, 96), (1.5, 1)])
def test_odd_count_costs_nothing_and_is_noted(total: object, last: object) -> None:
    counter = UsageCounter()
    counter.count(reported(100, 100))
    used = counter.count(reported(total, last))
    assert (used.usage, used.is_odd) == (TokenUsage(), True)
    assert not counter.count_unreported("one", (7, 0, 2, 0)).is_odd


def test_usage_is_recorded_and_read_again() -> None:
    used = TokenUsage(100, 40, 7)
    assert TokenUsage.of_record(used.as_record()) == used
    assert used.total == 107


def test_old_record_has_no_cached_input() -> None:
    assert TokenUsage.of_record({"input": 5, "output": 1}) == TokenUsage(5, 0, 1)


USED = {"input_tokens": 7, "cached_input_tokens": 3, "output_tokens": 2, "cache_write_input_tokens": 1}
REQUEST = {"type": "token_usage_record", "payload": {"response_id": "r1", "usage": USED}}
OTHER = {"type": "token_usage_record", "payload": {"response_id": "r2", "usage": {}}}
COMPACTION = {"type": "compacted", "payload": {"compaction_response_id": "r1", "message": '"token_usage_record"'}}


@pytest.mark.real
def test_compaction_of_a_resumed_thread_counts(harness: Harness) -> None:
    with ExitStack() as stack:
        recorder = Recorder(harness, stack)
        turns = compacted_by_the_provider_after_a_resumption(recorder)
        assert reduce(add, (turn.usage for turn in turns)) == reduce(add, map(as_usage, recorder.model.spent))
    assert [turn.missed_usage for turn in turns] == [False, False]


@pytest.mark.parametrize(
    ("entries", "counts"),
    [
        ([REQUEST, COMPACTION, OTHER], (7, 3, 2, 1)),
        ([OTHER, COMPACTION], None),
        ([REQUEST, COMPACTION, OTHER, COMPACTION], None),
        ([COMPACTION], None),
        ([REQUEST], None),
        ([REQUEST, {"type": "compacted"}], None),
        ([{"type": "token_usage_record", "payload": []}, COMPACTION], None),
        (["token_usage_record"], None),
    ],
)
def test_latest_compaction_counts_if_its_request_is_there(
    entries: list[object], counts: object, tmp_path: Path
) -> None:
    rollout = tmp_path / "rollout.jsonl"
    rollout.write_text("".join(f"{json.dumps(each)}\n" for each in entries))
    assert compaction_usage(rollout) == counts


def test_missing_rollout_says_nothing(tmp_path: Path) -> None:
    assert compaction_usage(tmp_path / "none.jsonl") is None
