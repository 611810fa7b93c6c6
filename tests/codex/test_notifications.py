from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codex_multi_role.codex.notifications import (
    EventParser,
    ItemCompleted,
    ModelRerouted,
    TurnFinished,
    WarningIssued,
    models_of_sub_agents,
    turn_id_of,
)
from codex_multi_role.codex.turn_outcome import TurnRecorder

WORDS = ["fileChange", "agentMessage", "commandExecution", "completed", "failed"]
METHODS = [*EventParser._READERS, "new/method"]
OF_ITEMS = ["id", "type", "changes", "path", "text", "status", "model", "agentThreadId", "receiverThreadIds"]
KEYS = ["turn", "item", "error", "codexErrorInfo", "delta", "new", *OF_ITEMS]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=settings().max_examples // 2)
@given(
    st.lists(st.tuples(st.sampled_from(METHODS), st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS, JSON)) | JSON))
)
def test_messages_of_any_shape_are_events_or_nothing(told: list[tuple[str, object]]) -> None:
    recorder = TurnRecorder()
    for method, params in told:
        message = {"method": method, "params": params}
        turn_id_of(message)
        event = EventParser().parse(message)
        if event is not None:
            recorder.add(event)
        if isinstance(event, ItemCompleted):
            models_of_sub_agents(event.item)
        if isinstance(event, TurnFinished):
            recorder.finished(event)
    recorder.outcome("stalled", "stalled", "silent")


def test_unknown_turn_status_is_reported_as_a_failure() -> None:
    """A newer Codex may end a turn with a status that is unknown here."""
    outcome = TurnRecorder().finished(TurnFinished("paused", None))
    assert (outcome.status, outcome.reason) == ("failed", "failed")
    assert "ended the turn as paused" in outcome.message


def test_finished_turn() -> None:
    message = {"method": "turn/completed", "params": {"threadId": "t", "turn": {"id": "u", "status": "failed"}}}
    assert EventParser().parse(message) == TurnFinished("failed", None)
    assert turn_id_of(message) == "u"


def test_rerouting_names_the_model_that_answers() -> None:
    params = {"fromModel": "a", "toModel": "b", "reason": "highRiskCyberActivity", "turnId": "u", "threadId": "t"}
    event = EventParser().parse({"method": "model/rerouted", "params": params})
    assert event == ModelRerouted("the model b answers instead of a (highRiskCyberActivity)", "b")


@pytest.mark.parametrize(
    ("method", "params", "text"),
    [
        ("warning", {"message": "Model metadata for `x` not found.\n Be careful."}, None),
        ("warning", {"message": "Model metadata for `playbook` not found."}, ""),
        ("guardianWarning", {"message": "denied", "threadId": "t"}, "denied"),
        ("configWarning", {"summary": "Error parsing rules", "details": "line 1\nline 2"}, None),
        ("deprecationNotice", {"summary": "old is deprecated.", "details": "Use new."}, "old is deprecated. Use new."),
        ("mcpServer/startupStatus/updated", {"name": "s", "status": "starting", "error": None}, ""),
        ("mcpServer/startupStatus/updated", {"name": "s", "status": "failed"}, "the MCP server s did not start"),
        ("warning", {"message": "x" * 5_000}, "x" * 500),
    ],
)
def test_every_kind_of_warning_has_its_text(method: str, params: dict[str, object], text: str | None) -> None:
    """In one line, and bounded; empty if nobody needs to know."""
    said = " ".join(" ".join(str(params[key]) for key in ("message", "summary", "details") if key in params).split())
    assert EventParser().parse({"method": method, "params": params}) == WarningIssued(said if text is None else text)
