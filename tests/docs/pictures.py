"""Make the pictures in the docs, of the pages of a recorded run: ``python -m tests.docs.pictures``. Needs Chromium.

They are not generated with the other files, because no two browsers draw the same bytes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from codex_multi_role.extensions.pages.report.values import markdown_as_html
from tests.support.browser import launched
from tests.support.serving import served
from tests.support.teams import Record, TeamFolder, say, with_flow
from tests.support.tools import EDITOR
from tests.support.workspaces import commit_all

if TYPE_CHECKING:
    from playwright.sync_api import Page

PICTURES = Path(__file__).parents[2] / "docs/pictures"
WIDTH, HEIGHT = 1200, 700
GOAL = "Slugs for titles, with a function for each direction"
SLUG = '''"""Titles as parts of an address."""


def slug(title: str) -> str:
    return "-".join(title.lower().split())
'''
WORDS = """

def words(slug: str) -> list[str]:
    return slug.split("-")
"""
TESTS = """from slugs import slug, words


def test_slug() -> None:
    assert slug("The first  Run") == "the-first-run"


def test_words() -> None:
    assert words("the-first-run") == ["the", "first", "run"]
"""
SHEET = """<!doctype html><meta charset="utf-8">
<style>body {{ font: 15px/1.45 system-ui, sans-serif; max-width: 62rem; margin: 1.5rem auto; color: #1b2330 }}
h1 {{ font-size: 1.5rem }} h5 {{ font-size: 1.1rem; margin: 1rem 0 .3rem }}
code, pre {{ background: #f1f3f6; border-radius: 4px }} pre {{ padding: .6rem; overflow: auto }}
</style><h1>{}</h1>{}"""
"""What `pr` printed, as plain Markdown: no page of a host."""
TASKS: list[Record] = [{"id": "T1", "title": "Slugs of titles"}, {"id": "T2", "title": "Words of slugs, with tests"}]
FLOW: Record = {
    "steps": [
        {"id": "plan", "ask": "planner"},
        {
            "id": "work",
            "ask": "coder",
            "for_each": {"items": "{{ steps.plan.tasks }}", "as": "task", "max_items": 4},
            "with": {"task": "{{ task }}"},
        },
        {"id": "tests", "check": "tests"},
        {"id": "judge", "ask": "reviewer"},
        {
            "id": "release",
            "review": {
                "question": "Release it?",
                "show": "{{ steps.judge.summary }}",
                "options": ["now", "after the weekend"],
                "fields": {"version": {"type": "string", "pattern": "^[0-9]+\\.[0-9]+$", "default": "1.0"}},
            },
        },
    ]
}


def recorded(folder: Path) -> TeamFolder:
    """A run that has planned, worked on two tasks, tested and judged, and waits for a person."""
    plays = {
        "planner": [say("Two tasks.", tasks=TASKS)],
        "coder": [
            say("Made slug.", files=[{"path": "slugs.py", "content": SLUG}]),
            say(
                "Made words, and tests of both.",
                files=[{"path": "slugs.py", "content": SLUG + WORDS}, {"path": "test_slugs.py", "content": TESTS}],
            ),
        ],
        "reviewer": [say("Small, clear, and tested.", verdict="good", score=9)],
    }
    team = with_flow(TeamFolder(folder, {"planner": {}, "coder": EDITOR, "reviewer": {}}, plays), FLOW, "slugs")
    (team.workspace / "README.md").write_text("# Slugs\n")
    commit_all(team.workspace)
    done = subprocess.run(team.command("--flow", "slugs", "--goal", GOAL), cwd=folder, check=False)
    assert done.returncode == 4
    return team


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, launched() as browser:
        team = recorded(Path(folder))
        run = (team.runs / "latest").resolve()
        with served(Path(folder), "--runs-dir", str(team.runs)) as server:
            page = browser.new_context(
                base_url=str(server.client.base_url), viewport={"width": WIDTH, "height": HEIGHT}
            ).new_page()
            take(page, "run", f"/runs/{run.name}")
            take(page, "decision", f"/runs/{run.name}/decide")
        answer = [sys.executable, "-m", "codex_multi_role", "answer", run.name, "option=now", "--resume"]
        subprocess.run(answer, cwd=folder, check=True)
        take(page, "report", f"file://{run / 'report.html'}")
        pull_request = [sys.executable, "-m", "codex_multi_role", "pr", run.name]
        text = subprocess.run(pull_request, cwd=folder, check=True, capture_output=True, text=True).stdout
        title, _, body = text.partition("\n\n")
        (sheet := Path(folder) / "pull_request.html").write_text(SHEET.format(escape(title), markdown_as_html(body)))
        take(page, "pull-request", sheet.as_uri(), full_page=True)


def take(page: Page, name: str, address: str, *, full_page: bool = False) -> None:
    page.goto(address)
    page.screenshot(path=PICTURES / f"{name}.png", full_page=full_page)


if __name__ == "__main__":
    main()
