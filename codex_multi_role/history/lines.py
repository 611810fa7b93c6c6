"""Where each line of a file came from: which turn of which run wrote it, or a person.

Git does the work: the states of all runs in one workspace become commits of a private repository, and `git blame` goes
through them, following lines that moved within the file.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from codex_multi_role.errors import UsageError
from codex_multi_role.history.chain import make_chain
from codex_multi_role.history.run_history import RunHistory, history_of
from codex_multi_role.history.workspace_states import Change
from codex_multi_role.run_folder import RunFolder, list_runs
from codex_multi_role.workspace.git import Git
from codex_multi_role.workspace.trees import write_commit

HEADER = re.compile(rb"([0-9a-f]{40,64}) \d+ (\d+)(?: \d+)?")


@dataclass(frozen=True)
class LineOrigin:
    """``run`` is empty for a line that no run wrote. Without ``role``, it came between the turns of ``run``."""

    line: int
    text: str
    run: str = ""
    role: str = ""
    turn: int = 0
    unit: str = ""
    at: str = ""


def runs_in_the_same_workspace(runs_dir: Path, last: RunFolder) -> list[RunHistory]:
    """The histories of the runs in the workspace of ``last``, oldest first and up to it, as far as they have states."""
    runs = list_runs(runs_dir)
    earlier = runs[: [run.run_id for run in runs].index(last.run_id) + 1]
    workspace = last.record().get("workspace")
    histories = [history_of(run) for run in earlier if run.record().get("workspace") == workspace]
    return [history for history in histories if history.states.first]


def origins(histories: Sequence[RunHistory], path: str, now: Path | None) -> list[LineOrigin]:
    """Return the origin of each line of ``path``, relative to the workspace, after the last of ``histories``.

    They are all runs in that workspace, oldest first. ``now``: the file as it is today, if it still exists; what
    differs in it was written by a person. Raises `UsageError` if no recorded state has the file, `StorageError`.
    """
    if not histories:
        raise UsageError("no run recorded a state of that workspace", "`codex-multi-role runs` lists the runs.")
    with _repository(histories) as git:
        made: dict[str, tuple[str, Change]] = {}
        tip = ""
        for history in histories:
            tip = _commits(git, history, tip, made)
        if git.run("cat-file", "-e", f"{tip}:{path}", allowed=(0, 1, 128)).returncode:
            raise UsageError(
                f"{path} is not in the latest recorded state of the workspace", "Was it ignored, or deleted?"
            )
        git.run("update-ref", "--no-deref", "HEAD", tip)  # before git 2.41, --contents goes with no other commit
        contents = ["--contents", str(now)] if now else ["HEAD"]
        printed = git.run("blame", "-M", "--porcelain", *contents, "--", path).stdout
    return [_origin(made, commit, line, text) for commit, line, text in _lines(printed)]


@contextmanager
def _repository(histories: Sequence[RunHistory]) -> Iterator[Git]:
    """A repository of its own that borrows the objects of all runs and copies."""
    with tempfile.TemporaryDirectory(prefix="blame-") as folder:
        git = Git(Path(folder), Path(folder))
        git.run("init", "--quiet", "--template=")
        borrowed = [git_dir / "objects" for history in histories for git_dir in history.repositories()]
        (Path(folder) / "objects/info/alternates").write_text("".join(f"{path.resolve()}\n" for path in borrowed))
        yield git


def _commits(git: Git, history: RunHistory, before: str, made: dict[str, tuple[str, Change]]) -> str:
    """Make the commits of a run after ``before``, and return the last; a person made what differs at its start."""
    run_id = history.folder.run_id

    def commit(change: Change, parents: list[str]) -> str:
        # A later commit has a later time, and no two are the same.
        new = write_commit(git, history.tree_of(change, change.after), list(filter(None, parents)), at=len(made))
        of_copy = history.states.in_copies.get(change.copy, ()) if len(parents) == 1 else ()
        made[new] = (run_id, of_copy[-1] if of_copy else change)  # `gc` removed what came before the merge
        return new

    first = history.states.first
    return make_chain(history, commit(Change("", first), [before]) if first else before, commit)


def _lines(printed: bytes) -> Iterator[tuple[str, int, str]]:
    """The commit, number and text of each line."""
    commit, number = "", 0
    for row in printed.split(b"\n"):
        if row.startswith(b"\t"):
            yield commit, number, row[1:].decode(errors="replace")
        elif header := HEADER.fullmatch(row):
            commit, number = header[1].decode(), int(header[2])


def _origin(made: dict[str, tuple[str, Change]], commit: str, line: int, text: str) -> LineOrigin:
    run, change = made.get(commit, ("", Change("", "")))
    if not change.before:  # before the first run, or between two of them
        return LineOrigin(line, text)
    return LineOrigin(line, text, run, change.role, change.turn, change.unit, change.at)
