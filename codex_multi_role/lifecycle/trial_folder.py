"""Where a command is executed on the recorded states of a run: a folder, a sandbox and a Python as for its tests."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from codex_multi_role.checks.contract import CheckContext
from codex_multi_role.checks.interpreter import Interpreter, find_interpreter, inspect
from codex_multi_role.checks.output_files import folder_outside
from codex_multi_role.codex.locator import find_codex
from codex_multi_role.history import RunHistory
from codex_multi_role.history.trials import Trials
from codex_multi_role.host.atomic import make_folder
from codex_multi_role.lifecycle.definitions import sandbox_of_tests
from codex_multi_role.lifecycle.kept_definitions import remembered_needs
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_options import RunOptions
from codex_multi_role.workspace import Workspace
from codex_multi_role.workspace.commands import Sandbox
from codex_multi_role.workspace.preparation import Preparation

PYTHONPATH = "PYTHONPATH"


@contextmanager
def trials_of(history: RunHistory, argv: Sequence[str], options: RunOptions) -> Iterator[Trials]:
    """Trials of ``argv`` in a temporary folder outside the workspace, which is removed.

    ``options``: those of the tests, and ``codex_bin``. Nothing of the run is used that a live run could end or change.
    Raises `UsageError`, `CodexUnavailable`, `StorageError`.
    """
    record = history.folder.record()
    worked_in = Path(str(record["workspace"]))
    with folder_outside(worked_in) as folder:
        root = make_folder(folder / "restored" / worked_in.name)  # some tools read the name of a project's folder
        environment = {**os.environ, "CODEX_HOME": str(make_folder(folder / "codex"))}
        sandbox = sandbox_of_tests(options, find_codex(options.codex_bin, os.environ), root)
        setting = options.python or _path_of((record.get("options") or {}).get("python"))
        python = inspect(find_interpreter(worked_in, os.environ, setting), worked_in, environment, sandbox)
        context = CheckContext(
            Workspace(root),
            folder,
            environment,
            options.test_seconds,
            sandbox,
            {"argv": list(argv), "json": False, "environment": _importing_from(root, python, environment)},
            python=python,
        )
        source = Path(str(record.get("source_workspace", worked_in)))
        preparation = _preparation(history.folder, source, environment, sandbox, options.test_seconds, folder)
        yield Trials(history, folder, context, preparation)


def _path_of(value: object) -> Path | None:
    return Path(str(value)) if value else None


def _importing_from(root: Path, python: Interpreter, environment: Mapping[str, str]) -> dict[str, str]:
    """Variables by which an editable install of the run's workspace does not hide the files restored in ``root``."""
    if not python.folders:
        return {}
    places = [*(str(root / each) for each in python.folders), environment.get(PYTHONPATH)]
    return {PYTHONPATH: ":".join(filter(None, places))}


def _preparation(
    run: RunFolder, source: Path, environment: Mapping[str, str], sandbox: Sandbox, seconds: float, folder: Path
) -> Preparation | None:
    """What the run's worktrees and copies needed, from its workspace as it is now; None if that is nothing."""
    needs = remembered_needs(run)
    if not needs:
        return None
    workspace = Workspace.of_run(source, run.path)
    return Preparation(needs, workspace, folder, environment, sandbox, seconds, run.redact, reuses=False)
