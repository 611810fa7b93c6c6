"""The changes of a run as git prints them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from codex_multi_role.extensions.results.run_history import RUNS_DIR, AnyRun, RunHistory, history_of, result_of
from codex_multi_role.extensions.results.workspace_states import Change

OPTIONS = ("-r", "--no-color", "--find-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
PATCH = ("--patch", "--binary", "--full-index")


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
    stat: bool = False,
    runs_dir: Path | str = RUNS_DIR,
) -> Diff:
    """What a run changed, from its first state to its latest; also of one that was killed or is still running.

    ``run``: a `Run`, a `ReportedRun`, or the id of a run in ``runs_dir``. ``role``, ``turn``: only the turns of that
    role, or only that turn, each below a line that names it. ``stat``: only how many lines changed in each file.

    Raises `RunNotFound`, `UsageError` for a role or turn that changed nothing, `StorageError`.
    """
    history = history_of(run, runs_dir)
    if role is None and turn is None:
        result = result_of(history)
        patches = [_difference(history, None, result.before, result.after, stat=stat)]
    else:
        patches = [_patch_of_turn(history, each, stat=stat) for each in history.turns(role, turn)]
    return Diff(history.folder.run_id, tuple(filter(None, patches)))


def _patch_of_turn(history: RunHistory, turn: Change, *, stat: bool) -> bytes:
    """The changes below a line that names the turn; git ignores such lines when it applies a patch."""
    heading = ", ".join(filter(None, (turn.role, f"turn {turn.turn}", turn.unit)))
    return f"{heading}\n\n".encode() + _difference(history, turn, turn.before, turn.after, stat=stat)


def _difference(history: RunHistory, change: Change | None, before: str, after: str, *, stat: bool) -> bytes:
    shown = ("--stat=100", "--summary") if stat else PATCH
    return history.git(change).run("diff-tree", *OPTIONS, *shown, before, after).stdout
