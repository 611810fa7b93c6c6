"""Filters of git (``filter=`` in attribute files, such as Git LFS): which may run, and where.

Git runs a filter's program in the top folder of the files, where models write. Here it runs in a folder that has
nothing but attribute files, one file at a time, and only if its program is outside of every folder in which roles write
and is named by the user's own configuration, or is one that is known.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO

from codex_multi_role.errors import UsageError
from codex_multi_role.host.atomic import storage_errors
from codex_multi_role.host.programs import is_outside
from codex_multi_role.workspace.git import ConfiguredGit, FilteringGit, checked

ATTRIBUTES = ".gitattributes"
HINT = "Name its program in your own settings, without a path into the workspace: git config --global filter.{}.clean …"
PROGRAMS_HINT = "Is its program installed? `git config --get-regexp '^filter'` prints the programs."
FAILED = re.compile(b" filter |remote end hung up")
"""What git reports if a required filter fails, or ends before it has answered."""


def filtered(git: ConfiguredGit, paths: Iterable[str], index: Path | None = None) -> dict[str, str]:
    """The filter of each of ``paths`` that has one. Raises `UsageError` for one that may not run."""
    settings, programs = git.settings, git.filters
    refused = settings.refused if settings else frozenset()
    if not programs and not refused:
        return {}
    named = b"".join(os.fsencode(path) + b"\0" for path in paths)
    listed = git.run("check-attr", "-z", "--stdin", "filter", stdin=named, index=index).stdout
    fields = os.fsdecode(listed).split("\0")[:-1]
    found = {path: name for path, name in zip(fields[::3], fields[2::3], strict=True) if name in {*programs, *refused}}
    for path, name in found.items():
        if problem := _problem(programs.get(name, ()), is_refused=name in refused):
            raise UsageError(f"{path} has the git filter {name}, which cannot run: {problem}", HINT.format(name))
    return found


def _problem(programs: Iterable[str], *, is_refused: bool) -> str:
    if not programs:
        return "only the repository's own configuration names its program" if is_refused else "it has no program"
    for program in programs:
        absolute = (word for word in re.findall(r"/[^\s'\"]*", program) if not is_outside(word))
        if inside := next(absolute, ""):
            return f"roles can write {inside}"
    return ""


def clean(git: ConfiguredGit, files: Mapping[str, Path], attributes: Path) -> dict[str, str]:
    """Write ``files``, by the path in the repository, as git would add them with their filters; returns their ids.

    ``attributes``: a folder with nothing but attribute files.
    """
    filtering = FilteringGit(git.git_dir, attributes)
    return {
        path: _run(filtering, path, "hash-object", "-w", f"--path={path}", "--", str(file)).decode().strip()
        for path, file in files.items()
    }


def smudge_files(top: Path) -> None:
    """Convert the files of the new worktree ``top``, whose filters have not run yet. Raises `UsageError`."""
    git = ConfiguredGit(top / ".git", top)
    tracked = os.fsdecode(git.run("ls-files", "-z").stdout).split("\0")[:-1]
    names = filtered(git, tracked)
    if not names:
        return
    with tempfile.TemporaryDirectory(prefix="attributes-") as folder:
        copy_attributes(top, Path(folder))
        filtering = FilteringGit(git.git_dir, Path(folder))
        for path in names:
            if (top / path).is_file() and not (top / path).is_symlink():
                with storage_errors(top / path), tempfile.TemporaryFile() as made:
                    _run(filtering, path, "cat-file", "--filters", f":{path}", output=made)
                    made.seek(0)
                    with (top / path).open("wb") as file:
                        shutil.copyfileobj(made, file)


def _run(filtering: FilteringGit, path: str, *arguments: str, output: IO[bytes] | None = None) -> bytes:
    """What a command prints that runs the filter of ``path``. Raises `UsageError` if a required filter fails."""
    done = filtering.run(*arguments, allowed=range(-signal.NSIG, 256), output=output)
    if done.returncode and FAILED.search(done.stderr):
        reason = os.fsdecode(done.stderr).strip().splitlines()[0]
        raise UsageError(f"{path} has a git filter that failed: {reason}", PROGRAMS_HINT)
    return checked(done, (0,)).stdout


def copy_attributes(source: Path, target: Path) -> None:
    """Copy the attribute files below ``source``, and nothing else."""
    for file in source.rglob(ATTRIBUTES):
        if file.is_file() and not file.is_symlink():
            place = target / file.relative_to(source)
            with storage_errors(place):
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, place)
