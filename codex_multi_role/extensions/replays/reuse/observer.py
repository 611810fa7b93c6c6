"""Take a turn from an earlier run instead of asking for it, if everything that it depends on is provably equal.

Every run notes what its turns depend on (`TurnBasis`); only a run with earlier runs to look at takes any over.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from codex_multi_role.codex.home import copy_threads
from codex_multi_role.errors import StorageError
from codex_multi_role.extensions.replays.reuse.attempt_basis import AttemptBasis
from codex_multi_role.extensions.replays.reuse.turn_inputs import (
    RoleInputs,
    RoleInputsReader,
    TurnBasis,
    digest,
    position_of,
)
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import RunFolder, TurnFolder, list_turns
from codex_multi_role.run_folder.turn_folder import REUSED
from codex_multi_role.steps.observers import CarryOut
from codex_multi_role.steps.recovery import is_settled
from codex_multi_role.steps.resources import RunResources, Stay
from codex_multi_role.steps.turn import Attempt
from codex_multi_role.steps.turn_record import NEW_THREAD, TurnPrompt, TurnResult
from codex_multi_role.workspace.git import Git, RecordedGit

if TYPE_CHECKING:
    from codex_multi_role.extensions.replays.normalization import PathNames
    from codex_multi_role.extensions.replays.reuse.earlier_turns import EarlierRun, EarlierTurn, EarlierTurns
    from codex_multi_role.extensions.replays.reuse.timed_results import TimedResult

NEW = "new"


class Reuse:
    """The `TurnObserver` that notes what turns depend on; ``earlier`` ones that are equal stand for turns of this run.

    ``read_role`` reads the inputs of a role; ``workspace`` is the run's own. ``taken``: Codex's ids of the turns that
    were taken over. Threads may share it.
    """

    def __init__(
        self,
        folder: RunFolder,
        workspace: Path,
        read_role: RoleInputsReader,
        earlier: EarlierTurns | None = None,
    ) -> None:
        self._folder, self._workspace, self.read_role, self._earlier = folder, workspace, read_role, earlier
        self._lock = threading.Lock()
        self._latest_turns: dict[str, str] = {}
        self.taken: set[str] = set()
        self._sources: dict[str, EarlierRun] = {}
        self._copied: set[tuple[Path, Path]] = set()
        self._taken_threads: set[str] = set()
        turns = [(turn.result(), turn) for _, turn in list_turns(folder)]
        for result, turn in sorted(turns, key=lambda each: (each[0].get("journal_step") or 0, each[1].number)):
            if thread := result.get("thread_id"):
                self._latest_turns[thread] = result.get("turn_id") or str(turn.path)
            if result.get(REUSED) and result.get("recorded"):
                self.taken.add(result["turn_id"])
                self._taken_threads.add(str(thread))

    @cached_property
    def _names(self) -> PathNames:
        """Names for the paths of this run."""
        from codex_multi_role.extensions.replays.reuse.earlier_turns import path_names  # here: after the first prompt

        return path_names(self._folder, self._workspace)

    def attempt(self, attempt: Attempt) -> AttemptBasis:
        return AttemptBasis(self, attempt)

    def has_taken(self, thread_id: str) -> bool:
        """Whether turns of that conversation were taken over."""
        return thread_id in self._taken_threads

    def inputs(self, run: RunResources, asked: TurnPrompt, role: RoleInputs) -> dict[str, str]:
        """The inputs of a turn, by part. ``thread`` names the last turn that its conversation remembers.

        A new conversation does not have the instructions yet: only whether they could be left out matters later.
        ``folder`` is the copy of the workspace that it works in, which Codex shows to the model.
        """
        from codex_multi_role.extensions.replays.reuse.earlier_turns import files_named_in  # as in `_names`

        thread = NEW if asked.thread == NEW_THREAD else self._latest_turns.get(asked.thread, "")
        scripted = {"scripted answer": digest(position_of(asked))} if role.scripted else {}
        told = digest(self._names.named(role.instructions))
        named = self._names.named(asked.prompt)
        remembered = asked.instructions and thread != NEW
        known = self._names.named(asked.when_known) if remembered else asked.when_known == asked.prompt
        files = digest(files_named_in(named, self._folder))
        return {
            "prompt": digest([named, known]),
            "folder": run.copy or run.within,
            "files named in the prompt": files,
            "thread": thread,
            **role.parts,
            "project instructions": told,
            **scripted,
        }

    def note(self, thread_id: str, turn_id: str, folder: TurnFolder) -> None:
        """Note that the conversation now also remembers this turn."""
        self._latest_turns[thread_id] = turn_id or str(folder.path)

    def take(self, run: RunResources, asked: TurnPrompt, *, may_decline: bool) -> TurnResult | None:
        """The turn as an earlier run has it, with its changes made in the workspace; None if it must be asked.

        Raises `StorageError`.
        """
        if self._earlier is None:
            return None
        from codex_multi_role.extensions.replays.reuse.taking import TurnTaking  # here: most runs take over nothing

        role = self.read_role(asked.role, run.workspace.root)
        inputs = self.inputs(run, asked, role)
        for turn in self._earlier.with_inputs(inputs, position_of(asked)):
            if not _refusal(turn, inputs, self._workspace, may_decline=may_decline) and self._reserve(turn):
                taken = TurnTaking(run, asked, turn, partial(self.placed, run=turn.run)).take()
                if taken is not None:
                    self._keep_thread(run, asked, turn)
                    return taken
                self.taken.discard(turn.turn_id)
        return None

    def why_asked(self, run: RunResources, asked: TurnPrompt, role: RoleInputs, *, may_decline: bool) -> str:
        """Why a turn is not taken over, as far as that is known without the workspace; empty if it may be."""
        assert self._earlier is not None
        inputs, position = self.inputs(run, asked, role), position_of(asked)
        refusals = [
            _refusal(turn, inputs, self._workspace, may_decline=may_decline)
            for turn in self._earlier.with_inputs(inputs, position)
            if turn.turn_id not in self.taken
        ]
        if refusals:
            return "" if "" in refusals else refusals[0]
        before = self._earlier.at(position)
        return "no earlier run has this turn" if before is None else _differences(before.basis.inputs, inputs)

    def check(
        self, run: RunResources, folder: Path, name: str, options: Mapping[str, object], carry_out: CarryOut, stay: Stay
    ) -> Json:
        """The result of a check; that of an earlier run if only times differ and the files are the same."""
        from codex_multi_role.extensions.replays.reuse.timed_results import TimedResult  # as in `_names`

        before = run.snapshots.take() if run.settings.changes_workspace else ""
        result = carry_out()
        if stay.shared:
            return result
        python = run.settings.tests.python
        using = {"options": dict(options), "python": [str(python.path), python.version]}
        measured = TimedResult(name, before, using, result)
        if measured.has_times and not before:  # nothing in the run can have changed it since
            measured = replace(measured, workspace=run.snapshots.take())
        return self._confirmed(measured, folder)

    def _confirmed(self, measured: TimedResult, folder: Path) -> Json:
        """The result of a check or, if an earlier run measured the same but for times, the earlier result.

        The roles that read it then see equal inputs. ``folder``: that of the check, where later runs find the result.
        """
        if not measured.has_times:
            return measured.result
        earlier = self._earlier.runs if self._earlier is not None else []
        for run in (*self._sources.values(), *earlier):  # first those with the turns that are taken over
            if (same := run.same_result(measured.named(self._names))) is not None:
                return replace(measured, result=self.placed(same, run)).written(folder, self._folder.redact)
        return measured.written(folder, self._folder.redact)

    def _reserve(self, turn: EarlierTurn) -> bool:
        """A turn stands for one turn of this run: two equal prompts get two answers if there are two."""
        with self._lock:
            free = turn.turn_id not in self.taken
            self.taken.add(turn.turn_id)
            return free

    def placed(self, value: Json, run: EarlierRun) -> Json:
        """``value`` of an earlier run, with the paths of this one."""
        placed: Json = self._names.placed(run.names.named(value))
        return placed

    def _keep_thread(self, run: RunResources, asked: TurnPrompt, turn: EarlierTurn) -> None:
        """Let a later live turn continue the conversation, which Codex then forks from the earlier run's."""
        thread, self._sources[turn.run.folder.run_id] = turn.result["thread_id"], turn.run
        self._latest_turns[thread] = turn.turn_id
        self._taken_threads.add(thread)
        run.services.fleet.inherit(thread, turn.turn_id)
        homes = turn.run.folder.path / ".codex" / turn.instance, self._folder.codex_home(asked.instance)
        with self._lock:
            is_new = homes not in self._copied
            self._copied.add(homes)
        if is_new:
            copy_threads(*homes)


def _refusal(turn: EarlierTurn, inputs: Mapping[str, str], workspace: Path, *, may_decline: bool) -> str:
    """Why ``turn``, whose inputs are equal, still cannot be taken over."""
    if turn.basis.refused:
        return turn.basis.refused
    if not inputs["thread"]:
        return "its conversation is unknown"
    if not is_settled(turn.recorded, may_decline=may_decline):
        return f"the earlier turn ended without an answer: {turn.recorded.reason}"
    folders = [turn.run.folder.path, *([turn.run.workspace] if turn.run.workspace != workspace else [])]
    names = turn.basis.workspace != turn.basis.after and _names_one_of(folders, turn)
    return "its changes name the folder of the earlier run or its workspace" if names else ""


def _names_one_of(folders: Sequence[Path], turn: EarlierTurn) -> bool:
    """Whether a line that the turn changed, in binary files too, has a path of it; also if that cannot be read."""
    names = [os.fsencode(folder) for folder in folders]
    for repository in filter(Path.is_dir, turn.run.repositories):
        with suppress(StorageError):
            lines = _changed_lines(RecordedGit(repository.absolute(), repository), turn.basis)
            return any(name in lines for name in names)
    return True


def _changed_lines(git: Git, basis: TurnBasis) -> bytes:
    """As a patch without context."""
    as_stored = ("--text", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
    return git.run("diff-tree", "-r", "--patch", "--unified=0", *as_stored, basis.workspace, basis.after).stdout


def _differences(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    changed = [part for part in now if before.get(part) != now[part]] + [part for part in before if part not in now]
    return f"changed: {', '.join(changed)}"
