"""What GitHub's runner finds in a log, and texts that try to be found."""

from __future__ import annotations

import re

HOSTILE = [
    "::error::owned",
    "x\n::add-mask::owned",
    "x\r::set-output name=outcome::done",
    "see ##[set-output name=outcome]done",
    "100 %0A::error::owned",
    "`` ` **bold** <img src=x onerror=alert(1)> @everyone #1 [a](https://evil) ![b](https://evil) www.evil.com",
    "a | b \\| c \\\\| d",
    "`",
    "``` \n # heading",
    "\x1b[2J]]>&<\x00\ud800\ufffe",
]
OLDER_COMMAND = re.compile(r"##\[[^\]]*\]")


def read_log(log: str) -> list[tuple[str, dict[str, str], str]]:
    """The commands in a log, as ``src/Runner.Common/ActionCommand.cs`` of actions/runner finds them."""
    found = []
    for line in re.split(r"\r\n|\n|\r", log):
        begins = line.lstrip()
        if begins.startswith("::") and (end := begins.find("::", 2)) >= 0:
            name, _, told = begins[2:end].partition(" ")
            pairs = (each.split("=", 1) for each in told.strip().split(",") if "=" in each)
            found.append((name, {key: unescape_property(value) for key, value in pairs}, unescape(begins[end + 2 :])))
        elif OLDER_COMMAND.search(line):
            found.append(("older", {}, line))
    return found


def unescape(text: str) -> str:
    """The text of a workflow command before it was escaped."""
    return text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")


def unescape_property(text: str) -> str:
    """The value of a property of a workflow command before it was escaped."""
    return unescape(text.replace("%3A", ":").replace("%2C", ","))
