"""The end of a recorded or replayed run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codex_multi_role.errors import CodexMultiRoleError, ExitCode
from codex_multi_role.host.atomic import storage_errors
from codex_multi_role.lifecycle.definitions import Definitions
from codex_multi_role.lifecycle.recordings.comparison import keep_end, kept_in
from codex_multi_role.lifecycle.recordings.model_providers import recording_file
from codex_multi_role.lifecycle.recordings.run_outcome import differences, outcome_of, places_of
from codex_multi_role.playbook.recording import Recording
from codex_multi_role.run_folder import RunFolder, list_turns
from codex_multi_role.run_options import REPLAY_DIFFERS, RunReport


def close_recording(definitions: Definitions, folder: RunFolder, report: RunReport) -> list[str]:
    """Write the outcome of a recorded run, or compare a replayed one with it. Returns messages for the user."""
    try:
        if definitions.options.answers.record is not None:
            return _close(definitions, definitions.options.answers.record, folder, report)
        if definitions.recording is not None:
            return _compare(definitions, definitions.recording, folder, report)
    except CodexMultiRoleError as error:
        return [f"the end of the run cannot be compared or recorded: {error}"]
    return []


def _close(definitions: Definitions, path: Path, folder: RunFolder, report: RunReport) -> list[str]:
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


def _compare(definitions: Definitions, recording: Recording, folder: RunFolder, report: RunReport) -> list[str]:
    kept = kept_in(folder.path)
    if recording.ended is None or "began_with" not in kept or report.exit_code == ExitCode.INTERRUPTED:
        return []  # nothing to compare with, or the run never started, or was interrupted
    now = _named(definitions, folder, outcome_of(report, definitions, folder, kept["began_with"]))
    found = differences(recording.ended, now)
    keep_end(folder.path, found)
    return [f"{REPLAY_DIFFERS}{each}" for each in found]


def _named(definitions: Definitions, folder: RunFolder, outcome: Mapping[str, Any]) -> dict[str, Any]:
    named: dict[str, Any] = places_of(definitions, folder).named(folder.redact.within(outcome))
    return named
