"""A bare repository as the remote of a workspace, and scripted ``gh`` and ``glab``; nothing needs a network."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.workspaces import write_program

ADDRESS = "https://git.example.com/team/shop/{}/1"
PROGRAMS = {"gh": ("pull", "url"), "glab": ("merge_requests", "web_url")}
SCRIPT = """#!/bin/sh
printf '%s\\0' "$#" "$@" >> '{calls}'
for argument; do
  case "$before" in --head|--source-branch) listed='{listed}'."${{argument##*/}}" ;; esac
  before=$argument
done
case "$2" in
  list) cat "$listed" 2> /dev/null || echo '[]' ;;
  create)
    if [ -e '{refusal}' ]; then cat '{refusal}' >&2; exit 1; fi
    echo '[{{"{key}": "{address}"}}]' > "$listed"
    echo 'Creating it'
    echo '{address}' ;;
  *) exit 2 ;;
esac
"""
"""It answers as the program does, and remembers what it created."""


@dataclass(frozen=True)
class ScriptedHost:
    """The programs are in ``folder/bin``, beside links to ``git`` and the shell; what they were given is in files."""

    folder: Path

    @property
    def path(self) -> str:
        """A PATH with nothing else."""
        return str(self.folder / "bin")

    def install(self, program: str) -> None:
        kind, key = PROGRAMS[program]
        names = {name: str(self._file(program, name)) for name in ("calls", "listed", "refusal")}
        script = SCRIPT.format(**names, key=key, address=ADDRESS.format(kind))
        write_program(self.folder / "bin" / program, script)

    def refuse(self, program: str, message: str) -> None:
        """Let ``create`` fail with ``message`` on standard error."""
        self._file(program, "refusal").write_text(message)

    def accept(self, program: str) -> None:
        self._file(program, "refusal").unlink()

    def calls(self, program: str) -> list[list[str]]:
        """The arguments of each call."""
        path = self._file(program, "calls")
        words = path.read_text().split("\0")[:-1] if path.exists() else []
        found: list[list[str]] = []
        while words:
            count = int(words[0])
            found.append(words[1 : count + 1])
            words = words[count + 1 :]
        return found

    def _file(self, program: str, name: str) -> Path:
        return self.folder / f"{program}.{name}"


def scripted_host(folder: Path, *programs: str) -> ScriptedHost:
    """Install ``programs`` below ``folder``, which is created."""
    host = ScriptedHost(folder)
    (folder / "bin").mkdir(parents=True)
    for name in ("git", "sh", "cat"):
        found = shutil.which(name)
        assert found
        (folder / "bin" / name).symlink_to(found)
    for program in programs:
        host.install(program)
    return host


def add_remote(workspace: Path, remote: Path) -> None:
    """Make the bare repository ``remote``, and push the branch of ``workspace`` to it as its default."""
    for folder, arguments in (
        (workspace, ["init", "--quiet", "--bare", "-b", "main", str(remote)]),
        (workspace, ["remote", "add", "origin", str(remote)]),
        (workspace, ["push", "--quiet", "origin", "HEAD:main"]),
    ):
        subprocess.run(["git", *arguments], cwd=folder, check=True)


def show(repository: Path, what: str) -> str:
    """The content of ``<revision>:<path>``."""
    return subprocess.run(["git", "show", what], cwd=repository, capture_output=True, text=True, check=True).stdout
