"""The check ``testgen_state``: report an event to the state machine; restore the best tests if an attempt is worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, JsonValue, model_validator

from codex_multi_role.checks import CheckContext, CheckOptions, CheckResult, declare_check, no_time
from codex_multi_role.checks.choose import Criterion, choose
from codex_multi_role.checks.merge import RefusedItem
from codex_multi_role.extensions.test_generation.existing_tests import together
from codex_multi_role.extensions.test_generation.expectations import changed_expectations, tests_asserting, untested
from codex_multi_role.extensions.test_generation.plan_items import is_suspected, target_module, usable_items
from codex_multi_role.extensions.test_generation.prune_tests import leaks
from codex_multi_role.extensions.test_generation.state_machine import (
    BOTH,
    START,
    MeasuredTests,
    Moved,
    Next,
    RoundLimits,
    State,
    compared,
    doubted,
    executed,
    judged,
    planned,
    with_score,
)
from codex_multi_role.extensions.test_generation.test_files import TestFile, put_all, remove, shown, texts_of
from codex_multi_role.extensions.test_generation.tests_source import tests_without_assertion
from codex_multi_role.reading.json_types import Json

QUOTABLE: Final = {"docstring": "docstrings", "readme": "readme", "caller": "callers"}
"""By the source of an item, the field of ``facts`` that has its quote."""
BETTER: Final = [
    Criterion(key="away", prefer="lowest"),
    Criterion(key="steps.execute.crashed", prefer="false"),
    Criterion(key="reached", prefer="highest"),
    Criterion(key="steps.execute.failed", prefer="lowest"),
    Criterion(key="steps.mutants.score_percent", prefer="highest"),
]
"""Which of two developers wins, the most important criterion first; the first developer wins a tie."""


class TestgenStateOptions(CheckOptions):
    """``state``: the ``state`` of this check's latest result, {} at first. The others report one event each.

    ``planned``: items of the planner's answer, whose names and quotes are searched for in ``facts``, the result of
    ``target_facts`` for ``module``. ``verdicts``: those of ``test_items``, ``withdrawn`` the planner's answer.
    ``existing``: what the check ``existing_tests`` found of ``target``.
    ``executed``: the result of ``coverage`` for ``tests``, the result of ``write_tests`` or ``merge_tests``.
    ``judged``: the result of ``mutation``, {} if it was not run. ``not_merged``: why ``merge_tests`` failed.
    """

    __test__ = False

    state: Annotated[State, BeforeValidator(lambda given: given or START)] = Field(description='"{{ vars.state }}"')
    target: str = Field(default="", description="the file under test")
    limits: RoundLimits = Field(description="{max_iterations, target_coverage, target_mutation_score, mutation, merge}")
    planned: list[JsonValue] | None = Field(default=None, description="the items of the planner's answer")
    facts: dict[str, Any] = Field(default={}, description='"{{ steps.<target_facts> }}"')
    module: str = Field(default="", description="the name by which the target is imported")
    verdicts: dict[str, Json] | None = Field(default=None, description='"{{ steps.<test_items>.verdicts }}"')
    withdrawn: list[Json] = Field(default=[], description="a list of {id, reason}")
    existing: dict[str, Any] = Field(default={}, description='"{{ steps.<existing_tests>.files[…] }}"')
    compared: list[Json] | None = Field(default=None, description='"{{ steps.<fan-out>.results }}"')
    executed: dict[str, Any] | None = Field(default=None, description='"{{ steps.<coverage> }}"')
    tests: dict[str, Any] = Field(default={}, description='"{{ steps.<write_tests> }}"')
    judged: dict[str, Any] | None = Field(default=None, description='"{{ steps.<mutation> }}"')
    not_merged: str = Field(default="", description="a text")

    @model_validator(mode="after")
    def _have_one_event(self) -> TestgenStateOptions:
        events = (self.planned, self.verdicts, self.compared, self.executed, self.judged)
        if sum(event is not None for event in events) != 1:
            raise ValueError("needs one of planned, verdicts, compared, executed and judged")
        return self


class TestgenStateResult(CheckResult):
    """``planned``: the ids ``added`` to the plan, and the items ``refused``. ``compared``: the index of the ``winner``.

    ``kept`` and ``rolled back``: the verdict on the state's attempt, and its ``reason``.
    """

    __test__ = False

    bad = ()

    status: Literal["planned", "doubted", "compared", "executed", "kept", "rolled back"]
    reason: str = ""
    next: Next
    state: State
    added: list[str] = Field(default=[])
    refused: list[RefusedItem] = Field(default=[])
    winner: int | None = None


@declare_check(options=TestgenStateOptions, result=TestgenStateResult, max_seconds=no_time)
def advance_state(context: CheckContext) -> TestgenStateResult:
    """Move to the next state. Raises UsageError, CheckFailed if the best tests cannot be restored."""
    options = context.read_options(TestgenStateOptions, "testgen_state")
    (state, following), told = _moved(options)
    if options.judged is not None:
        told = _keep_best(context, options.state.best, state)
    return TestgenStateResult(next=following, state=state, **told)


def _moved(options: TestgenStateOptions) -> tuple[Moved, Json]:
    """The state after the event with what comes next, and what the result reports about it."""
    state = options.state
    if options.planned is not None:
        module = target_module(options.facts["content"], options.module)
        texts = {name: options.facts[field] for name, field in QUOTABLE.items()}
        new, refused = usable_items(state.plan, options.planned, module, texts, options.limits.max_items)
        told = {"added": [each["id"] for each in new], "refused": [*map(RefusedItem.model_validate, refused)]}
        return planned(state, [*state.plan, *new]), {"status": "planned", **told}
    if options.verdicts is not None:
        withdrawn = {str(each["id"]): str(each["reason"]) for each in options.withdrawn}
        return doubted(state, options.verdicts, withdrawn), {"status": "doubted"}
    if options.compared is not None:
        return _compared(options, options.compared)
    if options.executed is not None:
        return _executed(options, options.executed), {"status": "executed"}
    return judged(state, options.judged or {}, options.limits, options.not_merged), {}


def _compared(options: TestgenStateOptions, candidates: Sequence[Json]) -> tuple[Moved, Json]:
    attempts = [_candidate(options, each) if each.get("status") != "failed" else None for each in candidates]
    figures = [{"away": len(own.away), "reached": own.reached} if own else {} for own in attempts]
    chosen = choose([{**each, **own} for each, own in zip(candidates, figures, strict=True)], BETTER)
    if chosen.index is None or (attempt := attempts[chosen.index]) is None:
        return (options.state, "no_candidate"), {"status": "compared"}
    duel = {"winner": candidates[chosen.index]["vars"]["developer"], "reason": chosen.reason}
    can_merge = all(each and not each.crashed and not each.away for each in attempts)
    moved = compared(options.state, attempt.model_copy(update={"chosen": duel}), can_merge, options.limits)
    return moved, {"status": "compared", "winner": chosen.index}


def _candidate(options: TestgenStateOptions, candidate: Json) -> MeasuredTests:
    steps = candidate["steps"]
    attempt = _attempt(options, [*_files([steps["write"]]), *options.state.others], steps["execute"], {})
    return with_score(attempt, steps.get("mutants", {}))


def _executed(options: TestgenStateOptions, measured: Json) -> Moved:
    tests = options.tests
    if "files" not in tests:
        return executed(options.state, _attempt(options, _files([tests]), measured, {}), options.limits)
    duel = {"winner": BOTH, **{name: tests[name] for name in ("reason", "candidates", "merged", "dropped")}}
    attempt = _attempt(options, _files(tests["files"]), measured, duel)
    return executed(options.state, with_score(attempt, tests), options.limits, is_scored=True)


def _files(written: Sequence[Json]) -> list[TestFile]:
    return [TestFile(path=each["path"], content=each["content"]) for each in written]


def _attempt(
    options: TestgenStateOptions, files: list[TestFile], measured: Mapping[str, Any], chosen: Json
) -> MeasuredTests:
    """The attempt before its mutants are judged. A collection error is a crash.

    Merged tests were compared with the best before, one developer's at a time: the merge itself drops failing tests.
    """
    texts, plan, best = texts_of(files), options.state.plan, options.state.best
    is_compared = best and not chosen and (best.crashed or not measured["crashed"])
    crashed = measured["crashed"]
    known = together(options.existing, options.target, dict(measured))
    failures = [*measured["failures"], *leaks(measured)]
    is_error = 0 if crashed else measured["errors"]
    failing = [each["test"] for each in measured["failures"]]
    explained = {test for item in plan if is_suspected(item) for test in tests_asserting(texts, failing, item)}
    return MeasuredTests(
        files=files,
        code=shown(texts),
        **{each: known[each] for each in ("reason", "crashed", "passed", "coverage", "uncovered", "output_tail")},
        failures=[each for each in failures if each["test"] not in explained],
        failed=measured["failed"] + is_error + len(failures) - len(measured["failures"]) - len(explained),
        untested=[] if crashed else untested(texts.values(), plan),
        unasserting=[name for text in texts.values() for name in tests_without_assertion(text)],
        away=list(changed_expectations(best, texts, plan, options.target)) if best and is_compared else [],
        score=None,
        survivors=[],
        chosen=chosen,
    )


def _keep_best(context: CheckContext, before: MeasuredTests | None, state: State) -> Json:
    """Leave the files of the best attempt in the workspace, without those of the other one; return the verdict."""
    assert state.attempt is not None
    assert state.best is not None
    context.write_artifact("attempt.py.txt", state.attempt.code)
    verdict, kept = state.rounds[-1], texts_of(state.best.files)
    other = before if verdict.status == "kept" else state.attempt
    if verdict.status == "rolled back":
        put_all(context, kept)
    remove(context, (texts_of(other.files) if other else {}).keys() - kept.keys())
    return {"status": verdict.status, "reason": verdict.reason}
