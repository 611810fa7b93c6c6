"""What a check gets from its run, who observes it, and how long it may take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from codex_multi_role.catalog import load_yaml, settings_file, validate
from codex_multi_role.checks import CheckContext, RunFacts, find_check
from codex_multi_role.errors import DefinitionError
from codex_multi_role.flow import Terms
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import own_turns
from codex_multi_role.run_options import RunOptions
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
        publish=run.services.events.publish,
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


def terms(options: RunOptions, cycles: int | None = None) -> Terms:
    """The terms of a run with these options; ``cycles`` overrides theirs. `test_seconds` limits every check."""

    def check_seconds(name: str, given: Mapping[str, object]) -> float:
        return find_check(name).max_seconds(given, options.tests.test_seconds)

    seconds_of_tests = check_seconds("tests", {}) if options.tests.run_tests else 0.0
    baseline = options.tests.test_seconds if options.tests.baseline else 0.0
    return Terms(cycles or options.cycles, options.answers.repair_attempts, check_seconds, seconds_of_tests, baseline)
