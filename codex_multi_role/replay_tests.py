"""The regression test of a team: every recording of a folder is replayed and compared with what it recorded.

``DIR/shop.ndjson`` is replayed in a copy of ``DIR/shop/``, else of ``DIR/workspace/``, else in an empty folder.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from codex_multi_role.app import run
from codex_multi_role.codex.warm_home import user_store
from codex_multi_role.errors import CodexMultiRoleError, ExitCode, RunInterrupted, UsageError
from codex_multi_role.playbook.recording import Recording
from codex_multi_role.recordings.comparison import DIFFS, kept_in
from codex_multi_role.recordings.run_outcome import suggested_options
from codex_multi_role.run_folder.atomic import make_folder, storage_errors
from codex_multi_role.run_options import RunOptions

ENDING = ".ndjson"
SAME, DIFFERS, ERROR = "as recorded", "differs", "error"
COMMON_WORKSPACE = "workspace"
LEFT_OVER_SECONDS = 7 * 24 * 3600.0


@dataclass(frozen=True)
class Replayed:
    """How the replay of one recording went. ``status``: as recorded, differs, or error: it could not be replayed.

    ``notes``: what a nearest match passed over. ``diffs``: of prompts, unified, by file name.
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
    """The recordings of ``folder``, by name. Raises `UsageError` where there is none."""
    found = sorted(folder.glob(f"*{ENDING}"))
    if not found:
        raise UsageError(f"there is no recording (*{ENDING}) in {folder}", "`run --record FILE` writes one.")
    return found


def replay_test(path: Path, options: Mapping[str, Any], keep: Path | None = None) -> Replayed:
    """Replay the recording ``path`` with its own options but for ``options`` (`RunOptions` fields).

    ``keep``: where the run and its workspace are left; otherwise nothing is. Raises `KeyboardInterrupt` when the run
    was interrupted; what else fails is in what is returned.
    """
    began = time.monotonic()
    try:
        recording = Recording.load(path)
        if recording.ended is None:
            raise UsageError(f"{path.name} was cut short: its run did not end", "Record it again.")
        with _folder(path.stem, keep) as folder:
            result = _replayed(recording, options, folder)
    except CodexMultiRoleError as error:
        result = Replayed(path.name, ERROR, (" ".join(filter(None, [str(error), error.hint])),))
    return replace(result, seconds=round(time.monotonic() - began, 3))


def _replayed(recording: Recording, options: Mapping[str, Any], folder: Path) -> Replayed:
    # Under the same name: a flow may tell its roles what the project is called.
    name = Path(str(recording.header.get("workspace_name"))).name or COMMON_WORKSPACE
    workspace = _copy_of_workspace(recording.path, folder / "at" / name)
    given = {**suggested_options(recording, workspace), **options}
    places = {"workspace": workspace, "runs_dir": folder / "runs", "replay": recording.path}
    report = run(RunOptions(**{**given, **places}))
    if report.exit_code == RunInterrupted.exit_code:
        raise KeyboardInterrupt
    kept = kept_in(report.folder)
    if "differences" not in kept:
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
def _folder(name: str, keep: Path | None) -> Iterator[Path]:
    """Not among temporary files, where it can be helped: a sandbox may write those, and Codex minds a home there."""
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
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_left_over(place: Path) -> None:
    """What tests left there that were killed: nothing else is there for so long."""
    for folder in place.iterdir():
        with suppress(OSError):  # another is at it
            if time.time() - folder.stat().st_mtime > LEFT_OVER_SECONDS:
                shutil.rmtree(folder)


def _copy_of_workspace(recording: Path, target: Path) -> Path:
    """Raises `UsageError` where ``target`` is there, `StorageError`."""
    if target.exists():
        raise UsageError(f"{target} is there already", "Name another folder with --keep.")
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
    """`replay_test` for each, one after the other; ``on_replayed`` is told of each at once."""
    results = []
    for path in recordings:
        results.append(replay_test(path, options, keep))
        on_replayed(results[-1])
    return results
