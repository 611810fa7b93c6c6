"""One page: an analyst's note on a file as Markdown, with links to the source and to its dependencies."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codex_multi_role.systems.documentation.places import page_of

_FENCE = re.compile(r"\A\s*```(?:mermaid)?\n(.*?)\n?```\s*\Z", re.DOTALL)


def page_text(note: Mapping[str, Any], file: Mapping[str, Any], out: str, source: Path | None, root: Path) -> str:
    """``file`` as ``code_graph`` lists it; ``source`` is its path, None outside the workspace ``root``."""
    here = (root / page_of(out, file["path"])).parent
    facts = f"{file['language']}, {file['lines']} lines, layer {file['layer']}"
    if source is not None:
        facts = f"[Source]({_relative(source, here)}), {facts}"
    pages = [f"[{_plain(path)}]({_relative(root / page_of(out, path), here)})" for path in file["dependencies"]]
    diagram = str(note.get("flow_diagram") or "").strip()
    inner = _FENCE.match(diagram)
    parts = [
        f"# {_plain(file['path'])}",
        str(note["summary"]).strip(),
        f"{facts}.",
        f"**Cannot be read as code:** {file['problem']}." if file["problem"] else "",
        f"**Read in part:** {file['partly']} could not be read." if file.get("partly") else "",
        _listed("Key insights", note.get("key_insights")),
        _listed("Classes", [_named(each) for each in note.get("classes") or ()]),
        _listed("Functions", [_named(each) for each in note.get("functions") or ()]),
        _listed("Depends on", pages),
        _listed("References", note.get("references")),
        f"## Flow\n\n{note['flow']}" if str(note.get("flow") or "").strip() else "",
        f"```mermaid\n{inner[1] if inner else diagram}\n```" if diagram else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _plain(path: str) -> str:
    """Escape ``__init__.py``: two underscores would make it bold."""
    return path.replace("__", r"\_\_")


def _listed(heading: str, items: Sequence[Any] | None) -> str:
    lines = [f"- {' '.join(str(item).split())}" for item in items or () if str(item).strip()]
    return "\n".join([f"## {heading}", "", *lines]) if lines else ""


def _named(text: Any) -> str:  # noqa: ANN401 - as a model wrote it
    """Put the name of ``add: puts it in`` in code font."""
    name, separator, rest = str(text).strip().partition(":")
    return f"`{name.strip(' `')}`{separator}{rest}" if name.strip(" `") else str(text)


def _relative(target: Path, here: Path) -> str:
    return Path(os.path.relpath(target, here)).as_posix().replace(" ", "%20").replace("(", "%28").replace(")", "%29")
