"""What a check gets from its run, and who observes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from codex_multi_role.catalog import load_yaml, settings_file, validate
from codex_multi_role.checks import CheckContext, RunFacts, find_check
from codex_multi_role.errors import DefinitionError
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import own_turns
from codex_multi_role.steps.resources import RunResources


def observed(
    run: RunResources, folder: Path, name: str, options: Mapping[str, object], carry_out: Callable[[], Json]
) -> Json:
    with run.progress.stays.at(run.workspace.root, may_write=not find_check(name).read_only) as stay:
        for observer in run.services.observers(run):
            carry_out = partial(observer.check, run, folder, name, options, carry_out, stay)
        return carry_out()


def context_of(
    run: RunResources, folder: Path, options: Mapping[str, object], key: str = "", name: str = "tests"
) -> CheckContext:
    return CheckContext(
        workspace=run.workspace,
        folder=folder,
        environment=run.services.environment,
        sandbox=run.services.sandbox,
        deadline_seconds=run.settings.tests.deadline_seconds,
        options=options,
        stopping=run.progress.stopping,
        worktrees=run.services.worktrees,
        redact=run.services.folder.redact,
        run=lambda: _facts(run, key),
        python=run.settings.tests.python,
        settings=lambda: load_settings(name, run.catalog.source.parent),
    )


def load_settings(name: str, roles: Path) -> Any:  # noqa: ANN401 - whatever model the check declares
    """The settings of the check called ``name``; None if it has none.

    Raises one `DefinitionError` for all mistakes in its file.
    """
    settings = find_check(name).settings
    if settings is None:
        return None
    file = settings_file(settings.file, roles)
    if file is None:
        raise DefinitionError(f"{roles / settings.file}: is missing", f"The check {name} reads its settings there.")
    return validate(settings.model, load_yaml(file), file)


def _facts(run: RunResources, key: str) -> RunFacts:
    folder = run.services.folder
    record = folder.record()
    turns = [{"role": role, **turn} for role, turn in own_turns(folder)]
    return RunFacts(
        folder.run_id, record["flow"], record["started_at"], folder.path, key, turns, run.settings.searches_web
    )
