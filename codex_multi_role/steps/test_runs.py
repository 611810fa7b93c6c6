"""Runs of the project's tests, each judged beside those before the first turn."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from posixpath import join, normpath, relpath
from typing import TYPE_CHECKING

from codex_multi_role.checks import CheckContext, find_check
from codex_multi_role.checks.junit_report import junit_name
from codex_multi_role.checks.moved_tests import TestSources
from codex_multi_role.host.atomic import make_folder, write_text
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import own_turns
from codex_multi_role.run_folder.events import BaselineMeasured, BaselineStarted, TestsEnded, TestsStarted, Warning
from codex_multi_role.run_folder.past import START, state_at
from codex_multi_role.steps.baseline import (
    BESIDE_BASELINE,
    OTHER_FIGURES,
    QUICK_SECONDS,
    Baseline,
    confirmed,
    last_seconds,
    left_by_runs,
    report_in,
)
from codex_multi_role.steps.check_context import context_of, observed
from codex_multi_role.steps.protection import checked
from codex_multi_role.steps.resources import RunResources
from codex_multi_role.workspace import PathRefused
from codex_multi_role.workspace.trees import paths_of, text_of

if TYPE_CHECKING:
    from codex_multi_role.checks.session_report import SessionReport

HELD = "held_snapshot"
"""A file of the run folder: the state to restore while the workspace is as it was before the first turn."""
COPY_OF_BASELINE = "baseline"
"""The key of a copy of the workspace; keys of steps have a dot."""
FILES = "files.txt"
"""Beside a test result: the state of the files before the tests ran."""
TREE = "tree"
"""In a recorded test result: the state of the files that were tested. Nobody else sees it."""
NO_TESTS = "no tests"
MISSING_MODULE = re.compile(r"No module named '?([\w.]+)")
FAILURES_TOLD, MAX_NAME_CHARACTERS = 5, 200
"""Maximum number of failed tests that an event names, and the length of a name."""


def run_tests(
    run: RunResources,
    role: str,
    turn: int,
    options: Mapping[str, object] | None = None,
    put_back: Collection[str] = (),
    unit: str = "",
) -> Json:
    """Run the check ``tests`` on the current workspace; the result has its ``number`` (``tests/<nnn>``) and its `TREE`.

    ``put_back``: protected files that the previous turn had changed. ``unit``: the key of the check's unit.
    """
    folder = run.services.folder.new_tests_folder()
    number = int(folder.name)
    run.services.events.publish(TestsStarted(number, role, turn, unit))
    context = context_of(run, folder, {**_own_command(run), **(options or {})})
    test = partial(checked, run, folder, partial(_tests, run, context), put_back, role)
    result = observed(run, folder, "tests", context.options, lambda: {"number": number, **test()})
    command = str(context.options.get("pytest_cmd") or "")
    look_again = partial(_second_look, run, folder / "again", context, float(result.get("seconds") or 0))
    earlier = _on_same_files(run, folder)
    result |= _baseline_of(run).judge(folder, result, command, look_again, partial(_sources, run), earlier)
    result = confirmed(result, run.settings.tests.allow_removed)
    context.write_artifact("result.json", json.dumps(context.redact.within(result), indent=2) + "\n")
    told = _failed_tests(result, run.services.folder.redact)
    beside = {name: result[name] for name in BESIDE_BASELINE if name in result}
    run.services.events.publish(TestsEnded(number=number, **told, **_figures(result), **beside))
    return {**result, TREE: (folder / FILES).read_text()}


def _figures(result: Json) -> Json:
    """What the event of any test run says of its result, which an observer may have given."""
    numbers = {name: result.get(name) or 0 for name in ("passed", "failed", "errors", "skipped", "seconds")}
    return {"status": result["status"], **numbers, **{name: result.get(name) or {} for name in OTHER_FIGURES}}


def tree_of(run: RunResources) -> Json:
    """The `TREE` of a test result: the present state of the files."""
    return {TREE: run.snapshots.take() if run.settings.changes_workspace else ""}


@contextmanager
def beside_baseline(run: RunResources) -> Iterator[RunResources]:
    """While the block works with what it gets, the tests run as they were before the first turn, if not done yet.

    Of a fork, that is the first of the run that it came from. Who may disturb them or needs them waits: see
    `RunResources.after_baseline`. At the end of the block they are stopped; a later session measures as long as nobody
    has started to write. Raises `StorageError`.
    """
    baseline, held = run.services.baseline, run.services.folder.path / HELD
    if held.exists():  # the session before was killed meanwhile
        _put_back(run, held)
    if baseline.is_measured or not run.settings.tests.baseline or _has_writer_begun(run):
        yield run
        return
    before, stopping = state_at(run.services.folder, START), baseline.stopping
    rewinds = bool(before) and run.snapshots.find_in((), before) and before != run.snapshots.take()
    own = replace(run, progress=replace(run.progress, stopping=stopping))
    # waits: for programs that are being ended
    with run.progress.stopping.calling(stopping.set), ThreadPoolExecutor(1, thread_name_prefix="baseline") as pool:
        tests = pool.submit(_measure_rewound, own, before, held) if rewinds else pool.submit(_measure, own, baseline)
        try:
            yield replace(run, services=replace(run.services, baseline=replace(baseline, tests=tests, rewinds=rewinds)))
        finally:
            stopping.set()


def _has_writer_begun(run: RunResources) -> bool:
    roles = {run.catalog.role_of(instance) for instance, _ in own_turns(run.services.folder)}
    return not all(map(run.settings.only_reads, roles))


def _measure_rewound(run: RunResources, before: str, held: Path) -> None:
    """Measure the state ``before``; meanwhile the present one is in ``held``, for a session after a kill."""
    write_text(held, run.snapshots.take())
    try:
        run.snapshots.restore(before)
        _measure(run, run.services.baseline)
    finally:
        _put_back(run, held)


def _put_back(run: RunResources, held: Path) -> None:
    run.snapshots.restore(held.read_text())
    held.unlink()


def _baseline_of(run: RunResources) -> Baseline:
    """The baseline of the folder in which the run works now: of the workspace, or of copies, measured in the first."""
    baseline = run.services.baseline
    if run.workspace.root == baseline.workspace or not baseline.is_measured or not run.settings.tests.baseline:
        return baseline
    with baseline.lock:
        if not baseline.of_copies.is_measured and (before := state_at(run.services.folder, START)):
            _measure_in_copy(run, baseline.of_copies, before)
    return baseline.of_copies if baseline.of_copies.is_measured else baseline


def _measure_in_copy(run: RunResources, baseline: Baseline, before: str) -> None:
    copy = run.in_copy(COPY_OF_BASELINE, fresh=True)
    try:
        copy.snapshots.fill(before)
        _measure(copy, baseline)
    finally:
        run.services.worktrees.discard(COPY_OF_BASELINE)


def _measure(run: RunResources, baseline: Baseline) -> None:
    """Raises `CodexUnavailable`, `StorageError`, `RunInterrupted`."""
    baseline.require_sandbox()
    run.services.fleet.let_first_start()
    in_copy = baseline.workspace is None
    last = 0.0 if in_copy else last_seconds(run.services.folder)
    run.services.events.publish(BaselineStarted(in_copy=in_copy, last_seconds=last))
    context = context_of(run, baseline.folder, _own_command(run))
    observers = run.services.observers(run)
    tests = partial(_tests, run, context, lambda: "".join(each.hidden_files(run) for each in observers))
    result = checked(run, baseline.folder, tests, (), "")
    left_by = {} if in_copy else left_by_runs(run.services.folder, baseline.failing)
    event = BaselineMeasured(problem=baseline.problem, in_copy=in_copy, left_by=left_by, **_figures(result))
    run.services.events.publish(event)
    if baseline.report.lacks or (baseline.problem and result["status"] != NO_TESTS):
        run.services.events.publish(Warning(_advice(run, baseline, result)))


def _advice(run: RunResources, baseline: Baseline, result: Json) -> str:
    """What to do before turns are paid for whose tests have nothing to be compared with."""
    texts = [str(each.get("message")) for each in result.get("failures") or ()]
    texts += [str(result.get(name, "")) for name in ("reason", "output_tail")]
    missing = sorted({name.partition(".")[0] for name in MISSING_MODULE.findall("\n".join(texts))})
    python = run.settings.tests.python.path
    what = f"install what {python} lacks ({', '.join(missing)}), or name another Python with --python"
    what = what if missing else f"{baseline.folder / 'pytest_output.txt'} says why"
    every = f"every failure will count as new: {baseline.problem}"
    lacking = f"cannot be imported: {', '.join(baseline.report.lacks)}"
    return f"{every if baseline.problem else lacking}; {what}"


def _own_command(run: RunResources) -> dict[str, object]:
    return {"pytest_cmd": run.settings.tests.pytest_cmd} if run.settings.tests.pytest_cmd else {}


def _second_look(run: RunResources, folder: Path, context: CheckContext, seconds: float) -> SessionReport:
    """``seconds``: how long the first one took. Two more, of a quick suite, do not exceed what the check declares."""
    own = context.deadline_seconds
    own = max(own - seconds, own / 2) if seconds <= QUICK_SECONDS else own
    context = replace(context, folder=folder, deadline_seconds=own)
    checked(run, folder, partial(_tests, run, context), (), "")
    return report_in(folder)


def _tests(run: RunResources, context: CheckContext, hidden: Callable[[], str] = str) -> Json:
    """The result of the tests, with the state of the files before them; what they leave is not the run's result.

    ``hidden`` as in `Snapshots.testing`.
    """
    with run.progress.stays.at(run.workspace.root, may_write=False) as stay:
        snapshots, changes = run.snapshots, run.settings.changes_workspace
        left_out = snapshots.testing(lambda: stay.shared, hidden) if changes else nullcontext("")
        with left_out as before:
            write_text(make_folder(context.folder) / FILES, before)
            return find_check("tests")(context)


def _on_same_files(run: RunResources, folder: Path) -> list[SessionReport]:
    """What earlier test runs of this run said of the same files, those before the first turn included."""
    files, own = (folder / FILES).read_text(), run.services.folder.path
    others = [each.parent for name in ("baseline", "baseline/*", "tests/*") for each in own.glob(f"{name}/{FILES}")]
    same = (each for each in others if files and each != folder and (each / FILES).read_text() == files)
    return list(map(report_in, same))


def _sources(run: RunResources, report: SessionReport) -> TestSources:
    """The test files before the first turn and now, by paths as in ids, which need not start at the workspace."""
    git, tree, root = run.snapshots.repository(), state_at(run.services.folder, START), report.root
    files = sorted(paths_of(git, tree)) if tree else []

    def before(path: str) -> str | None:
        return text_of(git, tree, normpath(join(root, path))) if tree else None

    def now(path: str) -> str | None:
        with suppress(PathRefused, OSError):
            return run.workspace.resolve_inside(join(root, path)).read_text(encoding="utf-8", errors="replace")
        return None

    return TestSources([relpath(path, root) for path in files], before, now)


def _failed_tests(result: Json, redact: Callable[[str], str]) -> Json:
    """The first failed tests, new ones before others, by their ids if these are known; and what they say.

    Redacted, then cut, because half a secret is not recognized.
    """
    said = {str(each["test"]): str(each.get("message") or "") for each in result.get("failures") or ()}
    new = dict.fromkeys(result.get("new_failures_tests") or ())
    ids = {junit_name(test): test for test in (*(result.get("still_failing_tests") or ()), *new)}
    names = sorted(dict.fromkeys((*said, *map(junit_name, new))), key=lambda name: ids.get(name) not in new)
    told = [(redact(ids.get(name, name)), redact(_assertion(said.get(name, "")))) for name in names[:FAILURES_TOLD]]
    cut = [(name[:MAX_NAME_CHARACTERS], words[:MAX_NAME_CHARACTERS]) for name, words in told]
    return {"failures": [name for name, _ in cut], "messages": {name: words for name, words in cut if words}}


def _assertion(message: str) -> str:
    """The line of pytest's report that says what failed: the first that it marks, otherwise the last."""
    lines = [line for line in message.splitlines() if line.strip()]
    marked = (line[1:] for line in lines if line.startswith("E ") and line[1:].strip())
    return next(marked, lines[-1] if lines else "").strip()


def without_tree(run: RunResources, recorded: Json) -> tuple[Json, str]:
    """A recorded test result as others see it, and the state of the files that were tested; empty if unknown.

    What may be gone now counts, so that a resumed run judges again without running anything.
    """
    if TREE not in recorded:  # another check
        return recorded, ""
    seen = {name: value for name, value in recorded.items() if name != TREE}
    return confirmed(seen, run.settings.tests.allow_removed), recorded.get(TREE, "")
