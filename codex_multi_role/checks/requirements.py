"""The declared requirements of a project, and whether the Python that runs this program meets them."""

from __future__ import annotations

import ast
import configparser
import contextlib
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from codex_multi_role.checks.environments import read_toml
from codex_multi_role.reading.python_source import syntax_tree

MAX_NAMED = 5
# Requirements files name them, but no test needs them.
LINTERS = frozenset({"black", "flake8", "isort", "mypy", "pre-commit", "pylint", "pyright", "ruff"})


def unmet_requirements(root: Path) -> list[str]:
    """The declared requirements that are not installed here, at most `MAX_NAMED`.

    Sources: ``pyproject.toml`` (``project.dependencies``, poetry's), ``setup.cfg``, ``requirements.txt``, and a literal
    list for ``install_requires`` in ``setup.py``.
    """
    unmet = dict.fromkeys(str(each) for each in _declared(root) if not _is_met(each))
    return list(unmet)[:MAX_NAMED]


def how_to_install(python: Path, packages: Sequence[str]) -> str:
    """The command that installs ``packages`` for ``python``; uv creates environments without pip."""
    try:
        made_by_uv = "\nuv =" in (python.parent.parent / "pyvenv.cfg").read_text(encoding="utf-8")
    except (OSError, ValueError):
        made_by_uv = False
    installer = f"uv pip install --python {python}" if made_by_uv else f"{python} -m pip install"
    return f"Run: {installer} {' '.join(packages)}"


def _declared(root: Path) -> Iterator[Requirement]:
    project = read_toml(root / "pyproject.toml")
    poetry = _strings(project, "tool", "poetry", "dependencies")
    try:
        lines = (root / "requirements.txt").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        lines = []
    texts = [
        *_strings(project, "project", "dependencies"),
        *(name for name in poetry if name != "python"),
        *_setuptools(root),
        *lines,
    ]
    if not texts:
        return

    for text in texts:
        try:
            yield Requirement(text.partition(" #")[0].split(" --")[0].strip().removesuffix("\\").strip())
        except InvalidRequirement:
            continue  # an option, a comment or a path: its requirement is unknown


def _setuptools(root: Path) -> list[str]:
    """The requirements in ``setup.cfg`` and in ``setup.py``, which is read, never run."""
    settings = configparser.ConfigParser(interpolation=None)
    with contextlib.suppress(OSError, ValueError, configparser.Error):
        settings.read_string((root / "setup.cfg").read_text(encoding="utf-8"))
    listed = settings.get("options", "install_requires", fallback="").splitlines()
    with contextlib.suppress(OSError, ValueError):
        for node in ast.walk(syntax_tree((root / "setup.py").read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "install_requires" and isinstance(node.value, ast.List):
                constants = [each.value for each in node.value.elts if isinstance(each, ast.Constant)]
                listed += [each for each in constants if isinstance(each, str)]
    return listed


def _strings(document: object, *keys: str) -> list[str]:
    """The texts of a list, or the names of a table's required entries, below ``keys``."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    if isinstance(document, dict):
        return [name for name, entry in document.items() if not (isinstance(entry, dict) and entry.get("optional"))]
    return [each for each in document if isinstance(each, str)] if isinstance(document, list) else []


def _is_met(requirement: Requirement) -> bool:
    if requirement.name.lower() in LINTERS or (requirement.marker is not None and not requirement.marker.evaluate()):
        return True
    try:
        return requirement.specifier.contains(metadata.version(requirement.name), prereleases=True)
    except metadata.PackageNotFoundError:
        return False
