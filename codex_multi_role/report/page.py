"""The page itself: everything it needs is in it, and it may load nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from codex_multi_role import __version__
from codex_multi_role.catalog import read_flows
from codex_multi_role.errors import CodexMultiRoleError
from codex_multi_role.flow.calls import with_called
from codex_multi_role.presentation.recorded import read_record
from codex_multi_role.presentation.wording import clock, compact, duration, moment, one_line
from codex_multi_role.report.entries import Entries, text_sizes
from codex_multi_role.report.heading import heading
from codex_multi_role.report.path_taken import paths_taken
from codex_multi_role.report.picture import Picture, draw
from codex_multi_role.report.story import Story
from codex_multi_role.report.texts import Reader, cut_length
from codex_multi_role.report.timeline import timeline
from codex_multi_role.run_folder import RunFolder, read_events
from codex_multi_role.run_folder.atomic import replacing
from codex_multi_role.run_folder.events import now

ASSETS = Path(__file__).parent / "assets"
NAME = "report.html"
PIECE = 1 << 16


def write_report(folder: RunFolder, runs_dir: Path, path: Path | None = None) -> Path:
    """Write the report of the run in ``folder`` to ``path``, its own folder's ``report.html`` unless given.

    ``runs_dir`` is what the commands in it name. The run may still be going on. Turns are read one by one, as the page
    is written. Returns the path. Raises `StorageError`.
    """
    path = path or folder.path / NAME
    with replacing(path) as file:
        for piece in _pieces(_page(folder, runs_dir)):
            file.write(piece)
    return path


def _pieces(texts: Iterator[str]) -> Iterator[bytes]:
    """``texts`` in larger pieces; what cannot be encoded (lone surrogates) becomes ``?``."""
    held: list[str] = []
    size = 0
    for text in texts:
        held.append(text)
        size += len(text)
        if size >= PIECE:
            yield "".join(held).encode("utf-8", "replace")
            held, size = [], 0
    yield "".join(held).encode("utf-8", "replace")


def _page(folder: RunFolder, runs_dir: Path) -> Iterator[str]:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # here: `--help` should not load it

    story = Story.of(read_events(folder.inherited_events_path), read_events(folder.events_path))
    told = heading(folder, story, runs_dir)
    cut_at = cut_length(text_sizes(folder))
    entries = Entries(folder, story, cut_at, alive=told.alive)
    pictures, no_picture = _pictures(folder, story)
    environment = Environment(
        loader=FileSystemLoader(ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"clock": clock, "compact": compact, "duration": duration, "line": one_line}
    yield from environment.get_template("page.html").generate(
        **_assets(),
        heading=told,
        story=story,
        roles=list(story.progress.roles.values()),
        states=folder.redact.within(story.states.as_json()),
        entries=entries,
        timeline=timeline(story, entries.questions),
        pictures=pictures,
        no_picture=no_picture,
        answer=Reader(folder.path, folder.redact, cut_at).text(folder.path / "answer.md"),
        cut_at=cut_at,
        version=__version__,
        written=f"{moment(now()):%Y-%m-%d %H:%M:%S %Z}",
    )


def _assets() -> dict[str, Any]:
    """The style and the script with the policy that allows these two and nothing else."""
    from markupsafe import Markup

    style, script = ((ASSETS / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )
    return {"style": Markup(style), "script": Markup(script), "policy": policy}


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _pictures(folder: RunFolder, story: Story) -> tuple[Sequence[Picture], str]:
    """The run's flow and those that it calls, from the YAML it kept; none, and why, where that cannot be read."""
    record = read_record(folder)
    name = str(record.get("flow") or story.progress.flow)
    try:
        flows = read_flows(name, (folder.catalog_path / str(record.get("catalog_file", "catalog.yaml"))).parent)
    except (CodexMultiRoleError, OSError) as error:
        return [], one_line(error, 500)
    paths = paths_taken(flows, name, story.visits.values(), story.progress.ended)
    roles = list(story.progress.roles)
    return [draw(flow, paths[flow.name], roles) for flow in with_called(flows, name)], ""
