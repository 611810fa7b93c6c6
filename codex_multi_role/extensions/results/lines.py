"""Where each line of a file came from: which turn of which run wrote it, or a person.

Git does the work: the states of all runs in one workspace become commits of a private repository, and `git blame` goes
through them, following lines that moved within the file.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.results.run_history import RunHistory, history_of, make_chain
from codex_multi_role.extensions.results.workspace_states import Change
from codex_multi_role.run_folder import RunFolder, TurnFolder, list_runs
from codex_multi_role.workspace.git import Git
from codex_multi_role.workspace.trees import NOBODY, borrow_objects

HEADER = re.compile(rb"([0-9a-f]{40,64}) \d+ (\d+)(?: \d+)?")
MARKS = "marks"


@dataclass(frozen=True)
class LineOrigin:
    """``run`` is empty for a line that no run wrote. Without ``role``, it came between the turns of ``run``.

    ``prompt``: the file with the prompt of the turn.
    """

    line: int
    text: str
    run: str = ""
    role: str = ""
    turn: int = 0
    unit: str = ""
    at: str = ""
    prompt: str = ""


def runs_in_the_same_workspace(last: RunFolder) -> list[RunHistory]:
    """The histories of the runs in the workspace of ``last``, oldest first and up to it, as far as they have states."""
    runs = list_runs(last.path.parent)
    earlier = runs[: [run.run_id for run in runs].index(last.run_id) + 1]
    workspace = last.record().get("workspace")
    histories = [history_of(run) for run in earlier if run.record().get("workspace") == workspace]
    return [history for history in histories if history.states.first]


@dataclass(frozen=True)
class LineHistory:
    """The commits of all runs in one workspace, in a repository of their own, whose HEAD is the last one.

    ``changes``: what each commit stands for, and in which run.
    """

    git: Git
    changes: dict[str, tuple[RunFolder, Change]]

    def size(self, path: str) -> int | None:
        """The bytes of the file ``path`` in the latest recorded state; None if that has no such file."""
        kind = self.git.run("cat-file", "-t", f"HEAD:{path}", allowed=(0, 128)).stdout
        return int(self.git.run("cat-file", "-s", f"HEAD:{path}").stdout) if kind == b"blob\n" else None

    def origins(self, path: str, now: Path | None = None) -> list[LineOrigin]:
        """Return the origin of each line of ``path``, relative to the workspace, in its latest recorded state.

        ``now``: the file as it is today; what differs in it was written by a person. Raises `UsageError` if the latest
        recorded state does not have the file, `StorageError`.
        """
        if self.size(path) is None:
            message = f"{path} is not a file in the latest recorded state of the workspace"
            raise UsageError(message, "Was it ignored, or deleted?")
        contents = ["--contents", str(now)] if now else ["HEAD"]  # before git 2.41, it goes with no other commit
        printed = self.git.run("blame", "-M", "--porcelain", *contents, "--", path).stdout
        return [self._origin(commit, line, text) for commit, line, text in _lines(printed)]

    def _origin(self, commit: str, line: int, text: str) -> LineOrigin:
        folder, change = self.changes.get(commit, (None, Change("", "")))
        if folder is None or not change.before:  # before the first run, or between two of them
            return LineOrigin(line, text)
        prompt = str(TurnFolder.of(folder, change.role, change.turn).prompt_path.absolute()) if change.role else ""
        return LineOrigin(line, text, folder.run_id, change.role, change.turn, change.unit, change.at, prompt)


@contextmanager
def line_history(histories: Sequence[RunHistory]) -> Iterator[LineHistory]:
    """Make the commits of ``histories``: all runs in one workspace, oldest first. Raises `UsageError`, `StorageError`.

    The repository borrows the objects of all runs and copies, and is removed afterwards.
    """
    if not histories:
        raise UsageError("no run recorded a state of that workspace", "`codex-multi-role runs` lists the runs.")
    with tempfile.TemporaryDirectory(prefix="blame-") as folder:
        git = Git(Path(folder), Path(folder))
        git.initialize("--initial-branch=tip")
        borrow_objects(Path(folder), [git_dir for history in histories for git_dir in history.repositories()])
        commits = _ImportedCommits()
        for history in histories:
            commits.add(history)
        stream = "".join([*commits.stream, f"reset refs/heads/tip\nfrom {commits.tip}\n"])
        git.run("fast-import", "--quiet", f"--export-marks={folder}/{MARKS}", stdin=stream.encode())
        marks = dict(line.split() for line in (Path(folder) / MARKS).read_text().splitlines())
        yield LineHistory(git, {marks[mark]: each for mark, each in commits.changes.items()})


@dataclass
class _ImportedCommits:
    """What `git fast-import` reads. A commit is named by its mark."""

    stream: list[str] = field(default_factory=list)
    changes: dict[str, tuple[RunFolder, Change]] = field(default_factory=dict)
    tip: str = ""

    def add(self, history: RunHistory) -> None:
        """Add the commits of a run to those before it; a person made what differs at its start."""

        def commit(change: Change, parents: list[str]) -> str:
            made = self._write(history.tree_of(change, change.after), list(filter(None, parents)))
            of_copy = history.states.in_copies.get(change.copy, ()) if len(parents) == 1 else ()
            # What came before a merge is gone if `gc` removed the copy.
            self.changes[made] = (history.folder, of_copy[-1] if of_copy else change)
            return made

        self.tip = make_chain(history, commit(Change("", history.states.first), [self.tip]), commit)

    def _write(self, tree: str, parents: list[str]) -> str:
        number = len(self.changes) + 1
        lines = [f"commit refs/heads/{number}", f"mark :{number}", f"committer {NOBODY} {number} +0000", "data 0"]
        lines += [f"{word} {parent}" for word, parent in zip(("from", "merge"), parents, strict=False)]
        self.stream += [*(f"{line}\n" for line in lines), f'M 040000 {tree} ""\n\n']
        return f":{number}"


def _lines(printed: bytes) -> Iterator[tuple[str, int, str]]:
    """The commit, number and text of each line."""
    commit, number = "", 0
    for row in printed.split(b"\n"):
        if row.startswith(b"\t"):
            yield commit, number, row[1:].decode(errors="replace")
        elif header := HEADER.fullmatch(row):
            commit, number = header[1].decode(), int(header[2])
