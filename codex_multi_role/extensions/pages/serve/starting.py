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
from codex_multi_role.extensions.pages.serve.forms import LABELS, Field, Form, in_form_words
from codex_multi_role.host.atomic import make_folder
from codex_multi_role.host.own_python import Lifetime, last_output, own_module, start
from codex_multi_role.host.programs import exclude_from_path
from codex_multi_role.host.user_cache import expanded
from codex_multi_role.lifecycle.team_loading import load_catalog, load_flow_and_called, roles_folder
from codex_multi_role.option import as_typed
from codex_multi_role.playbook import playbook_names
from codex_multi_role.presentation.outcome import exit_in_words, status_in_words
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.folder import make_runs_folder, new_run_id
from codex_multi_role.run_folder.owner import read_owner
from codex_multi_role.run_options import LIMITS, OPTIONS, RunOptions

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
    """What a form describes. ``options`` and ``inputs``: only those that were filled in, or switched."""

    flow: str
    goal: str = ""
    options: Mapping[str, str | bool] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)

    def arguments(self) -> list[str]:
        """Return the arguments of ``run``, which reads the goal from stdin: it may be too long for an argument.

        An option and its value are one argument, so that a value may begin with a dash.
        """
        named = {"flow": self.flow, "inputs": self.inputs, **self.options}
        given = (each for name, value in named.items() for each in OPTIONS[name].arguments(value))
        return [*(["--goal-file=-"] if self.goal else []), *map("=".join, given)]


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
        workspace = str(wanted.options.get("workspace", ""))
        self._begin(folder, arguments, lambda child: folder.record_path.exists(), workspace, wanted.goal)
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
OFFERED = ("workspace", "cycles", "playbook", "model", *LIMITS.values(), "worktree", "run_tests")
"""The options that every form has, in this order."""
ADDED_HELP = {"workspace": " It is on the server's machine.", "cycles": " Flows without cycles ignore it."}
KINDS: Mapping[type, str] = {bool: "boolean", int: "integer", float: "number", Path: "path", str: "string"}
YAML_TYPES = ("list", "mapping")


@dataclass(frozen=True)
class StartableFlows:
    """``whole``: meant to be started. ``parts``: internal to others. ``broken``: unreadable."""

    whole: list[FlowEntry]
    parts: list[FlowEntry]
    broken: list[FlowEntry]

    def find(self, name: str) -> FlowSpec | None:
        return next((each.flow for each in (*self.whole, *self.parts) if each.name == name), None)


@dataclass(frozen=True)
class FlowForm:
    """The form of one flow; its fields have what was sent before, otherwise the defaults."""

    flow: FlowSpec
    goal: Field
    inputs: list[Field]
    options: list[Field]

    def run(self) -> NewRun:
        """The run that it describes, without what was left empty or is switched as by default.

        Raises `UsageError` for an unknown playbook: whoever names one does not want the model, which costs money.
        """
        for each in self.options:
            if each.choices and each.value not in each.choices:
                raise UsageError(f"unknown {each.name} {each.value}", "Choose one from the list.")
        given = {
            each.name: each.value == "true" if each.kind == "boolean" else each.value.strip() for each in self.options
        }
        options = {name: value for name, value in given.items() if value not in ("", OPTIONS[name].default)}
        inputs = {each.name.removeprefix(PREFIX): each.value for each in self.inputs if each.value}
        return NewRun(self.flow.name, self.goal.value.strip(), options, inputs)


def read_flows(roles: Path | None) -> StartableFlows:
    """Read the flows of the roles folder and the shipped ones."""
    entries = list_flows(roles_folder(roles))
    whole = [each for each in entries if each.flow and not each.is_internal]
    return StartableFlows(
        whole=sorted(whole, key=lambda each: (each.name != "cycles", each.name)),
        parts=[each for each in entries if each.is_internal],
        broken=[each for each in entries if not each.flow],
    )


def form_of(flow: FlowSpec, roles: Path | None, sent: Form) -> FlowForm:
    """Build the form, with the defaults unless one was ``sent``."""
    goal = flow.goal
    length = f", {goal.wanted} characters" if goal.wanted else ""
    help = f"The goal for the team{length}. "
    help += f"Default: {goal.default}" if goal.default else "Required unless the playbook sets it."
    playbooks = playbook_names(roles_folder(roles))
    least, most = _text(goal.min_length), _text(goal.max_length)
    return FlowForm(
        flow=flow,
        goal=Field("goal", LABELS["goal"], sent.get("goal", ""), "prose", help, minimum=least, maximum=most),
        inputs=[_input(name, spec, sent) for name, spec in flow.inputs.items()],
        options=[_option(name, playbooks, sent) for name in OFFERED],
    )


def as_sent(record: Mapping[str, Any]) -> Form:
    """The form that would start the run of ``record`` again. Texts of a run from elsewhere are only filled in."""
    options = record.get("options") or {}
    inputs = {f"{PREFIX}{name}": _text(value) for name, value in (record.get("inputs") or {}).items()}
    return {name: _text(options.get(name)) for name in ("goal", *OFFERED)} | inputs


def worst_case_of(form: FlowForm, roles: Path | None) -> str:
    """The worst case of what the form starts, in words, or what is wrong with it."""
    try:
        wanted = form.run()
        options = {name: typed(name, value) for name, value in wanted.options.items()}
        flows, catalog = load_flow_and_called(wanted.flow, load_catalog(roles))
        return worst_case_words(flows, wanted.flow, catalog, RunOptions(inputs=wanted.inputs, **options))
    except CodexMultiRoleError as error:
        return str(error)


def typed(name: str, value: str | bool) -> Any:  # noqa: ANN401 - as the option wants it
    """The value of an option as it was typed. Raises `UsageError` that names the option."""
    with suppress(ValueError):
        value = OPTIONS[name].kind(value)
    return OPTIONS[name].checked(value)


def _input(name: str, spec: InputSpec, sent: Form) -> Field:
    kind = "choice" if spec.choices else "code" if spec.type in YAML_TYPES else spec.type
    sent_as = f"{PREFIX}{name}"
    value = _value(sent_as, kind, spec.default, sent)
    wanted = {"choice": "", "code": "YAML, such as [a, b] or {a: 1}"}.get(kind, spec.wanted)
    choices = {} if spec.required or value else {"": ""}
    return Field(
        name=sent_as,
        label=status_in_words(name),
        value=value,
        kind=kind,
        help="; ".join(filter(None, (spec.description, wanted))),
        required=spec.required and kind != "boolean",
        choices=choices | {_text(each): _text(each) for each in spec.choices},
        minimum=_text(spec.minimum),
        maximum=_text(spec.maximum),
    )


def _option(name: str, playbooks: list[str], sent: Form) -> Field:
    option = OPTIONS[name]
    kind = "choice" if name == "playbook" else KINDS[option.kind]
    known = {"": "the model", **{each: f"the playbook {each} (no model is asked)" for each in playbooks}}
    return Field(
        name=name,
        label=LABELS[name.replace("_", "-")],
        value=_value(name, kind, str(Path.cwd()) if kind == "path" else option.default, sent),
        kind=kind,
        help=in_form_words(option.help) + ADDED_HELP.get(name, ""),
        required=kind != "boolean" and option.default is not None,
        choices=known if kind == "choice" else {},
        minimum=_text(option.range.minimum) if option.range else "",
    )


def _value(sent_as: str, kind: str, default: object, sent: Form) -> str:
    """What the form was sent with, if it was; a box that is not checked is not sent."""
    return sent.get(sent_as, "false" if kind == "boolean" else "") if sent else _text(default)


def _text(value: object) -> str:
    """Convert to what would be typed after ``--input``."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else as_typed(value)
