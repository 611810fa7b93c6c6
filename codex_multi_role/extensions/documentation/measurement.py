"""Measure documents about source code part by part. Their texts are arguments, so that versions can be compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from codex_multi_role.extensions.documentation.document_paths import Page, page_of, parse_page, read_page
from codex_multi_role.extensions.documentation.evidence import Evidence, is_path
from codex_multi_role.extensions.documentation.markdown_document import MarkdownDocument, read_markdown
from codex_multi_role.extensions.documentation.score import WEIGHTS, Score, ScorePart
from codex_multi_role.reading.sketches import copies

Texts = Mapping[str, str | None]
"""The documents by path, as on disk; None if missing."""
MIN_LETTERS = 15
"""A section of fewer letters and digits counts as empty: "TBD", "None.", "Coming soon."."""
_WORD = re.compile(r"\w+")
_LETTER = re.compile(r"[^\W_]")
_SEPARATOR = re.compile(r"\.|::|#")


class DocumentMeasurement:
    """``files`` as the check ``code_graph`` lists them. ``require_time`` raises once it takes too long.

    ``verdicts``: what is wrong with each diagram that was judged, or empty.
    """

    def __init__(
        self,
        root: Path,
        out: str,
        files: Iterable[Mapping[str, Any]],
        sections: Mapping[str, Sequence[str]],
        require_time: Callable[[], None],
    ) -> None:
        self._root = root
        self._sections = {f"{out}/{name}.md": headings for name, headings in sections.items()}
        self.source_of = {page_of(out, file["path"]): file for file in files}
        self._require_time = require_time
        self._read = cache(read_markdown)
        self.verdicts: Mapping[str, str] = {}

    @property
    def paths(self) -> list[str]:
        """The paths of the measured documents."""
        return [*self.source_of, *self._sections]

    def diagrams(self, text: str | None) -> list[str]:
        """The Mermaid blocks in a document's text."""
        return self._document(text).diagrams

    def score(self, texts: Texts, evidence: Evidence) -> Score:
        parts = {name: ScorePart() for name in WEIGHTS}
        for path, text in texts.items():
            self._require_time()
            self._judge_links(parts["links"], path, texts)
            self._judge_claims(parts["claims"], path, text, evidence)
            self._judge_diagrams(parts["mermaid"], path, text)
        self._judge_pages(parts, texts, evidence)
        self._judge_sections(parts["sections"], texts, evidence)
        shown = [each for text in texts.values() for each in self.diagrams(text)]
        unjudged = {"mermaid"} if shown and not parts["mermaid"].of else set()
        if not evidence.has_symbols and not parts["claims"].of:
            unjudged.add("claims")
        return Score(parts, unjudged, next(iter(self._sections)))

    def _document(self, text: str | None) -> MarkdownDocument:
        return self._read(parse_page(text).text if text else "")

    def _judge_pages(self, parts: Mapping[str, ScorePart], texts: Texts, evidence: Evidence) -> None:
        pages = {path: parse_page(texts[path] or "") for path in self.source_of}
        # Files with the same content, such as empty ones, may have identical pages.
        different = {self.source_of[path]["sha256"]: path for path in pages}.values()
        copied = copies({path: pages[path].summary for path in different if pages[path].summary})
        for path, page in pages.items():
            file = self.source_of[path]
            missing = _missing_page(page, file, self._document(texts[path]))
            wrong = missing or self._wrong_page(self._document(texts[path]), file, evidence)
            if not wrong and path in copied:
                wrong = f"its first paragraph is copied from {copied[path]}"
            parts["files"].count(not missing, path, missing)
            parts["pages"].count(not wrong, path, wrong)

    def _wrong_page(self, document: MarkdownDocument, file: Mapping[str, Any], evidence: Evidence) -> str:
        """Why it is not about the file, or an empty text."""
        path = file["path"]
        if not document.headings or _letters(path) not in _letters(document.headings[0]):
            return f"its title does not name {path}"
        verdicts = [evidence.judge(code, path) for code in dict.fromkeys(document.codes) if not is_path(code)]
        if verdicts.count(False) > verdicts.count(True):
            return f"most of the names in it are not in {path}"
        defined = {_SEPARATOR.split(name)[-1] for name in (*file["functions"], *file["classes"])}
        if defined and defined.isdisjoint(_WORD.findall(document.text)):
            return f"it does not mention anything that {path} defines"
        return ""

    def _judge_sections(self, part: ScorePart, texts: Texts, evidence: Evidence) -> None:
        """An empty or copied section counts as missing, as do all sections of a document about something else."""
        places = [(path, heading) for path, headings in self._sections.items() for heading in headings]
        wanted = {(path, heading): self._document(texts[path]).section(heading) for path, heading in places}
        copied = copies({key: text for key, text in wanted.items() if text and len(_letters(text)) >= MIN_LETTERS})
        strange = {path: not self._is_about_the_code(path, texts, evidence) for path in self._sections}
        for (path, heading), text in wanted.items():
            problem = ""
            if not texts[path]:
                problem = f"the document and its section {heading!r} are missing"
            elif text is None:
                problem = f"the section {heading!r} is missing"
            elif len(_letters(text)) < MIN_LETTERS:
                problem = f"the section {heading!r} is empty"
            elif (path, heading) in copied:
                other, title = copied[path, heading]
                problem = f"the section {heading!r} is a copy of {title!r} in {Path(other).name}"
            elif strange[path]:
                problem = "the document neither names anything of the code nor links to a page about it"
            part.count(not problem, path, problem)

    def _is_about_the_code(self, path: str, texts: Texts, evidence: Evidence) -> bool:
        document = self._document(texts[path])
        targets = ((target, anchor) for target, anchor in map(_inner, document.links) if target)
        leads_there = (not self._link_problem(path, target, anchor, texts) for target, anchor in targets)
        return any(evidence.judge(code) for code in document.codes) or any(leads_there)

    def _judge_claims(self, part: ScorePart, path: str, text: str | None, evidence: Evidence) -> None:
        source = self.source_of[path]["path"] if path in self.source_of else ""
        for code in dict.fromkeys(self._document(text).codes):
            if (real := evidence.judge(code, source)) is not None:
                where = f"is not in {source}" if source else "is not a name in the code"
                part.count(real, path, f"`{code}` {where}")

    def _judge_diagrams(self, part: ScorePart, path: str, text: str | None) -> None:
        for diagram in self.diagrams(text):
            if (problem := self.verdicts.get(diagram)) is not None:
                first = diagram.strip().splitlines()[0] if diagram.strip() else "nothing"
                part.count(not problem, path, f"a diagram ({first[:40]}) does not parse: {problem}")

    def _judge_links(self, part: ScorePart, path: str, texts: Texts) -> None:
        for link in dict.fromkeys(self._document(texts[path]).links):
            target, anchor = _inner(link)
            if target or anchor:
                problem = self._link_problem(path, target, anchor, texts)
                part.count(not problem, path, f"the link {link} {problem}")

    def _link_problem(self, path: str, target: str, anchor: str, texts: Texts) -> str:
        try:
            place = ((self._root / path).parent / target).resolve() if target else self._root / path
            if target.startswith("/") or not place.is_relative_to(self._root):
                return "leads outside the workspace"
            relative = place.relative_to(self._root).as_posix()
            if not (texts[relative] if relative in texts else place.exists()):
                return "leads nowhere"
        except (OSError, ValueError):  # no file could have such a name
            return "leads nowhere"
        if anchor and place.suffix == ".md" and anchor not in self._anchors(relative, texts):
            return f"refers to a heading that {place.name} does not have"
        return ""

    def _anchors(self, path: str, texts: Texts) -> set[str]:
        page = read_page(self._root / path) if path not in texts else None
        return self._read(page.text).anchors if page else self._document(texts.get(path)).anchors


def _missing_page(page: Page, file: Mapping[str, Any], document: MarkdownDocument) -> str:
    """Why it is not a page about the current content of the file, or an empty text."""
    if not _LETTER.search(document.text):
        return f"no page about {file['path']}"
    if page.source != file["path"]:
        return f"it does not say that it is about {file['path']}"
    return "" if page.sha256 == file["sha256"] else f"it is about another state of {file['path']}"


def _inner(link: str) -> tuple[str, str]:
    """The path and the heading of a link; both are empty if it leads elsewhere."""
    try:
        parts = urlsplit(link)
    except ValueError:
        return link, ""
    return ("", "") if parts.scheme or parts.netloc else (unquote(parts.path), unquote(parts.fragment))


def _letters(text: str) -> str:
    """Remove markup, such as the underscores of ``__init__``, which are bold type in Markdown."""
    return "".join(_LETTER.findall(text))
