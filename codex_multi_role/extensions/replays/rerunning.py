"""`rerun`: do a run again, and wait until it ends."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from codex_multi_role.api.recorded_runs import ReportedRun
from codex_multi_role.extensions.replays.prepare_rerun import prepare_rerun
from codex_multi_role.lifecycle.running import OnEvent, work_on
from codex_multi_role.run_folder import AskPerson, RunFolder
from codex_multi_role.run_options import RunPlace, options_by_name

if TYPE_CHECKING:
    from codex_multi_role.option_keywords import ForkKeywords


def rerun(
    reference: str,
    *,
    runs_dir: Path | str = RunPlace.runs_dir,
    changes: ForkKeywords | None = None,
    on_event: OnEvent | None = None,
    ask_person: AskPerson | None = None,
) -> ReportedRun:
    """Do a run again with the current YAML, and wait until it ends; equal turns are taken over instead of asked.

    A turn counts as equal if everything it depends on is: its prompt, the role's settings, the conversation so far, and
    the workspace if it looked at files. Raises everything that `fork` raises.
    """
    session = prepare_rerun(RunFolder.find(runs_dir, reference), options_by_name(changes or {}))
    return ReportedRun.of(work_on(session, on_event, ask_person))
