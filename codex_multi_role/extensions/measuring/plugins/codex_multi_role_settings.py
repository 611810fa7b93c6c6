"""A program: ``coverage run`` under the project's settings, as coverage.py reads them, with our data file and source.

    python codex_multi_role_settings.py SETTINGS DATA SOURCE ARGUMENT…

Writes both to SETTINGS, for the commands that report. Only what decides which lines count is the project's.
"""

from __future__ import annotations

import sys
from configparser import RawConfigParser
from pathlib import Path

import coverage
from coverage.cmdline import main
from coverage.exceptions import CoverageException

OF_PROJECT = {
    "run": ("concurrency", "disable_warnings", "omit", "patch", "plugins", "sigterm", "timid"),
    "report": ("exclude_lines", "ignore_errors", "omit", "partial_branches"),
}
IN_PROCESSES = {"multiprocessing", "subprocess"}


def merged(settings: str, data: str, source: str) -> RawConfigParser:
    project, parser = coverage.Coverage(), RawConfigParser()
    config = project.config
    for section, names in OF_PROJECT.items():
        parser[section] = {}
        for name in names:
            try:
                value = project.get_option(f"{section}:{name}")
            except CoverageException:  # an older version without it
                continue
            if value:
                parser[section][name] = _text(value)
    started = {*config.concurrency, *parser["run"].get("patch", "").split()} & IN_PROCESSES
    ours = {"branch": True, "relative_files": True, "data_file": data, "source": source, "parallel": bool(started)}
    parser["run"].update({name: _text(value) for name, value in ours.items()})
    for plugin in config.plugins:
        parser[plugin] = {name: _text(value) for name, value in config.get_plugin_options(plugin).items()}
    return parser


def _text(value: object) -> str:
    """A list has a line per entry, which must not begin like a comment; ``$`` would name a variable."""
    lines = value if isinstance(value, (list, tuple)) else [value]
    return "\n".join(f"(?:){line}" if str(line).startswith(("#", ";")) else str(line) for line in lines).replace(
        "$", "$$"
    )


if __name__ == "__main__":
    with Path(sys.argv[1]).open("w", encoding="utf-8") as file:
        merged(*sys.argv[1:4]).write(file)
    sys.exit(main(["run", f"--rcfile={sys.argv[1]}", *sys.argv[4:]]))
