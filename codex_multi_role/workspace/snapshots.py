"""What a turn changed: trees of the workspace in a private git repository, and the patch between two of them.

The user's own repository is never touched: the private one has its own index, and its attributes turn off every
conversion, so that a snapshot holds the bytes on disk. Nested repositories are excluded. What only tests of ours have
changed is as it was before them: they leave it on disk, because a person may be writing there, but it is nobody's work.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from threading import Lock, RLock
from typing import IO

from codex_multi_role.errors import StorageError
from codex_multi_role.host.atomic import make_folder, replacing, storage_errors, write_text
from codex_multi_role.host.unpacking import UnpackingRefused
from codex_multi_role.workspace.differences import PATCH, Changes
from codex_multi_role.workspace.git import Git, last_words
from codex_multi_role.workspace.paths import PathRefused, Workspace
from codex_multi_role.workspace.repository import top_around
from codex_multi_role.workspace.state_files import CACHES, escaped, present, state_files
from codex_multi_role.workspace.trees import REPOSITORY, changes, exchanged, measure_commit, repositories_in, without

# `!diff` lets git detect binary files.
_ATTRIBUTES = "* -text -eol -ident -filter !working-tree-encoding !diff !merge\n"
_CONFIGURATION = """\
[core]
\tautocrlf = false
\tattributesFile = /dev/null
\texcludesFile = /dev/null
\thooksPath = /dev/null
\tfsmonitor = false
[advice]
\taddEmbeddedRepo = false
[gc]
\tauto = 0
"""
_ENVIRONMENT, _PREPARED, _IGNORED = "environment", "prepared", "ignored"
"""Files of the repository: the paths that `Snapshots.leave_out` excludes, the mark of `Snapshots.mark_prepared`, and
the patterns of the user's repository, for folders that are not in it."""
_TESTED = "tested"
"""The file with the snapshot before the latest tests, and what they left on disk; without that, they were killed."""


class Snapshots:
    """Snapshots of ``workspace`` in the repository ``git_dir``, which is created on first use.

    A snapshot is a git tree id. It has the files that `state_files` names, without caches and the forbidden folders.
    Threads may share it. Every method raises UsageError if git is missing, StorageError if it fails.
    """

    def __init__(self, git_dir: Path, workspace: Workspace) -> None:
        self._git = Git(git_dir.absolute(), workspace.root)
        self._workspace = workspace
        self._lock = Lock()  # waits: for calls of git, ended by GIT_SECONDS each
        self._ready = False
        self._environment: list[str] = []
        self._tracked: tuple[str, ...] = ()
        self._written: tuple[tuple[int, ...], str] | None = None
        self._tested = ("", "")
        self._testing: tuple[str, str, Callable[[], bool]] | None = None
        self.hidden, self.hiding = "", RLock()  # waits: for one digest of the hidden files, and calls of git

    @property
    def is_prepared(self) -> bool:
        """Whether `mark_prepared` was called: the workspace has all that it needs besides the files in snapshots."""
        return self._prepared_mark.exists()

    def mark_prepared(self) -> None:
        with storage_errors(self._prepared_mark):
            self._prepared_mark.touch()

    @property
    def _prepared_mark(self) -> Path:
        return self._git.git_dir / "info" / _PREPARED

    def leave_out(self, paths: Sequence[str]) -> None:
        """Exclude files and folders, none of which is in a snapshot yet, from now on; replaces those of earlier calls.

        They are excluded even if a ``.gitignore`` names them. The workspace does not count as prepared until the next
        `mark_prepared`.
        """
        with self._lock:
            self._prepare()
            info = self._git.git_dir / "info"
            with storage_errors(info):
                self._prepared_mark.unlink(missing_ok=True)
                (info / _ENVIRONMENT).write_bytes(_nul_separated(paths))
            self._ready = False

    def untracked(self) -> list[str]:
        """What the workspace has but the latest snapshot lacks, ignored or not; a folder as a whole if possible."""
        with self._lock:
            self._prepare()
            listed = self._git.run("ls-files", "--others", "--directory", "--no-empty-directory", "-z").stdout
        return [path.rstrip("/") for path in os.fsdecode(listed).split("\0")[:-1]]

    def unrecorded(self) -> list[str]:
        """What no snapshot has: `untracked` files, empty folders and nested repositories."""
        with self._lock:
            self._prepare()
            listed = self._git.run("ls-files", "-t", "--stage", "--others", "--directory", "-z").stdout
        entries = os.fsdecode(listed).split("\0")[:-1]
        others = [entry[2:] for entry in entries if entry.startswith("? ")]
        nested = [entry.partition("\t")[2] for entry in entries if entry.startswith(f"H {REPOSITORY} ")]
        return [path.rstrip("/") for path in (*others, *nested)]

    def take(self, force: Iterable[str] = ()) -> str:
        """Snapshot the current workspace; returns the tree id.

        ``force`` names files, relative to the workspace, that are included even if ignored, now and from then on.
        """
        with self._lock:
            return self._without_tested(self._on_disk(force))

    @contextlib.contextmanager
    def testing(self, is_shared: Callable[[], bool], hidden: Callable[[], str] = str) -> Iterator[str]:
        """While the block runs, tests do; yields the snapshot before. Later ones lack what changed only then.

        ``is_shared``: whether others may have written meanwhile, so that all of it counts. ``hidden``: a
        digest of what no snapshot has, before; it is `hidden` until the tests have ended.
        """
        with self.hiding:
            with self._lock:
                now = self._on_disk()
                self._testing = self._testing or (self._without_tested(now), now, is_shared)
                before, there, _ = self._testing
                self._note_tested(before, there if is_shared() else "")
            self.hidden = hidden()
        try:
            yield before
        finally:
            self.hidden = ""
            with self._lock:
                now, self._testing = self._on_disk(), None
                self._note_tested(before, there if is_shared() else now)

    def _note_tested(self, before: str, left: str) -> None:
        self._tested = before, left
        write_text(self._git.git_dir / "info" / _TESTED, f"{before} {left}")

    def _without_tested(self, tree: str) -> str:
        before, left = self._tested
        if self._testing:
            before, left, is_shared = self._testing
            if not is_shared():
                return before
            self._note_tested(before, left)  # after a kill, nobody knows whose the changes are
        return exchanged(self._git, tree, left, before) if left else tree

    def _on_disk(self, force: Iterable[str] = ()) -> str:
        """The tree of the files as they are, also of those that tests left; a role wrote those of ``force``."""
        self._prepare()
        self._add()
        tracked, forced = _nul_separated(present(self._workspace.root, self._tracked)), self._trackable(force)
        if paths := tracked + forced:
            self._git.read_files("update-index", "--add", "--remove", "-z", "--stdin", stdin=paths)
        tree, (before, left) = self._write_tree(), self._tested
        if before and not left and not self._testing:
            self._note_tested(before, tree)
        elif left and forced:
            written = os.fsdecode(forced).split("\0")
            self._note_tested(before, exchanged(self._git, left, left, before, written))
        return tree

    def _add(self) -> None:
        """Record the workspace in the index, but not the environment: a ``.gitignore`` could re-include that."""
        options, stdin = ["--all", "--ignore-errors"], b""
        if self._environment:
            options += ["--pathspec-from-file=-", "--pathspec-file-nul"]
            stdin = _nul_separated([".", *(f":(exclude,literal){path}" for path in self._environment)])
        added = self._git.read_files("add", *options, stdin=stdin, allowed=(0, 1))
        if b"insert into database" in added.stderr:
            raise StorageError(f"the workspace cannot be recorded: {last_words(added.stderr)}", "is the disk full?")

    def repository(self) -> Git:
        """The private repository, created if missing."""
        with self._lock:
            self._prepare()
        return self._git

    def keep(self, paths: Iterable[str]) -> str:
        """Keep a list of paths with the snapshots; returns the id for `kept_paths`."""
        return (
            self.repository().run("hash-object", "-w", "--stdin", stdin=_nul_separated(paths)).stdout.decode().strip()
        )

    def latest(self) -> str:
        """The tree of the latest snapshot; empty before the first one."""
        with self._lock:
            self._prepare()
            return self._without_tested(self._write_tree())

    def restore(self, tree: str) -> None:
        """Restore the workspace to the snapshot ``tree``; files that snapshots exclude stay as they are."""
        with self._lock:
            now = self._on_disk()
            there = exchanged(self._git, tree, self._without_tested(now), now)
            self._note_tested(tree, there)
            self._git.run("read-tree", "-m", "-u", now, there)

    def fill(self, tree: str) -> None:
        """Make the workspace, such as a fresh clone, the snapshot ``tree`` of this repository; ignored files stay.

        Unlike `restore`, this overwrites files that a ``.gitignore`` names but ``tree`` has.
        """
        self.take()
        with self._lock:
            try:
                measure_commit(self._git, tree)
            except UnpackingRefused as error:
                raise StorageError(f"the workspace at {tree[:12]} cannot be restored: {error}") from error
            self._note_tested(tree, tree)
            self._git.run("read-tree", "--reset", "-u", tree)

    def fill_from(self, source: Path, tree: str, leave_out: Sequence[str] = ()) -> list[str]:
        """Fill the empty workspace with ``tree`` of another run's repository, and copy all objects of that repository.

        ``leave_out`` are folders, relative to the workspace. Returns the paths of nested repositories, whose files are
        in no snapshot. ``source`` is only read, and may be in use.
        """
        with self._lock:
            copy_rules(source, self._git.git_dir)
            self._ready = False
            self._prepare()
            _copy_objects(source / "objects", self._git.git_dir / "objects")
            if not self._has(tree):
                raise StorageError(
                    f"the recorded state {tree} of the workspace is not in {source}",
                    "Restore the run folder from a copy, or start another run.",
                )
            nested = repositories_in(self._git, tree)
            files = without(self._git, tree, [*nested, *leave_out])
        self.restore(files)
        return nested

    def with_ignored(self, tree: str, paths: Iterable[str]) -> str:
        """``tree`` with the current content of those ``paths`` that it lacks only because they are ignored.

        Call it just before a turn's files are written. Otherwise the patch of an existing ignored file would create it,
        and reverting the patch would delete it.
        """
        with self._lock:
            self._prepare()
            existing = self._trackable(paths, existing=True)
            if not existing:
                return tree
            ignored = self._git.run("check-ignore", "-z", "--stdin", stdin=existing, allowed=(0, 1)).stdout
            if not ignored:
                return tree
            index = self._git.git_dir / "index.before"
            self._git.run("read-tree", tree, index=index)
            options = ("--add", "--remove", "-z", "--stdin")
            self._git.read_files("update-index", *options, stdin=ignored, index=index)
            return self._tree_of(index)

    def find_in(self, sources: Iterable[Path], tree: str) -> bool:
        """Whether ``tree`` is here or in one of the repositories ``sources``, whose objects are then copied.

        Raises `StorageError` if they cannot be.
        """
        with self._lock:
            self._prepare()
            for source in sources:
                if self._has(tree):
                    break
                _copy_objects(source / "objects", self._git.git_dir / "objects")
            return self._has(tree)

    def _has(self, tree: str) -> bool:
        return self._git.run("cat-file", "-e", f"{tree}^{{tree}}", allowed=(0, 1, 128)).returncode == 0

    def patch(self, before: str, after: str, output: IO[bytes] | None = None) -> bytes:
        """The changes between two snapshots as a unified diff, binary files included.

        ``git apply -R`` in the workspace reverts it. If the workspace is inside a git repository, the names are
        relative to that repository's top, because git reads them that way there. A repository that converts files (line
        ends against its own rule, filters such as LFS) also converts them then; ``git --git-dir=<git_dir> --work-tree=.
        apply -R`` is always byte-exact, in a workspace that is a repository's top or in none.
        """
        root = self._workspace.root
        below = root.relative_to(top_around(root) or root)
        place = f"{below.as_posix()}/" if below.parts else ""
        prefixes = (f"--src-prefix=a/{place}", f"--dst-prefix=b/{place}")
        return self.changes(before, after).printed(*PATCH, *prefixes, output=output)

    def write_patch(self, before: str, after: str, path: Path) -> None:
        """Write `patch` to the file ``path`` in one step; it can be as large as everything that changed."""
        make_folder(path.parent)
        with replacing(path) as file:
            self.patch(before, after, file)

    def changed_paths(self, before: str, after: str) -> list[str]:
        """The files that differ between two snapshots, relative to the workspace, sorted."""
        names = self.changes(before, after).printed("--name-only", "-z").decode(errors="replace")
        return names.split("\0")[:-1]

    def changes(self, before: str, after: str) -> Changes:
        """The difference of two snapshots. A .gitignore can re-include a forbidden folder, so it is left out again."""
        return Changes(self._git, before, after, tuple(self._forbidden()), renames=False)

    def _write_tree(self) -> str:
        """The tree of the index: the one written before, if git has not written the index since."""
        index = self._git.git_dir / "index"
        if self._written is None or self._written[0] != _identity(index):
            tree = self._tree_of(index)
            self._written = (_identity(index), tree)
        return self._written[1]

    def _tree_of(self, index: Path) -> str:
        """Git reads files for this too: those that changed in the same moment as the index."""
        return self._git.read_files("write-tree", index=index).stdout.decode().strip()

    def _trackable(self, paths: Iterable[str], *, existing: bool = False) -> bytes:
        """``paths`` as git reads them, without those that git cannot track; with ``existing`` only existing files."""
        found = set()
        for path in paths:
            with contextlib.suppress(PathRefused):
                place = self._workspace.resolve_inside(path)
                if existing and not os.path.isfile(place):  # noqa: PTH113 - Path's raises where nobody may look
                    continue
                real = place.relative_to(self._workspace.root)
                if any(real.is_relative_to(each) for each in self._environment):
                    continue
                if not any((self._workspace.root / parent / ".git").exists() for parent in list(real.parents)[:-1]):
                    found.add(real.as_posix())
        return _nul_separated(sorted(found))

    def _forbidden(self) -> list[str]:
        root = self._workspace.root
        return [
            folder.relative_to(root).as_posix()
            for folder in self._workspace.forbidden
            if folder.is_relative_to(root) and folder != root
        ]

    def _prepare(self) -> None:
        """Create the repository, or take it over from a run that was killed during a call."""
        if self._ready:
            return
        git_dir = self._git.git_dir
        try:
            git_dir.mkdir(parents=True, exist_ok=True)
            for lock in git_dir.glob("*.lock"):
                lock.unlink()
            self._git.initialize()
            (git_dir / "info").mkdir(exist_ok=True)
            (git_dir / "info" / "attributes").write_text(_ATTRIBUTES)
            self._environment, self._tested = _read_paths(git_dir / "info" / _ENVIRONMENT), _read_tested(git_dir)
            excluded = [*CACHES, *self._ignored(), *(f"/{escaped(folder)}/" for folder in self._forbidden())]
            excluded += [f"/{escaped(path)}" for path in self._environment]
            (git_dir / "info" / "exclude").write_bytes(os.fsencode("\n".join(excluded) + "\n"))
            with (git_dir / "config").open("a") as configuration:
                configuration.write(_CONFIGURATION)
        except OSError as error:
            raise StorageError(f"{git_dir} cannot be written: {error.strerror}") from error
        self._ready = True

    def _ignored(self) -> list[str]:
        """The patterns of the user's repository, which a folder that is in none has from the one it was made from."""
        recorded = self._git.git_dir / "info" / _IGNORED
        found = state_files(self._workspace.root)
        if found is None:
            return _read_paths(recorded)
        self._tracked = tuple(path for path in found.tracked if not self._is_left_out(path))
        recorded.write_bytes(_nul_separated(found.ignored))
        return list(found.ignored)

    def _is_left_out(self, path: str) -> bool:
        place = PurePosixPath(path)
        return any(place.is_relative_to(each) for each in (*self._environment, *self._forbidden()))


def kept_paths(git: Git, oid: str) -> list[str]:
    """The list that `Snapshots.keep` kept in the repository of ``git``."""
    return os.fsdecode(git.run("cat-file", "blob", oid).stdout).split("\0")[:-1]


def left_by_tests(git: Git, first: str, last: str) -> list[str]:
    """The files that only tests have changed: no one that differs between the snapshots ``first`` and ``last``."""
    before, left = _read_tested(git.git_dir)
    return sorted(changes(git, before, left).keys() - changes(git, first, last).keys()) if left else []


def _read_tested(git_dir: Path) -> tuple[str, str]:
    with contextlib.suppress(OSError, ValueError):
        text = (git_dir / "info" / _TESTED).read_text()
        if found := re.fullmatch("([0-9a-f]{40,64}) ([0-9a-f]{40,64}|)", text):
            return found[1], found[2]
    return "", ""


def copy_rules(source: Path, target: Path) -> None:
    """Let the snapshots of a folder in no repository, in the new one ``target``, ignore what those in ``source`` do."""
    with storage_errors(target), contextlib.suppress(FileNotFoundError):
        shutil.copyfile(source / "info" / _IGNORED, make_folder(target / "info") / _IGNORED)


def _identity(index: Path) -> tuple[int, ...]:
    """What tells the index file apart from earlier ones, which git never changes in place; empty without a file."""
    try:
        status = index.stat()
    except FileNotFoundError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _nul_separated(paths: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def _read_paths(file: Path) -> list[str]:
    try:
        return os.fsdecode(file.read_bytes()).split("\0")[:-1]
    except FileNotFoundError:
        return []


def _copy_objects(source: Path, target: Path) -> None:
    """Hard links are enough, because git never changes an object once it is written."""
    try:
        shutil.copytree(
            source, target, ignore=shutil.ignore_patterns("tmp_*"), copy_function=_link_or_copy, dirs_exist_ok=True
        )
    except (OSError, shutil.Error) as error:
        raise StorageError(f"{source} cannot be copied to {target}: {error}") from error


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
