"""The end of a recorded or replayed run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from codex_multi_role.codex.failures import REPLAY_DIFFERS
from codex_multi_role.errors import CodexMultiRoleError, ExitCode
from codex_multi_role.extensions.replays.comparison import keep_end, kept_in
from codex_multi_role.extensions.replays.recording import Recording, RecordingFile
from codex_multi_role.extensions.replays.run_outcome import differences, outcome_of, places_of
from codex_multi_role.host.atomic import storage_errors
from codex_multi_role.lifecycle.definitions import Definitions
from codex_multi_role.run_folder import RunFolder, list_turns
from codex_multi_role.run_options import RunReport

Close = Callable[[Definitions, RunFolder, RunReport], list[str]]


def close_recording(definitions: Definitions, folder: RunFolder, report: RunReport) -> list[str]:
    """Write the outcome of a recorded run. Returns messages for the user, as all functions here that do not raise."""
    return _noted(_close, definitions, folder, report)


def compare_end(definitions: Definitions, folder: RunFolder, report: RunReport) -> list[str]:
    """Compare the outcome of a replay with that of the recorded run."""
    return _noted(_compare, definitions, folder, report)


def _noted(close: Close, definitions: Definitions, folder: RunFolder, report: RunReport) -> list[str]:
    try:
        return close(definitions, folder, report)
    except CodexMultiRoleError as error:
        return [f"the end of the run cannot be compared or recorded: {error}"]


def _close(definitions: Definitions, folder: RunFolder, report: RunReport) -> list[str]:
    path: Path = definitions.options.added["record"]
    if not path.exists() or (header := Recording.load(path).header).get("run") != folder.run_id:
        return []  # it never started
    if not any(list_turns(folder)):
        with storage_errors(path):
            path.unlink()  # nothing was recorded; its name is free for another attempt
        return []
    if ExitCode(report.exit_code).is_parked or report.exit_code == ExitCode.INTERRUPTED:
        return [f"the recording {path} continues when the run is resumed"]
    file = recording_file(definitions, path, folder)
    file.add({"type": "ended", **outcome_of(report, definitions, folder, header["workspace"])})
    return [file.problem] if file.problem else []


def _compare(definitions: Definitions, folder: RunFolder, report: RunReport) -> list[str]:
    recording, kept = recording_of(definitions), kept_in(folder.path)
    if recording.ended is None or "began_with" not in kept or report.exit_code == ExitCode.INTERRUPTED:
        return []  # nothing to compare with, or the run never started, or was interrupted
    now = _named(definitions, folder, outcome_of(report, definitions, folder, kept["began_with"]))
    found = differences(recording.ended, now)
    keep_end(folder.path, found)
    return [f"{REPLAY_DIFFERS}{each}" for each in found]


def recording_of(definitions: Definitions) -> Recording:
    """What stands in for the models of a replay."""
    assert isinstance(definitions.stand_in, Recording)
    return definitions.stand_in


def _named(definitions: Definitions, folder: RunFolder, outcome: Mapping[str, Any]) -> dict[str, Any]:
    named: dict[str, Any] = places_of(definitions, folder).named(folder.redact.within(outcome))
    return named


def recording_file(definitions: Definitions, path: Path, folder: RunFolder) -> RecordingFile:
    """The recording at ``path``, written without secrets and with names for paths."""
    places = places_of(definitions, folder)

    def clean(line: Mapping[str, Any]) -> dict[str, Any]:
        cleaned: dict[str, Any] = places.named(folder.redact.within(line))
        return cleaned

    return RecordingFile(path, clean)
