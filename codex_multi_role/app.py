"""The public API: `run` a flow for a goal, `resume` a run that stopped, `fork` one from a recorded point."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from codex_multi_role.definitions import (
    keep_definitions,
    load_catalog,
    load_definitions,
    load_flow_and_called,
    remembered_options,
)
from codex_multi_role.errors import UsageError
from codex_multi_role.forking import Fork, prepare_fork, prepare_restart
from codex_multi_role.resuming import require_same_team, require_same_workspace
from codex_multi_role.run_folder import AskPerson, Cancellations, Question, Questions, RunFolder, answer_of_person
from codex_multi_role.run_folder.atomic import make_folder
from codex_multi_role.run_folder.tasks import find_open_task
from codex_multi_role.run_options import RunOptions, RunReport
from codex_multi_role.session import OnEvent, Session
from codex_multi_role.telemetry import exported

__all__ = ["RunOptions", "RunReport", "answer", "cancel_task", "fork", "restart", "resume", "run"]

KEPT_BY_A_RUN = frozenset({"goal", "run_id", "runs_dir", "flow", "database_url", "record"})


def run(options: RunOptions, on_event: OnEvent | None = None, ask_person: AskPerson | None = None) -> RunReport:
    """Run a flow for a goal and wait for its end. ``on_event`` gets every event's record, in order.

    ``ask_person`` is asked what a review asks; without it, or an answer of it, the run parks: `answer` it and `resume`.

    Raises `UsageError`, `CodexUnavailable` and `StorageError` for what is found before anything has started; whatever
    happens later is in the report.
    """
    definitions = load_definitions(options)
    if options.record is not None:
        if options.record.exists():
            raise UsageError(
                f"the recording {options.record} is there already", "Name another file, or delete it first."
            )
        make_folder(options.record.parent)
    folder = RunFolder.create(options.runs_dir, options.run_id)
    try:
        catalog_file = keep_definitions(definitions, folder)
        return _work(
            lambda told: Session(definitions, folder, catalog_file, told, ask_person=ask_person),
            on_event,
            options.runs_dir,
        )
    except BaseException:
        if not folder.record_path.exists():  # it is no run yet, and would only be in the way
            shutil.rmtree(folder.path, ignore_errors=True)
        raise


def resume(
    reference: str,
    *,
    runs_dir: Path,
    changes: Mapping[str, object] | None = None,
    on_event: OnEvent | None = None,
    ask_person: AskPerson | None = None,
) -> RunReport:
    """Go on with a run after its last recorded turn, with its own options but for ``changes`` (`RunOptions` fields).

    Raises `RunNotFound`, `RunBusy`, and what `run` raises.
    """
    folder = RunFolder.find(runs_dir, reference)
    record = folder.record()
    fixed = KEPT_BY_A_RUN & set(changes or {})
    if fixed:
        raise UsageError(f"a resumed run keeps its {', '.join(sorted(fixed))}", "Start another run for that.")
    if "workspace" not in (changes or {}):
        require_same_workspace(folder, record)
    remembered = replace(remembered_options(folder, record), runs_dir=folder.path.parent)  # it may have been moved
    definitions = load_definitions(remembered.changed(changes or {}))
    if "roles" in (changes or {}):
        _, before = load_flow_and_called(remembered.flow, load_catalog(remembered.roles))
        require_same_team(definitions, before)
    return _work(
        lambda told: Session(definitions, folder, record["catalog_file"], told, record, ask_person), on_event, runs_dir
    )


def fork(
    reference: str,
    *,
    runs_dir: Path,
    start: str | None,
    changes: Mapping[str, object] | None = None,
    on_event: OnEvent | None = None,
    ask_person: AskPerson | None = None,
) -> RunReport:
    """Start a run with the past of another up to ``start``, ``STEP[:VISIT]``, and wait for its end.

    Turns, tests, handoffs and role threads are those of that run up to there, the workspace is as it was then, in a new
    folder. The rest goes by that run's options but for ``changes`` (`RunOptions` fields). Raises what `resume` raises,
    but `RunBusy`: a run may be forked while it goes on.
    """
    made = prepare_fork(RunFolder.find(runs_dir, reference), start, changes or {})
    return _work_on(made, runs_dir, on_event, ask_person)


def restart(
    reference: str,
    task: str,
    *,
    runs_dir: Path,
    changes: Mapping[str, object] | None = None,
    on_event: OnEvent | None = None,
    ask_person: AskPerson | None = None,
) -> RunReport:
    """Start a run with the past of another in which one ended task, named as in `cancel_task`, is done again.

    So are the tasks that need it, and all that comes after them; what the others came to is kept and not paid for
    again. Raises what `fork` raises, and `RunBusy` while a process works on the run.
    """
    made = prepare_restart(RunFolder.find(runs_dir, reference), task, changes or {})
    return _work_on(made, runs_dir, on_event, ask_person)


def _work_on(made: Fork, runs_dir: Path, on_event: OnEvent | None, ask_person: AskPerson | None) -> RunReport:
    def session(told: OnEvent | None) -> Session:
        return Session(
            made.definitions,
            made.folder,
            made.catalog_file,
            told,
            ask_person=ask_person,
            forked_from=made.forked_from,
            notes=(made.note,),
        )

    return _work(session, on_event, runs_dir)


def _work(session: Callable[[OnEvent | None], Session], on_event: OnEvent | None, runs_dir: Path) -> RunReport:
    """Work to the end, and make the page of it. That the page fails is told, and changes nothing in how it ended."""
    with exported(on_event) as told:
        report = session(told).work()
    try:
        from codex_multi_role.report import write_report  # here: only the end of a run needs it

        return replace(report, page=write_report(RunFolder(report.folder), runs_dir))
    except (Exception, KeyboardInterrupt) as error:
        return replace(report, page_problem=str(error) or type(error).__name__)


def answer(
    reference: str, *, runs_dir: Path, approved: bool, comment: str = "", question: str | None = None
) -> Question:
    """Answer what a run asks, whether its process lives or not: the open question of that key, or the only one.

    Returns the question with its answer. Raises `RunNotFound`, `UsageError`, `StorageError`.
    """
    folder = RunFolder.find(runs_dir, reference)
    return Questions(folder.path).answer(question, answer_of_person(approved, comment))


def cancel_task(reference: str, task: str, *, runs_dir: Path, comment: str = "") -> str:
    """Cancel one task of a run, whether its process lives or not: an item of a fan-out that has not ended.

    ``task`` is the item's id, its place in the list where it has none, or its unit (``solve.1.0``). Its turn is
    interrupted; those that need it are skipped, the rest goes on. Returns the unit. Raises `RunNotFound`, `UsageError`
    for a task that is not there or has ended, `StorageError`.
    """
    folder = RunFolder.find(runs_dir, reference)
    unit = find_open_task(folder, task)
    Cancellations(folder.path).cancel(unit, comment)
    return unit
