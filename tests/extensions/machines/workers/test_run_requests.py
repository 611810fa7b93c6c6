"""Queues, labels and the order in which the engine hands out runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.machines.workers.run_requests import (
    RANKS,
    RunRequest,
    can_take,
    dequeue_order,
    queue_with_labels,
)

NAMES = st.text("abc-_.1", min_size=1, max_size=5)


@given(NAMES, st.sets(NAMES, max_size=4), st.sets(NAMES, max_size=4), st.sets(NAMES, max_size=4))
def test_worker_takes_runs_whose_labels_it_has(
    queue: str, needed: set[str], labels: set[str], queues: set[str]
) -> None:
    full = queue_with_labels(queue, needed)
    assert can_take(full, queues, labels) == (queue in queues and needed <= labels)


@pytest.mark.parametrize("name", ["", "a+b", "a b", "a,b"])
def test_queue_name_that_would_be_misread_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="cannot name a queue"):
        queue_with_labels(name, [])
    with pytest.raises(UsageError, match="cannot name a queue"):
        queue_with_labels("goals", [name])


@given(st.tuples(st.integers(-99, 99), st.integers(0, RANKS)), st.tuples(st.integers(-99, 99), st.integers(0, RANKS)))
def test_higher_priority_and_lower_rank_come_first(one: tuple[int, int], other: tuple[int, int]) -> None:
    orders = dequeue_order(*one), dequeue_order(*other)
    assert all(1 <= order < 2**31 for order in orders)
    if min(max(one[0], -50), 50) > min(max(other[0], -50), 50) or (one[0] == other[0] and one[1] < other[1] < RANKS):
        assert orders[0] < orders[1]


def test_request_survives_its_row() -> None:
    request = RunRequest(
        run_id="one", options={"goal": "g"}, definitions={"archive": "a"}, workspace={}, labels=("gpu",), changes={}
    )
    assert RunRequest.of(request.as_json()) == request
