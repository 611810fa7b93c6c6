"""Checks of what a run needs from this machine. No model is asked, and no MCP server is started or connected to."""

from __future__ import annotations

import os
import platform
import re
import resource
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from codex_multi_role.checks import CheckContext, find_check
from codex_multi_role.checks.interpreter import Interpreter, find_interpreter, inspect
from codex_multi_role.checks.scratch_folders import scratch_folder
from codex_multi_role.codex.codex_settings import known_settings, user_home
from codex_multi_role.codex.home import login_state
from codex_multi_role.codex.locator import find_codex
from codex_multi_role.errors import DISTRIBUTION, WITHOUT_SANDBOX, CodexMultiRoleError, UsageError
from codex_multi_role.extensions.measuring.workspace_copies import copy_workspace, excluded_from_copies
from codex_multi_role.extensions.setup.protocol import changed_messages, protocol_as_tested
from codex_multi_role.host.own_python import OWN_PYTHON
from codex_multi_role.host.programs import exclude_from_path, program_path, require_unsteered
from codex_multi_role.host.redaction import Redactor
from codex_multi_role.host.spelling import as_on_disk
from codex_multi_role.lifecycle.definitions import role_settings, sandbox_of_tests
from codex_multi_role.lifecycle.sandbox_probe import require_sandbox
from codex_multi_role.lifecycle.team_loading import load_catalog
from codex_multi_role.presentation.wording import one_line, verdict
from codex_multi_role.run_options import RunOptions
from codex_multi_role.version import __version__
from codex_multi_role.workspace import Workspace, run_command
from codex_multi_role.workspace.git import UPGRADE_HINT, Git, merging_problem

ANSWER_SECONDS = 20.0
LEAST_FREE_BYTES = 500_000_000
LEAST_OPEN_FILES = 256
PINNED = re.compile(r"openai-codex-cli-bin\s*==\s*([\w.]+)")
MCP_SERVER = "mcp server"
ALLOW_ALL = f"If you trust them: `{DISTRIBUTION} doctor --tests {WITHOUT_SANDBOX}`, and in runs {WITHOUT_SANDBOX}."


@dataclass(frozen=True)
class Finding:
    """The result of one check. ``advice`` says what to do if it is not ``ok``."""

    name: str
    ok: bool
    detail: str
    advice: str = ""


def diagnose(options: RunOptions, *, tests: bool) -> Iterator[Finding]:
    """Run all checks in order, with ``tests`` those of the project as well.

    Leaves nothing behind and asks no model.
    """
    yield Finding("python", True, f"{platform.python_version()} ({OWN_PYTHON})")
    exclude_from_path(options.place.workspace)
    yield _tried("environment", lambda: require_unsteered(os.environ))
    yield _git()
    try:
        codex = find_codex(options.answers.codex_bin, os.environ)
    except CodexMultiRoleError as error:
        yield Finding("codex", False, str(error), error.hint)
    else:
        yield _codex(codex)
        yield _protocol(codex)
        yield (sandbox := _tried("sandbox", lambda: require_sandbox(codex)))
        yield _tried("login", lambda: login_state(codex, options.answers.config, __version__))
        if sandbox.ok:
            yield from _tests(codex, options, tests=tests)
    yield _runs_folder(options.place.runs_dir)
    yield _open_files()


def _git() -> Finding:
    try:
        version = Git(Path(), Path()).run("version").stdout.decode().strip()
    except CodexMultiRoleError as error:
        return Finding("git", False, str(error), "Install git and put it on PATH; it is needed for patches.")
    problem = merging_problem(version)
    return Finding("git", not problem, problem or version, UPGRADE_HINT if problem else "")


def pinned_version() -> str:
    """Return the Codex version that this package is built and tested for."""
    pins = [match[1] for need in metadata.requires(DISTRIBUTION) or [] if (match := PINNED.match(need))]
    return pins[0]


def _codex(codex: Path) -> Finding:
    ok, output = _ask([str(codex), "--version"], Path())
    if not ok:
        return Finding("codex", False, f"{codex}: {output}", "Name another binary with --codex-bin.")
    if pinned_version() not in output.split():
        return Finding("codex", False, f"{output} ({codex})", _version_advice())
    return Finding("codex", True, f"{output} ({codex})")


def _version_advice() -> str:
    return f"This package is tested with {pinned_version()}; leave --codex-bin out."


def _protocol(codex: Path) -> Finding:
    try:
        changed = changed_messages(codex)
    except CodexMultiRoleError as error:
        return Finding("protocol", False, str(error), _version_advice())
    if changed:
        return Finding("protocol", False, f"differs from the tested protocol: {', '.join(changed)}", _version_advice())
    return Finding("protocol", True, f"{sum(map(len, protocol_as_tested().values()))} messages, as tested")


def _tried(name: str, look: Callable[[], str | None]) -> Finding:
    """The finding of what raises if something is wrong."""
    try:
        return Finding(name, True, look() or "usable")
    except CodexMultiRoleError as error:
        return Finding(name, False, str(error), error.hint or "Fix the -c settings, or ~/.codex/config.toml.")


def _tests(codex: Path, options: RunOptions, *, tests: bool) -> Iterator[Finding]:
    """Check the Python that runs the tests of the project in the workspace, and run ``tests`` with it."""
    root = as_on_disk(options.place.workspace)
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "CODEX_HOME": home}
        try:
            found = find_interpreter(root, environment, options.tests.python)
        except UsageError as error:
            yield Finding("tests", False, str(error), error.hint)
            return
        found = inspect(found, root, environment, sandbox_of_tests(RunOptions(), codex, root))
        is_usable = not found.problem or found.only_unmeasured
        detail = f"Python {found.version} ({found.source}: {found.path})"
        yield Finding("tests", is_usable, found.problem or detail, found.hint)
        if tests and is_usable:
            yield _result_of_tests(Workspace(root), found, environment, options, codex)


def _result_of_tests(
    workspace: Workspace, python: Interpreter, environment: Mapping[str, str], options: RunOptions, codex: Path
) -> Finding:
    """Run the tests in a copy of the workspace, as they run before the first turn."""
    with scratch_folder(workspace) as scratch:
        copy = copy_workspace(workspace, scratch, excluded_from_copies(workspace, []))
        context = CheckContext(
            Workspace(copy),
            scratch / "result",
            environment,
            options.tests.test_seconds,
            sandbox_of_tests(options, codex, copy),
            {"pytest_cmd": options.tests.pytest_cmd or ""},
            python=python,
        )
        result = find_check("tests")(context)
    why = f" ({one_line(result['reason'])})" if result["reason"] else ""
    is_fine = result["status"] in ("passed", "failed", "no tests") and not result.get("forbidden")
    return Finding("test run", is_fine, f"{verdict(result)}{why}", ALLOW_ALL if result.get("forbidden") else "")


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
    return Finding("open files", ok, f"limit {limit}", "" if ok else f"Raise the limit: ulimit -n {LEAST_OPEN_FILES}")


def _ask(argv: Sequence[str], folder: Path) -> tuple[bool, str]:
    """Run the command; returns whether it succeeded, and the last line it printed."""
    try:
        environment = {**os.environ, "PATH": program_path(os.environ)}
        done = run_command(argv, folder, environment, ANSWER_SECONDS, separate_errors=True)
    except UsageError as error:
        return False, str(error)
    if done.timed_out:
        return False, f"no answer in {ANSWER_SECONDS:.0f} seconds"
    lines = (done.output.strip() or done.errors.strip()).splitlines()
    return done.returncode == 0, lines[-1] if lines else f"exit code {done.returncode}"


def mcp_servers(options: RunOptions) -> Iterator[Finding]:
    """Yield a finding per server of a role, however it is defined, and one for the user's, which stay off in a run."""
    try:
        roles = load_catalog(options.place.roles).roles
    except CodexMultiRoleError as error:
        yield Finding("roles", False, str(error), error.hint)
        return
    for role in roles:
        for name, server in _servers((*role_settings(role), *options.answers.config), None).items():
            if isinstance(server, Mapping) and server.get("enabled", True):
                yield _server_finding(f"role {role.name}: {name}", server)
    if own := _servers((), user_home(os.environ)):
        yield Finding(MCP_SERVER, True, f"from your config.toml, not used in runs: {', '.join(own)}")


def _servers(settings: tuple[str, ...], home: Path | None) -> Mapping[str, Any]:
    found = known_settings(settings, home).get("mcp_servers")
    return found if isinstance(found, Mapping) else {}


def _server_finding(name: str, server: Mapping[str, Any]) -> Finding:
    command = str(server.get("command", ""))
    argv = [command, *map(str, _as_list(server.get("args")))]
    detail = Redactor(os.environ)(f"{name}: {server['url'] if 'url' in server else shlex.join(argv)}")
    variables = [*_as_list(server.get("env_vars")), *_as_list([server.get("bearer_token_env_var")])]
    if missing := [each for each in variables if isinstance(each, str) and each not in os.environ]:
        return Finding(MCP_SERVER, False, f"{detail}: {', '.join(missing)} not set", "Set the environment variable.")
    if "url" not in server and shutil.which(command, path=program_path(os.environ)) is None:
        advice = "Install it outside the workspace, on PATH, or give its absolute path."
        return Finding(MCP_SERVER, False, f"{detail}: program not found", advice)
    return Finding(MCP_SERVER, True, detail)


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
