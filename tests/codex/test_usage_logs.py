"""What is counted of recorded wire logs is what their provider counted; see `tests.codex.write_usage_logs`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add
from pathlib import Path

import pytest

from codex_multi_role.codex.running_turn import UNKNOWN_MODEL, Observed
from codex_multi_role.codex.usage import TokensUsed, TokenUsage
from tests.support.usage_logs import REPORTS, Record, read_log, replayed

LOGS = sorted((Path(__file__).parent / "usage_logs").glob("*.ndjson"))
BY_PROVIDER = "compacted_by_the_provider"


def counted(lines: Iterable[Record]) -> TokenUsage:
    return reduce(add, (turn.usage for turn in replayed(lines)))


def without_responses(lines: list[Record]) -> list[Record]:
    return [line for line in lines if line["message"].get("method") != "rawResponse/completed"]


@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.stem)
def test_counted_usage_is_that_of_the_provider(log: Path) -> None:
    first, lines = read_log(log)
    missed = reduce(add, (TokenUsage(*each) for each in first.get("unreported", ())), TokenUsage())
    assert counted(lines) + missed == reduce(add, (TokenUsage(*each) for each in first["provider"]))
    assert any(turn.missed_usage for turn in replayed(lines)) == bool(missed.total)


@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.stem)
def test_totals_count_the_same_where_responses_are_not_reported(log: Path) -> None:
    """Only a compaction by the provider is then missed, and the turn says so."""
    lines = read_log(log)[1]
    if log.stem == BY_PROVIDER:
        assert counted(without_responses(lines)) != counted(lines)
        assert [turn.missed_usage for turn in replayed(without_responses(lines))] == [True]
    else:
        assert counted(without_responses(lines)) == counted(lines)


@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.stem)
def test_doubled_totals_of_codex_count_once(log: Path) -> None:
    """Every total comes twice, as Codex repeats some of its own accord."""
    lines = read_log(log)[1]
    doubled = [line for line in lines for _ in range(2 if line["message"].get("method") == REPORTS[0] else 1)]
    assert [turn.usage for turn in replayed(doubled)] == [turn.usage for turn in replayed(lines)]


def test_sub_agent_whose_model_codex_does_not_name_has_an_unknown_model() -> None:
    """The logs are kept without the names of models."""
    observed: list[Observed] = []
    replayed(read_log(LOGS[0].with_name("with_a_sub_agent.ndjson"))[1], observed.append)
    used = [each for each in observed if isinstance(each, TokensUsed) and each.usage.total]
    assert {each.sub_agent_model for each in used} == {None, UNKNOWN_MODEL}
