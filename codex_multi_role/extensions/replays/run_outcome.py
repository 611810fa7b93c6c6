"""The outcome of a run as a recording keeps it, and how another run of it differs.

People's answers are part of it and are given again in a replay. Paths of the run are replaced by names.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from codex_multi_role.extensions.replays.normalization import PathNames, normalize
from codex_multi_role.extensions.replays.recording import Recording
from codex_multi_role.host.spelling import as_on_disk
from codex_multi_role.host.user_cache import home_folder
from codex_multi_role.lifecycle.definitions import Definitions
from codex_multi_role.run_folder import Answer, AskPerson, Question, Questions, RunFolder, list_turns
from codex_multi_role.run_folder.events import now
from codex_multi_role.run_options import RunReport
from codex_multi_role.workspace import Snapshots, Workspace
from codex_multi_role.workspace.manifest import Manifest


def places_of(definitions: Definitions, folder: RunFolder) -> PathNames:
    """The paths that differ on another machine or in another run."""
    run = folder.path.resolve()
    copies = Manifest(folder.worktrees_path).place
    return PathNames({**_around(definitions.workspace), "run folder": run, "runs": run.parent, "copies": copies})


def places_around(workspace: Path) -> PathNames:
    """The part of `places_of` that is known before a run exists."""
    return PathNames(_around(as_on_disk(workspace)))


def _around(workspace: Path) -> dict[str, Path]:
    places = {"workspace": workspace, "python": Path(sys.prefix), "python installation": Path(sys.base_prefix)}
    return {**places, "home": home_folder()} if home_folder().is_dir() else places


BY_RECORDING = "recording"


def answers_of(run_folder: Path) -> list[dict[str, Any]]:
    """Every answered question of the run, whoever answered it, in the order of their keys."""
    answered = sorted(Questions(run_folder).answered(), key=lambda question: question.key)
    return [
        {"key": each.key, "question": each.question, **_of_person(each.answer)}
        for each in answered
        if each.answer is not None
    ]


def _of_person(answer: Answer) -> dict[str, Any]:
    """The person's answer; an empty option and empty values are left out, as in older recordings."""
    said = {name: getattr(answer, name) for name in ("approved", "comment", "option", "values", "comments")}
    return {name: each for name, each in said.items() if each or name in ("approved", "comment")}


def as_recorded(recording: Recording, places: PathNames, otherwise: AskPerson | None) -> AskPerson | None:
    """Answers as recorded for the question's key, otherwise for its text; asks ``otherwise`` for any other.

    ``places``: the paths of the run that asks now.
    """
    known = places.placed((recording.ended or {}).get("answers", []))
    if not known:
        return otherwise

    def ask(question: Question, is_over: Callable[[], bool]) -> Answer | None:
        same = [each for each in known if each["key"] == question.key]
        found = same or [each for each in known if each["question"] == question.question]
        if found:
            said = found[0]
            more = (str(said.get("option", "")), said.get("values", {}), said.get("comments", []))
            return Answer(bool(said["approved"]), str(said["comment"]), BY_RECORDING, now(), *more)
        return otherwise(question, is_over) if otherwise is not None else None

    return ask


Line = dict[str, Any]

COMPARED = ("status", "outcome", "exit_code")
SUGGESTED = ("goal", "flow", "inputs", "cycles", "repair_attempts", "run_tests")
"""The options that a replay takes from the recording by default."""
REMOVED = None
SHOWN, MOST_PATHS = 200, 10


def suggested_options(recording: Recording, workspace: Path) -> Line:
    """The `RunOptions` fields to run the recorded run again in ``workspace``."""
    suggested: Line = places_around(workspace).placed({name: recording.header[name] for name in SUGGESTED})
    return suggested


def workspace_tree(definitions: Definitions, folder: RunFolder) -> str:
    """The state of the workspace, as an ID that does not depend on its path. It excludes what git ignores."""
    return snapshots_of(definitions, folder).take()


def snapshots_of(definitions: Definitions, folder: RunFolder) -> Snapshots:
    return Snapshots(folder.snapshots_path, Workspace.of_run(definitions.workspace, folder.path))


def outcome_of(report: RunReport, definitions: Definitions, folder: RunFolder, began_with: str) -> Line:
    """How the run ended, the handoffs of all turns in an order independent of chance, and the changed files.

    ``began_with``: the `workspace_tree` at the beginning of the run. Raises `StorageError`.
    """
    snapshots, places = snapshots_of(definitions, folder), places_of(definitions, folder)
    record = definitions.options.added.get("record")
    own = record and os.path.relpath(os.path.realpath(record), definitions.workspace)
    changed = [path for path in snapshots.changed_paths(began_with, snapshots.take()) if path != own]
    handoffs = _handoffs(definitions, folder)
    return {
        "status": report.status,
        "outcome": report.outcome,
        "exit_code": report.exit_code,
        "answers": answers_of(folder.path),
        "handoffs": sorted(handoffs, key=lambda each: (each["role"], each["unit"], _in_order(each))),
        "files": {path: _hash(definitions.workspace / path, places) for path in changed},
    }


def _handoffs(definitions: Definitions, folder: RunFolder) -> Iterator[Line]:
    for instance, turn in list_turns(folder):
        handoff = turn.handoff()
        if handoff is not None:
            role = definitions.catalog.role_of(instance)
            yield {"role": role, "unit": turn.result().get("unit", ""), "handoff": handoff}


def _in_order(entry: Line) -> str:
    return normalize(json.dumps(entry, sort_keys=True))


def _hash(path: Path, places: PathNames) -> str | None:
    """The hash of a file's content or of a link's target; `REMOVED` for anything else."""
    with suppress(OSError):
        if path.is_symlink():
            return _digest(os.fsencode(path.readlink()), places)
        if path.is_file():  # reading a pipe or a device may never end
            return _digest(path.read_bytes(), places)
    return REMOVED


def _digest(content: bytes, places: PathNames) -> str:
    """SHA-256. In a text, names replace the paths first, because another workspace has other paths."""
    with suppress(ValueError):  # not text
        content = str(places.named(content.decode("utf-8"))).encode()
    return hashlib.sha256(content).hexdigest()


def differences(recorded: Line, now: Line) -> list[str]:
    """How ``now`` differs from ``recorded``, one line per difference; both have names for paths."""
    other = [name for name in COMPARED if now[name] != recorded.get(name)]
    told = [f"{name} is {now[name]}, recorded: {recorded.get(name)}" for name in other]
    if told:
        return [*told, *_what_is_missing(recorded, now)]
    return [*_other_handoffs(recorded["handoffs"], now["handoffs"]), *_other_files(recorded["files"], now["files"])]


def _what_is_missing(recorded: Line, now: Line) -> Iterator[str]:
    """A short list of what is missing in a run that ended differently."""
    before, after = (Counter(map(_in_order, entries["handoffs"])) for entries in (recorded, now))
    roles = Counter(str(json.loads(text)["role"]) for text in (before - after).elements())
    if roles:
        counts = ", ".join(f"{role} ({count})" if count > 1 else role for role, count in sorted(roles.items()))
        yield f"missing recorded handoffs: {counts}"
    if paths := sorted(path for path, told in recorded["files"].items() if now["files"].get(path, "") != told):
        more = f" and {len(paths) - MOST_PATHS} more" if len(paths) > MOST_PATHS else ""
        yield f"files that differ from the recording: {', '.join(paths[:MOST_PATHS])}{more}"


def _other_handoffs(recorded: list[Line], now: list[Line]) -> Iterator[str]:
    before, after = (Counter(map(_in_order, entries)) for entries in (recorded, now))
    for text, count in (before - after).items():
        yield f"{_of(text)}: recorded but missing now{_times(count)}: {_short(text)}"
    for text, count in (after - before).items():
        yield f"{_of(text)}: present now but not recorded{_times(count)}: {_short(text)}"


def _of(text: str) -> str:
    entry = json.loads(text)
    unit = f" ({entry['unit']})" if entry["unit"] else ""
    return f"handoff of {entry['role']}{unit}"


def _times(count: int) -> str:
    return f" ({count} times)" if count > 1 else ""


def _short(text: str) -> str:
    handoff = json.dumps(json.loads(text)["handoff"], ensure_ascii=False, sort_keys=True)
    return handoff if len(handoff) <= SHOWN else f"{handoff[:SHOWN]}…"


def _other_files(recorded: Mapping[str, str | None], now: Mapping[str, str | None]) -> Iterator[str]:
    for path in sorted({*recorded, *now}):
        if path not in now:
            yield f"file {path}: changed in the recording, not now"
        elif path not in recorded:
            yield f"file {path}: changed now, not in the recording"
        elif recorded[path] != now[path]:
            yield f"file {path}: content differs from the recording"
