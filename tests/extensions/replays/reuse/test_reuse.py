"""Which turns of an earlier run are taken over: exactly those that show a model nothing new.

The model is a pure function of what it is shown: equal inputs get equal answers, no others do.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from codex_multi_role import RunOptions
from codex_multi_role.extensions.replays.run_options import RERUN
from codex_multi_role.lifecycle.definitions import load_definitions
from codex_multi_role.lifecycle.kept_definitions import keep_definitions
from codex_multi_role.lifecycle.session import Session
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.workspace.manifest import Manifest
from tests.extensions.replays.reuse.random_reruns import EDITS, is_exact, projects
from tests.support.models import message
from tests.support.random_flows import numbered
from tests.support.scripted_codex import Turn, codex_replaced
from tests.support.teams import read
from tests.support.workspaces import files_of

pytestmark = pytest.mark.real

EDITS_PER_PROJECT = 10
LOOKS, WRITES, SUBMITS = re.compile(r"\bLOOK\b"), re.compile(r"\bWRITE (\S+)"), re.compile(r"\bSUBMIT (\S+)")
"""What a role's prompt lets the model do: run a command, write a file by a command, submit a file."""
NOT_SHOWN = ("shell_environment_policy.set.", "permissions.")
"""Settings that differ in every run, and those that name every folder of the machine that nobody may write."""
SECONDS = re.compile(r'(\\"seconds\\": )[\d.]+')
"""How long a check of an incoming handoff took, which differs in every run."""


@dataclass
class PureModel:
    """``keys``: of all that each turn showed it, its memory included; ``shown``: those of the current run's turns.

    ``names``: for the paths of the current run.
    """

    keys: dict[str, str] = field(default_factory=dict)
    shown: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)

    def answer(self, turn: Turn) -> Iterator[Json]:
        folder, writes = Path(turn.shown["cwd"]), WRITES.search(turn.prompt)
        if looks := writes or LOOKS.search(turn.prompt):
            yield {"type": "commandExecution", "id": "c", "command": "look"}
        argv = [each for each in turn.shown["argv"] if not each.startswith(NOT_SHOWN)]
        shown = self.named(json.dumps({**turn.shown, "argv": argv}))
        earlier = [self.keys[each] for each in turn.thread.ends]
        given = json.dumps([SECONDS.sub(r"\g<1>0", shown), earlier, _seen(folder) if looks else {}], sort_keys=True)
        key = self.keys[turn.id] = hashlib.sha256(given.encode()).hexdigest()
        self.shown.append(key)
        if writes:
            (folder / writes[1]).write_text(f"{key[:12]}\n")
        yield from message(_text(turn, key))

    def named(self, text: str) -> str:
        for path, name in self.names.items():
            text = text.replace(path, name)
        return text


def _files(folder: Path) -> dict[str, bytes]:
    return files_of(folder, {".git"})


def _seen(folder: Path) -> dict[str, tuple[str, bool]]:
    """The files with their content, and whether they are executable."""
    return {name: (content.hex(), os.access(folder / name, os.X_OK)) for name, content in _files(folder).items()}


def _text(turn: Turn, key: str) -> str:
    """A handoff; or text that needs a repair turn, for one in six prompts."""
    if int(key[:6], 16) % 6 == 0 and turn.metadata["multi_role_repair"] == "0":
        return "not JSON"
    handoff = {
        "summary": key[:8],
        "said": "ok" if int(key[:4], 16) % 2 else "no",
        "items": [key[8], key[9]][: 1 + int(key[10], 16) % 2],
    }
    submits = SUBMITS.search(turn.prompt)
    return json.dumps({**handoff, **({"files": [{"path": submits[1], "content": key[:12]}]} if submits else {})})


@dataclass(frozen=True)
class Played:
    """``shown``: the keys of the turns that were asked; ``files``: the workspace afterwards; ``end``: how it ended.

    ``gave_up``: a turn without an answer ended its role; such a turn is asked again.
    """

    run_id: str
    shown: list[str]
    files: dict[str, bytes]
    end: str
    gave_up: bool


def play(options: RunOptions, model: PureModel, repeats: str = "") -> Played:
    """Do a run with the model. ``repeats``: the id of another one."""
    definitions, folder = load_definitions(options), RunFolder.create(options.place.runs_dir)
    workspace, copies = definitions.workspace, Manifest(folder.worktrees_path).place
    places = (folder.path, copies, workspace, workspace.parent)
    model.shown = []
    model.names = {str(place): f"<{number}>" for number, place in enumerate(places)}
    origin = {"run_id": repeats, "step": "", "visit": 1, RERUN: True} if repeats else None
    with codex_replaced(model.answer):
        catalog_file = keep_definitions(definitions, folder)
        report = Session(definitions, folder, catalog_file, forked_from=origin).work()
    assert report.outcome != "internal_error", report
    end = model.named(f"{report.outcome}: {report.reason}")
    turns = [read(path) for path in folder.path.glob("*/turn_*/turn.json")]
    gave_up = any(turn["status"] != "completed" and not turn["recorded"]["ask_again"] for turn in turns)
    return Played(folder.run_id, model.shown, _files(workspace), end, gave_up)


def check_project(folder: Path, seed: int, edits: int) -> int:
    """Compare reruns of a random project after random edits with full runs; returns how many turns were taken over."""
    chance, model, taken = Random(seed), PureModel(), 0
    project = numbered(projects(), seed)
    first = play(project.write(folder / "first"), model)
    for number in range(edits):
        edit = chance.choice(EDITS)
        edited = deepcopy(project)
        edit.apply(chance, edited)
        where = f"seed {seed}, edit {number}: {edit}"
        full = play(edited.write(folder / f"full{number}"), model)
        again = play(edited.write(folder / f"again{number}"), model, first.run_id)
        required = Counter(full.shown) - Counter(first.shown)
        exact = is_exact(edited, edit) and not first.gave_up
        assert required <= Counter(again.shown) <= Counter(full.shown), where
        assert Counter(again.shown) == required or not exact, where
        assert (again.files, again.end) == (full.files, full.end), where
        assert not again.shown or edit.has_effect or not exact, where
        taken += len(full.shown) - len(again.shown)
    return taken


OF_THE_GATE = 101


@pytest.mark.parametrize(
    "seed",
    [OF_THE_GATE, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(100, 125) if seed != OF_THE_GATE)],
)
def test_rerun_asks_what_depends_on_the_edit(seed: int, tmp_path: Path) -> None:
    """Asked is what shows the model something new and nothing else, and the files are those of a full run."""
    is_short = seed == OF_THE_GATE
    assert check_project(tmp_path, seed, 5 if is_short else EDITS_PER_PROJECT) or not is_short
