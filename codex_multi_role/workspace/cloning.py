"""Clone a repository as its user could, with the credentials set up on this machine, and without ever asking."""

from __future__ import annotations

import os
import re
from pathlib import Path

from codex_multi_role.errors import StorageError, UsageError
from codex_multi_role.host.programs import program_path
from codex_multi_role.host.redaction import Redactor
from codex_multi_role.workspace.git import Git, last_words

CLONE_SECONDS = 600.0
COMMIT_ID = re.compile("[0-9a-f]{7,64}")
PROTOCOLS = "file:git:http:https:ssh"
_KEPT = re.compile("GIT_(SSH|SSL|HTTP|PROXY|CONFIG_(GLOBAL|SYSTEM|NOSYSTEM)$)")
"""Git's own variables that say how to reach a server."""
_NO_RIGHTS = re.compile(
    "could not read |authentication failed|permission denied|host key verification|returned error: 40[13]", re.I
)
_MISSING = re.compile("not found|does not exist|does not appear to be a git repository", re.I)
_NO_REF = re.compile("remote branch .* not found|reference is not a tree|invalid reference|did not match any", re.I)


class CloningGit(Git):
    """Git with the user's configuration and credentials, but without hooks and without a way to ask anything."""

    @property
    def seconds(self) -> float:
        return CLONE_SECONDS

    def __post_init__(self) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or _KEPT.match(name)}
        kept.pop("SSH_ASKPASS", None)
        silent = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "SSH_ASKPASS_REQUIRE": "never", "LC_ALL": "C"}
        hooks = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.hooksPath", "GIT_CONFIG_VALUE_0": os.devnull}
        ours = {"GIT_ALLOW_PROTOCOL": PROTOCOLS, "PATH": program_path(os.environ)}
        environment = {**kept, **silent, **hooks, **ours}
        object.__setattr__(self, "environment", environment)


def clone(address: str, ref: str, target: Path, name: str) -> None:
    """Clone the repository at ``address`` into the empty folder ``target``, with ``ref`` checked out.

    ``ref``: a branch, tag or commit; empty for what is checked out there. ``name``: what messages call the repository.
    Raises `UsageError`.
    """
    problem = _try_to_clone(address, target, *(["--branch", ref] if ref else []))
    if _NO_REF.search(problem) and COMMIT_ID.fullmatch(ref):
        problem = _try_to_clone(address, target, "--no-checkout") or _try(target, "checkout", "--detach", ref, "--")
    if problem:
        raise _in_words(problem, ref, name)


def _try_to_clone(address: str, target: Path, *options: str) -> str:
    return _try(target, "clone", "--quiet", "--template=", *options, "--", address, str(target))


def _try(folder: Path, *arguments: str) -> str:
    """Run git in ``folder``; returns why it failed, or nothing."""
    try:
        done = CloningGit(folder / ".git", folder).run(*arguments, allowed=range(256))
    except StorageError as error:
        return str(error)
    return last_words(done.stderr) if done.returncode else ""


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
