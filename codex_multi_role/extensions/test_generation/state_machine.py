"""The state machine of test generation for one file: what each event changes, and what comes next. Pure.

```mermaid
stateDiagram-v2
    [*] --> plan
    plan --> no_plan: no usable item
    plan --> items: planned
    items --> develop: doubted
    items --> confirm: some item does not hold
    confirm --> develop: doubted, kept or withdrawn
    develop --> execute: one developer
    develop --> merge: compared, both run
    develop --> take: compared
    develop --> no_candidate: no answer
    merge --> execute: merged
    merge --> take: not merged
    execute --> mutants: executed, green, and a score is of use
    execute --> judge: executed
    mutants --> judge
    take --> judge
    judge --> timeout: 1. no iteration is left
    judge --> develop: 2. a crash, or something to fix
    judge --> plan: 3. too little coverage, or too low a score
    judge --> success: 4. otherwise, even in the last iteration
```

The flow ``testgen-rounds`` has these steps, their prompts and limits; the check ``testgen_state`` reports the events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from pydantic import Field

from codex_multi_role.checks import CheckOptions, ResultPart
from codex_multi_role.extensions.test_generation.plan_items import FAILS
from codex_multi_role.extensions.test_generation.test_files import TestFile
from codex_multi_role.reading.json_types import Json

BOTH: Final = "both"
"""The winner of a duel if the tests of both developers were merged."""
Mode = Literal["generate", "fix", "syntax", "append"]
Verdict = Literal["kept", "rolled back"]
Next = Literal[
    "no_plan", "items", "develop", "no_candidate", "merge", "take", "mutants", "judge", "success", "timeout", "plan"
]


class RoundLimits(CheckOptions):
    """``mutation``: mutants may be judged. ``merge``: the tests of both developers of a duel may be merged.

    ``max_items``: of the whole plan.
    """

    max_iterations: int = Field(ge=1)
    target_coverage: float = Field(ge=0, le=100)
    target_mutation_score: float = Field(default=0.0, ge=0, le=100)
    mutation: bool = False
    merge: bool = False
    max_items: int = Field(default=30, ge=1)


class MeasuredTests(ResultPart):
    """The tests that a developer wrote, and what was measured of them.

    ``failed`` leaves out tests that say what a suspected bug is about. ``code`` is the text of all ``files``.

    ``away``: the assertions of failing tests that the best attempt has and this one does not, as ``{test, assertion,
    id, expected}``. ``score``: percent of the mutants, null if not judged. ``chosen``: who won the duel.
    """

    files: list[TestFile]
    code: str
    reason: str
    crashed: bool
    passed: int
    failed: int
    failures: list[Json]
    coverage: float | None
    uncovered: list[Json]
    output_tail: str
    untested: list[str]
    unasserting: list[str]
    away: list[Json]
    score: float | None
    survivors: list[Json]
    chosen: Json

    @property
    def to_fix(self) -> int:
        """How many things the developer has to fix, apart from a crash."""
        return self.failed + len(self.away) + len(self.untested) + len(self.unasserting)

    @property
    def reached(self) -> float:
        """The coverage for comparisons: nothing measured is less than nothing reached."""
        return -1.0 if self.coverage is None else self.coverage


class Round(ResultPart):
    """An iteration in ``results.json``. ``failed`` counts everything that the developer has to fix.

    ``away``: the assertions of failing tests that it changed.
    """

    mode: Mode
    status: Verdict
    reason: str
    crashed: bool
    failed: int
    coverage: float | None
    untested: list[str]
    unasserting: list[str]
    away: list[Json]
    mutation_score: float | None
    chosen: Json


class State(ResultPart):
    """``plan``: each item a `JudgedItem`.

    ``mode``: of the next developer: generate, fix and syntax replace the tests, append appends to ``before``.

    ``others``: the further files of tests that stay when tests are appended. ``best`` is in the workspace.
    """

    plan: list[Json]
    mode: Mode
    before: str
    others: list[TestFile]
    attempt: MeasuredTests | None
    best: MeasuredTests | None
    rounds: list[Round]


START: Final = State(plan=[], mode="generate", before="", others=[], attempt=None, best=None, rounds=[])
Moved = tuple[State, Next]
"""The state after an event, and what comes next."""


def planned(state: State, plan: Sequence[Json]) -> Moved:
    """The planner answered. ``plan`` includes the earlier items."""
    return state.model_copy(update={"plan": list(plan)}), "items" if plan else "no_plan"


def doubted(state: State, verdicts: Mapping[str, Json], withdrawn: Mapping[str, str]) -> Moved:
    """The items were run as tests, and the planner was asked about those that do not hold."""
    asked = {each for each in withdrawn if verdicts.get(each, {}).get("verdict") == FAILS}
    known = [{**each, **verdicts.get(each["id"], {})} for each in state.plan]
    plan = [{**each, "withdrawn": withdrawn[each["id"]]} if each["id"] in asked else each for each in known]
    return state.model_copy(update={"plan": plan}), "develop"


def compared(state: State, winner: MeasuredTests, can_merge: bool, limits: RoundLimits) -> Moved:
    """A developer of a duel won. ``can_merge``: the tests of both run."""
    return state.model_copy(update={"attempt": winner}), "merge" if can_merge and limits.merge else "take"


def executed(state: State, attempt: MeasuredTests, limits: RoundLimits, *, is_scored: bool = False) -> Moved:
    """The tests were run. ``is_scored``: their mutants were judged before, when they were merged."""
    is_of_use = not is_scored and _is_score_useful(state, attempt, limits)
    return state.model_copy(update={"attempt": attempt}), "mutants" if is_of_use else "judge"


def judged(state: State, mutation: Mapping[str, Any], limits: RoundLimits, not_merged: str = "") -> Moved:
    """Everything is known of the state's attempt. ``mutation``: the result for its mutants, {} if not judged.

    ``not_merged``: why the tests of both developers were not merged.
    """
    assert state.attempt is not None, "tests were compared or executed before"
    attempt = with_score(state.attempt, mutation)
    if attempt.chosen and attempt.chosen["winner"] != BOTH:
        attempt = attempt.model_copy(update={"chosen": {**attempt.chosen, "not_merged": not_merged}})
    reason = _worse(attempt, state.best, limits.target_coverage) if state.best else ""
    best = state.best if state.best and reason else attempt
    mode: Mode = "fix" if attempt.to_fix else "syntax" if attempt.crashed else "append"
    stays = best.files if mode == "append" else []
    verdict = Round(
        mode=state.mode,
        status="rolled back" if reason else "kept",
        reason=reason,
        failed=attempt.to_fix,
        mutation_score=attempt.score,
        **attempt.model_dump(include={"crashed", "coverage", "untested", "unasserting", "away", "chosen"}),
    )
    after = State(
        plan=state.plan,
        mode=mode,
        before=stays[0].content if stays else "",
        others=stays[1:],
        attempt=attempt,
        best=best,
        rounds=[*state.rounds, verdict],
    )
    return after, _after_judgement(attempt, len(after.rounds), limits)


def with_score(attempt: MeasuredTests, mutation: Mapping[str, Any]) -> MeasuredTests:
    """``attempt`` with the figures of its mutants; unchanged if none was judged."""
    if not mutation.get("mutants"):
        return attempt
    return attempt.model_copy(update={"score": mutation["score_percent"], "survivors": mutation["survivors"]})


def _is_score_useful(state: State, attempt: MeasuredTests, limits: RoundLimits) -> bool:
    """Whether a score is wanted, or survivors could go into another plan. Failing tests have none."""
    if not limits.mutation or attempt.crashed or attempt.failed:
        return False
    is_last = len(state.rounds) + 1 >= limits.max_iterations
    return limits.target_mutation_score > 0 or (attempt.reached < limits.target_coverage and not is_last)


def _after_judgement(attempt: MeasuredTests, iterations: int, limits: RoundLimits) -> Next:
    needs_developer = attempt.crashed or attempt.to_fix > 0
    is_noticed = attempt.score is None or attempt.score >= limits.target_mutation_score
    if not needs_developer and attempt.reached >= limits.target_coverage and is_noticed:
        return "success"
    if iterations >= limits.max_iterations:
        return "timeout"
    return "develop" if needs_developer else "plan"


def _worse(now: MeasuredTests, best: MeasuredTests, target_coverage: float) -> str:
    """Why the attempt is rolled back, or an empty text.

    It is worse if it changes what a failing test expects, crashes where the best does not, reaches less, passes fewer
    tests, or notices fewer mutants. If it reaches the target and nothing is left to fix, only the first and the last
    count.
    """
    if now.away:
        changed = "; ".join(f"{each['test']} ({each['assertion']})" for each in now.away)
        return f"changes what failing tests expect: {changed}"
    if now.crashed:
        return "" if best.crashed else f"crashed: {now.reason}"
    if now.score is not None and best.score is not None and now.score < best.score and now.reached <= best.reached:
        return f"kills {now.score} % of the mutants, the best so far {best.score} %"
    if best.crashed or (not now.to_fix and now.reached >= target_coverage):
        return ""
    if now.reached < best.reached:
        return f"reaches {now.coverage} %, the best so far {best.coverage} %"
    return f"{now.passed} tests pass, of the best so far {best.passed}" if now.passed < best.passed else ""
