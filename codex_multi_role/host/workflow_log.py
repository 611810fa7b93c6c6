"""The log of a GitHub workflow: what it runs as commands, and texts in which it finds none.

https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands: ``::error file=…,line=…::…``. The
runner also accepts the older ``##[error]…``, anywhere in a line, and blanks before ``::``
(``src/Runner.Common/ActionCommand.cs`` of actions/runner).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from codex_multi_role.host.spelling import printable

VARIABLE = "GITHUB_ACTIONS"
BEGINS_COMMAND = re.compile(r"((?:^|[\r\n])\s*)::")


def runs_here(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process is part of a GitHub workflow."""
    return environment.get(VARIABLE) == "true"


def command(name: str, text: str, **properties: str) -> str:
    """Build a printable workflow command; text and properties are escaped as in GitHub's own toolkit."""
    rendered = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return harmless_within(printable(f"::{name}{f' {rendered}' if rendered else ''}::{_data(text)}"))


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def harmless(text: str) -> str:
    """Change lines of ``text`` that the runner would execute as commands."""
    return BEGINS_COMMAND.sub(r"\1: :", harmless_within(text))


def harmless_within(line: str) -> str:
    """Change the older form of a command, which counts anywhere in a line."""
    return line.replace("##[", "## [")
