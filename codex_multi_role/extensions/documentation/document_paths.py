"""The paths of documents, and how a page says which state of which file it is about."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from codex_multi_role.checks import CheckContext, inside

PAGES = "files"
_MARK = re.compile(r"\A<!-- source: (?P<path>.+?) sha256: (?P<sha256>[0-9a-f]{64}) -->\n")
LARGEST_PAGE_BYTES = 256 * 1024
"""The rest is not read: the time to parse crafted Markdown grows with the square of its length."""


@dataclass(frozen=True)
class Page:
    """A page as stored. ``source`` and ``sha256`` are empty if it does not say what it is about."""

    source: str
    sha256: str
    text: str

    @property
    def summary(self) -> str:
        """The first paragraph below the title."""
        paragraphs = [part.strip() for part in self.text.split("\n\n") if part.strip()]
        return next((part for part in paragraphs if not part.startswith(("#", "```", "-", "|"))), "")


def page_of(out: str, source: str) -> str:
    """The page about a source file, relative to the workspace."""
    return f"{out.rstrip('/')}/{PAGES}/{source}.md"


def marked(source: str, sha256: str, text: str) -> str:
    """``text`` as the page about that state of ``source``; an existing mark is replaced."""
    return f"<!-- source: {source} sha256: {sha256} -->\n{_MARK.sub('', text).strip()}\n"


def read_page(place: Path) -> Page | None:
    """The page at ``place``; None if it cannot be read."""
    text = read_text(place)
    return None if text is None else parse_page(text)


def summary_of(place: Path, source: str) -> str:
    """The first paragraph of the page at ``place``; empty if it is not about ``source``."""
    page = read_page(place)
    return page.summary if page is not None and page.source == source else ""


def read_text(place: Path) -> str | None:
    """The document at ``place``, at most `LARGEST_PAGE_BYTES` of it; None if it cannot be read."""
    try:
        with place.open("rb") as file:
            return file.read(LARGEST_PAGE_BYTES).decode("utf-8", "replace")
    except OSError:
        return None


def parse_page(text: str) -> Page:
    """Split the ``text`` of a page into its mark and the rest."""
    mark = _MARK.match(text)
    return Page(mark["path"] if mark else "", mark["sha256"] if mark else "", _MARK.sub("", text))


def folder_of(context: CheckContext, out: str, check: str) -> Path:
    """The folder for the documents. Raises UsageError for one outside the workspace."""
    return inside(context.workspace, out, f"check {check}: out")
