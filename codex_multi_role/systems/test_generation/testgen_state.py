"""The check ``testgen_state``: report an event to the state machine; restore the best tests if an attempt is worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, JsonValue, model_validator

from codex_multi_role.checks.check_options import CheckOptions, read_options
from codex_multi_role.checks.check_result import CheckResult
from codex_multi_role.checks.choose import Criterion, choose
from codex_multi_role.checks.contract import CheckContext, declare_check, no_time
from codex_multi_role.checks.merge_items import RefusedItem, merged_items
from codex_multi_role.checks.output_files import write_artifact, write_result
from codex_multi_role.reading.json_types import Json
from codex_multi_role.systems.test_generation.state_machine import (
    BOTH,
    START,
    Compared,
    Event,
    Executed,
    MeasuredTests,
    MutantsJudged,
    Next,
    Planned,
    RoundLimits,
    State,
    transition,
    with_score,
)
from codex_multi_role.systems.test_generation.test_files import TestFile, put_all, remove, shown, texts_of
from codex_multi_role.systems.test_generation.tests_source import expects, tests_without_assertion, untested

ITEM_FIELDS = ("rationale", "target", "input", "expected")
BETTER: Final = [
    Criterion(key="steps.execute.crashed", prefer="false"),
    Criterion(key="steps.execute.coverage", prefer="highest"),
    Criterion(key="steps.execute.failed", prefer="lowest"),
    Criterion(key="steps.mutants.score_percent", prefer="highest"),
]
"""Which of two developers wins, the most important criterion first; the first developer wins a tie."""


class TestgenStateOptions(CheckOptions):
    """``state``: the ``state`` of this check's latest result, {} at first. The others report one event each.

    ``executed``: the result of ``coverage`` for ``tests``, the result of ``write_tests`` or ``merge_tests``.
    ``judged``: the result of ``mutation``, {} if it was not run. ``not_merged``: why ``merge_tests`` failed.
    """

    __test__ = False

    state: Annotated[State, BeforeValidator(lambda given: given or START)] = Field(description='"{{ vars.state }}"')
    limits: RoundLimits = Field(description="{max_iterations, target_coverage, target_mutation_score, mutation, merge}")
    planned: list[JsonValue] | None = Field(default=None, description="the items of the planner's answer")
    compared: list[dict[str, JsonValue]] | None = Field(default=None, description='"{{ steps.<fan-out>.results }}"')
    executed: dict[str, Any] | None = Field(default=None, description='"{{ steps.<coverage> }}"')
    tests: dict[str, Any] = Field(default={}, description='"{{ steps.<write_tests> }}"')
    judged: dict[str, Any] | None = Field(default=None, description='"{{ steps.<mutation> }}"')
    not_merged: str = Field(default="", description="a text")

    @model_validator(mode="after")
    def _have_one_event(self) -> TestgenStateOptions:
        if sum(event is not None for event in (self.planned, self.compared, self.executed, self.judged)) != 1:
            raise ValueError("needs one of planned, compared, executed and judged")
        return self


class TestgenStateResult(CheckResult):
    """``planned``: the ids ``added`` to the plan, and the items ``refused``. ``compared``: the index of the ``winner``.

    ``kept`` and ``rolled back``: the verdict on the state's attempt, and its ``reason``.
    """

    __test__ = False

    status: Literal["planned", "compared", "executed", "kept", "rolled back"]
    reason: str = ""
    next: Next
    state: State
    added: list[str] = Field(default=[])
    refused: list[RefusedItem] = Field(default=[])
    winner: int | None = None


@declare_check(options=TestgenStateOptions, result=TestgenStateResult, max_seconds=no_time)
def advance_state(context: CheckContext) -> TestgenStateResult:
    """Move to the next state. Raises UsageError, CheckFailed if the best tests cannot be restored."""
    options = read_options(TestgenStateOptions, context, "testgen_state")
    event, told = _event(options)
    state, following = transition(options.state, event, options.limits)
    if isinstance(event, MutantsJudged):
        told = _keep_best(context, options.state.best, state)
    return write_result(context, TestgenStateResult(next=following, state=state, **told))


def _event(options: TestgenStateOptions) -> tuple[Event, Json]:
    """The event, and what the result reports about it."""
    state = options.state
    if options.planned is not None:
        plan, refused = merged_items(state.plan, options.planned, "id", ITEM_FIELDS)
        added = [str(item["id"]) for item in plan[len(state.plan) :]]
        return Planned(plan), {"status": "planned", "added": added, "refused": refused}
    if options.compared is not None:
        event, winner = _compared(state, options.compared)
        return event, {"status": "compared", "winner": winner}
    if options.executed is not None:
        return _executed(state, options.tests, options.executed), {"status": "executed"}
    return MutantsJudged(options.judged or {}, options.not_merged), {}


def _compared(state: State, candidates: Sequence[Json]) -> tuple[Compared, int | None]:
    chosen = choose(candidates, BETTER)
    if chosen.index is None:
        return Compared(None), None
    runs = [index for index in chosen.ranking if not candidates[index]["steps"]["execute"]["crashed"]]
    best = candidates[chosen.index]
    steps, duel = best["steps"], {"winner": best["vars"]["developer"], "reason": chosen.reason}
    attempt = _attempt([_file(steps["write"]), *state.others], state.plan, steps["execute"], duel)
    scored = with_score(attempt, steps.get("mutants", {}))
    return Compared(scored, can_merge=len(runs) == len(candidates)), chosen.index


def _executed(state: State, tests: Json, measured: Json) -> Executed:
    if "files" not in tests:
        return Executed(_attempt([_file(tests)], state.plan, measured, {}))
    duel = {"winner": BOTH, **{name: tests[name] for name in ("reason", "candidates", "merged", "dropped")}}
    attempt = _attempt([_file(file) for file in tests["files"]], state.plan, measured, duel)
    return Executed(with_score(attempt, tests), is_scored=True)


def _file(written: Json) -> TestFile:
    return TestFile(path=written["path"], content=written["content"])


def _attempt(files: list[TestFile], plan: Sequence[Json], measured: Mapping[str, Any], chosen: Json) -> MeasuredTests:
    """The attempt before its mutants are judged. A collection error is a crash."""
    texts = texts_of(files)
    sources, crashed = list(texts.values()), measured["crashed"]
    names = ("reason", "crashed", "passed", "failures", "coverage", "uncovered", "output_tail")
    return MeasuredTests(
        files=files,
        code=shown(texts),
        **{name: measured[name] for name in names},
        failed=measured["failed"] + (0 if crashed else measured["errors"]),
        expects=[item["id"] for item in plan if any(expects(text, item) for text in sources)],
        untested=[] if crashed else untested(sources, plan),
        unasserting=[name for text in sources for name in tests_without_assertion(text)],
        away=[],
        score=None,
        survivors=[],
        chosen=chosen,
    )


def _keep_best(context: CheckContext, before: MeasuredTests | None, state: State) -> Json:
    """Leave the files of the best attempt in the workspace, without those of the other one; return the verdict."""
    assert state.attempt is not None
    assert state.best is not None
    write_artifact(context, "attempt.py.txt", state.attempt.code)
    verdict, kept = state.rounds[-1], texts_of(state.best.files)
    other = before if verdict.status == "kept" else state.attempt
    if verdict.status == "rolled back":
        put_all(context, kept)
    remove(context, (texts_of(other.files) if other else {}).keys() - kept.keys())
    return {"status": verdict.status, "reason": verdict.reason}
