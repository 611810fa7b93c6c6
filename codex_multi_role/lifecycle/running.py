"""Work on a run until it ends: start, resume, fork; and answer or cancel from outside."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from codex_multi_role.errors import UsageError
from codex_multi_role.lifecycle.definitions import Definitions, LoadTeam, load_definitions
from codex_multi_role.lifecycle.kept_definitions import keep_definitions, remembered_options
from codex_multi_role.lifecycle.model_providers import sources_of
from codex_multi_role.lifecycle.placement import Placement
from codex_multi_role.lifecycle.preparing import abandon_worktree, in_new_worktree, in_same_worktree
from codex_multi_role.lifecycle.readiness import require_ready
from codex_multi_role.lifecycle.session import OnEvent, Session
from codex_multi_role.lifecycle.subscribers import InstalledSubscribers
from codex_multi_role.lifecycle.team_loading import load_team
from codex_multi_role.option import Use
from codex_multi_role.presentation.recorded import PAGES
from codex_multi_role.run_folder import Answer, AskPerson, Cancellations, Question, Questions, Record, RunFolder
from codex_multi_role.run_folder.items import find_open_task
from codex_multi_role.run_options import RunOptions, RunPlace, RunReport, options_by_name, require_changeable

if TYPE_CHECKING:
    from codex_multi_role.option_keywords import ForkKeywords, ResumeKeywords

__all__ = ["OnEvent", "answer", "cancel_task", "fork", "resume", "run", "work_on"]


def run(
    options: RunOptions,
    on_event: OnEvent | None = None,
    ask_person: AskPerson | None = None,
    placement: Placement | None = None,
) -> RunReport:
    """Run a flow for a goal and wait until it ends; see `run_goal.run`. ``on_event`` gets every event record."""
    definitions = load_definitions(options)
    require_ready(definitions)
    for source in sources_of(options.added).values():
        source.require_new(options)
    folder = RunFolder.create(options.place.runs_dir, options.place.run_id)
    try:
        definitions = in_new_worktree(definitions, folder)
        session = Session(definitions, folder, keep_definitions(definitions, folder), placement=placement)
        return work_on(session, on_event, ask_person)
    except BaseException:
        if not folder.record_path.exists():  # not a run yet, so it would only be in the way
            abandon_worktree(folder)
            shutil.rmtree(folder.path, ignore_errors=True)
        raise


def resume(
    reference: str,
    *,
    runs_dir: Path | str = RunPlace.runs_dir,
    changes: ResumeKeywords | None = None,
    on_event: OnEvent | None = None,
    ask_person: AskPerson | None = None,
    placement: Placement | None = None,
) -> RunReport:
    """See `run_goal.resume`. ``placement`` is what a worker adds."""
    from codex_multi_role.lifecycle import resuming  # lazy: most runs are not resumed

    folder = RunFolder.find(runs_dir, reference)
    record = folder.record()
    changed = options_by_name(changes or {})
    require_changeable(changed, Use.RESUME, "a resumed run keeps its", record["options"])
    # What a worker restores is trusted as its database and its store are.
    known = remembered_options(folder, record, None if placement else changed)
    remembered = known.changed(runs_dir=folder.path.parent)  # it may have been moved
    options = remembered.changed(**changed)
    if options == remembered and (finished := resuming.finished_report(folder, record)):
        return finished if finished.page else _with_page(finished)
    if "workspace" in changed:
        options = options.changed(worktree=False, branch=None)
    elif not options.place.worktree:
        resuming.require_same_workspace(folder, record)

    def load(roles: Path | None, team: LoadTeam = load_team) -> Definitions:
        return in_same_worktree(load_definitions(options.changed(roles=roles), team), folder, record)

    definitions, note = load(options.place.roles), ""
    if placement is None and "roles" not in changed:
        definitions, note = resuming.with_corrected_flow(definitions, folder, record, load)
    session = Session(definitions, folder, record["catalog_file"], record, note=note, placement=placement)
    return work_on(session, on_event, ask_person)


def fork(
    reference: str,
    *,
    runs_dir: Path | str = RunPlace.runs_dir,
    start: str | None = None,
    task: str | None = None,
    changes: ForkKeywords | None = None,
    on_event: OnEvent | None = None,
    ask_person: AskPerson | None = None,
) -> RunReport:
    """See `run_goal.fork`."""
    from codex_multi_role.lifecycle import forking  # lazy: a run without a past needs no part of it

    if start and task:
        raise UsageError("fork takes either start or task, not both")
    parent = RunFolder.find(runs_dir, reference)
    changed = options_by_name(changes or {})
    session = forking.prepare_restart(parent, task, changed) if task else forking.prepare_fork(parent, start, changed)
    return work_on(session, on_event, ask_person)


def work_on(session: Session, on_event: OnEvent | None, ask_person: AskPerson | None) -> RunReport:
    """Work on a run, such as one that was prepared from the past of another, and wait until it ends."""
    with closing(InstalledSubscribers()) as installed:

        def emit(record: Record) -> None:
            if on_event is not None:
                on_event(record)
            installed(record)

        def meanwhile() -> None:
            installed.open()
            _import_page()

        report = session.work(emit, ask_person, meanwhile)
    return _with_page(report)


def _import_page() -> None:
    with suppress(Exception):  # reported when the page is to be written
        for name in PAGES.names():
            PAGES.find(name).prepare()


def _with_page(report: RunReport) -> RunReport:
    """Write the page of a run that has ended. If that fails, the failure is reported and the run ends as it did."""
    try:
        pages = [PAGES.find(name).write(RunFolder(report.folder)) for name in PAGES.names()]
        return replace(report, page=pages[0] if pages else None)
    except (Exception, KeyboardInterrupt) as error:
        return replace(report, page_problem=str(error) or type(error).__name__)


def answer(
    reference: str,
    *,
    runs_dir: Path | str = RunPlace.runs_dir,
    approved: bool,
    comment: str = "",
    question: str | None = None,
    values: Mapping[str, object] | None = None,
) -> Question:
    """Answer a question of a run, whether or not its process is alive: the one with that key, or the only open one.

    ``values``: of the question's fields by name, and the ``option``; a text is read as the type that its field has.
    Returns the question with its answer. Raises `RunNotFound`, `UsageError`, `StorageError`.
    """
    folder = RunFolder.find(runs_dir, reference)
    return Questions(folder.path).answer(question, Answer(approved, comment, values=dict(values or {})))


def cancel_task(reference: str, task: str, *, runs_dir: Path | str = RunPlace.runs_dir, comment: str = "") -> str:
    """Cancel one task of a run, whether or not its process is alive: an item of a fan-out that has not ended.

    ``task`` is the item's id, its number in the list if it has no id, or its unit key (``solve.1.0``). Its turn is
    interrupted, items that need it are skipped, and the others continue. Returns the unit key. Raises `RunNotFound`,
    `UsageError` for a task that does not exist or has ended, `StorageError`.
    """
    folder = RunFolder.find(runs_dir, reference)
    unit = find_open_task(folder, task)
    Cancellations(folder.path).cancel(unit, comment)
    return unit
