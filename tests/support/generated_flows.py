"""Flows that nobody thought of."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from hypothesis import strategies as st

from codex_multi_role.catalog import FlowSpec
from tests.support.flows import ROLES

STEP_IDS = ("a", "b", "c", "d")
FLOW_NAMES = ("main", "inner", "other")
MOST_ITEMS = 3

Keys = dict[str, Any]


@st.composite
def flows_of_checks(draw: st.DrawFn) -> FlowSpec:
    """One small flow of checks that leave ``red`` and ``green``; many have loops, not all of them bounded."""
    ids = STEP_IDS[: draw(st.integers(2, len(STEP_IDS)))]
    return _flow("x", [{"id": step_id, "check": "tests"} | draw(_routes(step_id, ids)) for step_id in ids])


@st.composite
def flows_that_call(draw: st.DrawFn) -> dict[str, FlowSpec]:
    """Up to three flows of every kind of step, with fan-outs, tries and calls, each of these with a limit.

    Some end with checks: ``main``, if no flow calls it.
    """
    names = FLOW_NAMES[: draw(st.integers(1, len(FLOW_NAMES)))]
    steps = {}
    for name in names:
        ids = STEP_IDS[: draw(st.integers(2, 3))]
        onward = {each: ids[index + 1 :] if draw(st.booleans()) else ids for index, each in enumerate(ids)}
        steps[name] = [{"id": each} | draw(_work(names)) | draw(_routes(each, onward[each])) for each in ids]
    final: list[Keys] = []
    if not any(step.get("call") == "main" for each in steps.values() for step in each):
        final = [{"id": f"final{index}", **each} for index, each in enumerate(draw(st.lists(_checks(), max_size=2)))]
    return {name: _flow(name, steps[name], final if name == "main" else []) for name in names}


def _flow(name: str, steps: list[Keys], final: Sequence[Keys] = ()) -> FlowSpec:
    definition = {"name": name, "inputs": {"most": 2}, "vars": {"most": "{{ inputs.most }}"}}
    return FlowSpec.model_validate(definition | {"source": f"{name}.yaml", "steps": steps, "finally": [*final]})


@cache
def _routes(step_id: str, reachable: tuple[str, ...]) -> st.SearchStrategy[Keys]:
    ways = st.sampled_from([{"to": each} for each in reachable] * 2 + [{"end": "done"}])
    entries = st.lists(st.tuples(_conditions(step_id), ways).map(lambda each: {"when": each[0], **each[1]}), max_size=3)
    both = st.tuples(entries, st.lists(ways, max_size=1)).map(lambda each: each[0] + each[1])
    return st.fixed_dictionaries({"next": both, "max_visits": st.none() | st.integers(1, 3)})


@cache
def _conditions(step_id: str) -> st.SearchStrategy[str]:
    """What may occur in a ``when`` after ``step_id``: what it left, comparisons of visits, and any mixture of them."""
    flags = st.sampled_from([f"steps.{step_id}.red", f"steps.{step_id}.green"])
    counts = st.sampled_from(["cycle", *(f"steps.{each}.visits" for each in STEP_IDS[:2])])
    numbers = st.sampled_from(["0", "1", "2", "3", "1.5", "cycles", "inputs.most", "vars.most"])
    signs = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
    compared = st.tuples(counts, signs, numbers) | st.tuples(numbers, signs, counts)
    return st.recursive(
        flags | compared.map(" ".join),
        lambda parts: (
            st.tuples(parts, st.sampled_from(["and", "or"]), parts).map(lambda each: f"({' '.join(each)})")
            | parts.map(lambda each: f"not {each}")
        ),
        max_leaves=3,
    )


@cache
def _work(names: tuple[str, ...]) -> st.SearchStrategy[Keys]:
    """What a step does, and what stands around it."""
    around = {"limits": st.just({"turn_seconds": 2}), "isolate": st.just("worktree")}
    asks = st.fixed_dictionaries({"ask": st.sampled_from(list(ROLES))}, optional=around)
    checks = _checks()
    reviews = st.just({"review": "Well?", "time_limit_seconds": 5, "default": "reject"})
    alone = asks | checks | reviews | _calls(names)
    whole = alone | _merged(alone, _fan_outs()) | _panels() | _chosen_roles() | st.just({"ask": "*"})
    return whole | _merged(whole, st.fixed_dictionaries({"retry": _retries()}))


def _checks() -> st.SearchStrategy[Keys]:
    return st.fixed_dictionaries({"check": st.just("tests")}, optional={"limits": st.just({"seconds": 2})})


def _panels() -> st.SearchStrategy[Keys]:
    """Several roles at once."""
    asked = st.fixed_dictionaries({"ask": _several_roles()}, optional={"concurrency": st.integers(1, 3)})
    return _merged(asked, _asks_of_items())


def _chosen_roles() -> st.SearchStrategy[Keys]:
    """A role for each item."""
    asked = st.fixed_dictionaries({"ask": st.just("{{ item.role }}"), "roles": _several_roles()})
    return _merged(_merged(asked, _asks_of_items()), _fan_outs())


def _asks_of_items() -> st.SearchStrategy[Keys]:
    copies: st.SearchStrategy[Keys] = st.just({}) | st.just({"isolate": "worktree", "merge": "none"})
    return _merged(
        copies, st.fixed_dictionaries({}, optional={"limits": st.just({"turn_seconds": 2}), **_early_ends()})
    )


def _several_roles() -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(list(ROLES)), min_size=1, unique=True)


def _retries() -> st.SearchStrategy[Keys]:
    return st.fixed_dictionaries({"attempts": st.integers(2, 3), "backoff_seconds": st.just(1)})


def _calls(names: tuple[str, ...]) -> st.SearchStrategy[Keys]:
    values = st.sampled_from([1, "3", "{{ inputs.most }}", "{{ vars.most }}", "{{ cycles }}", "{{ cycle + 1 }}"])
    given = st.fixed_dictionaries({}, optional={"most": values})
    return st.fixed_dictionaries({"call": st.sampled_from(names), "max_depth": st.integers(1, 2), "with": given})


def _fan_outs() -> st.SearchStrategy[Keys]:
    concurrency = st.sampled_from([1, 2, 3, "{{ inputs.most }}", "{{ steps.a.number }}"])
    listed = st.fixed_dictionaries({"for_each": st.lists(st.integers(), max_size=MOST_ITEMS)})
    found = {"for_each": st.just("{{ steps.a.found }}"), "max_items": st.integers(1, MOST_ITEMS)}
    around = st.fixed_dictionaries({"concurrency": concurrency}, optional={"needs": st.just("{{ item.needs }}")})
    return _merged(listed | st.fixed_dictionaries(found), around)


def _early_ends() -> dict[str, st.SearchStrategy[str]]:
    """That a fan-out ends before all items are done."""
    return {"until": st.just("results | length > 0"), "on_item_error": st.just("cancel")}


def _merged(one: st.SearchStrategy[Keys], other: st.SearchStrategy[Keys]) -> st.SearchStrategy[Keys]:
    return st.tuples(one, other).map(lambda both: both[0] | both[1])
