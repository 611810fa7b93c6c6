"""The changes of a run as git prints them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from codex_multi_role.extensions.results.run_history import RUNS_DIR, AnyRun, RunHistory, history_of, result_of
from codex_multi_role.extensions.results.workspace_states import Change
from codex_multi_role.presentation.recorded import changes_of
from codex_multi_role.run_folder.past import NOW, START
from codex_multi_role.workspace.differences import Changes


@dataclass(frozen=True)
class Diff:
    """What a run changed. ``patches``: that of the whole run, or one per turn; none if no file changed."""

    run_id: str
    patches: tuple[bytes, ...]

    @property
    def patch(self) -> bytes:
        """All of it, exactly, for ``git apply``."""
        return b"".join(self.patches)

    @property
    def text(self) -> str:
        """All of it, for people: bytes that are not UTF-8 are replaced."""
        return self.patch.decode(errors="replace")


def diff(
    run: AnyRun,
    *,
    role: str | None = None,
    turn: int | None = None,
    since: str = START,
    until: str = NOW,
    stat: bool = False,
    runs_dir: Path | str = RUNS_DIR,
) -> Diff:
    """What a run changed, from its first state to its latest; also of one that was killed or is still running.

    ``run``: a `Run`, a `ReportedRun`, or the id of a run in ``runs_dir``. ``role``, ``turn``: only the turns of that
    role, or only that turn, each below a line that names it. ``since``, ``until``: points of the run, see `changes_of`.
    ``stat``: only how many lines changed in each file.

    Raises `RunNotFound`, `UsageError` for a role or turn that changed nothing, `StorageError`.
    """
    history = history_of(run, runs_dir)
    if role is None and turn is None:
        patches = [_printed(_changes(history, since, until), stat=stat)]
    else:
        patches = [_patch_of_turn(history, each, stat=stat) for each in history.turns(role, turn)]
    return Diff(history.folder.run_id, tuple(filter(None, patches)))


def _patch_of_turn(history: RunHistory, turn: Change, *, stat: bool) -> bytes:
    """The changes below a line that names the turn; git ignores such lines when it applies a patch."""
    heading = ", ".join(filter(None, (turn.role, f"turn {turn.turn}", turn.unit)))
    return f"{heading}\n\n".encode() + _printed(Changes(history.git(turn), turn.before, turn.after), stat=stat)


def _changes(history: RunHistory, since: str, until: str) -> Changes:
    """Up to `NOW` they are those of the result, which knows the states of a run that was killed or still works."""
    if until != NOW:
        return changes_of(history.folder, since, until)
    result = result_of(history)
    if since == START:
        return Changes(history.git(), result.before, result.after)
    return replace(changes_of(history.folder, since), after=result.after)


def _printed(changes: Changes, *, stat: bool) -> bytes:
    return changes.printed("--stat=100", "--summary") if stat else changes.patch()
