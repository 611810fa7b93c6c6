"""What a result of the tests depends on. If all of it is equal, an earlier result is taken over."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from codex_multi_role.checks import CheckContext
from codex_multi_role.checks.interpreter import Interpreter, starts_own_pytest
from codex_multi_role.errors import UsageError
from codex_multi_role.host.atomic import storage_errors, write_json
from codex_multi_role.host.redaction import without_secrets
from codex_multi_role.reading.json_files import read_object
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.steps.baseline import BESIDE_BASELINE, OF_BASELINE, UNJUDGED
from codex_multi_role.steps.protection import TOLD
from codex_multi_role.steps.resources import RunResources
from codex_multi_role.workspace.contents import TooMuchToCompare, note_installed
from codex_multi_role.workspace.hidden_files import TOO_MUCH, hidden_files

FILE = "conditions.json"
SAME_AS = "same_as"
"""In a test result: where it was taken from, such as ``baseline``, ``tests/002``, or these in another run."""
MAX_AGE_SECONDS = 24 * 3600.0
"""Tests may depend on the date."""
OF_SESSION = frozenset({"_", "SHLVL", "PWD", "OLDPWD", "CODEX_HOME", "CODEX_MULTI_ROLE_RUN"})
"""Variables that differ between terminals, or between runs."""


@dataclass(frozen=True)
class TestConditions:
    """``files``: the snapshot of the workspace; ``hidden``: what no snapshot has; ``installed``: the distributions.

    The others are digests as well, so that no secret is stored.
    """

    __test__ = False

    files: str
    hidden: str
    installed: str
    command: str
    python: str
    sandbox: str
    variables: str

    @classmethod
    def of(cls, run: RunResources, context: CheckContext) -> TestConditions | None:
        """Those of the tests in ``context``; None if they cannot be compared.

        Without the sandbox, tests can depend on anything, such as a service; and only pytest's own command surely uses
        the project's Python.
        """
        from codex_multi_role.checks.measured_process import interpreter_of  # here: after the processes started

        command = str(context.options.get("pytest_cmd") or "")
        sandbox = context.sandbox(["pytest"], Path("/scratch"))
        if sandbox == ["pytest"] or not (run.settings.changes_workspace and starts_own_pytest(command)):
            return None
        try:
            python = interpreter_of(context)
            files = run.snapshots.take()
            hidden, installed = hidden_files(run.snapshots, context.workspace), note_installed(python.roots)
        except (OSError, TooMuchToCompare, UsageError):
            return None
        variables = python.activate(without_secrets(context.environment))
        other = sorted((name, value) for name, value in variables.items() if name not in OF_SESSION)
        described = [command, _described(python), sandbox, other]
        digests = (_digest(each, run.services.folder.path) for each in described)
        return None if hidden == TOO_MUCH else cls(files, hidden, installed, *digests)

    def write(self, folder: Path) -> None:
        """Beside the result in ``folder``. Raises `StorageError`."""
        write_json(folder / FILE, {"at": time.time(), "conditions": asdict(self)})

    @classmethod
    def read(cls, folder: Path) -> TestConditions | None:
        """Those of the result in ``folder``; None if they are missing or too old."""
        stored = read_object(folder / FILE)
        try:
            return cls(**stored["conditions"]) if time.time() - stored["at"] < MAX_AGE_SECONDS else None
        except (KeyError, TypeError):
            return None

    def take_over(self, run: RunFolder, target: Path) -> Json | None:
        """The latest result under the same conditions, with its artifacts in ``target``; None without one.

        It is as its runner left it, not judged. Raises `StorageError`.
        """
        for source in _results(run):
            result = read_object(source / "result.json") if self.read(source) == self else {}
            if result and source != target and result["status"] not in UNJUDGED and TOLD not in result:
                _copy(source, target)
                left_out = {"number", *BESIDE_BASELINE, *OF_BASELINE}
                of_runner = {name: value for name, value in result.items() if name not in left_out}
                taken = {**of_runner, SAME_AS: result.get(SAME_AS) or _name(source, run)}
                write_json(target / "result.json", taken)
                return taken
        return None


def _results(run: RunFolder) -> Iterator[Path]:
    """The folders with results of the tests: of this run, then of others beside it, the latest first."""
    yield from _own_results(run.path)
    for other in run.others():
        yield from _own_results(other)


def _own_results(run: Path) -> Iterator[Path]:
    yield from sorted(run.glob("tests/*"), reverse=True)
    yield from sorted(run.glob("baseline/*"))  # of copies
    yield run / "baseline"


def _name(source: Path, run: RunFolder) -> str:
    return str(source.relative_to(run.path if source.is_relative_to(run.path) else run.path.parent))


def _copy(source: Path, target: Path) -> None:
    with storage_errors(target):
        target.mkdir(parents=True, exist_ok=True)
        for name in ("junit.xml", "pytest_output.txt", "pytest_rc.txt", FILE):
            if (source / name).exists():
                shutil.copyfile(source / name, target / name)


def _described(python: Interpreter) -> list[object]:
    return [str(python.path), python.version, python.path.resolve().stat().st_mtime_ns, platform.node()]


def _digest(value: object, run: Path) -> str:
    """Of JSON, the same for all runs."""
    text = json.dumps(value, sort_keys=True).replace(str(run), "<run>")
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
