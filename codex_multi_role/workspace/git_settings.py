"""What git may know of a repository's own configuration: what decides about names and content, and no program.

Whoever made a workspace or a run folder also wrote its ``.git/config``, which can name programs: filters, hooks,
monitors, helpers, and more with every version of git. So git never reads it. It gets another folder as the
repository's common one (``GIT_COMMON_DIR``): links to everything in the real one but its configuration and its hooks.
The values that `ALLOWED` names are passed in variables.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from codex_multi_role.errors import StorageError
from codex_multi_role.host.atomic import storage_errors

FOLDER = "codex-multi-role"
_REFERENCES = ("HEAD", "logs", "packed-refs", "refs", "reftable", "shallow", "worktrees")
LINKED = ("info", "lfs", "modules", "objects", *_REFERENCES)
FORMAT = re.compile(r"core\.repositoryformatversion|extensions\.(objectformat|refstorage|partialclone)")
ALLOWED = re.compile(
    r"core\.(attributesfile|autocrlf|eol|excludesfile|filemode|ignorecase|precomposeunicode|protect(hfs|ntfs)|safecrlf"
    r"|sharedrepository|sparsecheckout(cone)?|symlinks)"
    r"|index\.sparse|http\.(.*\.)?(extraheader|postbuffer|proxy|sslcainfo|sslverify|version)"
    r"|url\..*\.(pushi|i)nsteadof|remote\..*\.(fetch|partialclonefilter|promisor|pushurl|url)"
)
KNOWN_FILTER = re.compile(
    r"filter\.[^.\n]+\.(required\n(true|false)"
    r"|(clean|smudge|process)\n\"?(git-lfs|git-crypt)\"? (clean|smudge|filter-process)( --skip)?( --)?( %f)?)"
)
FILTER = re.compile(r"filter\.(.*)\.(clean|smudge|process|required)")
ATTEMPTS = 5
MAX_PATH_BYTES = 4096
Entries = tuple[tuple[str, str], ...]
"""Keys of a configuration in lower case but for their middle, and values, in order."""
Read = Callable[[Path], bytes]
"""Reads a file of configuration with all that it includes; returns what ``git config --null --list`` prints."""


@dataclass(frozen=True)
class RepositorySettings:
    """``entries`` may be used. ``refused``: filters whose programs only the repository names."""

    common_dir: Path
    entries: Entries
    refused: frozenset[str]


def common_dir_of(git_dir: Path) -> Path:
    """The folder that all worktrees of a repository share; ``git_dir`` may be the file ``.git`` of a worktree."""
    if git_dir.is_file():
        git_dir = git_dir.parent / _path_in(git_dir)
    shared = git_dir / "commondir"
    return (git_dir / _path_in(shared)).resolve() if shared.is_file() else git_dir


def _path_in(file: Path) -> str:
    with file.open("rb") as opened:
        content = opened.read(MAX_PATH_BYTES)
    return os.fsdecode(content).removeprefix("gitdir:").strip().replace("\0", "")


def settings_of(git_dir: Path, common: Path, read: Read, *, inside: bool = True) -> RepositorySettings:
    """The settings of a repository that exists. Raises what ``read`` raises, and `StorageError`.

    ``inside``: git's folder is made in the repository, where roles cannot write, unless we cannot either.
    """
    with storage_errors(common):
        files = tuple((path, _identity(path)) for path in (common / "config", git_dir / "config.worktree"))
        found = _allowed(files, read)
        formats = "".join("[{}] {} = {}\n".format(*key.split("."), value) for key, value in found[0])
        folder = _folder_for(common, formats, inside and os.access(common, os.W_OK))
        return RepositorySettings(folder, found[1], found[2])


def _identity(path: Path) -> tuple[int, ...]:
    if not path.is_file():
        return ()
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@lru_cache(maxsize=256)
def _allowed(files: tuple[tuple[Path, tuple[int, ...]], ...], read: Read) -> tuple[Entries, Entries, frozenset[str]]:
    """The entries about the format, those that may be used, and the filters that may not."""
    entries = [entry for path, exists in files if exists for entry in _parsed(read(path))]
    formats = [(key, value) for key, value in entries if FORMAT.fullmatch(key) and re.fullmatch(r"\w+", value)]
    filters = [(key, value) for key, value in entries if FILTER.fullmatch(key)]
    known = [(key, value) for key, value in filters if KNOWN_FILTER.fullmatch(f"{key}\n{value}")]
    refused = {FILTER.sub(r"\1", key) for key, value in filters if (key, value) not in known}
    allowed = [*((key, value) for key, value in entries if ALLOWED.fullmatch(key)), *known]
    return tuple(dict(formats).items()), tuple(allowed), frozenset(refused)


def _parsed(listed: bytes) -> Iterable[tuple[str, str]]:
    for entry in os.fsdecode(listed).split("\0")[:-1]:
        key, _, value = entry.partition("\n") if "\n" in entry else (entry, "", "true")
        yield key, value


def _folder_for(common: Path, formats: str, inside: bool) -> Path:
    """The folder that stands for ``common``: inside it, or a temporary one."""
    folder = common / FOLDER if inside else _temporary(common)
    for _ in range(ATTEMPTS):
        if _is_ours(folder, common, formats):
            return folder
        made = Path(tempfile.mkdtemp(prefix=f".{FOLDER}.", dir=folder.parent))
        (made / "config").write_text(formats)
        for name, target in _links(folder, common).items():
            (made / name).symlink_to(target)
        _remove(folder)
        try:
            made.rename(folder)
        except OSError:  # another process was faster
            shutil.rmtree(made, ignore_errors=True)
    raise StorageError(f"{folder} cannot be replaced", "Delete it.")


def _links(folder: Path, common: Path) -> dict[str, str]:
    return {name: os.path.relpath(common / name, folder) for name in LINKED}


@cache
def _temporary(common: Path) -> Path:
    kept = tempfile.TemporaryDirectory(prefix=f"{FOLDER}.")
    _KEPT.append(kept)
    return Path(kept.name) / common.name


_KEPT: list[tempfile.TemporaryDirectory[str]] = []
"""Removed at the end of the process."""


def _remove(folder: Path) -> None:
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder, ignore_errors=True)
    else:
        folder.unlink(missing_ok=True)


def _is_ours(folder: Path, common: Path, formats: str) -> bool:
    """Whether it has exactly what `_folder_for` writes, whoever wrote it."""
    try:
        return (
            not folder.is_symlink()
            and {entry.name for entry in os.scandir(folder)} == {"config", *LINKED}
            and not (folder / "config").is_symlink()
            and (folder / "config").read_text() == formats
            and all(os.readlink(folder / name) == target for name, target in _links(folder, common).items())  # noqa: PTH115
        )
    except OSError:
        return False
