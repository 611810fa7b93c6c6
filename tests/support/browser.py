"""Pages as their readers see them: in a real browser, or read by an HTML parser."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = Path("/usr/bin/chromium")
PHONE = 390
SCHEMES: tuple[Literal["light", "dark"], ...] = ("dark", "light")
LINKS = ("src", "href", "action", "data", "poster", "srcset", "background", "formaction", "ping", "xlink:href")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start Chromium without a window, once per module; skip where it is absent.

    While it lives, Playwright's event loop runs in the main thread: nothing else that needs one there can be tried, a
    run in this process included. That is why it ends with the module.
    """
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not there: pages are not tried in a browser")
    with launched() as browser:
        yield browser


@contextmanager
def launched() -> Iterator[Browser]:
    """Chromium without a window."""
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=arguments)
        yield browser
        browser.close()


def assert_accessible(page: Page) -> None:
    """By the rules of axe, in both colour schemes, on a wide screen and a phone's, where nothing scrolls sideways."""
    from axe_playwright_python.sync_playwright import Axe

    before = page.viewport_size
    for width, scheme in product((1280, PHONE), SCHEMES):
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)
        result = Axe().run(page)
        assert not result.violations_count, f"{page.url}, {scheme}, {width}: {result.generate_report()}"
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{page.url}, {width}"
    if before is not None:
        page.set_viewport_size(before)


class Report(HTMLParser):
    """A written report as a browser would read it.

    ``elements``: every start tag with its attributes; ``text``: what a reader sees before anything is opened;
    ``entries``: by id, the parts of what opens, each ``{title, text, file, cut}``.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.entries: dict[str, list[dict[str, str]]] = {}
        self._part: dict[str, str] | None = None
        self._within = ""
        self._is_code = False
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        self.elements.append((tag, found))
        classes = (found.get("class") or "").split()
        self._is_code = tag in ("script", "style")
        if "entry" in classes:
            self.entries[found["id"] or ""] = []
        elif "part" in classes:
            self._part, self._within = dict.fromkeys(("title", "text", "file", "cut"), ""), ""
            next(reversed(self.entries.values())).append(self._part)
        if self._part is not None:
            names = {"h3": "title", "small": "file" if "file" in classes else ""}
            self._within = (
                "cut" if "cut" in classes else "text" if "inside" in classes else names.get(tag, self._within)
            )

    def handle_endtag(self, tag: str) -> None:
        self._is_code = False
        if tag == "details" and self._part is not None:
            self._part["text"] = self._part["text"].strip()
            self._part = None
        elif tag in ("h3", "small"):
            self._within = ""

    def handle_data(self, data: str) -> None:
        if self._part is not None:
            if self._within:
                self._part[self._within] += data
        elif not self._is_code:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())

    @property
    def links(self) -> list[str]:
        """All that a browser might load or follow."""
        return [value or "" for _, found in self.elements for name, value in found.items() if name in LINKS]

    @property
    def handlers(self) -> list[str]:
        """Attributes that would run or style something."""
        names = [name for _, found in self.elements for name in found]
        return [name for name in names if name.startswith("on") or name in ("style", "srcdoc")]

    def part(self, entry: str, title: str) -> dict[str, str]:
        """The part ``title`` of what opens under ``entry``. Raises `StopIteration` if there is no such part."""
        return next(part for part in self.entries[entry] if part["title"] == title)

    def titles(self, entry: str) -> list[str]:
        """The titles of the parts of ``entry``, in order."""
        return [part["title"] for part in self.entries[entry]]
