"""What is counted of recorded wire logs is what their provider counted; see `tests.codex.write_usage_logs`."""

from __future__ import annotations

from functools import reduce
from operator import add
from pathlib import Path

import pytest

from codex_multi_role.codex.usage import TokenUsage
from tests.support.usage_logs import read_log, replayed

LOGS = sorted((Path(__file__).parent / "usage_logs").glob("*.ndjson"))


@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.stem)
def test_counted_usage_is_that_of_the_provider(log: Path) -> None:
    first, lines = read_log(log)
    assert reduce(add, replayed(lines)) == reduce(add, (TokenUsage(*each) for each in first["provider"]))


@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.stem)
def test_doubled_messages_of_codex_count_once(log: Path) -> None:
    """Every report comes twice, as Codex repeats some of its own accord."""
    _, lines = read_log(log)
    doubled = [line for line in lines for _ in range(2 if "tokenUsage/updated" in str(line) else 1)]
    assert replayed(doubled) == replayed(lines)
