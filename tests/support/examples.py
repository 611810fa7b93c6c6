"""The shipped examples: what they leave, and copies of them as a person makes them."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

from tests.docs.newcomer import NEW_FOLDER
from tests.docs.pages import TOP, commands

EXTENSION = TOP / "examples/extension"
"""A package, which is not a team alone: it has to be installed."""
EXAMPLES = sorted({path.parent for path in TOP.glob("examples/*/README.md")} - {EXTENSION})
OUTCOMES = {
    "best-of-two": ("success", {"clamp.py": "max(low"}),
    "first-green": ("success", {"even.py": "% 2"}),
    "fix-until-green": ("green", {"mean.py": "len(numbers)"}),
    "pair": ("done", {"slug.py": "lower()"}),
    "per-file": ("success", {"SUMMARY.md": "- add.py: Adds two numbers.\n- sub.py: Subtracts"}),
    "plan-approval": ("success", {"greeting.txt": "Welcome"}),
    "release": ("success", {"NOTES.md": "Faster start"}),
    "review-panel": ("accepted", {"greet.py": "Hello {input()}"}),
    "sections": ("success", {"report.md": "when they are cheap"}),
    "translate": ("success", {"hello.md.french": "Redémarrez"}),
    "triage": ("answered", {}),
}
"""The outcome, and what is in the files of the workspace."""


def copy_of(example: Path, folder: Path) -> Path:
    """A copy below ``folder``."""
    return shutil.copytree(example, folder / example.name, ignore=shutil.ignore_patterns("runs", "work"))


def copy_with_workspace(example: Path, folder: Path) -> Path:
    """A copy whose workspace is its folder ``work``, ready for `arguments_of`."""
    top = copy_of(example, folder)
    if (top / "project").is_dir():
        shutil.copytree(top / "project", top / "work")
    else:
        (top / "work").mkdir()
    return top


def arguments_of(example: Path) -> list[str]:
    """What the README of the example gives to our command, for a workspace in its folder ``work``."""
    [command] = [each for each in commands(f"examples/{example.name}/README.md") if each.startswith("codex-")]
    return shlex.split(command.replace(NEW_FOLDER, "work"))[1:]
