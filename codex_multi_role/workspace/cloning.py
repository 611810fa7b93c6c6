"""Clone a repository as its user could, with the credentials set up on this machine, and without ever asking."""

from __future__ import annotations

import os
import re
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from codex_multi_role.errors import StorageError, UsageError
from codex_multi_role.host.atomic import make_folder
from codex_multi_role.host.programs import program_path
from codex_multi_role.host.redaction import Redactor
from codex_multi_role.host.unpacking import UnpackingRefused
from codex_multi_role.workspace.conversion import smudge_files
from codex_multi_role.workspace.git import (
    MAX_OBJECT_MEMORY,
    NOT_THERE,
    ConfiguredGit,
    FilteringGit,
    UserGit,
    last_words,
)
from codex_multi_role.workspace.trees import WORKSPACE, measure_commit

REMOTE_SECONDS = 1800.0
PROTOCOLS = "file:git:http:https:ssh"
_KEPT = re.compile("GIT_(SSH|SSL|HTTP|PROXY|CONFIG_(GLOBAL|SYSTEM|NOSYSTEM)$)")
"""Git's own variables that say how to reach a server."""
_NO_RIGHTS = re.compile(
    "could not read |authentication failed|permission denied|host key verification|returned error: 40[13]", re.I
)
_MISSING = re.compile("not found|does not exist|does not appear to be a git repository", re.I)
_NO_REF = re.compile("remote branch .* not found|reference is not a tree|invalid reference|did not match any", re.I)


class RemoteGit(FilteringGit):
    """Git with the user's configuration and credentials, but without hooks and without a way to ask anything."""

    @property
    def seconds(self) -> float:
        return REMOTE_SECONDS

    def _base(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or _KEPT.match(name)}
        kept.pop("SSH_ASKPASS", None)
        silent = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "SSH_ASKPASS_REQUIRE": "never", "LC_ALL": "C"}
        ours = {"GIT_ALLOW_PROTOCOL": PROTOCOLS, "GIT_ALLOC_LIMIT": MAX_OBJECT_MEMORY, "PATH": program_path(os.environ)}
        place = {"GIT_DIR": str(self.git_dir), "GIT_WORK_TREE": str(self.work_tree)} if self.settings else {}
        return {**kept, **silent, **ours, **place}

    def _started(self, *given: Any) -> subprocess.Popen[bytes]:  # noqa: ANN401 - as those of `Git`
        """No file that git writes, above all what a server sends, gets larger than a whole workspace may be."""
        process = super()._started(*given)
        with suppress(psutil.Error, AttributeError):  # it has ended; no such call on macOS
            psutil.Process(process.pid).rlimit(psutil.RLIMIT_FSIZE, (WORKSPACE.max_bytes, WORKSPACE.max_bytes))
        return process

    def attempt(self, *arguments: str) -> tuple[str, str]:
        """Run git; returns what it printed, and why it failed, or nothing."""
        try:
            done = self.run(*arguments, allowed=range(256))
        except StorageError as error:
            return "", str(error)
        return done.stdout.decode(errors="replace").strip(), last_words(done.stderr) if done.returncode else ""


def clone(address: str, ref: str, target: Path, name: str) -> None:
    """Clone the repository at ``address`` into the empty folder ``target``, with ``ref`` checked out.

    ``ref``: a branch, tag or commit; empty for what is checked out there. ``name``: what messages call the repository.
    Raises `UsageError`.
    """
    if problem := fetch(address, target) or check_out(target, ref):
        raise _in_words(problem, ref, name)


def fetch(address: str, target: Path, *options: str) -> str:
    """Clone without writing any file of the work tree; returns why that failed, or nothing."""
    make_folder(target)
    options = ("--quiet", "--no-checkout", "--template=", *options)
    return RemoteGit(target / ".git", target).attempt("clone", *options, "--", address, str(target))[1]


def check_out(target: Path, ref: str) -> str:
    """Check out a branch, tag or commit of a new clone, or what its origin has checked out.

    Returns why that failed, or nothing. Raises `UsageError` for a file whose filter may not run.
    """
    git = ConfiguredGit(target / ".git", target)
    if ref.startswith("-"):
        return f"invalid reference: {ref}"
    if not ref and git.run("rev-parse", "--verify", "--quiet", "HEAD", allowed=(0, 1, NOT_THERE)).returncode:
        return ""  # a repository without a commit
    try:
        for name in (ref or "HEAD", f"refs/remotes/origin/{ref}"):
            measure_commit(_NewClone(target / ".git", target), name)
    except UnpackingRefused as error:
        return str(error)
    done = git.run("checkout", "--quiet", *([ref] if ref else []), "--", allowed=range(256))
    if done.returncode:
        return last_words(done.stderr)
    smudge_files(target)
    return ""


def set_origin(target: Path, address: str) -> None:
    """Give a new clone another origin, or none."""
    action = ("set-url", "origin", address) if address else ("remove", "origin")
    _NewClone(target / ".git", target).run("remote", *action)


class _NewClone(UserGit):
    """Git on a clone whose configuration git has just written."""

    @property
    def settings(self) -> None:
        return None


def _in_words(problem: str, ref: str, name: str) -> UsageError:
    if ref and _NO_REF.search(problem):
        return UsageError(f"{name} has no branch, tag or commit {ref}", "Correct the ref, or push it there first.")
    if _NO_RIGHTS.search(problem):
        hint = (
            "Set up git on this machine so that it can be cloned without a password: an SSH key or a credential helper."
        )
        return UsageError(f"access to {name} was denied: {Redactor(os.environ)(problem)}", hint)
    if _MISSING.search(problem):
        return UsageError(f"{name} was not found: {Redactor(os.environ)(problem)}", "Correct its address.")
    return UsageError(f"{name} cannot be cloned: {Redactor(os.environ)(problem)}", "Check the address and the network.")
