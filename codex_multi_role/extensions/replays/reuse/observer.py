"""Take a turn from an earlier run instead of asking for it, if everything that it depends on is provably equal.

Every run notes what its turns depend on (`TurnBasis`); only a rerun takes any over.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from codex_multi_role.codex.home import copy_threads
from codex_multi_role.errors import StorageError
from codex_multi_role.extensions.replays.reuse.attempt_basis import AttemptBasis
from codex_multi_role.extensions.replays.reuse.hidden_files import hidden_files
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
    from codex_multi_role.extensions.replays.reuse.earlier_turns import EarlierRun, EarlierTurn
    from codex_multi_role.extensions.replays.reuse.timed_results import TimedResult

NEW = "new"


class Reuse:
    """The `TurnObserver` that notes what turns depend on; equal ones of the ``earlier`` run stand for turns of this.

    ``read_role`` reads the inputs of a role; ``workspace`` is the run's own. Threads may share it.
    """

    def __init__(
        self,
        folder: RunFolder,
        workspace: Path,
        read_role: RoleInputsReader,
        earlier: EarlierRun | None = None,
    ) -> None:
        self._folder, self._workspace, self.read_role, self._earlier = folder, workspace, read_role, earlier
        self._lock = threading.Lock()  # waits: for memory only
        self._latest_turns: dict[str, str] = {}
        self._taken: set[str] = set()
        self._copied: set[tuple[Path, Path]] = set()
        self._taken_threads: set[str] = set()
        turns = [(turn.result(), turn) for _, turn in list_turns(folder)]
        for result, turn in sorted(turns, key=lambda each: (each[0].get("journal_step") or 0, each[1].number)):
            if thread := result.get("thread_id"):
                self._latest_turns[thread] = result.get("turn_id") or str(turn.path)
            if result.get(REUSED) and result.get("recorded"):
                self._taken.add(result["turn_id"])
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
        texts, named = asked.texts, self._names.named(asked.texts.prompt)
        remembered = texts.instructions and thread != NEW
        known = self._names.named(texts.when_known) if remembered else texts.when_known == texts.prompt
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

    def hidden_files(self, run: RunResources) -> str:
        """As turns see them until the tests have ended."""
        return hidden_files(run.snapshots, run.workspace)

    def take(self, run: RunResources, asked: TurnPrompt, *, may_decline: bool) -> TurnResult | None:
        """The turn as an earlier run has it, with its changes made in the workspace; None if it must be asked.

        Raises `StorageError`.
        """
        if self._earlier is None:
            return None
        from codex_multi_role.extensions.replays.reuse.taking import TurnTaking  # here: most runs take over nothing

        role = self.read_role(asked.role, run.workspace.root)
        inputs = self.inputs(run, asked, role)
        for turn in self._earlier.turns_with(inputs, position_of(asked)):
            if _may_stand(turn, inputs, self._workspace, may_decline=may_decline) and self._reserve(turn):
                taken = TurnTaking(run, asked, turn, self._placed).take()
                if taken is not None:
                    self._keep_thread(run, asked, turn)
                    return taken
                self._taken.discard(turn.turn_id)
        return None

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
        if self._earlier and (same := self._earlier.same_result(measured.named(self._names))) is not None:
            measured = replace(measured, result=self._placed(same))
        return measured.written(folder, self._folder.redact)

    def _reserve(self, turn: EarlierTurn) -> bool:
        """A turn stands for one turn of this run: two equal prompts get two answers if there are two."""
        with self._lock:
            free = turn.turn_id not in self._taken
            self._taken.add(turn.turn_id)
            return free

    def _placed(self, value: Json) -> Json:
        """``value`` of the earlier run, with the paths of this one."""
        assert self._earlier is not None
        placed: Json = self._names.placed(self._earlier.names.named(value))
        return placed

    def _keep_thread(self, run: RunResources, asked: TurnPrompt, turn: EarlierTurn) -> None:
        """Let a later live turn continue the conversation, which Codex then forks from the earlier run's."""
        thread = turn.result["thread_id"]
        self._latest_turns[thread] = turn.turn_id
        self._taken_threads.add(thread)
        run.services.fleet.inherit(thread, turn.turn_id)
        homes = turn.run.folder.path / ".codex" / turn.instance, self._folder.codex_home(asked.instance)
        with self._lock:
            is_new = homes not in self._copied
            self._copied.add(homes)
        if is_new:
            copy_threads(*homes)


def _may_stand(turn: EarlierTurn, inputs: Mapping[str, str], workspace: Path, *, may_decline: bool) -> bool:
    """Whether ``turn``, whose inputs are equal, has an answer, a known conversation, and changes without own paths."""
    if turn.basis.refused or not inputs["thread"] or not is_settled(turn.recorded, may_decline=may_decline):
        return False
    folders = [turn.run.folder.path, *([turn.run.workspace] if turn.run.workspace != workspace else [])]
    return turn.basis.workspace == turn.basis.after or not _names_one_of(folders, turn)


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
