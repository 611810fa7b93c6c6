"""The check ``mutation``: which small changes to a file its tests notice, and which test notices which."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Literal

from pydantic import Field

from codex_multi_role.checks import CheckContext, CheckResult, ResultPart, at_most_own, declare_check
from codex_multi_role.checks.scratch_folders import scratch_folder
from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.measuring.python_targets import Paths, named_path, named_paths, none_python, not_python
from codex_multi_role.extensions.measuring.suite import END_SECONDS, Suite, own_and, repeat
from codex_multi_role.extensions.test_generation.kill_matrix import Judge, KillMatrix
from codex_multi_role.extensions.test_generation.mutants import HOW_TO_INSTALL, Mutant, MutantOptions, is_installed

MAX_SURVIVORS = 100
Status = Literal["ok", "no mutants", "timed out", "could not run"]


class MutationOptions(MutantOptions):
    """``target``, a file, is changed, and ``tests``, files or folders, judge it; all relative to the workspace.

    ``copy``: the copy of the workspace to judge in instead, made by a step with ``isolate``. Of more than
    ``max_mutants`` a sample is judged, chosen by ``seed``; ``mutants`` names those to judge instead. The tests first
    run ``runs`` times on the original, and those whose outcomes differ do not count. Without ``matrix`` the tests
    may stop at the first that notices a mutant, which is faster.
    """

    tests: Paths = Field(default=["tests"], description="a Python file or folder of the workspace, or a list of them")
    runs: int = Field(default=1, ge=1, le=10, description="number of test runs without mutants, 1 to 10")
    matrix: bool = Field(default=True, description="whether to find every test that notices a mutant, or just one")
    copy_: str = Field(default="", alias="copy", description="the copy of a result of a step with isolate")


class Survivor(ResultPart):
    id: str
    line: int
    operator: str
    diff: str


class MutationResult(CheckResult):
    """``mutants`` were judged, out of ``found`` places, and ``left`` were not because time ran out.

    If it ``timed out``, the figures are of the judged mutants, whose ``ids`` are listed. ``matrix``: the mutants that
    each test kills; ``unattributed`` were killed without a test that can be named. ``flaky``: the outcomes of each test
    that differ.
    """

    bad = ("timed out",)

    status: Status
    reason: str
    found: int
    mutants: int
    left: int
    sampled: bool
    seed: int
    ids: list[str]
    killed: int
    survived: int
    score_percent: float | None
    survivors: list[Survivor]
    matrix: dict[str, list[str]]
    unattributed: list[str]
    flaky: dict[str, list[str]]
    seconds: float


@declare_check(options=MutationOptions, result=MutationResult, max_seconds=own_and(END_SECONDS), uses_python=True)
def judge_mutants(context: CheckContext) -> MutationResult:
    """Run the tests on mutants of the target, in private copies of the workspace and in the sandbox.

    Options: `MutationOptions`; ``timeout_seconds`` covers everything and cannot exceed the context's deadline. Each
    mutant has its own limit, a multiple of what the tests take on the original, and so has each test. Leaves
    ``result.json``. The tests must pass on the original: a failing test says nothing about a mutant.

    Raises UsageError for a wrong option, StorageError when an artifact cannot be written, RunInterrupted.
    """
    started = time.monotonic()
    options = context.read_options(MutationOptions, "mutation")
    context = context.in_copy(options.copy_)
    named_path(context.workspace, "mutation", options, "target")
    named_paths(context.workspace, "mutation", options, "tests")
    until = started + at_most_own(context.options, context.deadline_seconds)
    result = _judged(context, options, until)
    return result.model_copy(update={"seconds": round(time.monotonic() - started, 3)})


def _judged(context: CheckContext, options: MutationOptions, until: float) -> MutationResult:
    root = context.workspace.root
    problem = "" if is_installed() else HOW_TO_INSTALL
    if not problem and (root / options.target).is_dir():
        problem = f"{options.target} is a folder: name a file"
    if problem := problem or not_python(root, options.target) or none_python(root, options.tests):
        return _result(options, "could not run", problem)
    # waits: for computation, in proportion to one file
    with scratch_folder(context.workspace) as scratch, ThreadPoolExecutor(1, thread_name_prefix="mutants") as pool:
        read = cache(lambda: pool.submit(_mutants, (root / options.target).read_bytes(), options))
        suite = Suite(context, options.tests, scratch, options.target)
        undisturbed = repeat(suite, options.runs, until, on_start=read)  # earlier, it would slow down the copying
        try:
            # waits: for the mutants of one file: computation, in proportion to its length
            found, mutants = read().result()
        except ValueError as error:
            return _result(options, "could not run", f"{options.target}: {error}")
        if not mutants:
            return _result(options, "no mutants", "its functions contain nothing to mutate", found)
        if undisturbed.problem or undisturbed.bad:
            problem = undisturbed.problem or f"a test fails without mutants: {undisturbed.bad[0]}"
            return _result(options, "could not run", problem, found, flaky=undisturbed.flaky)
        judge = Judge(suite, options.target, undisturbed.last, list(undisturbed.flaky))
        matrix = judge.matrix(mutants, until, options.concurrency, is_whole=options.matrix)
        reason = f"{len(matrix.left)} of {len(mutants)} mutants were not judged" if matrix.left else ""
        status: Status = "timed out" if matrix.left else "ok"
        return _result(options, status, reason, found, mutants, matrix, judge.tests, undisturbed.flaky)


def _mutants(content: bytes, options: MutationOptions) -> tuple[int, list[Mutant]]:
    """How many places for a mutant the file has, and the mutants to judge. Raises ValueError, `UsageError`."""
    from codex_multi_role.extensions.test_generation.mutated_file import MutatedFile  # here: libcst is an extra

    file = MutatedFile(content.decode("utf-8-sig"))
    try:
        return len(file.places), file.chosen(options)
    except ValueError as error:
        hint = "the ids belong to the earlier content of the file"
        raise UsageError(f"check mutation: mutants: {error}", hint) from error


def _result(
    options: MutationOptions,
    status: Status,
    reason: str,
    found: int = 0,
    mutants: Sequence[Mutant] = (),
    matrix: KillMatrix | None = None,
    tests: Sequence[str] = (),
    flaky: Mapping[str, list[str]] | None = None,
) -> MutationResult:
    """``found`` is the number of places for a mutant in the file."""
    matrix = matrix or KillMatrix()
    survived = set(matrix.survived)
    survivors = [mutant for mutant in mutants if mutant.id in survived]
    return MutationResult(
        status=status,
        reason=reason,
        found=found,
        mutants=len(matrix.killers),
        left=len(matrix.left),
        sampled=options.mutants is None and len(mutants) == options.max_mutants < found,
        seed=options.seed,
        ids=list(matrix.killers),
        killed=matrix.killed,
        survived=len(survivors),
        score_percent=matrix.score_percent,
        survivors=[Survivor.model_validate(each.as_json()) for each in survivors[:MAX_SURVIVORS]],
        matrix=matrix.by_test(tests),
        unattributed=matrix.unattributed,
        flaky=dict(flaky or {}),
        seconds=0.0,
    )
