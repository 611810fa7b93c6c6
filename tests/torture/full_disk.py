"""One trial of a full disk: from a point on a run can write nothing; once there is room, it is resumed to its end."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.teams import read
from tests.torture.ground import Ground, Undisturbed, ground
from tests.torture.ledger import in_flight
from tests.torture.leftovers import end, wait_until_gone
from tests.torture.points import Kills
from tests.torture.scenarios import Scenario
from tests.torture.trial import ENDED, Trial, count_what_was_paid, go_on

DISK_MEGABYTES = 96
FAILED = 3
MOST_RESUMES = 2


def attempt_on_full_disk(scenario: Scenario, points: Kills, folder: Path, expected: Undisturbed) -> Trial:
    """Let the disk be full from the first of ``points`` on, for a resumed run from the second, and so on.

    Raises `OSError` where the system gives no disk of one's own.
    """
    trial = Trial(scenario, points, folder, on_full_disk=True)
    with ground(scenario, folder, Ground, DISK_MEGABYTES) as place:
        try:
            code = _end_of(trial, place)
            trial.wrong += expected.evidence.differences(place.evidence(code))
            trial.wrong += place.inconsistencies(range(trial.resumes + 1))
            count_what_was_paid(trial, place, expected)
        except (subprocess.TimeoutExpired, OSError, ValueError, LookupError, AssertionError) as error:
            trial.wrong.append(f"{type(error).__name__}: {error}")
    return trial


def _end_of(trial: Trial, place: Ground) -> int:
    """Fill the disk at the points, then resume until the run has ended; returns the last exit code."""
    assert place.disk is not None
    code = place.start(trial.kills[0])
    for next_point in (*trial.kills[1:], *[None] * MOST_RESUMES):
        _look_at_the_stopped(trial, place, code)
        place.disk.free()
        if place.run.record_path.exists() and place.run.record()["status"] in ENDED:
            break
        code = go_on(trial, place, next_point)
    return code


def _look_at_the_stopped(trial: Trial, place: Ground, code: int) -> None:
    """It must have said honestly how it ended, and left no process."""
    note, said = read(place.note), place.output.read_text()
    trial.places += [note] if isinstance(note, str) else []
    trial.wrong += [f"still there: {name}" for name in end(wait_until_gone(trial.folder, 0))]
    record = place.run.record() if place.run.record_path.exists() else {"status": "not begun"}
    if "Traceback" in said or record.get("outcome") == "internal_error" or (code and not said.strip()):
        trial.wrong.append(f"it said {said!r}")
    if "\n" in record.get("reason", ""):
        trial.wrong.append(f"run.json needs more than a line: {record['reason']}")
    if code not in (0, FAILED) or (code == 0) != (record["status"] in ENDED):
        trial.wrong.append(f"the exit code is {code}, and run.json says {record['status']}: {said}")
    trial.free |= in_flight(place.run)
    place.output.write_text("")
