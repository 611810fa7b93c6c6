"""The check ``merge``: merge chosen copies back into the workspace, in the given order."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from codex_multi_role.checks.contract import CheckContext, CheckOptions, CheckResult, ResultPart, declare_check, no_time
from codex_multi_role.errors import UsageError


class MergeOptions(CheckOptions):
    """A copy is the ``copy`` of a result of a step with ``isolate`` and ``merge: none``."""

    copies: list[str] = Field(min_length=1, description="a list of copies, as results name them")


class MergeConflict(ResultPart):
    path: str
    kind: str


class MergedCopies(CheckResult):
    status: Literal["merged", "unchanged", "conflicts"]
    paths: list[str]
    conflicts: list[MergeConflict]


class MergedCopy(MergedCopies):
    copy_: str = Field(alias="copy")


class MergeCheckResult(MergedCopies):
    """All copies together, with ``conflicts`` if any copy has one; ``merges`` has each copy."""

    merges: list[MergedCopy]


@declare_check(options=MergeOptions, result=MergeCheckResult, max_seconds=no_time)
def merge_copies(context: CheckContext) -> MergeCheckResult:
    """Merge each copy, and write ``result.json``. Raises UsageError for a copy that the run did not make."""
    options = context.read_options(MergeOptions, "merge")
    if context.worktrees is None:
        raise UsageError("the check merge has no copies of the workspace to merge")
    merges = [MergedCopy(copy=key, **context.worktrees.merge(key).as_json()) for key in options.copies]
    statuses = {merge.status for merge in merges}
    return MergeCheckResult(
        status=next((each for each in ("conflicts", "merged") if each in statuses), "unchanged"),
        paths=sorted({path for merge in merges for path in merge.paths}),
        conflicts=[conflict for merge in merges for conflict in merge.conflicts],
        merges=merges,
    )
