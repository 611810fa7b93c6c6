"""A program: ``coverage run`` under the project's settings, as coverage.py reads them, with our data file and source.

python codex_multi_role_settings.py SETTINGS DATA SOURCE ARGUMENT…
"""

import sys
from configparser import RawConfigParser
from contextlib import suppress
from pathlib import Path

import coverage
from coverage.cmdline import main
from coverage.exceptions import CoverageException

OF_PROJECT = "run:concurrency run:disable_warnings run:omit run:patch run:plugins run:sigterm run:timid"
OF_PROJECT += " report:exclude_lines report:ignore_errors report:omit report:partial_branches"


def merged(data: str, source: str) -> RawConfigParser:
    project, parser = coverage.Coverage(), RawConfigParser()
    parser.read_dict(
        {"run": {"branch": True, "relative_files": True, "data_file": data, "source": source}, "report": {}}
    )
    for option in OF_PROJECT.split():
        with suppress(CoverageException):  # an older version without it
            section, _, name = option.partition(":")
            parser[section].update({name: _text(value)} if (value := project.get_option(option)) else {})
    if {"multiprocessing", "subprocess"} & {*project.config.concurrency, *parser["run"].get("patch", "").split()}:
        parser["run"]["parallel"] = "true"
    for plugin in project.config.plugins:
        parser[plugin] = {name: _text(value) for name, value in project.config.get_plugin_options(plugin).items()}
    return parser


def _text(value: object) -> str:
    """A list has a line per entry, which must not begin like a comment; ``$`` would name a variable."""
    lines = map(str, value if isinstance(value, (list, tuple)) else [value])
    return "\n".join(f"(?:){line}" if line.startswith(("#", ";")) else line for line in lines).replace("$", "$$")


if __name__ == "__main__":
    with Path(sys.argv[1]).open("w", encoding="utf-8") as file:
        merged(*sys.argv[2:4]).write(file)
    sys.exit(main(["run", f"--rcfile={sys.argv[1]}", *sys.argv[4:]]))
