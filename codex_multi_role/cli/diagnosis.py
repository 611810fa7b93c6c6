"""What a run needs from this machine, asked one thing at a time."""

from __future__ import annotations

import os
import platform
import re
import resource
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from codex_multi_role import __version__
from codex_multi_role.checks.interpreter import find_interpreter, inspect
from codex_multi_role.codex.locator import find_codex
from codex_multi_role.codex.login import login_state
from codex_multi_role.codex.protocol import changed_messages, protocol_as_tested
from codex_multi_role.codex.sandbox import sandboxed
from codex_multi_role.definitions import sandbox_of_tests
from codex_multi_role.errors import CodexMultiRoleError, UsageError
from codex_multi_role.run_options import RunOptions
from codex_multi_role.spelling import as_on_disk
from codex_multi_role.workspace import run_command

ANSWER_SECONDS = 20.0
LEAST_FREE_BYTES = 500_000_000
LEAST_OPEN_FILES = 256
DISTRIBUTION = "codex-multi-role"
PINNED = re.compile(r"openai-codex-cli-bin\s*==\s*([\w.]+)")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. ``advice`` says what to do where it is not ``ok``."""

    name: str
    ok: bool
    detail: str
    advice: str = ""


def diagnose(
    codex_bin: Path | None, config: tuple[str, ...], workspace: Path, python: Path | None, runs_dir: Path
) -> Iterator[Finding]:
    """Look at everything in turn; nothing is left behind and no model is asked."""
    yield Finding("python", True, f"{platform.python_version()} ({sys.executable})")
    yield _sqlite()
    yield _git()
    try:
        codex = find_codex(codex_bin, os.environ)
    except CodexMultiRoleError as error:
        yield Finding("codex", False, str(error), error.hint)
    else:
        yield _codex(codex)
        yield _protocol(codex)
        yield _sandbox(codex)
        yield _login(codex, config)
        yield _tests(codex, workspace, python)
    yield _runs_folder(runs_dir)
    yield _open_files()


def _sqlite() -> Finding:
    from codex_multi_role.engine.sqlite_clock import UPGRADE, sqlite_problem  # here: loading the engine takes a while

    problem = sqlite_problem()
    return Finding("sqlite", not problem, problem or sqlite3.sqlite_version, UPGRADE if problem else "")


def _git() -> Finding:
    ok, said = _ask(["git", "--version"], Path())
    return Finding("git", ok, said, "" if ok else "Install git and put it on PATH; patches are made with it.")


def pinned_version() -> str:
    """The version of Codex this package is made and tested for."""
    pins = [match[1] for need in metadata.requires(DISTRIBUTION) or [] if (match := PINNED.match(need))]
    return pins[0]


def _codex(codex: Path) -> Finding:
    ok, said = _ask([str(codex), "--version"], Path())
    if not ok:
        return Finding("codex", False, f"{codex}: {said}", "Name another binary with --codex-bin.")
    if pinned_version() not in said.split():
        return Finding("codex", False, f"{said} ({codex})", _use_the_tested())
    return Finding("codex", True, f"{said} ({codex})")


def _use_the_tested() -> str:
    return f"This package is tested with {pinned_version()}; leave --codex-bin out."


def _protocol(codex: Path) -> Finding:
    try:
        changed = changed_messages(codex)
    except CodexMultiRoleError as error:
        return Finding("protocol", False, str(error), _use_the_tested())
    if changed:
        return Finding("protocol", False, f"other than tested: {', '.join(changed)}", _use_the_tested())
    return Finding("protocol", True, f"{sum(map(len, protocol_as_tested().values()))} messages as tested")


def _sandbox(codex: Path) -> Finding:
    with tempfile.TemporaryDirectory() as folder:
        ok, said = _ask(sandboxed(codex, ["true"], Path(folder)), Path(folder))
    advice = "Allow unprivileged user namespaces, or run the tests with --no-test-sandbox."
    return Finding("sandbox", ok, "commands run in it" if ok else said, "" if ok else advice)


def _tests(codex: Path, workspace: Path, setting: Path | None) -> Finding:
    """The Python that runs the tests of the project in ``workspace``."""
    root = as_on_disk(workspace)
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "CODEX_HOME": home}
        try:
            found = find_interpreter(root, environment, setting)
        except UsageError as error:
            return Finding("tests", False, str(error), error.hint)
        found = inspect(found, root, environment, sandbox_of_tests(RunOptions(), codex, root))
    detail = f"Python {found.version} ({found.source}: {found.path})"
    return Finding("tests", not found.problem or found.only_unmeasured, found.problem or detail, found.hint)


def _login(codex: Path, config: tuple[str, ...]) -> Finding:
    try:
        return Finding("login", True, login_state(codex, config, __version__))
    except CodexMultiRoleError as error:
        return Finding("login", False, str(error), error.hint or "Mend the -c settings, or ~/.codex/config.toml.")


def _runs_folder(runs_dir: Path) -> Finding:
    existing = next(path for path in (runs_dir.absolute(), *runs_dir.absolute().parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            free = shutil.disk_usage(existing).free
    except OSError as error:
        return Finding("runs", False, f"{existing}: {error.strerror}", "Choose another folder with --runs-dir.")
    detail = f"{free / 1e9:.1f} GB free in {existing}"
    ok = free >= LEAST_FREE_BYTES
    return Finding("runs", ok, detail, "" if ok else "Free some space, or choose another folder with --runs-dir.")


def _open_files() -> Finding:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    ok = limit == resource.RLIM_INFINITY or limit >= LEAST_OPEN_FILES
    return Finding("open files", ok, f"limit {limit}", "" if ok else f"Raise it: ulimit -n {LEAST_OPEN_FILES}")


def _ask(argv: Sequence[str], folder: Path) -> tuple[bool, str]:
    """Whether the command ended well, and the last line it said."""
    try:
        done = run_command(argv, folder, os.environ, ANSWER_SECONDS, separate_errors=True)
    except UsageError as error:
        return False, str(error)
    if done.timed_out:
        return False, f"no answer in {ANSWER_SECONDS:.0f} seconds"
    said = (done.output.strip() or done.errors.strip()).splitlines()
    return done.returncode == 0, said[-1] if said else f"exit code {done.returncode}"
