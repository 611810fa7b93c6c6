"""Python environments on disk: recognize one, and find those that uv, poetry and conda keep for a project."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import Path
from typing import Any

import yaml

from codex_multi_role.host.user_cache import home_folder

MARKS = ("pyvenv.cfg", "conda-meta")
USUAL_NAMES = frozenset({".venv", "venv", "env"})
PLUGINS = Path(__file__).parent / "plugins"
"""Our pytest plugins for any project's Python."""


def is_environment(folder: Path) -> bool:
    """Whether ``folder`` is a virtual or conda environment, or has the usual name of one and no code itself."""
    if any((folder / mark).exists() for mark in MARKS) or has_python(folder):
        return True
    return folder.name in USUAL_NAMES and not any(folder.glob("*.py"))


def has_python(folder: Path) -> bool:
    """Whether ``folder`` has a Python in the usual place of an environment; it may be a broken link."""
    return os.path.lexists(folder / "bin" / "python")


def known_folders(root: Path, places: Iterable[str]) -> tuple[Path, ...]:
    """The ``places`` on a Python's path that belong to the project at ``root``, relative to it."""
    folders = [Path(each).resolve() for each in places]
    inside = [each for each in folders if each.is_relative_to(root) and not is_foreign(each, root)]
    return tuple(each.relative_to(root) for each in inside)


def is_foreign(path: Path, root: Path) -> bool:
    """Whether ``path`` is below ``root`` without being the project's: installed there, or ours."""
    below = [root / each for each in path.relative_to(root).parents if each != Path()]
    return path.is_relative_to(PLUGINS) or any(map(is_environment, [*below, path]))


def project_folders(root: Path) -> list[Path]:
    """``root``, and the folders above it up to the top of its repository, or of its project without one.

    Tools look for a project's environment there as well.
    """
    above = [root, *_folders_above(root)]
    tops = (number for is_top in (_is_repository, _is_project) for number, folder in enumerate(above) if is_top(folder))
    return above[: next(tops, 0) + 1]


def _folders_above(root: Path) -> list[Path]:
    """The folders above ``root`` up to the first of another owner, as for git: anybody may write into ``/tmp``."""
    owner = owner_of(root)
    return list(takewhile(lambda folder: owner_of(folder) == owner, root.parents))


def owner_of(folder: Path) -> int | None:
    try:
        return folder.stat().st_uid
    except OSError:
        return None


def _is_repository(folder: Path) -> bool:
    """Whether git's files are there: Codex's sandbox leaves an empty ``.git`` in folders that it was given."""
    return (folder / ".git").is_file() or (folder / ".git" / "HEAD").exists()


def _is_project(folder: Path) -> bool:
    return (folder / "pyproject.toml").is_file()


def named_by_tools(root: Path, environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """What uv, poetry and conda would use for the project at ``root``, found in their files without running them."""
    if given := environment.get("UV_PROJECT_ENVIRONMENT"):
        yield "uv", root / given
    yield from (("uv", folder / ".venv") for folder in _folders_above(root) if _is_uv_member(root, folder))
    yield from (("poetry", folder) for folder in _poetry_environments(root, environment))
    for name in ("environment.yml", "environment.yaml"):
        yield from (("conda", folder) for folder in _conda_environments(root / name, environment))


def read_toml(file: Path) -> dict[str, Any]:
    """The document, empty if it cannot be read."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _table(document: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    for key in keys:
        document = document.get(key, {}) if isinstance(document, Mapping) else {}
    return dict(document) if isinstance(document, Mapping) else {}


def _is_uv_member(root: Path, top: Path) -> bool:
    """Whether ``root`` is, or is within, a member of the uv workspace at ``top``; all members share its ``.venv``."""
    members = _table(read_toml(top / "pyproject.toml"), "tool", "uv", "workspace").get("members", [])
    path = root.relative_to(top).as_posix()
    return any(fnmatchcase(path, each) or fnmatchcase(path, f"{each}/*") for each in map(str, members))


def _poetry_environments(root: Path, environment: Mapping[str, str]) -> list[Path]:
    """poetry's environments for the project: of the version that ``envs.toml`` names, otherwise all, latest first.

    Source: poetry, ``EnvManager.generate_env_name``: the name, normalized as for packages, a hash of the folder, and
    the version of Python. ``non-package-mode`` is its name for a project without one.
    """
    if not (project := read_toml(root / "pyproject.toml")):
        return []
    given = _table(project, "project").get("name") or _table(project, "tool", "poetry").get("name")
    name = re.sub(r"[-_.]+", "-", str(given or "non-package-mode")).lower()
    short = re.sub(r'[ $`!*@"\\\r\n\t]', "_", name)[:42]
    digest = hashlib.sha256(os.path.normcase(os.path.realpath(root)).encode()).digest()
    base = f"{short}-{base64.urlsafe_b64encode(digest).decode()[:8]}"
    store = _poetry_store(root, environment)
    minor = _table(read_toml(store / "envs.toml"), base).get("minor")
    existing = sorted(store.glob(f"{base}-py*"), key=lambda folder: _numbers(folder.name), reverse=True)
    return [store / f"{base}-py{minor}"] if minor else existing


def _numbers(name: str) -> list[int]:
    return [int(number) for number in name.rpartition("-py")[2].split(".") if number.isdigit()]


def _poetry_store(root: Path, environment: Mapping[str, str]) -> Path:
    """The folder of poetry's environments, by a variable, the project's ``poetry.toml`` or the user's settings."""
    home = home_folder(environment)
    mac = sys.platform == "darwin"
    settings = environment.get("POETRY_CONFIG_DIR") or (
        home / "Library/Application Support/pypoetry"
        if mac
        else Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "pypoetry"
    )
    cache = (
        home / "Library/Caches/pypoetry"
        if mac
        else Path(environment.get("XDG_CACHE_HOME") or home / ".cache") / "pypoetry"
    )
    documents = [read_toml(root / "poetry.toml"), read_toml(Path(settings) / "config.toml")]
    caches = [environment.get("POETRY_CACHE_DIR"), *(each.get("cache-dir") for each in documents), cache]
    tables = [_table(each, "virtualenvs") for each in documents]
    stores = [environment.get("POETRY_VIRTUALENVS_PATH"), *(each.get("path") for each in tables)]
    store = str(next(filter(None, stores), "{cache-dir}/virtualenvs"))
    place = store.replace("{cache-dir}", str(next(filter(None, caches))))
    return root / re.sub("^~(?=/|$)", lambda _: str(home), place)


def _conda_environments(file: Path, environment: Mapping[str, str]) -> list[Path]:
    """The prefix in ``environment.yml``, and those with its name that conda lists in the user's home."""
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return []
    if not isinstance(document, Mapping):
        return []
    try:
        listed = (home_folder(environment) / ".conda/environments.txt").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        listed = []
    prefix, name = document.get("prefix"), document.get("name")
    named = [Path(each) for each in listed if Path(each).name == name]
    return [Path(prefix), *named] if isinstance(prefix, str) else named
