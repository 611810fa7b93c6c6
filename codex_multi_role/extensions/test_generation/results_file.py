"""The check ``test_results``: write ``results.json`` of a run that generated tests, one entry per file."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from codex_multi_role.checks import (
    CheckContext,
    CheckOptions,
    CheckResult,
    ResultPart,
    RunFacts,
    declare_check,
    no_time,
)
from codex_multi_role.extensions.measuring.coverage_run import OMITTED
from codex_multi_role.extensions.test_generation.mutation import MutationResult
from codex_multi_role.extensions.test_generation.oracle import last_cause
from codex_multi_role.extensions.test_generation.plan_items import OBSERVED, is_suspected
from codex_multi_role.reading.json_types import Json

ENDS = {
    "no_plan": "the plan has no usable item",
    "no_candidate": "no developer gave a usable answer",
    "conflicts": "another process changed the test file in the meantime",
    "omitted": OMITTED,
}
USED_UP = "no iterations are left, but the tests stay: a new run only asks for what they do not reach"
OF_MUTANTS = MutationResult.model_fields.keys() - {"status", "reason", "flaky"}


class TestResultsOptions(CheckOptions):
    """The flow's data of each file, in the same order: ``files``, their ``rounds``, and the tests ``left``.

    ``mutation``: each file's result of the check of mutants; empty if it was switched off.
    """

    __test__ = False

    files: list[Json] = Field(description='"{{ steps.<python_files>.files }}"')
    rounds: list[Json] = Field(description='"{{ steps.<call>.results }}"')
    left: list[Json] = Field(description='"{{ steps.<prune_tests>.results }}"')
    unit: str = Field(min_length=1, description="the visit of the call: <step>.<visit>")
    target_coverage: float = Field(ge=0, le=100, description="percent")
    existing: Json = Field(default={}, description='"{{ steps.<existing_tests> }}"')
    mutation: list[Json] = Field(default=[], description='"{{ steps.<mutation>.results }}"')
    target_mutation_score: float = Field(default=0.0, ge=0, le=100, description="percent")


class FileMetrics(ResultPart):
    """``coverage_percent`` counts the project's own tests as well.

    ``failed_tests`` were removed. Figures of mutants that were not judged are null.
    """

    coverage_percent: float | None
    n_passed_tests: int
    n_failed_tests: int
    failed_tests: list[str]
    iterations: int
    total_tokens: int
    mutation_score_percent: float | None
    mutation_killed: int | None
    mutation_survived: int | None


class FileResult(ResultPart):
    """``tests``: the paths of those that are left, without the ``flaky`` ones.

    ``mutation`` is ``{status: judged|partly judged|not judged, reason}`` and, if there are mutants, the fields of the
    check, such as the kill matrix ``matrix: {test: [mutant]}`` and the ``survivors``.
    """

    file: str
    suspected_bugs: list[Json]
    plan: list[Json]
    uncovered: list[Json]
    covered_before: float | None
    tests: list[str]
    status: str
    reason: str
    metrics: FileMetrics
    rounds: Any
    pruned: list[Json]
    flaky: Json
    untested_plan_items: list[str]
    tests_without_assertion: list[str]
    refused_plan_items: list[Json]
    mutation: Json


class TestResultsResult(CheckResult):
    """``status`` is ``timeout`` if all files without success ran out of iterations. ``python``: path, version, source.

    It is ``suspected bugs`` if there are ``bugs``, each with its ``file`` and in ``words``. ``reason`` names them, then
    the status and reason of each file. ``existing``: what is known of the project's own tests.
    """

    __test__ = False

    bad = ("timeout", "incomplete", "suspected bugs")

    status: Literal["success", "timeout", "incomplete", "suspected bugs"]
    reason: str
    bugs: list[Json]
    existing: Json
    run_id: str
    flow: str
    started_at: str
    python: dict[str, str] | None
    results: list[FileResult]


@declare_check(options=TestResultsOptions, result=TestResultsResult, max_seconds=no_time)
def write_test_results(context: CheckContext) -> TestResultsResult:
    """Write ``results.json`` into the run folder, one entry per file. Raises UsageError, StorageError."""
    options = context.read_options(TestResultsOptions, "test_results")
    run = context.run()
    results = [_result(run, options, index) for index in range(len(options.files))]
    document: dict[str, object] = {
        "run_id": run.run_id,
        "flow": run.flow,
        "started_at": run.started_at,
        "python": context.python.as_json() if context.python else None,
        "existing": {name: value for name, value in options.existing.items() if name != "files"},
        "results": results,
    }
    text = json.dumps(context.redact.within(document), indent=2, ensure_ascii=False)
    replace(context, folder=run.folder).write_artifact("results.json", f"{text}\n")
    open_ones = {result["status"] for result in results} - {"success"}
    named = [(each["file"], bug) for each in results for bug in each["suspected_bugs"]]
    bugs = [{**bug, "file": file, "words": _bug(file, bug)} for file, bug in named]
    reasons = [f"{each['file']}: {each['status']}: {each['reason']}" for each in results if each["reason"]]
    reason = "; ".join([*(each["words"] for each in bugs), *reasons])
    status = ("timeout" if open_ones == {"timeout"} else "incomplete") if open_ones else "success"
    found = {"status": "suspected bugs" if bugs else status, "reason": reason, "bugs": bugs}
    return TestResultsResult.model_validate({**found, **document})


def _result(run: RunFacts, options: TestResultsOptions, index: int) -> Json:
    file, rounds, left = options.files[index], options.rounds[index], options.left[index]
    mutation = _mutation(options.mutation[index] if options.mutation else None, left)
    judged = mutation["status"] != "not judged"
    caller = "".join(run.unit.rpartition("/")[:2])
    steps, pruned = rounds.get("steps", {}), left.get("pruned", [])
    state = rounds["vars"]["state"]
    history, plan = state.get("rounds", []), state.get("plan", [])
    bugs = left.get("suspected_bugs") or [{**each, "tests": []} for each in plan if is_suspected(each)]
    before = options.existing.get("files", {}).get(file["file"], {})
    is_covered = rounds["outcome"] == "covered"  # of the file, the project's own tests leave nothing
    metrics = {
        "coverage_percent": before["coverage"] if is_covered else left.get("coverage"),
        "n_passed_tests": left.get("passed", 0),
        "n_failed_tests": len(pruned),
        "failed_tests": [each["test"] for each in pruned],
        "iterations": len(history),
        "total_tokens": _tokens(run, f"{caller}{options.unit}.{index}/"),
        "mutation_score_percent": mutation.pop("score_percent") if judged else None,
        "mutation_killed": mutation.pop("killed") if judged else None,
        "mutation_survived": mutation.pop("survived") if judged else None,
    }
    status, reason = ("success", "") if is_covered else _status(file, rounds, left, options.target_coverage)
    if status == "success" and (bugs or not (is_covered or any(each["source"] != OBSERVED for each in plan))):
        status, reason = "incomplete", "" if bugs else "the plan only has items observed from the code"
    if status in ("success", "timeout") and (missed := _missed(mutation, metrics, options.target_mutation_score)):
        status, reason = "incomplete" if status == "success" else status, "; ".join(filter(None, [reason, missed]))
    return {
        "file": file["file"],
        "suspected_bugs": bugs,
        "plan": plan,
        "uncovered": left.get("uncovered", []),
        "covered_before": before["coverage"] if before.get("places") else None,
        "tests": left.get("files", []),
        "status": status,
        "reason": reason,
        "metrics": metrics,
        "rounds": history,
        "pruned": pruned,
        "flaky": left.get("flaky", {}),
        "untested_plan_items": left.get("untested", []),
        "tests_without_assertion": left.get("unasserting", []),
        "refused_plan_items": steps.get("merge_plan", {}).get("refused", []),
        "mutation": mutation,
    }


def _bug(file: str, bug: Json) -> str:
    if not bug["call"]:
        return f"{file}: {', '.join(bug['tests'])} fails: {bug['expected']}"
    says = f' ({bug["source"]}: "{" ".join(bug["quote"].split())}")' if bug["quote"] else f" ({bug['source']})"
    got = f", got {bug['got']}" if bug["got"] else f" ({', '.join(bug['tests'])} fails)"
    withdrawn = f"; the planner has withdrawn it: {bug['withdrawn']}" if bug["withdrawn"] else ""
    return f"{file}: {bug['call']}: expected {bug['expected']}{got}{says}{withdrawn}"


def _mutation(judged: Json | None, left: Json) -> Json:
    """``judged``: the result of the check of mutants for the tests that are ``left``."""
    if not left.get("passed") and not (judged and judged.get("mutants")):
        return {"status": "not judged", "reason": "no tests are left"}
    if judged is None:
        return {"status": "not judged", "reason": "disabled: the input mutation is false"}
    if not judged.get("mutants"):
        is_empty = not judged["error"] and not judged["left"]
        return {"status": "not judged", "reason": judged["reason"], "nothing_to_judge": is_empty}
    figures = {name: each for name, each in judged.items() if name in OF_MUTANTS}
    return {"status": "partly judged" if judged["left"] else "judged", "reason": judged["reason"], **figures}


def _missed(mutation: Json, metrics: Json, target: float) -> str:
    """Why the mutation score misses the target; empty without a target, or if nothing could be changed."""
    score = metrics["mutation_score_percent"]
    if not target or mutation.get("nothing_to_judge") or (score is not None and score >= target):
        return ""
    text = f"not judged: {mutation['reason']}" if score is None else f"{score} %"
    return f"the mutation score is {text}, {target:g} % are required"


def _status(file: Json, rounds: Json, left: Json, target: float) -> tuple[str, str]:
    """Judge the figures, not the rounds' outcome, because they were measured again without failing tests."""
    outcome, gaps = str(rounds["outcome"]), _gaps(left)
    if outcome not in ("success", "timeout"):
        unread = rounds["steps"].get("source", {}).get("reason", "")
        return outcome, str(file["problem"] or unread) or ENDS.get(outcome, "")
    is_short = left["crashed"] or left["failures"] or (left["coverage"] or 0.0) < target
    if outcome == "timeout" and (is_short or left["pruned"] or not gaps):
        short = _short_of(rounds["vars"]["state"]["best"], left, target)
        return "timeout", "; ".join(filter(None, [USED_UP, short, gaps]))
    if is_short:
        return "incomplete", f"measured again: {_short_of({}, left, target)}"
    return ("incomplete" if gaps or left.get("suspected_bugs") else "success"), gaps


def _gaps(left: Json) -> str:
    open_items, empty = left.get("untested"), left.get("unasserting")
    gaps = {"items of the plan without a test": open_items, "tests without an assertion": empty}
    return "; ".join(f"{what}: {', '.join(names)}" for what, names in gaps.items() if names)


def _short_of(best: Json, left: Json, target: float) -> str:
    if best.get("crashed"):
        return ": ".join(filter(None, ["the tests crash", str(best["reason"]), last_cause(str(best["output_tail"]))]))
    gone = {"failing": left.get("pruned", []), "flaky": left.get("flaky", {}).get("tests", [])}
    if any(gone.values()):
        counted = " and ".join(f"{len(tests)} {why}" for why, tests in gone.items() if tests)
        return f"removed tests: {counted}; {_reached(left)}"
    return f"{_reached(left)}, {target:g} % are required"


def _reached(left: Json) -> str:
    percent = left.get("coverage")
    return "the coverage is unknown" if percent is None else f"{percent} % are reached"


def _tokens(run: RunFacts, unit: str) -> int:
    own = (turn["tokens"] for turn in run.turns if str(turn.get("unit", "")).startswith(unit))
    return sum(tokens["input"] + tokens["output"] for tokens in own)
