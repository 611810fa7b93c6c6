"""The page itself: it contains everything it needs and may load nothing else."""

from __future__ import annotations

import base64
import hashlib
from functools import partial
from pathlib import Path

from jinja2.environment import TemplateStream

from codex_multi_role.errors import RunStatus
from codex_multi_role.extensions.pages.report.changes import changes_parts
from codex_multi_role.extensions.pages.report.entries import Entries, text_sizes
from codex_multi_role.extensions.pages.report.flows import KnownFlows
from codex_multi_role.extensions.pages.report.heading import heading
from codex_multi_role.extensions.pages.report.page_parts import load_parts, page_parts
from codex_multi_role.extensions.pages.report.parts import cut_length
from codex_multi_role.extensions.pages.report.rendering import asset, template
from codex_multi_role.extensions.pages.report.run_tree import run_tree
from codex_multi_role.extensions.pages.report.timeline import timeline
from codex_multi_role.host.atomic import write_pieces
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.recorded import changed_files, read_record, status_now
from codex_multi_role.presentation.result import result_of
from codex_multi_role.presentation.wording import moment
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.events import now
from codex_multi_role.version import __version__

BUFFERED = 2
"""Pieces of text that are written at once: a turn is one."""


class ReportPage:
    """The `PageOfRun`."""

    command = "report"
    prepare = staticmethod(load_parts)

    @staticmethod
    def write(folder: RunFolder) -> Path:
        return write_report(folder)


def write_report(folder: RunFolder, path: Path | None = None) -> Path:
    """Write the report of the run in ``folder`` to ``path``, by default its own ``report.html``; returns the path.

    The run may still be working. Turns are read one by one while the page is written. Raises `StorageError`.
    """
    path = path or folder.report_path
    stream = _page(folder)
    stream.enable_buffering(BUFFERED)
    write_pieces(path, (text.encode("utf-8", "replace") for text in stream))  # a lone surrogate becomes `?`
    return path


def _page(folder: RunFolder) -> TemplateStream:
    course = Course.of_run(folder)
    record = read_record(folder)
    flows = KnownFlows.of_run(folder, record, course)
    status = status_now(folder, record)
    alive = status == RunStatus.RUNNING
    cut_at = cut_length(text_sizes(folder))
    entries = Entries(folder, course, cut_at, alive=alive)
    tone = partial(course.tone_of, alive=alive)
    style, script = asset("common.css") + asset("report.css"), asset("entries.js") + asset("report.js")
    own = f"style-src {_hash(style)}; script-src {_hash(script)}"  # and nothing else
    states = folder.redact.within(course.states_as_json())
    parts = [*changes_parts(folder), *page_parts(folder, changed_files(folder, record, course.turns))]
    return template("report.html").stream(
        run=heading(folder, course, status, flows.at_most),
        flows=flows,
        pictures=flows.drawn(course, tone),
        timeline=timeline(course, entries.questions, tone),
        tree=run_tree(course, entries, tone),
        entries=entries,
        result=result_of(folder, record),
        parts=parts,
        part_links=[(part.id, part.name, True) for part in parts],
        run_states=states["run"],
        tasks=states["items"],
        warnings=course.incidents,
        more_warnings=course.notes_left_out,
        cut_at=cut_at,
        written=f"{moment(now()):%Y-%m-%d %H:%M:%S %Z}",
        version=__version__,
        policy=f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'",
        style=style,
        script=script,
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
