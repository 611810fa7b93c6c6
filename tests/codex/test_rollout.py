"""What a compaction used, read from Codex's own file of the thread."""

from __future__ import annotations

import json
from contextlib import ExitStack
from functools import reduce
from operator import add
from pathlib import Path

import pytest

from codex_multi_role.codex.usage_counter import compaction_usage
from tests.codex.write_usage_logs import Recorder, as_usage, compacted_by_the_provider_after_a_resumption
from tests.support.codex import Harness

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
