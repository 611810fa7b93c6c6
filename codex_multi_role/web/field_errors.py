"""Errors of a started run in the words of a form: its fields have labels, not flags."""

from __future__ import annotations

import re

from codex_multi_role.presentation.outcome import status_in_words

LABELS = {
    "goal": "Goal",
    "cycles": "Cycles",
    "workspace": "Workspace",
    "playbook": "Answers from",
    "comment": "Comment",
}
"""The labels of the fields that are not inputs of a flow, by the name of their option."""
_INPUT = re.compile(r"Set --input (?:'(?P<quoted>[^='\s]+)=[^']*'|(?P<bare>[^=\s]+)=<\w+>)")
_GOAL = re.compile(r'Set it with --goal "…" or --goal-file FILE')
_INVALID = re.compile(rf"Invalid value for '--({'|'.join(LABELS)})':")
_OPTION = re.compile(rf"--({'|'.join(LABELS)})\b(?!-)")
_COMMAND_LINE_ONLY = re.compile(r"^hint: See `[^`]*--help`\.$")
_PREFIX = re.compile(r"^(?:error|hint): ")


def in_form_words(output: str) -> str:
    """Return the error lines of a command with the labels of the form's fields in place of options."""
    lines = (line for line in output.splitlines() if not _COMMAND_LINE_ONLY.match(line))
    return "\n".join(_with_labels(_PREFIX.sub("", line)) for line in lines)


def _with_labels(line: str) -> str:
    line = _INVALID.sub(lambda found: f"{LABELS[found[1]]}:", line)
    line = _GOAL.sub(f"Fill in “{LABELS['goal']}”", line)
    line = _INPUT.sub(lambda found: f"Fill in “{status_in_words(found['quoted'] or found['bare'])}”", line)
    return _OPTION.sub(lambda found: f"“{LABELS[found[1]]}”", line)
