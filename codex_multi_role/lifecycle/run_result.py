"""The result of a run, as its flow declares it: ``result`` in ``run.json``, which every view shows first at the end."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from codex_multi_role.catalog import FlowSpec, render
from codex_multi_role.errors import CodexMultiRoleError, DefinitionError
from codex_multi_role.flow import FlowState
from codex_multi_role.host.atomic import write_text
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.past import START, state_at
from codex_multi_role.workspace import Snapshots, Workspace
from codex_multi_role.workspace.snapshots import left_by_tests

MAX_TEXT_CHARACTERS = 100_000
"""Of a text in ``run.json``; a longer one becomes a file of the run folder."""
FILES = {"text": "result.txt", "markdown": "result.md"}


def run_result(
    flow: FlowSpec, state: FlowState, folder: RunFolder, workspace: Workspace, files: list[Json] | None
) -> Json | None:
    """``{title, text?, file?, format, figures}``; None if the run has produced neither text nor file so far.

    ``files`` as in `changed_files`. A text that is too long for `run.json` is written to a file. Raises `StorageError`.
    """
    declared = flow.result
    context = {**state.context(), "files": files or [], "tests": state.latest_tests}

    def rendered(template: object) -> Any:  # noqa: ANN401 - as `render`
        with suppress(DefinitionError):
            return render(template, context, "result")
        return None

    text = folder.redact(str(rendered(declared.text) or "").rstrip())
    file = str(rendered(declared.file) or "").strip()
    if len(text) > MAX_TEXT_CHARACTERS:
        file = FILES[declared.format]
        write_text(folder.path / file, f"{text}\n")
        text = ""
    exists = file and any((place / file).is_file() for place in (folder.path, workspace.root))
    parts = {name: value for name, value in (("text", text), ("file", file if exists else "")) if value}
    if not parts:
        return None
    figures = {name: rendered(template) for name, template in declared.figures.items()}
    return {
        "title": str(rendered(declared.title) or flow.name),
        **parts,
        "format": declared.format,
        "figures": {name: value for name, value in figures.items() if value is not None and value != ""},
    }


def changed_files(folder: RunFolder, snapshots: Snapshots, tree: str) -> Json:
    """``files``: ``{path, added, removed}`` of each file that differs between the run's first snapshot and ``tree``.

    The lines are null in a binary file. ``left_by_tests``: the paths that only test runs changed. Without both, if
    either snapshot is missing or cannot be read.
    """
    first = state_at(folder, START)
    with suppress(CodexMultiRoleError):
        if first and tree:
            counts = snapshots.changes(first, tree).files
            files = [{"path": each.path, "added": each.added, "removed": each.removed} for each in counts]
            return {"files": files, "left_by_tests": left_by_tests(snapshots.repository(), first, tree)}
    return {}
