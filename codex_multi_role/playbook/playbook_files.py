"""Locates playbooks: a project's ``<roles dir>/playbooks/`` first, then the packaged ones."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from codex_multi_role.catalog.source_files import packaged_roles
from codex_multi_role.catalog.templates import check_expression, check_template
from codex_multi_role.errors import UsageError
from codex_multi_role.playbook.script import Choice, Playbook, Step
from codex_multi_role.reading.nearest import no_such

SUFFIX = ".yaml"
TEMPLATE_NAMES = dict.fromkeys(("prompt", "role", "visit", "repair", "attempt", "tool_outputs"))


def list_playbooks(roles_dir: Path | None = None) -> dict[str, Path]:
    """Playbook files by name, sorted; a project's file hides a packaged one of the same name."""
    folders = [packaged_roles(), *([roles_dir] if roles_dir else [])]
    found = {path.stem: path for folder in folders for path in (folder / "playbooks").glob(f"*{SUFFIX}")}
    return dict(sorted(found.items()))


def load_playbook(name_or_path: str, roles_dir: Path | None = None) -> Playbook:
    """Load a playbook from a path (anything with a separator or a suffix), or look up its name.

    Raises `UsageError` for an unknown name, `DefinitionError` for a file that is unreadable or invalid, including a
    template with an unknown name.
    """
    path = Path(name_or_path)
    if not path.suffix and os.sep not in name_or_path:
        path = _find(name_or_path, list_playbooks(roles_dir))
    playbook = Playbook.load(path)
    for place, step in _steps(playbook):
        _check(step, f"{path}: {place}")
    return playbook


def _find(name: str, known: dict[str, Path]) -> Path:
    if name not in known:
        message, hint = no_such("playbook", name, known)
        raise UsageError(message, f"{hint} A file is given with its suffix.")
    return known[name]


def _steps(playbook: Playbook) -> Iterator[tuple[str, Step]]:
    for role, entries in playbook.roles.items():
        for index, entry in enumerate(entries):
            yield from _inside(entry, f"roles.{role}[{index}]")
    if playbook.default:
        yield from _inside(playbook.default, "default")


def _inside(step: Step, place: str) -> Iterator[tuple[str, Step]]:
    yield place, step
    for key in ("choose", "steps", "attempts", "repairs"):
        for index, inner in enumerate(getattr(step, key, ())):
            yield from _inside(inner, f"{place}.{key}[{index}]")


def _check(step: Step, where: str) -> None:
    templates = {"json": step.payload, "text": step.text, "arguments": step.arguments, "patch": step.patch}
    for key, template in templates.items():
        check_template(template, f"{where}.{key}", TEMPLATE_NAMES)
    if isinstance(step, Choice):
        check_expression(step.when, f"{where}.when", TEMPLATE_NAMES)
