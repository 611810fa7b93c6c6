"""The parts of the report with what the run changed, file by file: since its start, and since the last decision."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import groupby

from markupsafe import Markup

from codex_multi_role.errors import CodexMultiRoleError
from codex_multi_role.extensions.pages.report.page_parts import ReportPart
from codex_multi_role.extensions.pages.report.rendering import template
from codex_multi_role.extensions.pages.report.values import diff_html
from codex_multi_role.presentation.recorded import changes_of, files_of
from codex_multi_role.presentation.wording import plural
from codex_multi_role.run_folder import RunFolder, list_turns
from codex_multi_role.run_folder.past import START, decision_before
from codex_multi_role.workspace.differences import Changes, FileChange

MOST_FILES, MOST_LINES, MOST_BYTES = 100, 4_000, 200_000
"""Of each part: with the turns, the page stays below 15 MB."""
BEGIN = b"diff --git "
_BEGIN = re.compile(rb"^diff --git ", re.MULTILINE)


def changes_parts(folder: RunFolder) -> Iterator[ReportPart]:
    """Nothing if the states of the files were not recorded, or cannot be read."""
    for since in dict.fromkeys((START, decision_before(folder, ""))):
        with suppress(CodexMultiRoleError):
            changes = changes_of(folder, since)
            name, point = ("Changes", "start") if since == START else ("Since the decision", f"decision {since}")
            heading = f"{plural(len(changes.files), 'file')} changed since the {point}"
            yield ReportPart(f"changes-since-{point.split()[0]}", name, heading, _pieces(folder, changes, since))


def writers_of(folder: RunFolder) -> dict[str, list[str]]:
    """The turns that changed each file."""
    writers: dict[str, list[str]] = {}
    for role, turn in list_turns(folder):
        for path in files_of(turn):
            writers.setdefault(path, []).append(f"{role} {turn.number}")
    return writers


def file_patches(changes: Changes, *paths: str) -> list[bytes]:
    """The patch of each file, or of those in ``paths``, in order, without how it begins. Raises `StorageError`.

    Git prints two patches of a file that became a link.
    """
    patches = _BEGIN.split(changes.patch(*paths))[1:]
    return [BEGIN.join(each) for _, each in groupby(patches, lambda patch: patch.partition(b"\n")[0])]


def _pieces(folder: RunFolder, changes: Changes, since: str) -> Iterator[Markup]:
    """One per file; then the command that prints what had no room."""
    writers, named = writers_of(folder), changes.files[:MOST_FILES]
    texts = _fitting(MOST_LINES, {each: each.added + (each.removed or 0) for each in named if each.added is not None})
    paths = [path for each in texts for path in (each.path, each.old_path) if path]
    patches = dict(zip(texts, file_patches(changes, *paths) if paths else (), strict=False))  # without paths: of all
    shown = _fitting(MOST_BYTES, {each: len(patch) for each, patch in patches.items()})
    for each in named:
        text = folder.redact(patches[each].decode("utf-8", "replace")) if each in shown else ""
        values = {"writers": writers.get(each.path), "patch": text and diff_html(text[text.find("\n@@") + 1 :])}
        yield Markup(template("changed_file.html").render(file=folder.redact.within(vars(each)), **values))
    if len(shown) < len(changes.files):
        command = folder.command("diff", "--since", since)
        yield Markup('<p class="cut">All lines: <code>{}</code></p>').format(command)


def _fitting(room: int, sizes: Mapping[FileChange, int]) -> list[FileChange]:
    """Those that fit, in order."""
    found = []
    for each, size in sizes.items():
        if size <= room:
            room -= size
            found.append(each)
    return found
