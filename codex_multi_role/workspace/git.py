"""The only module that starts git. No git command runs a program that a workspace or a run folder names.

`Git` is for repositories that `Git.initialize` makes: no configuration of the user or the system, no hooks, prompts or
inherited variables. The others are for repositories whose own configuration git never reads (see `git_settings`):
`RecordedGit` in run folders, `UserGit` around workspaces; `ConfiguredGit` and `RemoteGit` read that of the user. Git
itself is never a program that a role may have written.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from codex_multi_role.errors import StorageError, UsageError, not_started
from codex_multi_role.host.atomic import storage_errors
from codex_multi_role.host.processes import GRACE_SECONDS, RUN, Family
from codex_multi_role.host.programs import program_path
from codex_multi_role.workspace.git_settings import RepositorySettings, common_dir_of, settings_of

GIT_SECONDS = 120.0
READ_SECONDS = 10.0
"""A file that a configuration includes may be a pipe without an end."""
READ_ATTEMPTS = 20
"""A third of them fail if others create and delete files all the time (measured)."""
_CHANGED_MEANWHILE = re.compile(
    rb"unable to stat |open\(.*\): No[t ].* directory$|short read while indexing |failed to read \d+ bytes from ",
    re.MULTILINE,
)
GUARDS = (("core.hooksPath", os.devnull), ("core.fsmonitor", "false"), ("submodule.recurse", "false"))
"""Apply to every command, whatever is configured."""
NO_FILTER = (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))
OF_THE_USER = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_ATTR_NOSYSTEM")
NOBODY = {"NAME": "codex-multi-role", "EMAIL": "codex-multi-role@localhost"}
_AUTHORS = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in NOBODY.items()}
NOT_THERE = 128
MAX_OBJECT_MEMORY = "1g"
"""The most that git allocates at once: a pack of a few bytes may otherwise stand for objects of any size."""
MIN_VERSION_TO_MERGE = (2, 39)
UPGRADE_HINT = "upgrade git to {}.{} or newer; only steps with `isolate` need that".format(*MIN_VERSION_TO_MERGE)


@dataclass(frozen=True)
class Git:
    """Runs git on the repository ``git_dir`` with the work tree ``work_tree``. Git is ended after ``seconds``."""

    git_dir: Path
    work_tree: Path

    @property
    def environment(self) -> dict[str, str]:
        """The variables of every command."""
        return self._configured(())

    def _configured(self, entries: Iterable[tuple[str, str]]) -> dict[str, str]:
        settings = self.settings
        allowed = settings.entries if settings else ()
        place = {"GIT_COMMON_DIR": str(settings.common_dir)} if settings else {}
        return {**self._base(), **place, **configured([*allowed, *entries, *GUARDS])}

    @property
    def settings(self) -> RepositorySettings | None:
        """What the repository's own configuration may decide; None if we have written it, or nobody has."""
        return None

    def _base(self) -> dict[str, str]:
        return {
            "PATH": program_path(os.environ),
            "LC_ALL": "C",
            "HOME": str(self.git_dir),
            "XDG_CONFIG_HOME": str(self.git_dir),
            RUN: str(self.git_dir),  # a run's own repositories are in its folder, which shows whose git this is
            "GIT_DIR": str(self.git_dir),
            "GIT_WORK_TREE": str(self.work_tree),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_ALLOC_LIMIT": MAX_OBJECT_MEMORY,
        }

    def initialize(self, *options: str) -> None:
        """Create the repository, or give an existing one a configuration of git's own making."""
        with storage_errors(self.git_dir):
            for name in ("config", "config.worktree", "commondir"):
                (self.git_dir / name).unlink(missing_ok=True)
        environment = {**self._base(), **configured(GUARDS)}
        argv = ["git", "init", "--quiet", "--template=", *options]
        checked(self._run(argv, b"", environment, None), (0,))

    @property
    def seconds(self) -> float:
        return GIT_SECONDS

    def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        allowed: Sequence[int] = (0,),
        index: Path | None = None,
        output: IO[bytes] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run ``git <arguments>``, with the index file ``index`` and its output to ``output`` if those are given.

        Raises UsageError if git is missing, StorageError if its exit code is not in ``allowed``.
        """
        environment = {**self.environment, "GIT_INDEX_FILE": str(index)} if index else self.environment
        return checked(self._run(["git", *arguments], stdin, environment, output), allowed)

    def read_files(
        self, *arguments: str, stdin: bytes = b"", allowed: Sequence[int] = (0,), index: Path | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """`run` a command that reads files of the work tree, again if one disappears or gets shorter meanwhile.

        Git then ends, or leaves the file out. A long file that gets shorter ends it by SIGBUS, and its lock remains: so
        only for a repository that nobody else uses at the time.
        """
        index_file = index or self.git_dir / "index"
        for _ in range(READ_ATTEMPTS):
            done = self.run(*arguments, stdin=stdin, allowed=range(-signal.NSIG, 256), index=index)
            if done.returncode == -signal.SIGBUS:
                index_file.with_name(f"{index_file.name}.lock").unlink(missing_ok=True)
            elif not _CHANGED_MEANWHILE.search(done.stderr):
                return checked(done, allowed)
        raise StorageError(
            f"{_failure(done)}, {READ_ATTEMPTS} times in a row",
            "does a file change all the time? Name it in .gitignore, or keep it out of the workspace",
        )

    def _run(
        self, argv: list[str], stdin: bytes, environment: Mapping[str, str], output: IO[bytes] | None
    ) -> subprocess.CompletedProcess[bytes]:
        process = self._started(argv, environment, output)
        try:
            printed, errors = process.communicate(stdin, self.seconds)
        except subprocess.TimeoutExpired as error:
            _end(process)
            hint = "keep large data out of the workspace, or name it in .gitignore"
            raise StorageError(f"git {argv[1]} took longer than {self.seconds:.0f} s", hint) from error
        except BaseException:  # in particular Ctrl-C
            _end(process)
            raise
        return subprocess.CompletedProcess(argv, process.returncode, printed, errors)

    def _started(
        self, argv: list[str], environment: Mapping[str, str], output: IO[bytes] | None
    ) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=output or subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.work_tree,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            if self.work_tree.is_dir():
                raise not_started("git cannot be run", error, "install git and put it on PATH") from error
            raise StorageError(f"the workspace {self.work_tree} no longer exists") from error


class RecordedGit(Git):
    """Git on a repository of ours in a run folder that may come from elsewhere."""

    @property
    def settings(self) -> RepositorySettings | None:
        return settings_of(self.git_dir, self.git_dir, _read_settings, inside=False)

    def _base(self) -> dict[str, str]:
        return {**super()._base(), "GIT_ALLOW_PROTOCOL": ""}  # missing objects are fetched from no place it names


class UserGit(Git):
    """Git on a repository that is not ours, or on a worktree of it; the user's configuration is not used."""

    @property
    def settings(self) -> RepositorySettings | None:
        common = self.common_dir
        return settings_of(self.git_dir, common, _read_settings) if (common / "objects").is_dir() else None

    @property
    def common_dir(self) -> Path:
        with storage_errors(self.git_dir):
            return common_dir_of(self.git_dir)

    def works(self) -> bool:
        """Whether git can read the repository and its configuration."""
        try:
            return self.run("rev-parse", "--git-dir", allowed=(0, NOT_THERE)).returncode == 0
        except StorageError:
            return False

    def _base(self) -> dict[str, str]:
        return {**super()._base(), **_AUTHORS}


class FilteringGit(UserGit):
    """With the user's own configuration, and filters, which run in ``work_tree``; takes no lock that is not needed.

    Only for `conversion`, which decides on the filters and on the folder.
    """

    def _base(self) -> dict[str, str]:
        users = {name: os.environ[name] for name in OF_THE_USER if name in os.environ}
        ours = {name: value for name, value in super()._base().items() if name not in OF_THE_USER}
        return {**ours, **users, "GIT_OPTIONAL_LOCKS": "0"}

    @property
    def filters(self) -> dict[str, list[str]]:
        """The programs of each filter that is configured, for all directions; none of one that is only required."""
        argv = ["git", "config", "--null", "--get-regexp", r"^filter\..*\.(clean|smudge|process|required)$"]
        listed = checked(self._run(argv, b"", self._configured(()), None), (0, 1)).stdout
        found: dict[str, list[str]] = {}
        for entry in os.fsdecode(listed).split("\0")[:-1]:
            key, equals, value = entry.partition("\n")
            name, _, kind = key.removeprefix("filter.").rpartition(".")
            if kind != "required":
                found.setdefault(name, []).append(value)
            elif not equals or value.lower() in ("true", "yes", "on", "1"):
                found.setdefault(name, [])
        return found


class ConfiguredGit(FilteringGit):
    """With the user's own configuration, such as ignored files and line ends, but no filter runs."""

    @property
    def environment(self) -> dict[str, str]:
        return self._configured((f"filter.{name}.{key}", value) for name in self.filters for key, value in NO_FILTER)


def merging_problem(printed: str) -> str:
    """Why the git that ``printed`` its version cannot merge copies of a workspace; empty if it can."""
    found = re.search(r"(\d+)\.(\d+)\S*", printed)
    if found and (int(found[1]), int(found[2])) < MIN_VERSION_TO_MERGE:
        return f"git {found[0]} is too old to merge copies of the workspace"
    return ""


def require_merging(workspace: Path) -> None:
    """Raise UsageError if git is missing or cannot merge copies of ``workspace``."""
    printed = Git(workspace / ".git", workspace).run("version").stdout.decode()
    if problem := merging_problem(printed):
        raise UsageError(problem, UPGRADE_HINT)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End git and everything it started, all of which is in its own session.

    What it printed is left alone: to collect gigabytes would take longer than the reason to end it allows.
    """
    family = Family()
    family.leader = process.pid
    family.end()
    for pipe in filter(None, (process.stdin, process.stdout, process.stderr)):
        with contextlib.suppress(OSError):  # what was not sent yet
            pipe.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_SECONDS)


def checked(done: subprocess.CompletedProcess[bytes], allowed: Sequence[int]) -> subprocess.CompletedProcess[bytes]:
    """Return ``done``, or raise `StorageError` if its exit code is not in ``allowed``."""
    if done.returncode not in allowed:
        raise _failure(done)
    return done


def _failure(done: subprocess.CompletedProcess[bytes]) -> StorageError:
    """The error for a failed git command, with git's message or the signal that ended it."""
    command = done.args[1]
    if done.returncode >= 0:
        return StorageError(f"git {command} failed: {last_words(done.stderr)}", "is the disk full or read-only?")
    number = -done.returncode
    out_of_memory = "did the system run out of memory? " if number == signal.SIGKILL else ""
    return StorageError(
        f"git {command} was ended by signal {number} ({signal.strsignal(number)})",
        f"{out_of_memory}resuming the run continues it",
    )


def last_words(stderr: bytes) -> str:
    """The most telling line of git's message: the first fatal one, otherwise the last."""
    lines = stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
    return next((line for line in lines if line.startswith("fatal:")), lines[-1])


def configured(entries: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The variables by which git gets ``entries`` as configuration, before that of any file."""
    variables: dict[str, str] = {}
    for at, (key, value) in enumerate(entries):
        variables |= {"GIT_CONFIG_COUNT": str(at + 1), f"GIT_CONFIG_KEY_{at}": key, f"GIT_CONFIG_VALUE_{at}": value}
    return variables


def _read_settings(file: Path) -> bytes:
    """Read a file of configuration as data, with what it includes."""
    options = ("--null", "--list", "--includes", "--file", str(file))
    return _SettingsReader(file.parent, file.parent).run("config", *options).stdout


class _SettingsReader(Git):
    """Git with a short deadline, for a file that may be anything."""

    @property
    def seconds(self) -> float:
        return READ_SECONDS
