"""The pages of the command line, of each command and of the settings, from click's declarations."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator

import click

from codex_multi_role.cli.main import group
from codex_multi_role.cli.options import KNOWN
from codex_multi_role.cli.settings import settings_of_extensions
from tests.docs.markdown import code, page, prose, table

DEFAULT = re.compile(r"\s*\[(?:default: )?([^\[\]]*)\]$")
BOUNDS = (
    (re.compile(r"(\S+)<=x<=(\S+)"), r"\1 to \2"),
    (re.compile(r"(\S+)<x<=(\S+)"), r"more than \1 and at most \2"),
    (re.compile(r"x>=(\S+)"), r"at least \1"),
    (re.compile(r"x>(\S+)"), r"more than \1"),
)
"""click's notation of ranges, and ours."""
HELP = ("-h, --help", "--help")
"""A command keeps the names of the first context that it was used in."""
SETTINGS = """
Every option of `run` and `serve`, and those of `batch` for all goals together, can also be an environment variable,
and a key of a settings file such as `codex-multi-role.yaml`. A flag overrides the variable, the variable overrides the
file, and the file overrides the default. [Set options once](../how-to/settings.md) says where files are found. Keys are
in snake case or kebab case. A repeatable option is a list or a mapping in the file; its variable is split as a shell
would.

```yaml title="codex-multi-role.yaml"
cycles: 5
max-tokens: 500000
config:
  model_provider: ollama
```
"""


class _Overview(click.HelpFormatter):
    """What ``--help`` lists, as headings with tables whose commands lead to their pages."""

    def __init__(self) -> None:
        super().__init__(width=1000)
        self.parts: list[str] = []

    def write_heading(self, heading: str) -> None:
        self.parts.append(f"## {heading}")

    def write_dl(self, rows: Iterable[tuple[str | None, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        names = (((name or "").strip(), prose(about)) for name, about in rows)
        self.parts.append(
            table(("command", "does"), ((f"[`{name}`](commands/{name}.md)", does) for name, does in names))
        )


def command_line() -> str:
    """The commands below the headings of ``--help``."""
    overview = _Overview()
    group.format_commands(_context(), overview)
    return page("Command line", _about(group), *overview.parts)


def commands() -> dict[str, str]:
    """For each command the page with its options, and those of the commands below it."""
    context = _context()
    found = {name: group.get_command(context, name) for name in group.list_commands(context)}
    return {name: _command(name, each, context) for name, each in found.items() if each and not each.hidden}


def _context() -> click.Context:
    return click.Context(group, info_name="codex-multi-role", **group.context_settings)


def _command(name: str, command: click.Command, parent: click.Context) -> str:
    context = click.Context(command, info_name=name, parent=parent)
    below = _below(command, context) if isinstance(command, click.Group) else ()
    return page(f"`{name}`", *_parts(command, context), *below)


def _below(parent: click.Group, context: click.Context) -> Iterator[str]:
    for name in parent.list_commands(context):
        command = parent.get_command(context, name)
        if command is not None and not command.hidden:
            own = click.Context(command, info_name=name, parent=context)
            yield f"## `{context.info_name} {name}`"
            yield from _parts(command, own)


def _parts(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"```text\n{context.command_path} {' '.join(command.collect_usage_pieces(context))}\n```"
    yield _about(command)
    yield _options(command, context)


def _about(command: click.Command) -> str:
    """The help text; paragraphs that click must not wrap become blocks."""
    return "\n\n".join(_paragraph(part.strip("\n")) for part in inspect.cleandoc(command.help or "").split("\n\n"))


def _paragraph(text: str) -> str:
    if not text.startswith("\b\n"):
        return prose(text)
    first, *lines = text.removeprefix("\b\n").splitlines()
    if not all(line.startswith("  ") for line in lines) or not lines:
        return prose("\n".join([first, *lines]))
    return "\n".join([first, "", "```text", *(line[2:] for line in lines), "```"])


def _options(command: click.Command, context: click.Context) -> str:
    records = [param.get_help_record(context) for param in command.get_params(context)]
    rows = [_row(*record) for record in records if record is not None and record[0] not in HELP]
    return table(("option", "meaning", "default"), rows)


def _row(names: str, about: str) -> tuple[str, str, str]:
    found = DEFAULT.search(about)
    default = found[1].removeprefix("(").removesuffix(")") if found else ""
    for notation, words in BOUNDS:
        default = notation.sub(words, default)
    return code(names.replace("|", " or ")), prose(DEFAULT.sub("", about)), prose(default)


def settings() -> str:
    """Every setting: its key, its variable and its option."""
    known = {setting.key: setting for setting in KNOWN}
    known |= settings_of_extensions(known)
    rows = [
        (
            code(key.replace("_", "-")),
            code(setting.envvar),
            " ".join(map(code, setting.opts)),
            prose(setting.help or ""),
        )
        for key, setting in sorted(known.items())
    ]
    return page("Settings", SETTINGS, table(("key of the file", "environment variable", "option", "meaning"), rows))
