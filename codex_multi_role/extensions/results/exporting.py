"""A run as a branch: one commit per turn that changed files, based on the commit that the run started from.

Commits depend only on the run, so the same run always gives the same commits, and a branch is set in one step after all
of them exist. The owner's index, hooks and signing are not used; line ends are converted as by ``git add``, and filters
run where nothing is that a model wrote.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.results.commit_texts import EVENTS, NOBODY, CommitFacts
from codex_multi_role.extensions.results.run_history import (
    RUNS_DIR,
    AnyRun,
    RunHistory,
    history_of,
    make_chain,
    result_of,
)
from codex_multi_role.extensions.results.workspace_states import Change
from codex_multi_role.host.user_cache import is_noted
from codex_multi_role.run_folder import skim_with_inherited
from codex_multi_role.run_folder.folder import SHARED
from codex_multi_role.workspace.conversion import ATTRIBUTES, clean, copy_attributes, filtered
from codex_multi_role.workspace.git import ConfiguredGit, Git
from codex_multi_role.workspace.removal import delete_folder
from codex_multi_role.workspace.repository import Repository, where_it_works
from codex_multi_role.workspace.snapshots import kept_paths
from codex_multi_role.workspace.trees import (
    REPOSITORY,
    TreeEntry,
    changes,
    check_out,
    entries_of,
    put_into,
    write_commit,
)

RULES = (ATTRIBUTES, ".gitignore")
"""The files that say which files git adds, and how."""
Files = Mapping[str, TreeEntry | None]
"""Files by path, None for one that is deleted."""


@dataclass(frozen=True)
class Exported:
    """``commits`` lead from ``base`` to ``tip``, oldest first. ``is_new``: whether the branch was set or moved.

    ``repository``: the folder of its work tree. ``ignored``: files that roles wrote, and that are in no commit because
    the owner's git ignores them.
    """

    repository: Path

    branch: str
    base: str
    tip: str
    commits: tuple[str, ...]
    is_new: bool
    ignored: tuple[str, ...] = ()


def export(run: AnyRun, *, branch: str, repo: Path | str | None = None, runs_dir: Path | str = RUNS_DIR) -> Exported:
    """Make a branch with one commit per turn of a run that changed files.

    ``run``: a `Run`, a `ReportedRun`, or the id of a run in ``runs_dir``. ``branch``: new, or from an earlier export of
    the run. ``repo``: a folder in a git repository, by default in that of the run's workspace.

    Raises `RunNotFound`, `UsageError` if the run changed nothing or the branch cannot be made, `StorageError`.
    """
    history = history_of(run, runs_dir)
    result = result_of(history)
    if result.before == result.after:
        raise _nothing_to_commit(history)
    return export_branch(history, branch, *start_of(history, Path(repo) if repo else None))


def _nothing_to_commit(history: RunHistory) -> UsageError:
    return UsageError(f"run {history.folder.run_id} changed no files", "There is nothing to commit.")


def export_branch(history: RunHistory, branch: str, repository: Repository, below: str, base: str) -> Exported:
    """Make the commits of the run in ``repository``, and set ``branch`` to the last one.

    ``below``: the workspace's folder in the repository, empty for its top; ``base``: the commit that the run started
    from, empty before the first one. Raises `UsageError` for a branch that is not an earlier export, `StorageError`.
    """
    place = history.folder.path / "exported"
    delete_folder(place)  # left by a kill
    commits = _BranchCommits(history, repository, below, base, place)
    try:
        made = commits.make()
    finally:
        delete_folder(place)
    tip = made[-1] if made else base
    created = (history.folder.record().get("options") or {}).get("branch")  # by the run, for its worktree
    own = [*made, *([base] if created == branch else [])]
    if not tip:
        raise _nothing_to_commit(history)
    is_new = _set_branch(repository, branch, tip, own)
    return Exported(repository.top, branch, base, tip, tuple(made), is_new, tuple(sorted(commits.ignored)))


def _set_branch(repository: Repository, branch: str, tip: str, own: Collection[str]) -> bool:
    """Point ``branch``, if it is new or at one of the ``own`` commits, to ``tip`` in one step; returns if it moved."""
    git, reference = repository.git, f"refs/heads/{branch}"
    now = git.run("rev-parse", "--verify", "--quiet", reference, allowed=(0, 1)).stdout.decode().strip()
    if now == tip:
        return False
    if now:
        if now not in own:
            raise UsageError(f"the branch {branch} exists, and is not an earlier export", "Choose another --branch.")
        if f"branch {reference}\n" in git.run("worktree", "list", "--porcelain").stdout.decode(errors="replace"):
            raise UsageError(f"the branch {branch} is checked out", "Check out another one first.")
    elif problem := repository.branch_problem(branch):
        raise UsageError(problem, "Choose another --branch.")
    git.run("update-ref", reference, tip, now or "0" * len(tip))
    return True


class _BranchCommits:
    """Makes the commits of one run, in ``repository``; ``place`` gets the files that git is to read."""

    def __init__(self, history: RunHistory, repository: Repository, below: str, base: str, place: Path) -> None:
        self._history = history
        self._below = f"{below}/" if below else ""
        self._base = base
        self._place, self._files = place, place / "files"
        self._facts = CommitFacts.of(history.folder.record(), skim_with_inherited(history.folder, EVENTS))
        self._files.mkdir(parents=True)
        self._git = ConfiguredGit(repository.top / ".git", self._files)
        self._made: list[str] = []
        self._tracked = entries_of(self._git, base) if base else {}
        self._seen: set[str] = set()
        self.ignored: set[str] = set()

    def make(self) -> list[str]:
        states = self._history.states
        make_chain(self._history, self._commit_first(self._history.tree(states.first)), self._commit)
        return self._made

    def _commit_first(self, started: str) -> str:
        """The commit with what was uncommitted when the run started; the base if there was nothing."""
        git = self._history.git()
        found = entries_of(git, started)
        files = {path: found.get(path) for path in self._uncommitted(git, found)}
        self._seen = {*found, *files}
        attributes = {path: entry for path, entry in found.items() if path.rpartition("/")[2] in RULES}
        tree = self._tree_with(self._base, git, files, attributes)
        at = str(self._history.folder.record().get("started_at", ""))
        return self._unless_same(tree, [self._base], self._facts.before(), NOBODY, at)

    def _commit(self, change: Change, parents: list[str]) -> str:
        git = self._history.git(change)
        before, after = (self._history.tree_of(change, state) for state in (change.before, change.after))
        listed = changes(git, before, after).items()
        files = {path: entry for path, (earlier, entry) in listed if not _is_nested(earlier) and not _is_nested(entry)}
        tree = self._tree_with(parents[0], git, files)
        return self._unless_same(tree, parents, self._facts.message(change), self._facts.author(change), change.at)

    def _unless_same(self, tree: str, parents: list[str], message: str, author: str, at: str) -> str:
        """A commit; its only parent if it would change nothing, or none if there is nothing yet."""
        if len(parents) == 1 and self._tree_of(parents[0]) == tree:
            return parents[0]
        who = f"{author} <{author}@{NOBODY}.invalid>"
        self._made.append(write_commit(self._git, tree, list(filter(None, parents)), who, _seconds(at), message))
        return self._made[-1]

    def _tree_of(self, commit: str) -> str:
        asked = ("rev-parse", f"{commit}^{{tree}}") if commit else ("hash-object", "-t", "tree", "--stdin")
        return self._run(*asked).decode().strip()

    def _uncommitted(self, git: Git, found: Mapping[str, TreeEntry]) -> Iterator[str]:
        """The files that differed from the base when the run started, as the owner's git saw them."""
        recorded = str((self._history.folder.record().get("repository") or {}).get("uncommitted", ""))
        paths = kept_paths(git, recorded) if recorded else () if self._base else found
        return (path for path in paths if path and not path.endswith("/") and not _is_nested(found.get(path)))

    def _tree_with(self, commit: str, git: Git, files: Files, attributes: Mapping[str, TreeEntry] | None = None) -> str:
        """The tree of ``commit`` with ``files``, from ``git``, added as by `git add`, or removed.

        How they are converted is in the attribute files of the commit, or in ``attributes``.
        """
        root, files = self._files / self._below, self._outside_submodules(files)
        delete_folder(self._files)
        root.mkdir(parents=True)
        self._run("read-tree", commit or "--empty")
        known = self._run("ls-files", "-z", "--", *(f":(glob)**/{name}" for name in RULES))
        self._run("checkout-index", "--force", "--quiet", "-z", "--stdin", stdin=known)
        for path in (path for path, entry in files.items() if entry is None and path.endswith(RULES)):
            (root / path).unlink(missing_ok=True)
        check_out(git, {**(attributes or {}), **{path: entry for path, entry in files.items() if entry}}, root)
        put_into(self._git, self._place / "index", self._gone_since(files))
        ignored = self._ignored_of(path for path, entry in files.items() if entry)
        files = {path: entry for path, entry in files.items() if path not in ignored}
        converted = self._filtered({f"{self._below}{path}": entry for path, entry in files.items() if entry})
        paths = (f"{self._below}{path}" for path in files)
        named = b"".join(os.fsencode(path) + b"\0" for path in paths if path not in converted)
        options = ("--add", "--remove", "--replace", "-z", "--stdin")
        self._run("-c", "core.safecrlf=false", "update-index", *options, stdin=named)
        unseen = self._unseen(path for path, entry in files.items() if entry is None)
        put_into(self._git, self._place / "index", {**converted, **unseen})
        return self._run("write-tree").decode().strip()

    def _outside_submodules(self, files: Files) -> Files:
        """Leave out files in the folder of a submodule: they are not in this repository."""
        submodules = tuple(f"{path}/" for path, entry in self._tracked.items() if _is_nested(entry))
        return {path: entry for path, entry in files.items() if not f"{self._below}{path}".startswith(submodules)}

    def _gone_since(self, files: Files) -> dict[str, TreeEntry]:
        """What the base has for ``files`` that were deleted since: git takes modes and line ends from the index."""
        present = {*os.fsdecode(self._run("ls-files", "-z")).split("\0")}
        paths = (f"{self._below}{path}" for path, entry in files.items() if entry)
        return {path: self._tracked[path] for path in paths if path in self._tracked and path not in present}

    def _unseen(self, deleted: Iterable[str]) -> dict[str, TreeEntry]:
        """What the base has for those that the workspace did not have at first, such as outside of a sparse checkout.

        To delete such a file again leaves it as it was.
        """
        paths = (f"{self._below}{path}" for path in deleted if path not in self._seen)
        return {path: self._tracked[path] for path in paths if path in self._tracked}

    def _ignored_of(self, paths: Iterable[str]) -> set[str]:
        """Those that the owner's git neither tracks nor would add: a role wrote them although they are ignored."""
        named = b"".join(os.fsencode(f"{self._below}{path}") + b"\0" for path in paths)
        git, index = self._git, self._place / "index"
        listed = git.run("check-ignore", "-z", "--stdin", stdin=named, allowed=(0, 1), index=index).stdout
        found = {path.removeprefix(self._below) for path in os.fsdecode(listed).split("\0")[:-1]}
        self.ignored |= found
        return found

    def _filtered(self, entries: Mapping[str, TreeEntry]) -> dict[str, TreeEntry]:
        """Those of the files that have a filter, as it stores them. Raises `UsageError` if one may not run."""
        named = filtered(self._git, (path for path, entry in entries.items() if entry.is_file), self._place / "index")
        if not named:
            return {}
        attributes = self._place / "attributes"
        delete_folder(attributes)
        copy_attributes(self._files, attributes)
        ids = clean(self._git, {path: self._files / path for path in named}, attributes)
        return {path: TreeEntry(entries[path].mode, oid) for path, oid in ids.items()}

    def _run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        return self._git.run(*arguments, stdin=stdin, index=self._place / "index").stdout


def _is_nested(entry: TreeEntry | None) -> bool:
    """Whether it is a nested repository, such as a submodule, which snapshots leave out."""
    return entry is not None and entry.mode == REPOSITORY


def _seconds(at: str) -> int:
    try:
        return int(datetime.fromisoformat(at).timestamp())
    except ValueError:
        return 0


def start_of(history: RunHistory, place: Path | None) -> tuple[Repository, str, str]:
    """The repository to export to, the workspace's folder in it and the commit that the run started from.

    ``place``: a folder in it; None for that of the run or, if it was shared, the one around the current folder: that of
    the run was on a worker, or this machine did not record the run. Raises `UsageError` if it or the commit is missing.
    """
    record = history.folder.record()
    recorded = record.get("repository") or {}
    if place is None and (SHARED in record or (recorded and not is_noted("owned", where_it_works(record)))):
        return _clone_here(recorded)
    if not recorded and place is None:
        message = f"run {history.folder.run_id} did not work in a git repository"
        raise UsageError(message, "Name one with --repo; the branch starts without a parent there.")
    found = Repository.around(place.resolve() if place else Path(str(recorded["top"])))
    if found is None and place:
        raise UsageError(f"--repo: {place} is not in a git repository", "`git init` makes one.")
    if found is None:
        raise UsageError(f"{recorded['top']} is not a git repository any more", "Name its new place with --repo.")
    return _with_commit(found, recorded)


def _clone_here(recorded: Mapping[str, str]) -> tuple[Repository, str, str]:
    found = Repository.around(Path.cwd())
    if found is None:
        message = f"{Path.cwd()} is not in a git repository, and that of the run was on another machine"
        raise UsageError(message, "Change into a clone of it, or name one with --repo.")
    return _with_commit(found, recorded)


def _with_commit(found: Repository, recorded: Mapping[str, str]) -> tuple[Repository, str, str]:
    base = str(recorded.get("commit", ""))
    if base and found.git.run("cat-file", "-e", f"{base}^{{commit}}", allowed=(0, 1, 128)).returncode:
        message = f"{found.top} lacks the commit {base[:12]}, from which the run started"
        raise UsageError(message, "Fetch it first; `apply` needs no commit.")
    return found, str(recorded.get("below", "")), base
