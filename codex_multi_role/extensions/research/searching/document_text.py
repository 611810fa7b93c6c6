"""The text of a document, with its own title and date."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from codex_multi_role.errors import how_to_add

MOST_CHARACTERS = 1_000_000
MOST_PAGES = 500
LARGEST_PAGE_CHARACTERS = 400_000
"""Finding the main text of a larger page, or of a crafted one, would take too long."""
LONGEST_TITLE = 200
ENDINGS = {".md": "markdown", ".markdown": "markdown", ".txt": "text", ".text": "text", ".rst": "text", ".html": "html",
           ".htm": "html", ".xhtml": "html", ".pdf": "pdf"}  # fmt: skip
_DATE = re.compile(r"\d{4}-\d{2}(?:-\d{2})?")
_FRONT_MATTER = re.compile(r"\A---\r?\n(.{0,4000}?)^---[ \t]*\r?\n", re.DOTALL | re.MULTILINE)
_PAGE = re.compile(r"\s*<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_FIELD = re.compile(r"^(title|date)[ \t]*:[ \t]*(.+)$", re.MULTILINE | re.IGNORECASE)
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t#]*$", re.MULTILINE)
_DATE_NAMES = ("date", "dc.date", "article:published_time", "article:modified_time", "last-modified")
FEWEST_LETTERS = 40
"""Shorter texts are too short to detect a language."""
LOOKED_AT = 4_000
NO_LANGUAGE = "zxx"
_LETTERS = re.compile(r"[^\W\d_]")


def shortened(text: str, characters: int, more: str = "") -> str:
    """How much of a text of so many ``characters`` the part ``text`` is; empty for all of it."""
    return f"{len(text)} of {more}{characters} characters" if more or len(text) < characters else ""


class Unreadable(Exception):
    """A file without readable text; the message says why."""


@dataclass(frozen=True)
class SearchedDocument:
    """``date``: ISO, from the document itself, never from the file; empty if it has none.

    ``cut``: the text is longer than `MOST_CHARACTERS`, or there are more pages than `MOST_PAGES`.
    """

    title: str
    date: str
    text: str
    cut: bool = False


def page_text(page: str) -> str:
    """The text of an HTML page; any other text unchanged."""
    return _from_html(page).text if _PAGE.match(page) else page


def read_document(path: Path, data: bytes, *, main_text: bool = True) -> SearchedDocument:
    """Read the document at ``path`` with the content ``data``; ``main_text``: only the main text of an HTML page.

    Raises Unreadable.
    """
    kind = ENDINGS[path.suffix.lower()]
    if kind == "html":
        found = _from_html(_decoded(data), main_text)
    else:
        found = _from_pdf(data) if kind == "pdf" else _from_text(_decoded(data))
    whole = found.text.strip()
    text = whole[:MOST_CHARACTERS]
    if not text:
        raise Unreadable("it contains no text")
    title = " ".join(found.title.split())[:LONGEST_TITLE]
    return SearchedDocument(title or path.name, found.date, text, found.cut or len(text) < len(whole))


def _decoded(data: bytes) -> str:
    if b"\x00" in data:
        raise Unreadable("not text, despite its name")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def _from_text(text: str) -> SearchedDocument:
    front = _FRONT_MATTER.match(text)
    fields = {name.lower(): value.strip(" \"'\r") for name, value in _FIELD.findall(front[1])} if front else {}
    body = text[front.end() :] if front else text
    heading = _HEADING.search(body[:4000])
    return SearchedDocument(fields.get("title") or (heading[1] if heading else ""), _date(fields.get("date", "")), body)


def _from_html(text: str, main_text: bool = True) -> SearchedDocument:
    page = _Page()
    page.feed(text)
    page.close()
    lines = (" ".join(line.split()) for line in "".join(page.parts).splitlines())
    everything = "\n".join(line for line in lines if line)
    return SearchedDocument("".join(page.title), _date(page.date), (main_text and _main_text(text)) or everything)


def _main_text(page: str) -> str:
    """The main text of a page, without navigation and the like; empty if it cannot be found."""
    if len(page) > LARGEST_PAGE_CHARACTERS:
        return ""
    try:
        import trafilatura  # imported here: it takes half a second, and only pages need it
    except ImportError:
        return ""
    return trafilatura.extract(page, fast=True, favor_recall=True, include_comments=False) or ""


def _from_pdf(data: bytes) -> SearchedDocument:
    try:
        from io import BytesIO

        from pypdf import PdfReader
    except ImportError as error:
        raise Unreadable(f"PDF needs pypdf: {how_to_add('research')}") from error
    try:
        reader = PdfReader(BytesIO(data))
        pages: list[str] = []
        size = 0
        for page in reader.pages[:MOST_PAGES]:
            pages.append(page.extract_text())
            size += len(pages[-1])
            if size > MOST_CHARACTERS:
                break
        cut = len(reader.pages) > len(pages)
        metadata = reader.metadata
        created = str(metadata.get("/CreationDate", "")) if metadata else ""
        title = str(metadata.title or "") if metadata else ""
    except Exception as error:  # a damaged PDF makes pypdf raise almost anything
        raise Unreadable(f"cannot be read as PDF: {error}") from error
    digits = re.match(r"D:(\d{4})(\d{2})(\d{2})", created)
    return SearchedDocument(title, "-".join(digits.groups()) if digits else "", "\n\n".join(pages), cut)


def _date(text: str) -> str:
    found = _DATE.search(text)
    return found[0] if found else ""


class _Page(HTMLParser):
    """Collects what a reader of the page would see; text within one block stays on one line."""

    _SILENT = frozenset({"script", "style", "template", "noscript", "svg", "head"})
    _INLINE = frozenset(
        {"a", "abbr", "b", "code", "em", "i", "mark", "s", "small", "span", "strong", "sub", "sup", "u"}
    )

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title: list[str] = []
        self.date = ""
        self._silent = 0
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in self._SILENT
        self._in_title = tag == "title"
        if tag not in self._INLINE:
            self.parts.append("\n")
        attributes: dict[str, str] = {name: value or "" for name, value in attrs}
        name = attributes.get("name", attributes.get("property", attributes.get("http-equiv", ""))).lower()
        if not self.date and (tag == "time" or name in _DATE_NAMES):
            self.date = attributes.get("datetime", attributes.get("content", ""))
        if tag == "body":
            self._silent = 0

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._silent -= tag in self._SILENT

    def handle_endtag(self, tag: str) -> None:
        self._in_title = False
        self._silent = max(0, self._silent - (tag in self._SILENT))
        if tag not in self._INLINE:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title.append(data)
        elif not self._silent:
            self.parts.append(data)


def language_of(text: str) -> str:
    """The ISO 639-1 code, or empty if the text is too short to tell. Raises ImportError without the library."""
    import py3langid  # imported here: it takes a quarter of a second, and most searches accept every language

    start = text[:LOOKED_AT]
    if len(_LETTERS.findall(start)) < FEWEST_LETTERS:
        return ""
    code = str(py3langid.classify(start)[0])
    return "" if code == NO_LANGUAGE else code
