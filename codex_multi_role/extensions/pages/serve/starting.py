"""Starts and resumes runs, each in a process of its own that outlives the server; the form that describes a new one."""

from __future__ import annotations

import os
import secrets
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codex_multi_role.catalog import list_flows
from codex_multi_role.cli.flow_explanation import worst_case_words
from codex_multi_role.errors import CodexMultiRoleError, ExitCode, UsageError
from codex_multi_role.extensions.pages.serve.forms import Form
from codex_multi_role.host.atomic import make_folder
from codex_multi_role.host.own_python import Lifetime, last_output, own_module, start
from codex_multi_role.host.programs import exclude_from_path
from codex_multi_role.host.user_cache import expanded
from codex_multi_role.lifecycle.team_loading import load_catalog, load_flow_and_called, roles_folder
from codex_multi_role.option import as_typed
from codex_multi_role.presentation.outcome import exit_in_words
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.folder import make_runs_folder, new_run_id
from codex_multi_role.run_folder.owner import read_owner
from codex_multi_role.run_options import OPTIONS, RunOptions

TOKEN_VARIABLE = "CODEX_MULTI_ROLE_TOKEN"
BEGIN_SECONDS = 60.0
LOOK_SECONDS = 0.05
MOST_AT_ONCE = 32
ENDINGS = (ExitCode.GOAL_REACHED, ExitCode.GOAL_NOT_REACHED, ExitCode.WAITING, ExitCode.BUDGET_USED_UP)
"""Exit codes of a run that began, and may have ended before it was seen."""
STARTING = ".starting"
OUTPUT = "output.log"
"""In a run's folder: stderr of its process, if a page started it."""


class RunNotStarted(CodexMultiRoleError):
    """The process ended before the run began, and the message is its output; or the run has not started yet."""


@dataclass(frozen=True)
class NewRun:
    """What a form describes. ``inputs`` and further ``options``: only those that were filled in."""

    flow: str
    goal: str = ""
    cycles: str = ""
    workspace: str = ""
    playbook: str = ""
    options: Mapping[str, str | bool] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)

    def arguments(self) -> list[str]:
        """Return the arguments of ``run``, which reads the goal from stdin: it may be too long for an argument.

        An option and its value are one argument, so that a value may begin with a dash.
        """
        options = {"flow": self.flow, "cycles": self.cycles, "workspace": self.workspace, "playbook": self.playbook}
        named = {**options, "inputs": self.inputs}
        texts = (OPTIONS[name].arguments(value) for name, value in named.items() if value)
        given = [*texts, *(OPTIONS[name].arguments(value) for name, value in self.options.items())]
        goal = ["--goal-file=-"] if self.goal else []
        return [*goal, *("=".join(each) for arguments in given for each in arguments)]


class RunStarter:
    """Starts processes for the runs of one folder; waits for none of them once ``is_ending``. Threads may share it."""

    def __init__(self, runs_dir: Path, roles: Path | None, is_ending: Callable[[], bool]) -> None:
        self._runs_dir = runs_dir
        self._roles = roles
        self._is_ending = is_ending
        self._lock = threading.Lock()  # waits: for memory only
        self._children: list[subprocess.Popen[bytes]] = []

    def start(self, wanted: NewRun) -> str:
        """Start a run and wait until it is recorded; returns its id.

        Raises `RunNotStarted` with the output of its process, `UsageError` for too many at once, `StorageError`.
        """
        run_id = new_run_id()
        roles = [f"--roles={self._roles}"] if self._roles else []
        folder = RunFolder(make_runs_folder(self._runs_dir) / run_id)
        arguments = ["run", *wanted.arguments(), *roles, f"--run-id={run_id}"]
        self._begin(folder, arguments, lambda child: folder.record_path.exists(), wanted.workspace, wanted.goal)
        return run_id

    def fork(self, folder: RunFolder, point: str) -> str:
        """Start a new run from a visit of a step of another; returns its id. Raises what `start` raises."""
        fork = RunFolder(folder.path.parent / new_run_id())
        arguments = ["fork", folder.run_id, f"--from={point}", f"--run-id={fork.run_id}"]
        workspace = str(folder.record().get("workspace", ""))
        self._begin(fork, arguments, lambda child: fork.record_path.exists(), workspace)
        return fork.run_id

    def resume(self, folder: RunFolder, limits: Mapping[str, str] | None = None) -> None:
        """Resume a run, with other ``limits``, by option. Raises what `start` raises."""
        arguments = ["resume", folder.run_id, *(f"--{name}={value}" for name, value in (limits or {}).items())]
        workspace = str(folder.record().get("workspace", ""))
        self._begin(folder, arguments, lambda child: read_owner(folder).get("pid") == child.pid, workspace)

    def reap(self) -> int:
        """Forget the processes that have ended; returns how many are left."""
        with self._lock:
            self._children = [child for child in self._children if child.poll() is None]
            return len(self._children)

    def _begin(
        self,
        folder: RunFolder,
        arguments: list[str],
        has_begun: Callable[[subprocess.Popen[bytes]], bool],
        workspace: str,
        text: str = "",
    ) -> None:
        if self.reap() >= MOST_AT_ONCE:
            raise UsageError(f"{MOST_AT_ONCE} runs started here are still running", "Wait for one to end.")
        exclude_from_path(expanded(workspace))
        runs_dir = folder.path.parent
        log_path = make_folder(runs_dir / STARTING) / f"{folder.run_id}.{secrets.token_hex(4)}.log"
        child = self._spawn([*arguments, f"--runs-dir={runs_dir}", "--await-answers", "--quiet"], log_path, text)
        end = time.monotonic() + BEGIN_SECONDS
        while not (begun := has_begun(child)) and child.poll() is None:
            if time.monotonic() > end or self._is_ending():
                message = "The run has not started yet"
                raise RunNotStarted(message, f"Process {child.pid} is still running; its output is in {log_path}.")
            time.sleep(LOOK_SECONDS)
        if begun or has_begun(child) or child.returncode in ENDINGS:
            with suppress(OSError):
                log_path.replace(folder.path / OUTPUT)
            return
        wrong_usage = child.returncode == ExitCode.WRONG_USAGE  # then the output says it all
        ended = "" if wrong_usage else f"Exit code {exit_in_words(child.returncode, 'the process was killed')}."
        printed = last_output(log_path).strip()
        log_path.unlink(missing_ok=True)
        raise RunNotStarted(printed, ended)

    def _spawn(self, arguments: list[str], log_path: Path, text: str) -> subprocess.Popen[bytes]:
        environment = {name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE}
        command = own_module("codex_multi_role", *arguments)
        try:
            child = start(command, Lifetime.OUTLIVES_US, text, log_path, environment)
        except CodexMultiRoleError:
            log_path.unlink(missing_ok=True)
            raise
        with self._lock:
            self._children.append(child)
        return child


if TYPE_CHECKING:
    from codex_multi_role.catalog import FlowEntry, FlowSpec, InputSpec

PREFIX = "input."
MORE = ("model", "max_turns", "max_tokens", "max_cost", "max_seconds")
SWITCHES = ("worktree", "run_tests")
"""Options beside the goal, the cycles, the workspace and the playbook; switches are on or off."""
YAML_TYPES = ("list", "mapping")
NUMBERS = ("integer", "number")


@dataclass(frozen=True)
class StartableFlows:
    """``whole``: meant to be started. ``parts``: internal to others. ``broken``: unreadable."""

    whole: list[FlowEntry]
    parts: list[FlowEntry]
    broken: list[FlowEntry]

    def find(self, name: str) -> FlowSpec | None:
        return next((each.flow for each in (*self.whole, *self.parts) if each.name == name), None)


@dataclass(frozen=True)
class Field:
    """One input. ``kind``: of the form field. ``value``: as sent before, otherwise the default."""

    name: str
    kind: str
    value: str
    required: bool
    help: str
    choices: tuple[str, ...] = ()
    minimum: str = ""
    maximum: str = ""
    step: str = ""


@dataclass(frozen=True)
class FlowForm:
    """The form of one flow; ``goal`` to ``more``: as sent before, otherwise the defaults."""

    flow: FlowSpec
    fields: list[Field]
    playbooks: list[str]
    goal: str = ""
    cycles: str = ""
    workspace: str = ""
    playbook: str = ""
    more: Form = field(default_factory=dict)


def read_flows(roles: Path | None) -> StartableFlows:
    """Read the flows of the roles folder and the shipped ones."""
    entries = list_flows(roles_folder(roles))
    whole = [each for each in entries if each.flow and not each.is_internal]
    return StartableFlows(
        whole=sorted(whole, key=lambda each: (each.name != "cycles", each.name)),
        parts=[each for each in entries if each.is_internal],
        broken=[each for each in entries if not each.flow],
    )


def form_of(flow: FlowSpec, playbooks: list[str], sent: Form | None = None) -> FlowForm:
    """Build the form, empty or as it was ``sent``."""
    sent = sent or {}
    return FlowForm(
        flow=flow,
        fields=[_field(name, spec, sent) for name, spec in flow.inputs.items()],
        playbooks=playbooks,
        goal=sent.get("goal", ""),
        cycles=sent.get("cycles", str(RunOptions.cycles)),
        workspace=sent.get("workspace", str(Path.cwd())),
        playbook=sent.get("playbook", ""),
        more={name: sent.get(name, "") for name in MORE}
        | {name: sent.get(name, "" if "goal" in sent else _text(OPTIONS[name].default)) for name in SWITCHES},
    )


def as_sent(record: Mapping[str, Any]) -> Form:
    """The form that would start the run of ``record`` again. Texts of a run from elsewhere are only filled in."""
    options = record.get("options") or {}
    names = ("goal", "cycles", "workspace", "playbook", *MORE, *SWITCHES)
    inputs = {f"{PREFIX}{name}": _text(value) for name, value in (record.get("inputs") or {}).items()}
    return {"goal": "", **{name: _text(options.get(name)) for name in names}, **inputs}


def worst_case_of(form: FlowForm, roles: Path | None) -> str:
    """The worst case of what the form starts, in words, or what is wrong with it."""
    inputs = {each.name: each.value for each in form.fields if each.value}
    try:
        more = {name: typed(name, value) for name, value in _options(form).items()}
        more |= {"cycles": typed("cycles", form.cycles or str(RunOptions.cycles))}
        flows, catalog = load_flow_and_called(form.flow.name, load_catalog(roles))
        return worst_case_words(flows, form.flow.name, catalog, RunOptions(inputs=inputs, **more))
    except CodexMultiRoleError as error:
        return str(error)


def requested_run(form: FlowForm) -> NewRun:
    """Convert what was sent to a run; inputs left empty get the flow's defaults.

    Raises `UsageError` for an unknown playbook: whoever names one does not want the model, which costs money.
    """
    if form.playbook and form.playbook not in form.playbooks:
        raise UsageError(f"unknown playbook {form.playbook}", "Choose one from the list.")
    inputs = {each.name: each.value for each in form.fields if each.value}
    goal, cycles, workspace = form.goal.strip(), form.cycles.strip(), form.workspace.strip()
    options = _options(form)
    return NewRun(form.flow.name, goal, cycles, workspace, form.playbook, options, inputs)


def _options(form: FlowForm) -> dict[str, str | bool]:
    """The options beside those of every form that were filled in, or switched from their default."""
    texts: dict[str, str | bool] = {name: form.more[name].strip() for name in MORE if form.more[name].strip()}
    switched = {name: form.more[name] == "true" for name in SWITCHES}
    return texts | {name: on for name, on in switched.items() if on != OPTIONS[name].default}


def typed(name: str, value: str | bool) -> Any:  # noqa: ANN401 - as the option wants it
    """The value of an option as it was typed. Raises `UsageError` that names the option."""
    with suppress(ValueError):
        return OPTIONS[name].checked(value if isinstance(value, bool) else OPTIONS[name].kind(value))
    return OPTIONS[name].checked(value)


def _field(name: str, spec: InputSpec, sent: Form) -> Field:
    kind = "choice" if spec.choices else "yaml" if spec.type in YAML_TYPES else spec.type
    value = _text(spec.default)
    if sent:
        value = sent.get(f"{PREFIX}{name}", "false" if kind == "boolean" else "")
    return Field(
        name=name,
        kind="number" if kind in NUMBERS else kind,
        value=value,
        required=spec.required,
        help="; ".join(filter(None, (spec.description, spec.wanted if not spec.choices else ""))),
        choices=tuple(map(_text, spec.choices)),
        minimum=_text(spec.minimum),
        maximum=_text(spec.maximum),
        step="1" if spec.type == "integer" else "any",
    )


def _text(value: object) -> str:
    """Convert to what would be typed after ``--input``."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else as_typed(value)
