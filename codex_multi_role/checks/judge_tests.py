"""The check ``judge_tests``: keep the best tests so far; an attempt that is worse is taken back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, JsonValue

from codex_multi_role.checks.artifacts import write_artifact, write_result
from codex_multi_role.checks.base import CheckContext, lasts, no_time
from codex_multi_role.checks.options import CheckOptions, read_options
from codex_multi_role.checks.tests_source import expects, tests_of
from codex_multi_role.checks.text_files import put

Json = dict[str, Any]
KEPT, TAKEN_BACK = "kept", "rolled back"
MEASURED = ("crashed", "passed", "failures", "coverage", "uncovered", "output_tail")


class JudgeTestsOptions(CheckOptions):
    """``code`` is the attempt that lies at ``path``, ``measured`` what the check coverage said of it.

    ``best``: what this check said of the attempts before, or {}.
    """

    path: str = Field(min_length=1, description="the file of tests")
    code: str = Field(description="the text of that file")
    plan: list[dict[str, JsonValue]] = Field(description="the plan's items")
    measured: dict[str, Any] = Field(description='"{{ steps.<coverage> }}"')
    best: dict[str, Any] = Field(description='"{{ vars.best }}"')
    target_coverage: float = Field(ge=0, le=100, description="percent")


@lasts(no_time)
def judge_tests(context: CheckContext) -> dict[str, object]:
    """Compare the attempt that lies in the workspace with the best so far, and put that back where it was better.

    Worse is one that no longer expects what the plan says of an item, crashes where the best does not, reaches less, or
    passes fewer tests; the last three do not count where it reaches the target with nothing failing.

    Returns, also as ``result.json``, ``{status: kept|rolled back, reason, attempt, crashed, failed, coverage, report,
    away: [{id, expected}], best: {code, crashed, passed, failed, failures, coverage, uncovered, expects, …}}``.
    ``crashed``, ``failed`` and ``coverage`` are the attempt's; what no longer expects what the plan says counts as
    failed, an error of the collection is a crash. ``expects``: the ids of the items whose tests do. The attempt is kept
    as ``attempt.py``. Raises UsageError, CheckFailed.
    """
    options = read_options(JudgeTestsOptions, context, "judge_tests")
    write_artifact(context, "attempt.py", options.code)
    best = options.best
    now = _measured(options)
    lost = set(best.get("expects", [])) - set(now["expects"])
    away = [item for item in options.plan if item["id"] in lost]
    now["failed"] += len(away)
    reason = _worse(now, best, away, options.target_coverage) if best else ""
    if reason:
        put(context, options.path, str(best["code"]))
    result = {
        "status": TAKEN_BACK if reason else KEPT,
        "reason": reason,
        "attempt": options.code,
        **{name: now[name] for name in ("crashed", "failed", "coverage")},
        "report": {name: now[name] for name in ("reason", "failures", "output_tail")},
        "away": [{"id": item["id"], "expected": item["expected"]} for item in away],
        "best": dict(best) if reason else now,
    }
    return write_result(context, result)


def _measured(options: JudgeTestsOptions) -> Json:
    measured: Mapping[str, Any] = options.measured
    return {
        "code": options.code,
        "reason": measured["reason"],
        **{name: measured[name] for name in MEASURED},
        "failed": measured["failed"] + (0 if measured["crashed"] else measured["errors"]),
        "expects": [item["id"] for item in options.plan if expects(options.code, item)],
    }


def _worse(now: Json, best: Json, away: list[Any], target: float) -> str:
    if away:
        lost = ", ".join(f"{each['id']} ({each['expected']})" for each in away)
        return f"no longer expects what the plan says: {lost}"
    if now["crashed"]:
        return "" if best["crashed"] else f"crashed: {now['reason']}"
    if best["crashed"] or (not now["failed"] and now["coverage"] >= target):
        return ""
    if now["coverage"] < best["coverage"]:
        return f"reaches {now['coverage']} %, the best so far {best['coverage']} %"
    if now["passed"] < best["passed"]:
        return f"{now['passed']} tests pass, of the best so far {best['passed']}"
    return ""


def suspected_bugs(code: str, plan: list[Any], failing: list[str]) -> list[Json]:
    """The plan's items that a failing test expects as the plan says: the code may be wrong. ``failing``: test names."""
    found = []
    for item in plan:
        own = [each.name for each in tests_of(code, str(item["id"])) if each.name in failing]
        if own and expects(code, item):
            found.append({**item, "tests": own})
    return found
