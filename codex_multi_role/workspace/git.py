"""Git without anyone's settings: no user or system configuration, hooks, prompts or inherited variables.

It is never a program of that name which a role may have written.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import IO

from codex_multi_role.dataclass import dataclass
from codex_multi_role.errors import StorageError, UsageError
from codex_multi_role.host.processes import GRACE_SECONDS, RUN, Family, start_hint
from codex_multi_role.host.programs import program_path

GIT_SECONDS = 120.0
READ_ATTEMPTS = 20
"""A third of them fail if others create and delete files all the time (measured)."""
_CHANGED_MEANWHILE = re.compile(
    rb"unable to stat |open\(.*\): No[t ].* directory$|short read while indexing |failed to read \d+ bytes from ",
    re.MULTILINE,
)
MIN_VERSION_TO_MERGE = (2, 39)
UPGRADE_HINT = "upgrade git to {}.{} or newer; only steps with `isolate` need that".format(*MIN_VERSION_TO_MERGE)


@dataclass(frozen=True)
class Git:
    """Runs git on the repository ``git_dir`` with the work tree ``work_tree``. Git is ended after ``seconds``."""

    git_dir: Path
    work_tree: Path
    environment: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "environment", _environment(self.git_dir, self.work_tree))

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
        return _checked(self._run(["git", *arguments], stdin, environment, output), allowed)

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
                return _checked(done, allowed)
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
                hint = start_hint(error, "install git and put it on PATH")
                raise UsageError(f"git cannot be run: {error.strerror}", hint) from error
            raise StorageError(f"the workspace {self.work_tree} no longer exists") from error


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
    """End git and everything it started, all of which is in its own session."""
    family = Family()
    family.leader = process.pid
    family.end()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=GRACE_SECONDS)


def _checked(done: subprocess.CompletedProcess[bytes], allowed: Sequence[int]) -> subprocess.CompletedProcess[bytes]:
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
        f"{out_of_memory}`codex-multi-role resume` continues the run",
    )


def last_words(stderr: bytes) -> str:
    """The most telling line of git's message: the first fatal one, otherwise the last."""
    lines = stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
    return next((line for line in lines if line.startswith("fatal:")), lines[-1])


def _environment(git_dir: Path, work_tree: Path) -> dict[str, str]:
    return {
        "PATH": program_path(os.environ),
        "LC_ALL": "C",
        "HOME": str(git_dir),
        "XDG_CONFIG_HOME": str(git_dir),
        RUN: str(git_dir),  # a run's own repositories are in its folder, which shows whose git this is
        "GIT_DIR": str(git_dir),
        "GIT_WORK_TREE": str(work_tree),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }
