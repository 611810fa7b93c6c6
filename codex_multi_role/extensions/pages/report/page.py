"""The report itself, which contains everything it needs and may load nothing else; parts that extensions add to it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from jinja2.environment import TemplateStream

from codex_multi_role.errors import RunStatus
from codex_multi_role.extensions.pages.report.changes import changes_parts
from codex_multi_role.extensions.pages.report.entries import Entries, text_sizes
from codex_multi_role.extensions.pages.report.flow_picture import KnownFlows
from codex_multi_role.extensions.pages.report.page_parts import load_parts, page_parts
from codex_multi_role.extensions.pages.report.parts import cut_length
from codex_multi_role.extensions.pages.report.rendering import asset, template
from codex_multi_role.extensions.pages.report.run_tree import RunTree
from codex_multi_role.extensions.pages.report.timeline import timeline
from codex_multi_role.host.atomic import write_pieces
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.outcome import ending_in_words, exit_in_words, next_from_record, run_status
from codex_multi_role.presentation.recorded import changed_files, read_record, status_now, totals_now
from codex_multi_role.presentation.result import result_of
from codex_multi_role.presentation.wording import (
    compact,
    costs_by_step,
    duration,
    failed_tests,
    moment,
    one_line,
    plural,
    price,
    verdict,
    verdict_before,
)
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.cost import Cost
from codex_multi_role.run_folder.events import now
from codex_multi_role.version import __version__

BUFFERED = 2
"""Pieces of text that are written at once: a turn is one."""


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
    parts = [*changes_parts(folder), *page_parts(folder, changed_files(folder, record, course.turns))]
    return template("report.html").stream(
        run=heading(folder, course, status, flows.at_most),
        flows=flows,
        pictures=flows.drawn(course, tone),
        timeline=timeline(course, entries.questions, tone),
        tree=RunTree(course, entries, tone),
        entries=entries,
        result=result_of(folder, record),
        parts=parts,
        part_links=[(part.id, part.name, True) for part in parts],
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


GOAL_LENGTH = 10_000


def heading(folder: RunFolder, course: Course, status: str, at_most: str) -> dict[str, object]:
    """Build it from ``run.json``, or from the events if it cannot be read. ``at_most``: the worst case.

    ``facts``: name and value. ``figures``: value, in words, and name.
    """
    record = folder.redact.within(read_record(folder))
    exit_code = record.get("exit_code")
    return {
        "run_id": folder.run_id,
        "goal": str(record.get("goal") or course.started.goal)[:GOAL_LENGTH],
        "status": status,
        "tone": run_status(status).tone,
        "outcome": ending_in_words(status, str(record.get("outcome") or "")),
        "reason": one_line(record.get("reason", ""), 2000),
        "hint": one_line(record.get("hint") or "", 2000),
        "meaning": "" if exit_code is None else f"exit code {exit_in_words(exit_code)}",
        "next": next_from_record(folder, record, status),
        "facts": facts_of(record, course, at_most),
        "figures": [*figures_of(totals_now(folder, record), len(changed_files(folder, record, course.turns)), course)],
        "roles": [*course.roles.values()],
    }


def facts_of(record: Mapping[str, Any], course: Course, at_most: str) -> list[tuple[str, str]]:
    """What is known about the run, by name."""
    return [(name, value) for name, value in _facts(record, course, at_most) if value]


def _facts(record: Mapping[str, Any], course: Course, at_most: str) -> Iterator[tuple[str, str]]:
    flow = record.get("flow") or course.started.flow
    cycles = course.started.cycles
    yield "flow", one_line(flow) + (f", {plural(cycles, 'cycle')}" if cycles else "")
    inputs = record.get("inputs")
    if isinstance(inputs, Mapping):
        yield "inputs", ", ".join(f"{one_line(name)}={one_line(value, 120)}" for name, value in inputs.items())
    if playbook := record.get("playbook"):
        yield "model", f"none (answers from the playbook {one_line(playbook)})"
    if forked := course.forked:
        yield "fork", one_line(forked, 1000)
    elif isinstance(origin := record.get("forked_from"), Mapping):
        yield "fork of", f"{origin.get('run_id')}, from before {origin.get('step')}:{origin.get('visit')}"
    yield "started", _when(record.get("started_at") or course.began)
    if isinstance(resumed := record.get("resumed_at"), list):
        yield "resumed", ", ".join(map(_when, resumed[-5:]))
    yield "ended", _when(record.get("ended_at"))
    yield "worst case", at_most
    yield "cost by step", costs_by_step(course.step_costs)
    if tests := course.latest_tests:
        yield "failed tests", failed_tests(tests.told)
    yield "workspace", one_line(record.get("workspace", ""), 500)
    versions = record.get("versions")
    if isinstance(versions, Mapping):
        yield "versions", ", ".join(f"{name.replace('_', '-')} {version}" for name, version in versions.items())


def _when(at: object) -> str:
    """Empty for a text that is not a time."""
    with suppress(ValueError, OverflowError):
        return f"{moment(str(at)):%Y-%m-%d %H:%M:%S}" if at else ""
    return ""


def figures_of(totals: Mapping[str, Any], files: int, course: Course) -> Iterator[tuple[str, str]]:
    """What the run used and did: value, in words, and name. ``totals`` as in ``run.json``."""
    yield f"{totals.get('turns', 0):,.0f}", "turns"
    if repairs := totals.get("repairs"):
        yield f"{repairs:,.0f}", "repairs"
    yield compact(totals.get("input_tokens", 0)), "tokens in"
    yield compact(totals.get("output_tokens", 0)), "tokens out"
    if cost := price(Cost.of_totals(totals)):
        yield cost, "cost"
    if totals.get("seconds"):
        yield duration(totals["seconds"]), "worked"
    yield f"{files:,}", "files changed"
    if course.baseline is not None:
        yield verdict_before(vars(course.baseline)), "tests before"
    if (tests := course.latest_tests) is not None:
        yield verdict(tests.told), f"tests {tests.number:03d}"
    if warnings := len(course.incidents) + course.notes_left_out:
        yield f"{warnings:,}", "warnings"


class ReportPage:
    """The `PageOfRun`."""

    command = "report"
    prepare = staticmethod(load_parts)

    @staticmethod
    def write(folder: RunFolder) -> Path:
        return write_report(folder)
