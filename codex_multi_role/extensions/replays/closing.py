"""The end of a recorded or replayed run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from codex_multi_role.codex.failures import REPLAY_DIFFERS
from codex_multi_role.errors import CodexMultiRoleError, ExitCode
from codex_multi_role.extensions.replays.comparison import keep_end, kept_in
from codex_multi_role.extensions.replays.recording import Recording, RecordingFile
from codex_multi_role.extensions.replays.replay_server import NEAREST
from codex_multi_role.extensions.replays.run_outcome import differences, outcome_of, places_of
from codex_multi_role.host.atomic import storage_errors
from codex_multi_role.lifecycle.definitions import Definitions
from codex_multi_role.presentation.wording import plural
from codex_multi_role.run_folder import RunFolder, list_turns
from codex_multi_role.run_options import RunReport


class NotAsRecorded(CodexMultiRoleError):
    """A replay did not end as the recorded run did."""

    reason = "not_as_recorded"


def close_recording(definitions: Definitions, folder: RunFolder, report: RunReport) -> list[str]:
    """Write the outcome of a recorded run. Returns messages for the user; does not raise."""
    try:
        return _close(definitions, folder, report)
    except CodexMultiRoleError as error:
        return [f"the end of the run cannot be recorded: {error}"]


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


def compare_end(definitions: Definitions, folder: RunFolder, report: RunReport) -> Iterator[str]:
    """Compare the outcome of a replay with that of the recorded run; yields each difference.

    With ``replay_match: nearest``, differences before the end are no reason to fail. Raises `NotAsRecorded`, and
    `StorageError` if nothing can be compared; a run that failed by itself keeps its reason.
    """
    kept, code = kept_in(folder.path), ExitCode(report.exit_code)
    if "began_with" not in kept or code.is_parked or code is ExitCode.INTERRUPTED:
        return  # the run never started, or has not ended
    recording = recording_of(definitions)
    found = _differences(definitions, folder, report, recording, kept["began_with"])
    keep_end(folder.path, found)
    yield from (f"{REPLAY_DIFFERS}{each}" for each in found)
    passed_over = definitions.options.added.get("replay_match") == NEAREST
    everything = [*(() if passed_over else kept["on_the_way"]), *found]
    if everything and code is not ExitCode.FAILED:
        more = f" (and {plural(len(everything) - 1, 'more difference')})" if everything[1:] else ""
        hint = "If the change is meant, record the run again; `replay.json` in the run folder has all differences."
        raise NotAsRecorded(f"{REPLAY_DIFFERS}{everything[0]}{more}", hint)


def _differences(
    definitions: Definitions, folder: RunFolder, report: RunReport, recording: Recording, began_with: str
) -> list[str]:
    if recording.ended is None:
        return ["the recording was cut short: its run did not end"]
    named = _naming(definitions, folder)
    return differences(recording.ended, named(outcome_of(report, definitions, folder, began_with)))


def recording_of(definitions: Definitions) -> Recording:
    """What stands in for the models of a replay."""
    assert isinstance(definitions.stand_in, Recording)
    return definitions.stand_in


def _naming(definitions: Definitions, folder: RunFolder) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Makes what a recording has, without secrets and with names for paths."""
    places = places_of(definitions, folder)
    return lambda line: places.named(folder.redact.within(line))


def recording_file(definitions: Definitions, path: Path, folder: RunFolder) -> RecordingFile:
    """The recording at ``path``, written without secrets and with names for paths."""
    return RecordingFile(path, _naming(definitions, folder))
