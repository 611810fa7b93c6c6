"""The layout of ``runs/<id>/``: where everything about a run is stored, and how a run is found again.

run.json  controller_state.json  events.jsonl  states.json  catalog/  journal.sqlite  owner.json
<role>/events.jsonl  <role>/stderr.log  <role>/turn_<nnn>/…   (see turn_folder.py)
tests/<nnn>/…                                                 (see the check ``tests``)
items/<unit>.json                                             (see items.py)
cancelled/<unit>.json                                         (see items.py)
reviews/<key>.json                                            (see questions.py)
inherited_events.jsonl                                        (of a fork; see past.py)
.codex/<role>/      the role's own CODEX_HOME, when no user login is needed
.snapshots/         the workspace's states, a private bare git repository

Beside the runs: ``latest``, a link to the newest.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property, partial
from heapq import nlargest
from pathlib import Path
from typing import Any

from codex_multi_role.errors import ExitCode, RunNotFound, StorageError, UsageError
from codex_multi_role.host.atomic import make_folder, storage_errors, write_json, write_text
from codex_multi_role.host.redaction import Redactor
from codex_multi_role.host.spelling import as_on_disk, require_utf8
from codex_multi_role.reading.json_files import read_object
from codex_multi_role.reading.nearest import did_you_mean
from codex_multi_role.reading.registry import Registry
from codex_multi_role.run_options import RunPlace

PROGRAM = "codex-multi-role"
RUN_ID = re.compile(r"(?!latest$)[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
LATEST = "latest"
MAX_OTHERS = 20
"""How many other runs are looked at."""
MOST_AT_ONCE = 1000
MAX_RUNS_PATH_BYTES = 300
"""SQLite opens no path of more than 512 bytes, and those of Codex's databases in a run folder have up to 200 more."""
JOURNAL = "journal.sqlite"
RECORDING = "recording.ndjson"
"""The run's copy, in its ``catalog/``, of the recording that it replays."""
RELOADED = "reloaded_"
"""Name prefix of the folders in ``catalog/`` that hold the roles of a run after somebody edited them."""
SHARED = "shared"
"""The key of ``run.json`` in a copy of the folder of a run elsewhere: what is only known there."""
PLACES: Registry[Any] = Registry("place of runs", "codex_multi_role.runs", {})
"""The finders of `run_additions`, whose ``arguments`` name the place of a run from what it has under `SHARED`."""
ROLE_PREFIX = "role-"
OWN_NAMES = frozenset(
    {
        *("run.json", "controller_state.json", "states.json", "owner.json", "stop.json", "replay.json", "answer.md"),
        *("output.log", "events.jsonl", "inherited_events.jsonl", "report.html", "latest", "catalog", "baseline"),
        *("tests", "checks", "reviews", "items", "given_items", "cancelled", "worktrees"),
        *("replay", "applied", "exported"),
    }
)
"""What the folder of a run has itself, beside files of `JOURNAL`. A role of such a name has another folder."""
_OF_A_RUN = re.compile(rf"(?<={PROGRAM} )([a-z-]+) RUN(?:=([\w.-]+))?(?=[ `]|$)")
RECORD_SCHEMA = 1
"""The number in ``run.json`` that a version raises if an earlier one cannot continue its runs."""
RECORD_TYPES = {
    "schema": int,
    **dict.fromkeys(("goal", "flow", "outcome", "workspace", "catalog_file"), str),
    **dict.fromkeys(("inputs", "options"), dict),
}
FOR_READING = ("goal", "inputs", "reason", "suggestion")


class RunFolder:
    """The folder of one run. Texts for people are stored without the secrets of ``environment``."""

    def __init__(self, path: Path, environment: Mapping[str, str] = os.environ) -> None:
        self.path = path
        self._environment = environment
        self.run_id = path.name
        self.record_path = path / "run.json"
        self.state_path = path / "controller_state.json"
        self.events_path = path / "events.jsonl"
        self.inherited_events_path = path / "inherited_events.jsonl"
        self.owner_path = path / "owner.json"
        self.journal_path = path / JOURNAL
        self.report_path = path / "report.html"
        self.catalog_path = path / "catalog"
        self.snapshots_path = path / ".snapshots"
        self.worktrees_path = path / "worktrees"

    @cached_property
    def redact(self) -> Redactor:
        return Redactor(self._environment)

    @classmethod
    def create(cls, runs_dir: Path, run_id: str | None = None) -> RunFolder:
        """Create a new run's folder. Raises `UsageError`, `StorageError`."""
        run_id = run_id or new_run_id()
        if not RUN_ID.fullmatch(run_id):
            raise UsageError(
                f"'{run_id}' cannot be a run id", "Use letters, digits, '_', '-' and '.', and not 'latest'."
            )
        path = make_runs_folder(runs_dir) / run_id
        with storage_errors(path):
            try:
                path.mkdir(mode=0o700)  # some of its files are stored exactly, secrets included
            except FileExistsError:
                raise UsageError(
                    f"run {run_id} already exists in {runs_dir}",
                    f"`{cls(path).command('show')}` shows it; another --run-id starts a new run.",
                ) from None
        return cls(path)

    @classmethod
    def find(cls, runs_dir: Path | str, reference: str) -> RunFolder:
        """The run named by ``reference`` (an id, a unique prefix, or ``latest``). Raises `RunNotFound`."""
        runs_dir = Path(runs_dir)
        names = [path.name for path in _recorded(runs_dir)]
        wanted = _latest(runs_dir, names) if reference == LATEST else reference
        matches = [name for name in names if name == wanted]
        if not matches and reference not in (LATEST, ""):
            matches = [name for name in names if name.startswith(reference)]
        if len(matches) != 1:
            raise _not_found(runs_dir, reference, names, len(matches))
        return cls(as_on_disk(runs_dir) / matches[0])

    def _point_latest(self) -> None:
        link = self.path.parent / LATEST
        temporary = self.path.parent / f".latest.{secrets.token_hex(4)}"
        with suppress(OSError):  # a file system without links, or a folder in its place: it is found by its time
            temporary.symlink_to(self.run_id)
            temporary.replace(link)
        temporary.unlink(missing_ok=True)

    def role_path(self, instance: str) -> Path:
        """The folder of a role's process: ``<role>``, or ``role-<role>`` if the run has such a folder itself."""
        plain = self.path / instance
        is_own = _is_taken(instance) and not (plain / "stderr.log").exists()  # of a run from before the name was taken
        return self.path / f"{ROLE_PREFIX}{instance}" if is_own else plain

    def role_folder(self, instance: str) -> Path:
        return make_folder(self.role_path(instance))

    def codex_home(self, role: str) -> Path:
        """The role's own CODEX_HOME: it has the thread, so it is kept as long as the run."""
        return make_folder(self.path / ".codex" / role)

    @property
    def baseline_path(self) -> Path:
        """The result of the tests before the first turn."""
        return self.path / "baseline"

    def new_tests_folder(self) -> Path:
        """Create the next ``tests/<nnn>``; its name is the number."""
        return new_numbered(make_folder(self.path / "tests"), "")

    def command(self, verb: str, *words: str) -> str:
        """The command ``verb`` for this run."""
        return self.complete(shlex.join([PROGRAM, verb, "RUN", *words]))

    def complete(self, text: str) -> str:
        """Complete the commands in a text of this run: they have ``RUN``, or ``RUN=ID`` for another run beside it."""
        shared = read_object(self.record_path).get(SHARED) if " RUN" in text else None
        place = [word for each in PLACES.that_load() for word in each.arguments(shared)] if shared else []
        where = command_line(runs_dir=self.path.parent, place=place).removeprefix(PROGRAM)
        return _OF_A_RUN.sub(lambda found: f"{found[1]} {found[2] or self.run_id}{where}", text)

    def others(self) -> list[Path]:
        """The folders of the latest runs beside this one, the latest first."""
        others = [each.parent for each in self.path.parent.glob("*/run.json") if each.parent != self.path]
        return nlargest(MAX_OTHERS, others, key=lambda folder: folder.stat().st_mtime)

    def record(self) -> dict[str, Any]:
        """``run.json``. Raises `RunNotFound` if it cannot be read, also when a key is used that is missing."""
        try:
            record = json.loads(
                self.record_path.read_text(encoding="utf-8"), object_hook=partial(_Object, self.record_path)
            )
        except (OSError, ValueError, RecursionError) as error:
            raise _unreadable(self.record_path, error) from error
        if not isinstance(record, _Object):
            raise _unreadable(self.record_path, "not an object")
        for key, kind in RECORD_TYPES.items():
            if not isinstance(record.get(key, kind()), kind):
                raise _unreadable(self.record_path, f'"{key}" has a value of the wrong type')
        if record.get("schema", RECORD_SCHEMA) > RECORD_SCHEMA:
            raise _unreadable(self.record_path, "it is of a later version", f"Use {_writer(record)} or later.")
        return record

    def write_record(self, record: Mapping[str, Any]) -> None:
        """Write ``run.json``; the first record makes the run ``latest``. Raises `StorageError`.

        Its ``options`` are stored as they are, because a resume repeats them.
        """
        first = not self.record_path.exists()
        redacted = {name: self.redact.within(record[name]) for name in FOR_READING if name in record}
        write_json(self.record_path, {**record, **redacted})
        if first:
            self._point_latest()


def _is_taken(name: str) -> bool:
    """Whether a folder of that name is the run's own, or that of a role with such a name."""
    rest = re.sub(rf"^({ROLE_PREFIX})*", "", name.casefold())
    return rest in OWN_NAMES or rest.startswith(JOURNAL)


def instance_in(folder: str) -> str:
    """Whose folder it is: the inverse of `RunFolder.role_path`."""
    inner = folder.removeprefix(ROLE_PREFIX)
    return inner if inner != folder and _is_taken(inner) else folder


def command_line(*words: str, runs_dir: Path | None = None, place: Sequence[str] = ()) -> str:
    """One command to paste into a shell. Its runs are in the ``place``, otherwise below ``runs_dir``."""
    is_elsewhere = runs_dir is not None and runs_dir.resolve() != RunPlace.runs_dir.resolve()
    where = ["--runs-dir", str(runs_dir)] if is_elsewhere else []
    return shlex.join([PROGRAM, *words, *(place or where)])


class _Object(dict[str, Any]):
    """An object in the ``run.json`` ``path``."""

    def __init__(self, path: Path, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self._path = path

    def __missing__(self, key: str) -> Any:  # noqa: ANN401 - as of any key
        raise _unreadable(self._path, f'the key "{key}" is missing')


RESTORE = "The other files of the run are next to it: restore run.json from a copy, or start another run."


def _writer(record: Mapping[str, Any]) -> str:
    """The program that wrote this ``run.json``, with its version."""
    versions = record.get("versions")
    version = versions.get("codex_multi_role", "") if isinstance(versions, Mapping) else ""
    return f"{PROGRAM} {version}".strip()


def _unreadable(path: Path, reason: object, hint: str = RESTORE) -> RunNotFound:
    return RunNotFound(f"{path} cannot be read: {reason}", hint)


def has_reached_end(record: Mapping[str, Any]) -> bool:
    """Whether the flow of the run with this ``run.json`` ended by itself."""
    code = ExitCode.find(record.get("exit_code"))
    return code is not None and not code.is_resumable


def takes_over(record: Mapping[str, Any]) -> bool:
    """Whether the run with this ``run.json`` begins with turns of another: an extension says so in ``forked_from``."""
    return not {*(record.get("forked_from") or ())} <= {"run_id", "step", "visit", "task"}


def new_run_id() -> str:
    """The current time and a random part."""
    return f"{datetime.now():%Y%m%d_%H%M%S}_{secrets.token_hex(4)}"


def make_runs_folder(runs_dir: Path) -> Path:
    """The real path of ``runs_dir``, created if missing; an empty one is excluded from git.

    Raises `UsageError` if no database could be opened there, `StorageError`.
    """
    path = require_utf8(as_on_disk(runs_dir))
    if (size := len(os.fsencode(path))) > MAX_RUNS_PATH_BYTES:
        problem = f"the path of the runs folder has {size:,} bytes, at most {MAX_RUNS_PATH_BYTES} are possible"
        raise UsageError(f"{problem}: {path}", "Name another folder with --runs-dir.")
    make_folder(path)
    with storage_errors(path):
        if not any(path.iterdir()):  # a folder with anything in it may not be ours alone
            write_text(path / ".gitignore", "*\n")
    return path


def new_numbered(parent: Path, prefix: str) -> Path:
    """Create ``<parent>/<prefix><nnn>`` with the number after the highest one; never returns an existing folder."""
    with storage_errors(parent):
        highest = max((number_of(path, prefix) for path in parent.iterdir()), default=0)
        for number in range(highest + 1, highest + 1 + MOST_AT_ONCE):
            path = parent / f"{prefix}{number:03d}"
            with suppress(FileExistsError):  # another thread was faster
                path.mkdir()
                return path
    raise StorageError(f"cannot write {parent}: no number is free")


def number_of(path: Path, prefix: str) -> int:
    """``<nnn>`` of ``<prefix><nnn>``; 0 for any other name."""
    digits = path.name.removeprefix(prefix)
    return int(digits) if path.name.startswith(prefix) and digits.isdecimal() else 0


def list_runs(runs_dir: Path) -> list[RunFolder]:
    """All runs below ``runs_dir``, oldest first (by the time in ``run.json``)."""
    return sorted(map(RunFolder, _recorded(runs_dir)), key=lambda folder: (_started_at(folder), folder.run_id))


def _latest(runs_dir: Path, names: Iterable[str]) -> str:
    """The name that the link has. Copies may lack the link, or have one that leads elsewhere: then the newest run."""
    target = (runs_dir / LATEST).resolve()
    if target.name in names or (target.name != LATEST and target.is_dir() and target.parent == runs_dir.resolve()):
        return target.name  # of the folder alone, if its run.json is lost: no other run is meant
    return next((folder.run_id for folder in reversed(list_runs(runs_dir))), "")


def _recorded(runs_dir: Path) -> Iterable[Path]:
    folders = (path.parent for path in runs_dir.glob("*/run.json"))
    return (path for path in folders if RUN_ID.fullmatch(path.name) and not path.is_symlink())


def _started_at(folder: RunFolder) -> str:
    with suppress(RunNotFound):
        return str(folder.record().get("started_at", ""))
    return ""


def _not_found(runs_dir: Path, reference: str, names: list[str], matches: int) -> RunNotFound:
    hint = f"`{command_line('runs', runs_dir=runs_dir)}` lists them."
    if matches:
        return RunNotFound(f"{matches} runs begin with '{reference}' in {runs_dir}", hint)
    if reference != LATEST and RUN_ID.fullmatch(reference) and (runs_dir / reference).is_dir():
        return RunNotFound(
            f"run {reference} in {runs_dir} has no run.json",
            f"A run killed while it started leaves such a folder: see {runs_dir / reference}. Start another run.",
        )
    if not names:
        hint = 'Start one with `codex-multi-role "the goal"`, or name another folder with --runs-dir.'
        return RunNotFound(f"there are no runs in {runs_dir.absolute()}", hint)
    nearest = did_you_mean(reference, names if reference == LATEST else [*names, LATEST])
    return RunNotFound(f'no run "{reference}" in {runs_dir}{nearest}', hint)
