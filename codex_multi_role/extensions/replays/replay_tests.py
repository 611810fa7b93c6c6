"""The regression tests of a team: replay every recording of a folder and compare the result with the recorded one.

``DIR/shop.ndjson`` is replayed in a copy of ``DIR/shop/`` or ``DIR/workspace/``, or else in an empty folder.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from codex_multi_role.api.run_goal import run
from codex_multi_role.codex.warm_home import user_store
from codex_multi_role.errors import CodexMultiRoleError, ExitCode, RunInterrupted, UsageError
from codex_multi_role.extensions.replays.comparison import DIFFS, kept_in
from codex_multi_role.extensions.replays.recording import Recording
from codex_multi_role.extensions.replays.run_outcome import suggested_options
from codex_multi_role.host.atomic import make_folder, storage_errors
from codex_multi_role.run_options import RunOptions
from codex_multi_role.workspace.occupation import occupied

ENDING = ".ndjson"
SAME, DIFFERS, ERROR = "as recorded", "differs", "error"
COMMON_WORKSPACE = "workspace"
LOCKED_SECONDS = 60.0
OF_THE_MACHINE = ("storage_failed", "codex_unavailable", "start_failed")
"""The outcomes of runs that this machine cut short."""


@dataclass(frozen=True)
class Replayed:
    """The result of one replay. ``status``: as recorded, differs, or error if it could not be replayed.

    ``notes``: the differences that a nearest match tolerated. ``diffs``: unified diffs of prompts, by file name.
    """

    name: str
    status: str
    differences: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    diffs: Mapping[str, str] = field(default_factory=dict)
    turns: int = 0
    seconds: float = 0.0

    @property
    def exit_code(self) -> ExitCode:
        codes = {SAME: ExitCode.GOAL_REACHED, DIFFERS: ExitCode.GOAL_NOT_REACHED}
        return codes.get(self.status, ExitCode.WRONG_USAGE)


def find_recordings(folder: Path) -> list[Path]:
    """The recordings in ``folder``, by name. Raises `UsageError` if the folder has none."""
    found = sorted(folder.glob(f"*{ENDING}"))
    if not found:
        raise UsageError(f"no recordings (*{ENDING}) in {folder}", "`run --record FILE` writes one.")
    return found


def replay_test(path: Path, options: Mapping[str, Any], keep: Path | None = None) -> Replayed:
    """Replay the recording ``path``. ``options`` (`RunOptions` fields) override its own.

    ``keep``: the folder that keeps the run and its workspace; by default nothing is kept. Raises `KeyboardInterrupt` if
    the run was interrupted; the returned value contains all other failures.
    """
    began = time.monotonic()
    try:
        recording = Recording.load(path)
        if recording.ended is None:
            raise UsageError(f"{path.name} was cut short: its run did not end", "Record it again.")
        with working_folder(path.stem, keep) as folder:
            result = _replayed(recording, options, folder)
    except CodexMultiRoleError as error:
        result = Replayed(path.name, ERROR, (" ".join(filter(None, [str(error), error.hint])),))
    return replace(result, seconds=round(time.monotonic() - began, 3))


def _replayed(recording: Recording, options: Mapping[str, Any], folder: Path) -> Replayed:
    # Under the recorded name: a flow may pass the name of the project to its roles.
    name = Path(str(recording.header.get("workspace_name"))).name or COMMON_WORKSPACE
    workspace = _copy_of_workspace(recording.path, folder / "at" / name)
    given = {**suggested_options(recording, workspace), **options}
    places = {"workspace": workspace, "runs_dir": folder / "runs", "replay": recording.path}
    report = run(RunOptions(**{**given, **places}))
    if report.exit_code == RunInterrupted.exit_code:
        raise KeyboardInterrupt
    kept = kept_in(report.folder)
    machine_failed = report.outcome in OF_THE_MACHINE and report.outcome != (recording.ended or {}).get("outcome")
    if "differences" not in kept or machine_failed:
        return Replayed(recording.name, ERROR, (report.reason or report.outcome,))
    passed_over = options.get("replay_match") == "nearest"
    differences = (*(() if passed_over else kept["on_the_way"]), *kept["differences"])
    return Replayed(
        name=recording.name,
        status=DIFFERS if differences else SAME,
        differences=differences,
        notes=tuple(kept["on_the_way"]) if passed_over else (),
        diffs={each.name: each.read_text(encoding="utf-8") for each in sorted((report.folder / DIFFS).glob("*"))},
        turns=int(report.totals.get("turns", 0)),
    )


@contextmanager
def working_folder(name: str, keep: Path | None = None) -> Iterator[Path]:
    """If possible outside the temporary files: a sandbox may write there, and Codex objects to a home there."""
    if keep is not None:
        yield make_folder(keep / name)
        return
    place = user_store(os.environ).parent / "replays"
    try:
        place.mkdir(parents=True, exist_ok=True)
        _remove_left_over(place)
    except OSError:
        place = Path(tempfile.gettempdir())
    with storage_errors(place):
        folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=place))
    with occupied(folder):
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _remove_left_over(place: Path) -> None:
    """Remove the folders of killed commands: nobody has locked them. One that is still empty may not be locked yet."""
    for folder in place.iterdir():
        with suppress(OSError), ExitStack() as stack:  # removed meanwhile, in use, or on a file system without locks
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if any(folder.iterdir()) or time.time() - folder.stat().st_mtime > LOCKED_SECONDS:
                shutil.rmtree(folder)


def _copy_of_workspace(recording: Path, target: Path) -> Path:
    """Copy the recording's workspace to ``target``. Raises `UsageError` if that exists, and `StorageError`."""
    if target.exists():
        raise UsageError(f"{target} already exists", "Name another folder with --keep.")
    for name in (recording.stem, COMMON_WORKSPACE):
        if (source := recording.parent / name).is_dir():
            with _copying(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copytree(source, target, symlinks=True)
            return target
    return make_folder(target)


@contextmanager
def _copying(target: Path) -> Iterator[None]:
    with storage_errors(target):
        try:
            yield
        except shutil.Error as error:
            raise OSError(str(error)) from error


OnReplayed = Callable[[Replayed], None]


def replay_tests(
    recordings: list[Path], options: Mapping[str, Any], on_replayed: OnReplayed, keep: Path | None = None
) -> list[Replayed]:
    """Call `replay_test` for one recording after the other; ``on_replayed`` gets each result at once."""
    results = []
    for path in recordings:
        results.append(replay_test(path, options, keep))
        on_replayed(results[-1])
    return results
