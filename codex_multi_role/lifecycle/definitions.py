"""What a run consists of: its options, YAML and playbook. All errors in them are found before anything starts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from threading import Event
from typing import Any

from codex_multi_role.catalog import FlowSpec, RoleSpec, RoleSpecCatalog, StepSpec, settings_file
from codex_multi_role.catalog.prices import PriceList
from codex_multi_role.checks import Check, find_check
from codex_multi_role.checks.interpreter import Interpreter, find_interpreter, inspect, starts_own_pytest
from codex_multi_role.codex.codex_settings import (
    as_settings,
    holds_secret,
    mcp_server_table,
    needed_user_home,
    needs_user_home,
)
from codex_multi_role.codex.home import require_user_home
from codex_multi_role.codex.locator import find_codex
from codex_multi_role.codex.permissions import WriteAccess, require_exact, sandboxed
from codex_multi_role.errors import DefinitionError, UsageError
from codex_multi_role.flow import WalkBound, walk_bound
from codex_multi_role.flow.contracts import Contracts
from codex_multi_role.flow.notes import former_keys_of
from codex_multi_role.flow.references import unsent_roles
from codex_multi_role.host.programs import exclude_from_path, require_unsteered
from codex_multi_role.host.redaction import Redactor
from codex_multi_role.host.spelling import as_on_disk, require_utf8
from codex_multi_role.lifecycle.model_providers import PLAYBOOK_MODEL, StandIn, model_of, require_prices, sources_of
from codex_multi_role.lifecycle.sandbox_probe import require_sandbox
from codex_multi_role.lifecycle.team_loading import CheckedTeam, is_recorded, load_team
from codex_multi_role.run_options import RunOptions
from codex_multi_role.steps.check_context import terms
from codex_multi_role.workspace.commands import Sandbox, no_sandbox
from codex_multi_role.workspace.git import require_merging
from codex_multi_role.workspace.preparation import Needs


@dataclass(frozen=True)
class Definitions:
    """Everything a run consists of, loaded and checked. Nothing has been started or written yet."""

    options: RunOptions
    team: CheckedTeam
    inputs: Mapping[str, Any]
    playbook: Any
    stand_in: StandIn | None
    prices: PriceList
    codex: Path
    workspace: Path
    python: Interpreter

    @property
    def source_workspace(self) -> Path:
        """The user's own folder; the same as ``workspace``, unless the run works in its own worktree."""
        return as_on_disk(self.options.place.workspace) if self.options.place.worktree else self.workspace

    @property
    def needs(self) -> Needs:
        """What new worktrees and copies need: as the flow says, otherwise as the options do."""
        own, place = self.flow.workspace, self.options.place
        copy = place.workspace_copy if own.copy_ is None else own.copy_
        return Needs(copy, own.setup or place.workspace_setup or "")

    @property
    def catalog(self) -> RoleSpecCatalog:
        return self.team.catalog

    @property
    def flows(self) -> Mapping[str, FlowSpec]:
        return self.team.flows

    @property
    def contracts(self) -> Contracts:
        return self.team.contracts

    @property
    def allow_removed_tests(self) -> tuple[str, ...]:
        """Globs of tests that may be gone at the end."""
        return (
            *self.options.tests.allow_removed_tests,
            *(g for f in self.flows.values() for g in f.allow_removed_tests),
        )

    @property
    def isolates(self) -> bool:
        """Whether steps may work in copies of the workspace."""
        return any(step.isolate for flow in self.flows.values() for step in flow.steps)

    @property
    def flow(self) -> FlowSpec:
        """The run's own flow; the others are the flows it calls."""
        return self.flows[self.options.flow]

    @property
    def warnings(self) -> list[str]:
        """What is right in the team's files, but has no effect."""
        own = [flow for flow in self.flows.values() if not is_recorded(flow)]
        former = [note for flow in own for note in former_keys_of(flow)]
        return [*unsent_roles(self.flows, self.catalog).values(), *former]

    def bound(self, cycles: int | None = None) -> WalkBound:
        """Upper bounds of the run's walk and of every walk within it. Raises `DefinitionError`.

        ``cycles`` overrides the cycles of the options.
        """
        options = self.options
        return walk_bound(self.flows, options.flow, self.catalog, terms(options, cycles), self.inputs)

    def checked(self) -> Definitions:
        """Return these definitions after checking them as a whole. Raises `UsageError` and `CodexUnavailable`."""
        judge(self.flows, self.options, self.catalog, self.inputs)
        if self.needs_sandbox:
            require_exact((self.workspace, self.options.place.runs_dir.resolve()))
        self.require_prices()
        if self.isolates:
            require_merging(self.workspace)
        settings = [(*role_settings(role), *self.options.answers.config) for role in self.roles]
        if self.playbook is None and self.stand_in is None and any(map(needs_user_home, settings)):
            require_user_home(os.environ)
        access = [WriteAccess.of(given, needed_user_home(given, os.environ)) for given in settings]
        require_unsteered(os.environ, *(Path(root) for each in access for root in each.writable_roots))
        return self

    def require_prices(self) -> None:
        """Raise `DefinitionError` if a maximum cost applies to a model that has no price."""
        limited = (
            role for role in self.roles if self.options.limits.max_cost is not None or role.limits.max_cost is not None
        )
        require_prices(self.prices, {role.name: self.model_of(role) for role in limited})

    def with_python(self, inspected: Callable[[], Interpreter]) -> Definitions:
        """These definitions with the result of `inspect` as their Python, if tests need one. Raises `UsageError`."""
        if not self._measures and not self._test_commands:
            return self
        python = inspected()
        needed = self._measures or any(map(starts_own_pytest, self._test_commands))
        is_set_up = self.options.place.worktree and self.needs.setup  # which may create the project's environment
        if python.problem and needed and not is_set_up and (self._measures or not python.only_unmeasured):
            if self.options.tests.test_sandbox:
                require_sandbox(self.codex)  # without it, no Python starts
            raise UsageError(python.problem, python.hint)
        return replace(self, python=python)

    @property
    def _test_commands(self) -> list[str]:
        """The command lines that may run the tests; empty for the default."""
        usual = self.options.tests.pytest_cmd or ""
        after_turns = self.options.tests.run_tests and any(role.may_change_workspace for role in self.roles)
        steps = [step for step in self._checking if step.check == "tests"]
        return [*([usual] if after_turns else []), *(str(step.with_.get("pytest_cmd", usual)) for step in steps)]

    @property
    def tests_before(self) -> bool:
        """Whether the tests run before the first turn: there are some to run later, and a role may change files."""
        return bool(self._test_commands) and any(role.may_change_workspace for role in self.roles)

    @property
    def _measures(self) -> bool:
        return any(check.uses_python for check in self._checks)

    @cached_property
    def roles(self) -> list[RoleSpec]:
        """The roles that the run may ask with these inputs, in catalog order."""
        asked = self.bound().effort.processes
        return [role for role in self.catalog.roles if role.name in asked]

    def model_of(self, role: RoleSpec) -> str | None:
        """The model that answers the role; None if Codex chooses it."""
        if self.playbook is not None:
            return PLAYBOOK_MODEL
        if self.stand_in is not None:
            return self.stand_in.model(role.name)
        return model_of(role, self.options.answers.model, (*role_settings(role), *self.options.answers.config))

    @property
    def settings(self) -> list[Path]:
        """The settings files of the run's checks."""
        names = {check.settings.file for check in self._checks if check.settings}
        files = (settings_file(name, self.catalog.source.parent) for name in sorted(names))
        return [file for file in files if file is not None]

    @property
    def changes_workspace(self) -> bool:
        """Whether any role or check of the run is allowed to change the workspace."""
        return any(role.may_change_workspace for role in self.roles) or any(
            not check.read_only for check in self._checks
        )

    @property
    def needs_sandbox(self) -> bool:
        """Whether commands of a role, tests or checks may run in Codex's sandbox."""
        return self.changes_workspace or bool(self._checks)

    @property
    def sandboxes_commands(self) -> bool:
        """Whether tests, checks or a setup will run in Codex's sandbox."""
        steps = [step for step in self._checking if step.check == "command"]
        setup = self.needs.setup and (self.options.place.worktree or self.isolates)
        commands = setup or any(step.with_.get("sandbox", True) for step in steps)
        return self.options.tests.test_sandbox and bool(self._test_commands or self._measures or commands)

    @property
    def _checking(self) -> list[StepSpec]:
        return [step for flow in self.flows.values() for step, _ in flow.all_steps if step.check]

    @property
    def _checks(self) -> set[Check]:
        return {find_check(step.check or "") for step in self._checking}


def judge(
    flows: Mapping[str, FlowSpec],
    options: RunOptions,
    catalog: RoleSpecCatalog,
    inputs: Mapping[str, Any] | None = None,
) -> WalkBound:
    """Judge loaded definitions as a whole, for a run or for `flows validate`; return the bounds of the run's walk.

    Raises `UsageError` for a secret in the settings of a role, `DefinitionError` for a flow without a bound.
    """
    _refuse_secrets(options, catalog)
    return walk_bound(flows, options.flow, catalog, terms(options), inputs)


def sandbox_of_tests(options: RunOptions, codex: Path, workspace: Path, read_only: Sequence[Path] = ()) -> Sandbox:
    """The sandbox of the tests, in which ``read_only`` cannot be written; no sandbox with ``--no-test-sandbox``."""

    def wrap(argv: Sequence[str], writable: Path) -> list[str]:
        return sandboxed(codex, argv, writable, read_only, workspace)

    return wrap if options.tests.test_sandbox else no_sandbox


LoadTeam = Callable[[str, Path | None], CheckedTeam]


def load_definitions(options: RunOptions, load: LoadTeam = load_team) -> Definitions:
    """Read and check everything that ``options`` names. Raises `UsageError` and `CodexUnavailable`."""
    workspace = _checked_workspace(options.place.workspace)
    exclude_from_path(workspace)
    codex = find_codex(options.answers.codex_bin, os.environ)
    python = find_interpreter(workspace, os.environ, options.tests.python)
    with _inspecting(python, options, codex, workspace) as inspected:
        return _load(options, codex, workspace, python, load).checked().with_python(inspected)


def load_for_another_machine(options: RunOptions) -> Definitions:
    """As `load_definitions`, without what depends on this machine: its Codex, Python and login. Raises `UsageError`."""
    return _load(options, Path(), options.place.workspace, find_interpreter(options.place.workspace, {}))


def _load(
    options: RunOptions, codex: Path, workspace: Path, python: Interpreter, load: LoadTeam = load_team
) -> Definitions:
    flows, catalog = team = load(options.flow, options.place.roles)
    playbook, suggested = _playbook(options, flows, catalog)
    goal = flows[options.flow].goal
    options = replace(options, goal=goal.resolve(options.flow, options.goal or goal.default or suggested))
    stands_in = [source.load(options) for source in sources_of(options.added).values() if source.load]
    return Definitions(
        options=options.changed(codex_bin=codex) if options.answers.codex_bin else options,  # PATH may differ on resume
        team=team,
        inputs=flows[options.flow].resolve_inputs(options.inputs),
        playbook=playbook,
        stand_in=next(iter(stands_in), None),
        prices=PriceList.load(options.limits.prices, catalog.source.parent),
        codex=codex,
        workspace=workspace,
        python=python,
    )


def _playbook(options: RunOptions, flows: Mapping[str, FlowSpec], catalog: RoleSpecCatalog) -> tuple[Any, str]:
    """The run's playbook, or None; and the goal of an automatic run that is given none."""
    if options.answers.playbook is None:
        return None, ""
    from codex_multi_role.playbook import is_automatic, load_playbook  # here: most runs have none

    folder = catalog.source.parent
    if not is_automatic(options.answers.playbook, folder):
        return load_playbook(options.answers.playbook, folder), ""
    from codex_multi_role.playbook.automatic import GOAL, automatic_playbook

    return automatic_playbook(flows, catalog), GOAL


@contextmanager
def _inspecting(
    python: Interpreter, options: RunOptions, codex: Path, workspace: Path
) -> Iterator[Callable[[], Interpreter]]:
    """Yield a function that waits for `inspect`, which starts at once if tests are likely and stops if nobody waits."""
    likely, stopping = options.tests.run_tests, Event()
    with (
        tempfile.TemporaryDirectory(prefix="codex-home-") as home,
        ThreadPoolExecutor(1, thread_name_prefix="python") as pool,
    ):  # waits: for a program, ended by ANSWER_SECONDS
        environment, sandbox = {**os.environ, "CODEX_HOME": home}, sandbox_of_tests(options, codex, workspace)
        start = partial(pool.submit, partial(inspect, python, workspace, environment, sandbox, stopping))
        started = start() if likely else None

        def inspected() -> Interpreter:
            return (started or start()).result()  # waits: for a program, ended by ANSWER_SECONDS

        try:
            yield inspected
        finally:
            stopping.set()


def role_settings(role: RoleSpec) -> tuple[str, ...]:
    """The settings for its Codex process in the role's YAML, as ``key=value``."""
    return (*as_settings(role.codex_config), *_server_settings(role))


def _server_settings(role: RoleSpec) -> tuple[str, ...]:
    servers = role.mcp_servers.items()
    return as_settings({f"mcp_servers.{name}": mcp_server_table(server.model_dump()) for name, server in servers})


def _refuse_secrets(options: RunOptions, catalog: RoleSpecCatalog) -> None:
    places = [(setting, "-c ", UsageError) for setting in options.answers.config]
    for role in catalog.roles:
        where = f"{role.source}: role {role.name}: "
        places += [(setting, f"{where}codex_config.", DefinitionError) for setting in as_settings(role.codex_config)]
        places += [(setting, where, DefinitionError) for setting in _server_settings(role)]
    redact = Redactor(os.environ)
    for setting, where, error in places:
        if holds_secret(setting, redact):
            raise error(
                f"{where}{setting.partition('=')[0]}: contains what looks like a secret, visible in the run "
                "folder and in the process list",
                'Put it into an environment variable and name the variable: env_key="MY_PROVIDER_KEY", '
                'env_http_headers={Authorization="MY_HEADER"}; of an MCP server env_vars: [MY_KEY].',
            )


def _checked_workspace(path: Path) -> Path:
    try:
        exists = path.exists()
    except OSError as error:
        raise UsageError(f"the workspace {path} cannot be reached: {error.strerror}") from error
    if not exists:
        raise UsageError(f"the workspace {path} does not exist", f"Create it first: mkdir -p {path}")
    if not path.is_dir():
        raise UsageError(f"the workspace {path} is not a folder", "Name a folder with --workspace.")
    if not os.access(path, os.W_OK | os.X_OK):
        raise UsageError(f"the workspace {path} cannot be written", "Fix its permissions or name another folder.")
    return require_utf8(as_on_disk(path))
