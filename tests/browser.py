"""A real browser for tests of pages: Chromium, started once a module.

While it lives, Playwright's event loop runs in the main thread: nothing else that needs one there can be tried, a run
in this process included. That is why it ends with the module.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window; skips where it is absent."""
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not there: pages are not tried in a browser")
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=arguments)
        yield browser
        browser.close()
