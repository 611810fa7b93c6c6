from __future__ import annotations

from typing import Any

import pytest

from codex_multi_role.checks.merge import merge_items
from codex_multi_role.errors import UsageError
from tests.support.checks import MakeContext


def _merge(make_context: MakeContext, **options: object) -> dict[str, Any]:
    return merge_items(make_context({}, **options))


def test_new_items_join_in_order(make_context: MakeContext) -> None:
    result = _merge(make_context, known=[{"id": "a", "x": 1}], new=[{"id": "b", "x": 2}], fields=["x"])
    assert result == {
        "status": "merged", "items": [{"id": "a", "x": 1}, {"id": "b", "x": 2}], "added": ["b"], "refused": []
    }  # fmt: skip


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ({"id": "a", "x": 1}, "the id a is taken"),
        ({"id": "b"}, "without x"),
        ({"id": "b", "x": 1, "y": 2}, "with an unknown y"),
        ({"x": 1, "y": 2}, "without id and with an unknown y"),
        ({"id": 7, "x": 1}, "its id is not text"),
        ("b", "is not a mapping"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_reason(make_context: MakeContext, item: object, reason: str) -> None:
    result = _merge(make_context, known=[{"id": "a", "x": 1}], new=[item, {"id": "c", "x": 3}], fields=["x"])
    assert (result["status"], result["refused"]) == ("refused", [{"item": item, "reason": reason}])
    assert result["added"] == ["c"]


def test_of_two_new_ones_with_one_key_the_first_stays(make_context: MakeContext) -> None:
    result = _merge(make_context, known=[], new=[{"id": "a", "x": 1}, {"id": "a", "x": 2}])
    assert result["items"] == [{"id": "a", "x": 1}]


def test_value_that_is_not_a_list_is_wrong_usage(make_context: MakeContext) -> None:
    with pytest.raises(UsageError, match="check merge_items: new"):
        _merge(make_context, known=[], new="all")
