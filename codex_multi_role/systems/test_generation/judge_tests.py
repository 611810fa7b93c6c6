"""The check ``judge_tests``: keep the best tests so far; roll back an attempt that is worse."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, Literal

from pydantic import Field, JsonValue

from codex_multi_role.checks.check_options import CheckOptions, read_options
from codex_multi_role.checks.check_result import CheckResult, ResultPart
from codex_multi_role.checks.contract import CheckContext, declare_check, no_time
from codex_multi_role.checks.output_files import write_artifact, write_result
from codex_multi_role.reading.json_types import Json
from codex_multi_role.systems.test_generation.assertions import tests_without_assertion
from codex_multi_role.systems.test_generation.test_files import TestFile, put_all, remove, shown, texts_of
from codex_multi_role.systems.test_generation.tests_source import expects, tests_of, untested

KEPT: Final = "kept"
TAKEN_BACK: Final = "rolled back"
MEASURED = ("crashed", "passed", "failures", "coverage", "uncovered", "output_tail")


class JudgeTestsOptions(CheckOptions):
    """``files`` are the attempt in the workspace, ``measured`` is its result of the check ``coverage``.

    ``mutation``: its result of a check of mutants, if any. ``best``: this check's ``best`` for the earlier attempts, or
    {}.
    """

    files: list[TestFile] = Field(min_length=1, description="a list of {path, content}")
    plan: list[dict[str, JsonValue]] = Field(description="the plan's items")
    measured: dict[str, Any] = Field(description='"{{ steps.<coverage> }}"')
    mutation: dict[str, Any] = Field(default={}, description='"{{ steps.<mutation> }}"')
    best: dict[str, Any] = Field(description='"{{ vars.best }}"')
    target_coverage: float = Field(ge=0, le=100, description="percent")


class AttemptReport(ResultPart):
    reason: str
    failures: list[Json]
    output_tail: str


class LostExpectation(ResultPart):
    id: Any
    expected: Any


class JudgeTestsResult(CheckResult):
    """The figures are those of the ``attempt``, which is the text of all its files.

    ``score``: percent of the mutants, null if not judged. ``failed`` also counts the expectations of the plan that the
    attempt lost (``away``), the plan items that are ``untested``, and the tests without an assertion (``unasserting``).
    A collection error is a crash. ``best``: the best tests so far, the option ``best`` of the next call.
    """

    status: Literal["kept", "rolled back"]
    reason: str
    attempt: str
    crashed: bool
    failed: int
    coverage: float | None
    score: float | None
    report: AttemptReport
    away: list[LostExpectation]
    untested: list[str]
    unasserting: list[str]
    best: Json


@declare_check(options=JudgeTestsOptions, result=JudgeTestsResult, max_seconds=no_time)
def judge_tests(context: CheckContext) -> JudgeTestsResult:
    """Compare the attempt in the workspace with the best so far, and restore the best if it was better.

    An attempt is worse if it no longer expects what the plan says of an item, crashes where the best does not, reaches
    less, passes fewer tests, or notices fewer mutants. If it reaches the target and nothing fails, only the first and
    the last count. The attempt is saved as ``attempt.py``. Raises UsageError, CheckFailed.
    """
    options = read_options(JudgeTestsOptions, context, "judge_tests")
    best = options.best
    now = _measured(options)
    write_artifact(context, "attempt.py", now["code"])
    lost = set(best.get("expects", [])) - set(now["expects"])
    away = [item for item in options.plan if item["id"] in lost]
    now["failed"] += len(away) + len(now["untested"]) + len(now["unasserting"])
    reason = _worse(now, best, away, options.target_coverage) if best else ""
    kept, other = (best, now) if reason else (now, best)
    if reason:
        put_all(context, _texts(best))
    remove(context, _texts(other).keys() - _texts(kept).keys())
    result = JudgeTestsResult(
        status=TAKEN_BACK if reason else KEPT,
        reason=reason,
        attempt=now["code"],
        **{name: now[name] for name in ("crashed", "failed", "coverage", "score", "untested", "unasserting")},
        report=AttemptReport(**{name: now[name] for name in AttemptReport.model_fields}),
        away=[LostExpectation(id=item["id"], expected=item["expected"]) for item in away],
        best=dict(kept),
    )
    return write_result(context, result)


def _texts(judged: Json) -> dict[str, str]:
    return {file["path"]: file["content"] for file in judged.get("files", ())}


def _measured(options: JudgeTestsOptions) -> Json:
    """The attempt. ``expects``: the ids of the items whose tests expect what the plan says."""
    measured: Mapping[str, Any] = options.measured
    texts = texts_of(options.files)
    judged = options.mutation if options.mutation.get("mutants") else {}
    return {
        "files": [file.model_dump() for file in options.files],
        "code": shown(texts),
        "reason": measured["reason"],
        **{name: measured[name] for name in MEASURED},
        "failed": measured["failed"] + (0 if measured["crashed"] else measured["errors"]),
        "score": judged.get("score_percent"),
        "survivors": judged.get("survivors", []),
        "untested": [] if measured["crashed"] else untested(list(texts.values()), options.plan),
        "unasserting": [name for text in texts.values() for name in tests_without_assertion(text)],
        "expects": [item["id"] for item in options.plan if any(expects(text, item) for text in texts.values())],
    }


def _worse(now: Json, best: Json, away: list[Any], target: float) -> str:
    if away:
        lost = ", ".join(f"{each['id']} ({each['expected']})" for each in away)
        return f"no longer expects what the plan says: {lost}"
    if now["crashed"]:
        return "" if best["crashed"] else f"crashed: {now['reason']}"
    if (
        None not in (now["score"], best["score"])
        and now["score"] < best["score"]
        and now["coverage"] <= best["coverage"]
    ):
        return f"notices {now['score']} % of the mutants, the best so far {best['score']} %"
    if best["crashed"] or (not now["failed"] and now["coverage"] >= target):
        return ""
    if now["coverage"] < best["coverage"]:
        return f"reaches {now['coverage']} %, the best so far {best['coverage']} %"
    if now["passed"] < best["passed"]:
        return f"{now['passed']} tests pass, of the best so far {best['passed']}"
    return ""


def suspected_bugs(files: Mapping[str, tuple[str, Collection[str]]], plan: list[Any]) -> list[Json]:
    """The plan items whose failing tests expect what the plan says: the code may be wrong.

    ``files``: by path, a text and the names of its failing tests.
    """
    found = []
    for item in plan:
        own = []
        for text, failing in files.values():
            failed = [each.name for each in tests_of(text, str(item["id"])) if each.name in failing]
            own += failed if expects(text, item) else []
        if own:
            found.append({**item, "tests": own})
    return found
