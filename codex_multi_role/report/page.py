"""The page itself: it contains everything it needs and may load nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path

from markupsafe import Markup

from codex_multi_role import __version__
from codex_multi_role.catalog import FlowSpec, read_flows
from codex_multi_role.errors import CodexMultiRoleError, DefinitionError
from codex_multi_role.flow.conditions import with_called
from codex_multi_role.host.atomic import write_pieces
from codex_multi_role.host.redaction import Redactor
from codex_multi_role.presentation.recorded import read_record
from codex_multi_role.presentation.wording import moment, one_line
from codex_multi_role.report import sections
from codex_multi_role.report.drawings import flow_picture, swim_lanes
from codex_multi_role.report.entries import Entries, text_sizes
from codex_multi_role.report.heading import heading
from codex_multi_role.report.markup import asset, joined
from codex_multi_role.report.path_taken import paths_taken
from codex_multi_role.report.picture import draw
from codex_multi_role.report.story import Story
from codex_multi_role.report.texts import Reader, cut_length
from codex_multi_role.report.timeline import timeline
from codex_multi_role.run_folder import RunFolder, read_events
from codex_multi_role.run_folder.events import now

PIECE = 1 << 16


def write_report(folder: RunFolder, runs_dir: Path, path: Path | None = None) -> Path:
    """Write the report of the run in ``folder`` to ``path``, by default its own ``report.html``; returns the path.

    The commands in it name ``runs_dir``. The run may still be working. Turns are read one by one while the page is
    written. Raises `StorageError`.
    """
    path = path or folder.report_path
    write_pieces(path, _pieces(_page(folder, runs_dir)))
    return path


def _pieces(texts: Iterator[Markup]) -> Iterator[bytes]:
    """Encode ``texts`` in larger pieces; what cannot be encoded (lone surrogates) becomes ``?``."""
    held: list[str] = []
    size = 0
    for text in texts:
        held.append(text)
        size += len(text)
        if size >= PIECE:
            yield "".join(held).encode("utf-8", "replace")
            held, size = [], 0
    yield "".join(held).encode("utf-8", "replace")


def _page(folder: RunFolder, runs_dir: Path) -> Iterator[Markup]:
    story = Story.of(read_events(folder.inherited_events_path), read_events(folder.events_path))
    page_heading = heading(folder, story, runs_dir)
    cut_at = cut_length(text_sizes(folder))
    entries = Entries(folder, story, cut_at, alive=page_heading.alive)
    written = f"{moment(now()):%Y-%m-%d %H:%M:%S %Z}"
    style, script = asset("report.css"), asset("report.js")
    lanes = timeline(story, entries.questions)
    states = folder.redact.within(story.states.as_json())
    has_tasks = bool(states["run"] or states["items"])
    has_content = {"timeline": lanes is not None, "states": has_tasks, "warnings": bool(story.notes)}
    yield sections.head(page_heading, _policy(style, script), style, __version__)
    yield sections.banner(page_heading, written)
    yield sections.navigation(name for name in sections.NAMES if has_content.get(name, True))
    answer = Reader(folder.path, folder.redact, cut_at).text(folder.path / "answer.md")
    yield sections.facts(page_heading, list(story.progress.roles.values()), answer)
    if lanes is not None:
        yield sections.section("timeline", "Timeline", swim_lanes(lanes))
    yield sections.section("flow", "Flow, and the way that was taken", _flows(folder, story))
    yield from sections.what_happened(entries, len(entries))
    if has_tasks:
        yield sections.tasks(states)
    if story.notes:
        yield sections.warnings(story)
    yield sections.foot(written, __version__, cut_at, script)


def _policy(style: str, script: str) -> str:
    """Allow the page's own style and script, and nothing else."""
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _flows(folder: RunFolder, story: Story) -> Markup:
    """Draw the run's flow and those it calls, from the YAML it kept; otherwise say why that cannot be read."""
    record = read_record(folder)
    name = str(record.get("flow") or story.progress.flow)
    try:
        flows = read_flows(name, (folder.catalog_path / str(record.get("catalog_file", "catalog.yaml"))).parent)
        shown = [(flow.name, _without_secrets(flow, folder.redact)) for flow in with_called(flows, name)]
    except (CodexMultiRoleError, OSError) as error:
        return sections.note(f"The flow cannot be drawn: {one_line(folder.redact(str(error)), 500)}")
    paths = paths_taken(flows, name, story.visits.values(), story.progress.ended)
    pictures = (draw(flow, paths[own], story.roles) for own, flow in shown)
    return joined(flow_picture(picture, number) for number, picture in enumerate(pictures, 1))


def _without_secrets(flow: FlowSpec, redact: Redactor) -> FlowSpec:
    """Redact before drawing: in wrapped or cut text, a secret is hidden only in part. Raises `DefinitionError`."""
    try:
        return FlowSpec.model_validate(redact.within(flow.model_dump(by_alias=True, exclude_unset=True)))
    except ValueError as error:
        raise DefinitionError(f"a name in {flow.name} is the value of a secret variable, and masked") from error
