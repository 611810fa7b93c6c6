"""The public API: `run` a flow for a goal, `resume` a run that stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path

from codex_multi_role.assembly import keep_definitions, load_definitions
from codex_multi_role.errors import UsageError
from codex_multi_role.options import RunOptions, RunReport
from codex_multi_role.run_folder import AskPerson, Question, Questions, RunFolder, answer_of_person
from codex_multi_role.session import OnEvent, Session

__all__ = ["RunOptions", "RunReport", "answer", "resume", "run"]

KEPT_BY_A_RUN = frozenset({"goal", "run_id", "runs_dir", "flow", "database_url"})


def run(options: RunOptions, on_event: OnEvent | None = None, ask_person: AskPerson | None = None) -> RunReport:
    """Run a flow for a goal and wait for its end. ``on_event`` gets every event's record, in order.

    ``ask_person`` is asked what a review asks; without it, or an answer of it, the run parks: `answer` it and `resume`.

    Raises `UsageError`, `CodexUnavailable` and `StorageError` for what is found before anything has started; whatever
    happens later is in the report.
    """
    definitions = load_definitions(options)
    folder = RunFolder.create(options.runs_dir, options.run_id)
    catalog_file = keep_definitions(definitions, folder)
    return Session(definitions, folder, catalog_file, on_event, ask_person=ask_person).work()


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
    catalog = folder.catalog_path / record["catalog_file"]
    remembered = replace(RunOptions.from_record(record["options"]), roles=catalog)
    if remembered.playbook is not None:
        remembered = replace(remembered, playbook=str(catalog.parent / "playbooks" / record["playbook_file"]))
    fixed = KEPT_BY_A_RUN & set(changes or {})
    if fixed:
        raise UsageError(f"a resumed run keeps its {', '.join(sorted(fixed))}", "Start another run for that.")
    unknown = set(changes or {}) - {each.name for each in fields(RunOptions)}
    if unknown:
        raise UsageError(f"a run has no option called {', '.join(sorted(unknown))}")
    definitions = load_definitions(replace(remembered, **(changes or {})))  # type: ignore[arg-type]  # checked by name
    return Session(definitions, folder, record["catalog_file"], on_event, record, ask_person).work()


def answer(
    reference: str, *, runs_dir: Path, approved: bool, comment: str = "", question: str | None = None
) -> Question:
    """Answer what a run asks, whether its process lives or not: the open question of that key, or the only one.

    Returns the question with its answer. Raises `RunNotFound`, `UsageError`, `StorageError`.
    """
    folder = RunFolder.find(runs_dir, reference)
    return Questions(folder.path).answer(question, answer_of_person(approved, comment))
