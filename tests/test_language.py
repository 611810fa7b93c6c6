"""What people and models read is plain English: no phrase of language.yaml is in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import yaml

from codex_multi_role.cli.main import group

HERE = Path(__file__).parent
PROJECT = HERE.parent
PACKAGE = PROJECT / "codex_multi_role"
PHRASES = yaml.safe_load((HERE / "language.yaml").read_text())
PATTERNS = [(re.compile(rf"\b(?:{phrase['find']})\b"), phrase["write"]) for phrase in PHRASES]
SUFFIXES = (".html", ".js", ".md", ".txt", ".yaml", ".yml")
READ_BY_PEOPLE = ("roles", "templates", "docs", "examples", "codex_multi_role", "action.yml", "llms.txt")


def found(text: str) -> list[str]:
    """Each phrase in ``text``, with what to write instead."""
    line = " ".join(text.split()).lower()
    return [
        f'"{match[0]}" (write: {write}) in: …{line[max(0, match.start() - 40) : match.end() + 40]}…'
        for pattern, write in PATTERNS
        for match in pattern.finditer(line)
    ]


def helps(command: click.Command, path: str) -> Iterator[tuple[str, str]]:
    """The help of the command and of the commands below it."""
    context = click.Context(command, info_name=path)
    yield path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from helps(below, f"{path} {name}")


def messages(module: Path) -> Iterator[tuple[str, str]]:
    """The texts of the module other than docstrings, if they have several words; ``{}`` is a value."""
    tree = ast.parse(module.read_text())
    nodes = [*ast.walk(tree)]
    others: set[ast.AST] = {node.value for node in nodes if isinstance(node, ast.Expr)}
    others |= {part for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in others:
            text = node.value
        else:
            continue
        if " " in text.strip():
            yield f"{module.relative_to(PROJECT)}:{node.lineno}", text


def files() -> Iterator[tuple[str, str]]:
    top = [path for name in READ_BY_PEOPLE for path in (PROJECT / name, *(PROJECT / name).rglob("*"))]
    for path in [*top, *PROJECT.glob("*.md")]:
        name = str(path.relative_to(PROJECT))
        if path.suffix in SUFFIXES and path.is_file():
            yield name, path.read_text()


def test_planted_phrases_are_found() -> None:
    told = ((each["like"], each["write"], found(f"Before it.\n{each['like']}\nAfter it.")) for each in PHRASES)
    assert [like for like, write, all_found in told if not any(f"(write: {write})" in one for one in all_found)] == []


def test_help_is_plain_english() -> None:
    texts = dict(helps(group, "codex-multi-role"))
    assert "codex-multi-role flows validate" in texts
    assert {place: found(text) for place, text in texts.items() if found(text)} == {}


def test_messages_are_plain_english() -> None:
    texts = [each for module in sorted(PACKAGE.rglob("*.py")) for each in messages(module)]
    assert any("did you mean" in text for _, text in texts)
    assert [(place, wrong) for place, text in texts if (wrong := found(text))] == []


def test_pages_prompts_and_documents_are_plain_english() -> None:
    texts = dict(files())
    extensions = "codex_multi_role/extensions"
    pages = {f"{extensions}/pages/report/templates/report.html"} if (PROJECT / extensions).exists() else set()
    assert {"roles/planner.yaml", "SECURITY.md"} | pages <= set(texts)
    assert {place: found(text) for place, text in texts.items() if found(text)} == {}
