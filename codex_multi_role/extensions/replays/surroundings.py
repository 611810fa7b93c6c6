"""What a run depends on besides its bundle: programs, the machine, and its last tests on the state it started from."""

from __future__ import annotations

import os
import platform
from dataclasses import replace
from pathlib import Path, PurePosixPath

from codex_multi_role.checks import find_check
from codex_multi_role.checks.python_targets import is_test_file
from codex_multi_role.checks.tests import PytestResult
from codex_multi_role.codex.locator import find_codex
from codex_multi_role.extensions.replays.claims import ClaimedTests, Environment
from codex_multi_role.extensions.results.trials import context_of_tests
from codex_multi_role.host.atomic import make_folder
from codex_multi_role.run_folder import RunFolder, read_events
from codex_multi_role.run_folder.events import RunStarted
from codex_multi_role.run_options import RunOptions
from codex_multi_role.workspace import Workspace, run_command
from codex_multi_role.workspace.git import Git
from codex_multi_role.workspace.trees import check_out, entries_of

ANSWER_SECONDS = 30.0
TEST_FOLDERS = frozenset({"test", "tests"})


def environment_of(folder: RunFolder, git: Git, codex_bin: Path | None) -> Environment:
    """What the run in ``folder`` recorded of its programs; of Codex, git and the machine, those that are here now."""
    versions = folder.record()["versions"]
    started = (event.python for event in read_events(folder.events_path) if isinstance(event, RunStarted))
    tested = next((python["version"] for python in started if python.get("version")), "")
    argv = [str(find_codex(codex_bin, os.environ)), "--version"]
    codex = run_command(argv, folder.path, os.environ, ANSWER_SECONDS, separate_errors=True)  # it warns without a home
    return Environment(
        codex_multi_role=versions["codex_multi_role"],
        codex=codex.output.strip().removeprefix("codex-cli "),
        python=tested or versions["python"],
        git=git.run("version").stdout.decode().strip().removeprefix("git version "),
        machine=f"{platform.system()} {platform.machine()}",
    )


def tests_before(git: Git, first: str, last: str, place: Path, options: RunOptions) -> ClaimedTests | None:
    """Run the tests that the state ``last`` has on everything else of ``first``; None if it has no tests.

    They run in the sandbox, as after a turn; ``options.workspace`` names the project whose Python runs them. ``place``
    is a new folder.
    """
    tests = {path: entry for path, entry in entries_of(git, last).items() if is_test(path)}
    if not tests:
        return None
    workspace = place / options.place.workspace.name
    check_out(git, {**entries_of(git, first), **tests}, workspace)
    context = context_of_tests(options.place.workspace, Workspace(workspace), make_folder(place / "results"), options)
    if options.tests.pytest_cmd:
        context = replace(context, options={"pytest_cmd": options.tests.pytest_cmd})
    result = PytestResult.model_validate(find_check("tests")(context))
    return ClaimedTests.of(result, (failure.test for failure in result.failures))


def is_test(path: str) -> bool:
    """Whether it is a file of tests by pytest's names, or is in a folder of tests."""
    *folders, name = PurePosixPath(path).parts
    return is_test_file(name) or bool({*folders} & TEST_FOLDERS)
