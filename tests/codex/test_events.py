from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.codex.events import EventParser, TurnFinished, turn_id_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["turn", "item", "id", "x"]), inner),
    max_leaves=6,
)


@given(st.sampled_from(["turn/completed", "item/started", "thread/tokenUsage/updated", "new/method"]), JSON)
def test_messages_of_any_shape_are_events_or_nothing(method: str, params: object) -> None:
    message = {"method": method, "params": params}
    EventParser().parse(message)
    turn_id_of(message)


def test_a_finished_turn() -> None:
    message = {"method": "turn/completed", "params": {"threadId": "t", "turn": {"id": "u", "status": "failed"}}}
    assert EventParser().parse(message) == TurnFinished("failed", None)
    assert turn_id_of(message) == "u"
