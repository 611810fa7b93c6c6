"""``flows migrate``: rewrite the former keys of steps in the text of a flow; comments, order and all else stay."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import click
import yaml

from codex_multi_role.cli.options import ROLES, command
from codex_multi_role.cli.output import say
from codex_multi_role.errors import DefinitionError
from codex_multi_role.host.atomic import write_text
from codex_multi_role.lifecycle.team_loading import own_flows, roles_folder
from codex_multi_role.reading.former_keys import Former, Pair, former_steps, rewrite
from codex_multi_role.reading.shipped import FLOWS, find_definition
from codex_multi_role.reading.yaml_loader import parse_yaml
from codex_multi_role.reading.yaml_source import load_yaml, read_text

COLUMNS = 100
"""A group of keys is on one line if that is not longer."""


@dataclass
class Written:
    """A key and its value as they are in a file. ``above``: the comments before it; ``column``: where the key is."""

    text: str
    column: int
    above: list[str] = field(default_factory=list)

    @property
    def value(self) -> str:
        """What follows the colon, without the space."""
        return re.sub(r"^(\"[^\"]*\"|'[^']*'|[^:\s]+)\s*:[ \t]*", "", self.text, count=1)

    @property
    def remark(self) -> str:
        """The comment beside a value on one line, if any."""
        found = re.search(r"(?:^|\s)#.*$", self.text) if "\n" not in self.text else None
        return found[0].strip() if found else ""


def migrated(text: str) -> str:
    """Return the text of a flow with the present keys. Raises ``ValueError`` if it is too unusual to be edited."""
    root = yaml.compose(text, Loader=yaml.CSafeLoader)
    found = _Migration(text, root)
    for former in reversed([*former_steps(root)]):
        start, end, step = found.rewritten(former)
        text = text[:start] + step + text[end:]
    if parse_yaml(text) != parse_yaml(found.text, rewrite):
        raise ValueError("the text cannot be edited safely")
    return text


class _Migration:
    def __init__(self, text: str, root: yaml.Node | None) -> None:
        self.text = text
        self._nodes = {id(each): each for each in _below(root)}

    @cached_property
    def _written(self) -> dict[int, Written]:
        """Every pair of a mapping, by where its key starts."""
        mappings = (each for each in self._nodes.values() if isinstance(each, yaml.MappingNode))
        return {start: each for mapping in mappings for start, each in self._pairs(mapping)}

    def _pairs(self, mapping: yaml.MappingNode) -> Iterator[tuple[int, Written]]:
        keys = [key.start_mark for key, _ in mapping.value]
        end = (mapping.end_mark.index or 0) - bool(mapping.flow_style)
        above = _comments_before(self.text, keys[0].index) if keys else []
        for start, following in pairwise([*((mark.index, mark.column) for mark in keys), (end, 0)]):
            whole = self.text[start[0] : following[0]]
            kept, rest = (whole.rstrip(" ,\n"), "") if mapping.flow_style else _without_tail(whole, start[1])
            yield start[0], Written(kept, start[1], above)
            above = [line.strip() for line in rest.splitlines() if line.strip()]

    def rewritten(self, former: Former) -> tuple[int, int, str]:
        """Return where the step's pairs start and end in the text, and what replaces them."""
        starts = [key.start_mark.index for key, _ in former.written.value]
        last = self._written[starts[-1]]
        column = self._written[starts[0]].column
        self._keep_comments(former, starts)
        if former.written.flow_style:
            entries = [self._inline(*pair) for pair in former.pairs]
            lines = _wrapped(entries, column) if "\n" in self.text[starts[0] : starts[-1]] else [", ".join(entries)]
        else:
            lines = [line for pair in former.pairs for line in self._block(*pair, column)]
            lines += [f"{' ' * column}{each}" for each in self._left]
        return starts[0], starts[-1] + len(last.text), "\n".join(lines)[0 if former.written.flow_style else column :]

    def _keep_comments(self, former: Former, starts: list[int]) -> None:
        """Let the next pair have the comments of one that is left out."""
        used = {key.start_mark.index for key, _ in _all_pairs(former.pairs)}
        self._left: list[str] = []
        for start in starts:
            own = self._written[start]
            if start in used:
                own.above[:0], self._left = self._left, []
            else:
                self._left += [*own.above, *([own.remark] if own.remark else [])]

    def _block(self, key: yaml.Node, value: yaml.Node, column: int) -> list[str]:
        own, space = self._written[key.start_mark.index], " " * column
        if id(value) in self._nodes:
            if column == own.column and own.text.startswith(f"{key.value}:"):
                return [*(f"{space}{each}" for each in own.above), f"{space}{own.text}"]
            first, *others = f"{key.value}: {own.value}".replace(": \n", ":\n").split("\n")
            shift = column - own.column
            lines = [f"{' ' * shift}{line}" if line.strip() else line for line in others]
            return [*(f"{space}{each}" for each in own.above), f"{space}{first}", *lines]
        if not isinstance(value, yaml.MappingNode):
            remark = own.remark and f"  {own.remark}"
            return [*(f"{space}{each}" for each in own.above), f"{space}{self._inline(key, value)}{remark}"]
        inner = [self._written[each.start_mark.index] for each, _ in value.value]
        above = [f"{space}{each}" for each in own.above if own is not inner[0]]
        line = f"{space}{self._inline(key, value)}"
        if len(line) <= COLUMNS and _fits(line) and not any("\n" in each.text or each.remark for each in inner):
            return [*above, *(f"{space}{comment}" for each in inner for comment in each.above), line]
        nested = (line for inner_key, each in value.value for line in self._block(inner_key, each, column + 2))
        return [*above, f"{space}{key.value}:", *nested]

    def _inline(self, key: yaml.Node, value: yaml.Node) -> str:
        if id(value) in self._nodes:
            return f"{key.value}: {self._written[key.start_mark.index].value}"
        if isinstance(value, yaml.MappingNode):
            return f"{key.value}: {{{', '.join(self._inline(*pair) for pair in value.value)}}}"
        ends = [str(each.value) for each in value.value] if isinstance(value, yaml.SequenceNode) else []
        return f"{key.value}: {'[' + ', '.join(ends) + ']' if ends else value.value}"


def _below(node: yaml.Node | None) -> Iterator[yaml.Node]:
    waiting, seen = [node] if node is not None else [], set[int]()
    while waiting:
        if id(each := waiting.pop()) not in seen:
            seen.add(id(each))
            yield each
            parts = each.value if isinstance(each, yaml.CollectionNode) else []
            waiting += [part for pair in parts for part in (pair if isinstance(pair, tuple) else (pair,))]


def _all_pairs(pairs: list[Pair]) -> Iterator[Pair]:
    for key, value in pairs:
        yield key, value
        if isinstance(value, yaml.MappingNode):
            yield from _all_pairs(value.value)


def _comments_before(text: str, start: int) -> list[str]:
    """The lines directly before a key that are comments alone."""
    found: list[str] = []
    *lines, before = text[:start].split("\n")
    while not before.strip() and lines and lines[-1].lstrip().startswith("#"):
        found.insert(0, lines.pop().strip())
    return found


def _without_tail(text: str, column: int) -> tuple[str, str]:
    """The text of a pair, and the blank lines and comments after it, which are about what follows."""
    lines = text.rstrip(" ").split("\n")
    end = len(lines)
    while end > 1 and (not lines[end - 1].strip() or re.match(rf" {{0,{column}}}#", lines[end - 1])):
        end -= 1
    return "\n".join(lines[:end]), "\n".join(lines[end:])


def _fits(line: str) -> bool:
    """Whether the line means the same in braces: a plain text with a comma or a bracket would end there."""
    try:
        parsed = yaml.safe_load(line)
    except yaml.YAMLError:
        return False
    plain = re.findall(r": (?![\"'\[{])([^,}]*)", line.partition("{")[2])
    return isinstance(parsed, dict) and not any(re.search(r"[\[\]{}]", each) for each in plain)


def _wrapped(entries: list[str], column: int) -> list[str]:
    """The entries of a mapping in braces, on as many lines as they need."""
    lines: list[str] = []
    for each in entries:
        if not lines or len(lines[-1]) + len(each) + 2 > COLUMNS:
            lines.append(" " * column if lines else "")
        lines[-1] += f"{each}, "
    return [*(line.rstrip() for line in lines[:-1]), lines[-1].removesuffix(", ")]


@command(ROLES, name="migrate")
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path(path_type=Path))
def migrate_flows(files: tuple[Path, ...], roles: Path | None) -> None:
    """Rewrite the former keys of steps in each FILE, by default in all flows beside your catalog.

    Comments, the order of the steps and everything else stay. A flow that has none is left alone.

    \b
    Examples:
      codex-multi-role flows migrate
      codex-multi-role flows migrate roles/flows/mine.yaml
    """
    folder = roles_folder(roles)
    own = (find_definition(FLOWS, name, folder) for name in own_flows(folder))
    for file in files or tuple(each for each in own if each is not None):
        say(f"rewrote {file}" if _migrate(file) else f"{file} has no former keys")


def _migrate(file: Path) -> bool:
    """Whether the file was rewritten. Raises `DefinitionError` for one that is not YAML or cannot be edited."""
    load_yaml(file)
    text = read_text(file)
    try:
        now = migrated(text)
    except ValueError as error:
        message = f"{file}: {error}"
        raise DefinitionError(message, "Write its former keys by hand; see the reference of flows.") from error
    if now != text:
        write_text(file, now)
    return now != text
