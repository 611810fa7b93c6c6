"""Execute a command on recorded states of a workspace, each in a fresh folder that always has the same path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codex_multi_role.checks.command import run_argv
from codex_multi_role.checks.contract import CheckContext
from codex_multi_role.errors import SetupFailed
from codex_multi_role.history.bisecting import Outcome
from codex_multi_role.history.recorded_states import RecordedState, restorable_tree
from codex_multi_role.history.run_history import RunHistory
from codex_multi_role.host.atomic import make_folder, write_text
from codex_multi_role.workspace import Snapshots
from codex_multi_role.workspace.preparation import Preparation
from codex_multi_role.workspace.removal import delete_folder

NOT_JUDGED = 125
"""The exit code by which a command says that it cannot judge a state, as in `git bisect run`."""


@dataclass(frozen=True)
class Trial:
    """How the command ended on a state. ``reason``: why it did not pass; ``output`` its output and errors."""

    outcome: Outcome
    reason: str = ""
    seconds: float = 0.0
    output: str = ""
    could_run: bool = True


class Trials:
    """Tries the ``argv`` of a `CheckContext` on states of ``history``; everything it makes is in ``folder``.

    ``context``: what the check ``command`` uses, for the empty folder of its workspace. ``preparation`` prepares that
    folder for each trial, if the run's worktrees need that.
    """

    def __init__(
        self, history: RunHistory, folder: Path, context: CheckContext, preparation: Preparation | None = None
    ) -> None:
        self._history = history
        self._folder = folder
        self._context = context
        self._preparation = preparation
        git_dir = folder / "snapshots.git"
        borrowed = "".join(f"{(each / 'objects').resolve()}\n" for each in history.repositories())
        write_text(make_folder(git_dir / "objects" / "info") / "alternates", borrowed)
        self._snapshots = Snapshots(git_dir, context.workspace)

    def run(self, state: RecordedState) -> Trial | None:
        """Execute the command on ``state``; None if that cannot be restored.

        Raises UsageError, StorageError, RunInterrupted.
        """
        tree = restorable_tree(self._history, state, self._snapshots.repository())
        if tree is None:
            return None
        self._restore(tree)
        try:
            if self._preparation:
                self._preparation.prepare(self._context.workspace, self._snapshots, self._folder)
        except SetupFailed as error:
            return Trial("unknown", str(error))
        return _judged(run_argv(self._context))

    def _restore(self, tree: str) -> None:
        root = self._context.workspace.root
        delete_folder(root)
        make_folder(root)
        self._snapshots.leave_out(())  # what an earlier preparation made
        self._snapshots.restore(tree)


def _judged(result: Mapping[str, Any]) -> Trial:
    output = "\n".join(filter(None, (result["stdout"].rstrip(), result["stderr"].rstrip())))
    reason = "timed out" if result["status"] == "timed out" else result["reason"]
    trial = Trial("fail", reason, result["seconds"], output, result["status"] != "could not run")
    if result["exit_code"] == NOT_JUDGED:
        return replace(trial, outcome="unknown")
    return replace(trial, outcome="pass") if result["status"] == "ok" else trial
