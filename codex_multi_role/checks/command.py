"""The check ``command``: run any program on the workspace; report its exit code, its output and its JSON."""

from __future__ import annotations

import os
import shlex
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, field_validator
from pydantic_core import PydanticCustomError

from codex_multi_role.checks.contract import CheckContext, CheckOptions, CheckResult, at_most_own, declare_check
from codex_multi_role.checks.data_file import parse_json
from codex_multi_role.checks.interpreter import OWN
from codex_multi_role.checks.process_of_tests import interpreter_of
from codex_multi_role.checks.scratch_folders import scratch_folder
from codex_multi_role.errors import UsageError
from codex_multi_role.host.redaction import without_secrets
from codex_multi_role.workspace import CommandResult, PathRefused, Workspace, run_command

MAX_STDOUT_CHARACTERS = 20_000
MAX_STDERR_CHARACTERS = 4_000
MAX_ARGUMENT_BYTES = 128 * 1024 - 1
"""Of one argument, on Linux."""
_GAP_CHARACTERS = 50

Status = Literal["ok", "failed", "timed out", "could not run"]
VariableName = Annotated[str, StringConstraints(pattern=r"^[^=\x00]+$")]
VariableValue = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]


class CommandOptions(CheckOptions):
    """``json``: parse standard output as JSON if possible (``auto``), require it (``true``), or do not (``false``).

    ``environment`` is added to the run's own, which reaches the program without secrets. ``expect`` lists the exit
    codes of success; a signal's is negative, or 128 more than its number in the sandbox. ``sandbox: false`` runs
    outside it.
    """

    argv: list[str] = Field(min_length=1, description="a list of strings, the program first: [git, status]")
    cwd: str = Field(default=".", description="a folder of the workspace, relative to it")
    timeout_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False, description="a number of seconds")
    environment: dict[VariableName, VariableValue] = Field(default={}, description="names and values: {LANG: C}")
    sandbox: bool = Field(default=True, description="true, or false to run outside Codex's sandbox")
    json_: Literal[True, False, "auto"] = Field(default="auto", alias="json", description="true, false or auto")
    expect: list[int] = Field(default=[0], min_length=1, description="a list of exit codes: [0, 1]")

    @field_validator("argv", mode="before")
    @classmethod
    def _refuse_a_command_line(cls, argv: object) -> object:
        if isinstance(argv, str):
            raise PydanticCustomError("list_type", "must be a list of strings, because there is no shell")
        return argv

    @field_validator("argv")
    @classmethod
    def _refuse_a_long_argument(cls, argv: list[str]) -> list[str]:
        for index, argument in enumerate(argv):
            if (size := len(argument.encode(errors="surrogatepass"))) > MAX_ARGUMENT_BYTES:
                raise ValueError(f"argument {index} has {size} bytes, programs get at most {MAX_ARGUMENT_BYTES}")
        return argv


class ProgramResult(CheckResult):
    """``stdout`` has at most 20,000 characters, its middle left out if ``truncated``; ``stderr`` has the last 4,000.

    ``json``: the whole standard output as JSON, or null. ``exit_code`` is null if the program has none.
    """

    bad = ("failed", "timed out")

    status: Status
    reason: str
    exit_code: int | None
    stdout: str
    truncated: bool
    stderr: str
    output_path: str
    json_: Any = Field(alias="json")
    seconds: float
    command: str
    sandbox: bool


@declare_check(options=CommandOptions, result=ProgramResult, max_seconds=at_most_own, undo_interrupted=True)
def run_argv(context: CheckContext) -> ProgramResult:
    """Run ``argv`` without input; write ``output.txt``, ``stderr.txt`` (both at most 2 MiB) and ``result.json``.

    Options: `CommandOptions`; ``timeout_seconds`` cannot exceed the context's deadline. Raises UsageError for a wrong
    option, StorageError when the artifacts cannot be written, RunInterrupted.
    """
    options = context.read_options(CommandOptions, "command")
    folder = _folder(context.workspace, options.cwd)
    with scratch_folder(context.workspace) as scratch:
        environment = {**_environment(context, options), "TMPDIR": str(scratch), **options.environment}
        if problem := _missing(folder, options, environment):
            return _record(context, options, ("could not run", problem))
        try:
            ran = _run(context, options, folder, environment, scratch)
        except UsageError as error:
            return _record(context, options, ("could not run", str(error)))
    data, problem = _data(ran.output, options)
    return _record(context, options, judge(ran, options, problem), ran, data)


def judge(ran: CommandResult, options: CommandOptions, problem: str) -> tuple[Status, str]:
    """The status and its reason (``""`` if ``ok``); ``problem`` is what is wrong with the JSON."""
    if ran.timed_out:
        return "timed out", f"no result after {ran.seconds:.1f} s"
    if ran.not_sandboxed:
        return "could not run", f"its sandbox did not start: {ran.errors.strip()}"
    if ran.returncode not in options.expect:
        return "failed", f"exit code {ran.returncode}"
    if problem and options.json_ is True:
        return "failed", f"standard output is not JSON: {problem}"
    return "ok", ""


def _folder(workspace: Workspace, cwd: str) -> Path:
    """The real path of ``cwd``, checked by resolving a new file in it. Raises UsageError."""
    try:
        return workspace.resolve_inside(f"{cwd.rstrip('/')}/{uuid.uuid4().hex}").parent
    except PathRefused as error:
        hint = "Name a folder of the workspace, relative to it."
        raise UsageError(f"check command: cwd: {error.reason} {cwd!r}", hint) from error


def _environment(context: CheckContext, options: CommandOptions) -> dict[str, str]:
    """Activate the project's Python in the sandbox only: outside, no program may come from where models write."""
    environment = without_secrets(context.environment)
    python = interpreter_of(context) if context.python and options.sandbox else None
    return python.activate(environment) if python and python.source != OWN else environment


def _missing(folder: Path, options: CommandOptions, environment: Mapping[str, str]) -> str:
    """What is missing to run it, or ``""``. A sandbox does not clearly tell a missing program from a failing one."""
    if not folder.is_dir():
        return f"folder {options.cwd} does not exist"
    program = options.argv[0]
    places = environment.get("PATH", os.defpath).split(os.pathsep)
    search = os.pathsep.join(str(folder / place) for place in places)
    found = shutil.which(str(folder / program) if "/" in program else program, path=search)
    return "" if found else f"program not found: {program}"


def _run(
    context: CheckContext, options: CommandOptions, folder: Path, environment: Mapping[str, str], scratch: Path
) -> CommandResult:
    argv, cwd = options.argv, folder
    if options.sandbox:
        # Only the folder that the sandbox starts in is writable: start in the workspace, change the folder inside.
        root = context.workspace.root
        inner = argv if folder == root else ["/bin/sh", "-c", 'cd "$0" && exec "$@"', str(folder), *argv]
        argv, cwd = context.sandbox(inner, scratch), root
    seconds = at_most_own(context.options, context.deadline_seconds)
    return run_command(argv, cwd, environment, seconds, stopping=context.stopping, separate_errors=True)


def _data(output: str, options: CommandOptions) -> tuple[object, str]:
    """The JSON in ``output``, or None and the reason."""
    if options.json_ is False:
        return None, ""
    try:
        return parse_json(output), ""
    except ValueError as error:
        return None, str(error)


def _record(
    context: CheckContext,
    options: CommandOptions,
    verdict: tuple[Status, str],
    ran: CommandResult | None = None,
    data: object = None,
) -> ProgramResult:
    output, errors = (ran.output, ran.errors) if ran else ("", "")
    context.write_artifact("stderr.txt", errors)
    return ProgramResult(
        status=verdict[0],
        reason=verdict[1],
        exit_code=ran.returncode if ran else None,
        stdout=_shortened(output),
        truncated=len(output) > MAX_STDOUT_CHARACTERS or bool(ran and ran.truncated),
        stderr=errors[-MAX_STDERR_CHARACTERS:],
        output_path=str(context.write_artifact("output.txt", output)),
        json=data,
        seconds=ran.seconds if ran else 0.0,
        command=shlex.join(options.argv),
        sandbox=options.sandbox,
    )


def _shortened(text: str) -> str:
    if len(text) <= MAX_STDOUT_CHARACTERS:
        return text
    half = (MAX_STDOUT_CHARACTERS - _GAP_CHARACTERS) // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"
