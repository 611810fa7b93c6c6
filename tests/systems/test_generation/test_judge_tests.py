from __future__ import annotations

from typing import Any

from codex_multi_role.systems.test_generation.judge_tests import judge_tests
from tests.support.checks import MakeContext

ONE, TWO = ({"path": f"tests/test_{name}.py", "content": f"{name} = 1\n"} for name in ("one", "two"))
GREEN = {"reason": "", "crashed": False, "passed": 2, "failed": 0, "errors": 0, "failures": [], "uncovered": []}


def _judge(
    make_context: MakeContext,
    files: list[dict[str, str]],
    coverage: float,
    score: float | None = None,
    best: dict[str, Any] | None = None,
) -> tuple[dict[str, Any], set[str]]:
    """What is said of the attempt that lies in the workspace, and what lies there then."""
    context = make_context(
        {file["path"]: file["content"] for file in files},
        files=files,
        plan=[],
        measured={**GREEN, "coverage": coverage, "output_tail": ""},
        mutation={} if score is None else {"mutants": 4, "score_percent": score, "survivors": []},
        target_coverage=100.0,
        best=best or {},
    )
    result: dict[str, Any] = judge_tests(context)
    return result, {path.name for path in context.workspace.root.rglob("*.py")}


def test_what_replaces_several_files_leaves_none_of_them(make_context: MakeContext) -> None:
    best = _judge(make_context, [ONE, TWO], 50.0)[0]["best"]
    result, there = _judge(make_context, [ONE], 60.0, best=best)
    assert (result["status"], there) == ("kept", {"test_one.py"})


def test_rolled_back_all_files_are_there_again_and_no_others(make_context: MakeContext) -> None:
    best = _judge(make_context, [ONE], 50.0)[0]["best"]
    result, there = _judge(make_context, [{**ONE, "content": "changed = 1\n"}, TWO], 40.0, best=best)
    assert (result["status"], result["best"], there) == ("rolled back", best, {"test_one.py"})


def test_mutation_scores_are_compared_only_at_equal_coverage(make_context: MakeContext) -> None:
    """A lower mutation score causes a rollback only if both attempts have a score and the coverage did not rise."""
    best = _judge(make_context, [ONE], 90.0, 80.0)[0]["best"]
    verdicts = [
        _judge(make_context, [ONE], coverage, score, best=best)[0]["status"]
        for coverage, score in ((90.0, 75.0), (90.0, None), (95.0, 75.0), (90.0, 80.0))
    ]
    assert verdicts == ["rolled back", "kept", "kept", "kept"]
