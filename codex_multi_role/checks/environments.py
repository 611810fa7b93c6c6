"""Python environments on disk: recognize one, and find those that uv, poetry and conda keep for a project."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

MARKS = ("pyvenv.cfg", "conda-meta")
USUAL_NAMES = frozenset({".venv", "venv", "env"})


def is_environment(folder: Path) -> bool:
    """Whether ``folder`` is a virtual or conda environment, or has the usual name of one and no code itself."""
    if any((folder / mark).exists() for mark in MARKS) or has_python(folder):
        return True
    return folder.name in USUAL_NAMES and not any(folder.glob("*.py"))


def has_python(folder: Path) -> bool:
    """Whether ``folder`` has a Python in the usual place of an environment; it may be a broken link."""
    return os.path.lexists(folder / "bin" / "python")


def named_by_tools(root: Path, environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """What uv, poetry and conda would use for the project at ``root``, found in their files without running them."""
    if given := environment.get("UV_PROJECT_ENVIRONMENT"):
        yield "uv", root / given
    project = read_toml(root / "pyproject.toml")
    if "poetry" in _table(project, "tool") or (root / "poetry.lock").is_file():
        yield from (("poetry", folder) for folder in _poetry_environments(root, project, environment))
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


def _poetry_environments(root: Path, project: Mapping[str, Any], environment: Mapping[str, str]) -> list[Path]:
    """poetry's environments for the project: of the version that ``envs.toml`` names, otherwise all, latest first.

    Source: poetry, ``EnvManager.generate_env_name``: the name, a hash of the folder, and the version of Python.
    """
    name = str(_table(project, "project").get("name") or _table(project, "tool", "poetry").get("name") or root.name)
    short = re.sub(r'[ $`!*@"\\\r\n\t]', "_", name.lower())[:42]
    digest = hashlib.sha256(os.path.normcase(os.path.realpath(root)).encode()).digest()
    base = f"{short}-{base64.urlsafe_b64encode(digest).decode()[:8]}"
    store = _poetry_store(environment)
    minor = _table(read_toml(store / "envs.toml"), base).get("minor")
    existing = sorted(store.glob(f"{base}-py*"), key=lambda folder: _numbers(folder.name), reverse=True)
    return [store / f"{base}-py{minor}"] if minor else existing


def _numbers(name: str) -> list[int]:
    return [int(number) for number in name.rpartition("-py")[2].split(".") if number.isdigit()]


def _poetry_store(environment: Mapping[str, str]) -> Path:
    home = Path(environment.get("HOME", os.path.expanduser("~")))  # noqa: PTH111 - HOME of this environment, not ours
    mac = sys.platform == "darwin"
    settings = environment.get("POETRY_CONFIG_DIR") or (
        home / "Library/Application Support/pypoetry"
        if mac
        else Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "pypoetry"
    )
    config = read_toml(Path(settings) / "config.toml")
    cache = (
        environment.get("POETRY_CACHE_DIR")
        or config.get("cache-dir")
        or (
            home / "Library/Caches/pypoetry"
            if mac
            else Path(environment.get("XDG_CACHE_HOME") or home / ".cache") / "pypoetry"
        )
    )
    store = environment.get("POETRY_VIRTUALENVS_PATH") or _table(config, "virtualenvs").get("path")
    return Path(str(store).replace("{cache-dir}", str(cache))) if store else Path(str(cache)) / "virtualenvs"


def _conda_environments(file: Path, environment: Mapping[str, str]) -> list[Path]:
    """The prefix in ``environment.yml``, and those with its name that conda lists in the user's home."""
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
        listed = (Path(environment.get("HOME", "~")).expanduser() / ".conda/environments.txt").read_text().splitlines()
    except (OSError, ValueError, yaml.YAMLError):
        return []
    if not isinstance(document, Mapping):
        return []
    prefix, name = document.get("prefix"), document.get("name")
    named = [Path(each) for each in listed if Path(each).name == name]
    return [Path(prefix), *named] if isinstance(prefix, str) else named
