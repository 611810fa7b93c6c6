"""Which tests reach each line of a file of the workspace, measured now, by the check ``coverage``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from codex_multi_role.checks.coverage import CoverageOptions, coverage_outcome
from codex_multi_role.checks.working_copy import folder_outside
from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.results.run_history import RunHistory
from codex_multi_role.extensions.results.trials import context_of_tests, with_python
from codex_multi_role.run_options import RunOptions
from codex_multi_role.workspace import Workspace


def tests_by_line(
    history: RunHistory, path: str, tests: Sequence[str], options: RunOptions
) -> dict[int, tuple[str, ...]]:
    """The tests in ``tests`` that reach each line of ``path``, in the workspace of the run; none for a missed line.

    Lines that no test can reach, such as comments, are left out. ``options``: those of the tests.

    Raises `UsageError` if nothing could be measured, `CodexUnavailable`, `StorageError`.
    """
    root = Path(str(history.folder.record()["workspace"]))
    with folder_outside(root) as folder:
        workspace = Workspace.of_run(root, history.folder.path)
        context = context_of_tests(root, workspace, folder, with_python(options, history))
        outcome = coverage_outcome(context, CoverageOptions(target=path, tests=list(tests), per_test=True))
    if outcome.measured.percent is None or not outcome.reached:
        raise UsageError(
            f"the tests that reach {path} could not be measured: {outcome.reason or outcome.status}",
            "Name a file or a folder with Python tests of it.",
        )
    reached: defaultdict[int, list[str]] = defaultdict(list)
    for test, places in sorted(outcome.reached.items()):
        for _, line in places.lines:
            reached[line].append(test)
    missed = {line: () for each in outcome.measured.uncovered for line in _numbers(each.lines)}
    return {**missed, **{line: tuple(names) for line, names in reached.items()}}


def _numbers(lines: str) -> Iterator[int]:
    """The lines in ``3-5, 9 and 2 more``, as far as they are named."""
    for part in filter(None, lines.partition(" and ")[0].split(", ")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)
