from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.checks.choose import Criterion, Requirement, choose, choose_best
from codex_multi_role.checks.merge import merge_items
from codex_multi_role.errors import UsageError
from tests.support.checks import MakeContext, run_check

HIGHEST_A = [{"key": "a", "prefer": "highest"}]


_run = partial(run_check, choose_best)


def test_most_important_key_decides_first(make_context: MakeContext) -> None:
    candidates = [
        {"coverage": {"percent": 80}, "failed": 0, "name": "x"},
        {"coverage": {"percent": 92.5}, "failed": 2, "name": "y"},
        {"coverage": {"percent": 92.5}, "failed": 1, "name": "z"},
    ]
    by = [{"key": "coverage.percent", "prefer": "highest"}, {"key": "failed", "prefer": "lowest"}]
    assert _run(make_context({}, candidates=candidates, by=by)) == {
        "status": "chosen",
        "index": 2,
        "winner": candidates[2],
        "reason": "failed is 1, the next best has 2 (lowest wins)",
        "tie": False,
        "tied": [],
        "ranking": [2, 1, 0],
        "rejected": [],
        "incomparable": [],
    }


def test_tie_is_stated_and_the_first_wins(make_context: MakeContext) -> None:
    result = _run(make_context({}, candidates=[{"a": 1}, {"a": 2}, {"a": 2.0, "b": 9}, {"a": 2}], by=HIGHEST_A))
    assert (result["index"], result["tie"], result["tied"], result["ranking"]) == (1, True, [1, 2, 3], [1, 2, 3, 0])
    assert result["reason"] == "equal in every key to the next best: the first one wins"


def test_unqualified_candidates_are_rejected_with_a_reason(make_context: MakeContext) -> None:
    """Candidates that failed are rejected as well."""
    candidates = [
        {"index": 0, "status": "failed", "error": "the role crashed", "a": 9, "passed": True},
        {"index": 1, "status": "done", "error": "", "a": 8, "passed": False},
        {"index": 2, "status": "done", "error": "", "a": 1, "passed": True, "kind": {"name": "own"}},
        {"index": 3, "status": "done", "error": "", "a": 7},
        {"index": 4, "status": "done", "error": "", "a": 6, "passed": True, "kind": {"name": "other"}},
        {"status": "failed"},
        {"status": "skipped", "passed": True},
    ]
    require = ["passed", {"key": "kind.name", "equals": "own"}]
    result = _run(make_context({}, candidates=candidates, by=HIGHEST_A, require=require))
    assert (result["status"], result["index"], result["ranking"]) == ("chosen", 2, [2])
    assert result["reason"] == "the only candidate that was not rejected"
    assert result["rejected"] == [
        {"index": 0, "reason": "the role crashed"},
        {"index": 1, "reason": "passed is false"},
        {"index": 3, "reason": "passed is missing"},
        {"index": 4, "reason": 'kind.name is "other", not "own"'},
        {"index": 5, "reason": "its status is failed"},
        {"index": 6, "reason": "its status is skipped"},
    ]


@pytest.mark.parametrize(
    ("value", "equals", "taken"),
    [
        (True, True, True),
        (1, True, False),
        (0, False, False),
        (1, 1.0, True),
        ("1", 1, False),
        (None, None, True),
        ([1], [1], True),
    ],
)
def test_equality(make_context: MakeContext, value: object, equals: object, taken: bool) -> None:
    require = [{"key": "v", "equals": equals}]
    result = _run(make_context({}, candidates=[{"v": value}], by=HIGHEST_A, require=require))
    assert (result["status"] == "chosen") == taken


def test_nobody_is_left(make_context: MakeContext) -> None:
    for candidates, reason in (([], "there are no candidates"), ([{"a": 0}], "every candidate was rejected")):
        result = _run(make_context({}, candidates=candidates, by=HIGHEST_A, require=["a"]))
        assert (result["status"], result["index"], result["winner"]) == ("none", None, None)
        assert (result["reason"], result["tie"], result["ranking"]) == (reason, False, [])


@pytest.mark.parametrize(
    ("prefer", "values", "ranking"),
    [
        ("highest", [1, 3.5, -2, math.inf], [3, 1, 0, 2]),
        ("lowest", [1, 3.5, -2, -math.inf], [3, 2, 0, 1]),
        ("highest", ["b", "a", "c"], [2, 0, 1]),
        ("lowest", ["b", "a", "c"], [1, 0, 2]),
        ("highest", [False, True], [1, 0]),
        ("lowest", [True, False], [1, 0]),
        ("true", [False, True], [1, 0]),
        ("false", [True, False], [1, 0]),
        (True, [False, True], [1, 0]),
        (False, [True, False], [1, 0]),
        ("highest", ["9", False, True, 0, None], [3, 2, 1, 0, 4]),
        ("lowest", ["9", False, True, 0, None], [3, 1, 2, 0, 4]),
        ("true", ["true", 1, False, [], True], [4, 2, 0, 1, 3]),
        ("highest", [10**400, 1e308, 10**400 + 1], [2, 0, 1]),
    ],
)
def test_order_of_values(make_context: MakeContext, prefer: object, values: list[object], ranking: list[int]) -> None:
    candidates = [{"a": value} for value in values]
    result = choose_best(make_context({}, candidates=candidates, by=[{"key": "a", "prefer": prefer}]))
    assert result["ranking"] == ranking


def test_incomparable_candidate_ranks_last_and_is_reported(make_context: MakeContext) -> None:
    candidates = [{"a": None}, {"b": 1}, {"a": math.nan}, {"a": -5}, {"a": {"b": 1}}]
    result = choose_best(make_context({}, candidates=candidates, by=HIGHEST_A))
    assert (result["index"], result["ranking"]) == (3, [3, 0, 1, 2, 4])
    assert result["reason"] == "a is -5, the next best has null (highest wins)"
    assert result["incomparable"] == [
        {"index": 0, "key": "a", "reason": "null cannot be compared"},
        {"index": 1, "key": "a", "reason": "is missing"},
        {"index": 2, "key": "a", "reason": "NaN cannot be compared"},
        {"index": 4, "key": "a", "reason": '{"b": 1} cannot be compared'},
    ]


VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 1.0, math.inf, math.nan, "", "a", "b"])
    | st.just([1])
)
CANDIDATES = st.lists(st.dictionaries(st.sampled_from("abc"), VALUES), max_size=7)
CRITERIA = st.lists(
    st.builds(Criterion, key=st.sampled_from("ab"), prefer=st.sampled_from(["highest", "lowest", "true", "false"])),
    min_size=1,
    max_size=3,
)
REQUIRE = st.lists(st.just(Requirement(key="c")), max_size=1)


def _chosen(*options: Any) -> Any:
    return choose(*options).model_dump()


def _beats(one: dict[str, Any], other: dict[str, Any], by: Sequence[Criterion]) -> bool:
    """Whether ``one`` alone against ``other`` wins without a tie."""
    result = _chosen([one, other], by)
    return bool(result["index"] == 0 and not result["tie"])


@given(CANDIDATES, CRITERIA, REQUIRE)
def test_everyone_is_ranked_or_rejected_once(
    candidates: list[dict[str, Any]], by: list[Criterion], require: list[Requirement]
) -> None:
    result = _chosen(candidates, by, require)
    rejected = [entry["index"] for entry in result["rejected"]]
    assert sorted([*result["ranking"], *rejected]) == list(range(len(candidates)))
    assert result["status"] == ("chosen" if result["ranking"] else "none")
    assert [result["index"]] == (result["ranking"][:1] or [None])
    assert result["tie"] == (len(result["tied"]) > 1)
    assert result["tied"] == result["ranking"][: len(result["tied"])]


@given(CANDIDATES, CRITERIA)
def test_ranking_is_a_total_order_of_what_beats_what(candidates: list[dict[str, Any]], by: list[Criterion]) -> None:
    """Pairs alone stand as in the whole: no third candidate changes which of two is better."""
    ranking = _chosen(candidates, by)["ranking"]
    ranked = [candidates[index] for index in ranking]
    for position, better in enumerate(ranked):
        for worse in ranked[position + 1 :]:
            assert not _beats(worse, better, by)


@given(CANDIDATES.filter(bool), CRITERIA)
def test_winner_is_unbeaten_and_tied_candidates_are_its_equals(
    candidates: list[dict[str, Any]], by: list[Criterion]
) -> None:
    """No candidate beats the winner, and the tied candidates are exactly those that equal it."""
    result = _chosen(candidates, by)
    winner = result["winner"]
    equals = [
        index
        for index, candidate in enumerate(candidates)
        if not _beats(winner, candidate, by) and not _beats(candidate, winner, by)
    ]
    assert not any(_beats(candidate, winner, by) for candidate in candidates)
    assert equals == (result["tied"] or [result["index"]])
    assert result["index"] == min(equals)


@given(
    CANDIDATES.flatmap(lambda items: st.tuples(st.just(items), st.permutations(range(len(items))))), CRITERIA, REQUIRE
)
def test_order_of_the_candidates_matters_to_ties_only(
    shuffled: tuple[list[dict[str, Any]], list[int]], by: list[Criterion], require: list[Requirement]
) -> None:
    candidates, order = shuffled
    before = _chosen(candidates, by, require)
    after = _chosen([candidates[index] for index in order], by, require)
    assert {order[index] for index in after["tied"]} == set(before["tied"])
    assert {order[entry["index"]] for entry in after["rejected"]} == {entry["index"] for entry in before["rejected"]}
    if before["tie"]:
        assert order[after["index"]] in before["tied"]
    elif before["status"] == "chosen":
        assert order[after["index"]] == before["index"]


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
