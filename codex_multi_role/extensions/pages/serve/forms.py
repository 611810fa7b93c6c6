"""Pages from the templates, and forms: a few texts, accepted only from pages of this server; errors in their words."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response

from codex_multi_role.extensions.pages.report.rendering import template
from codex_multi_role.extensions.pages.serve.access import Access
from codex_multi_role.presentation.outcome import RAISED, status_in_words

TEMPLATES = Path(__file__).parent / "templates"
Form = dict[str, str]
FORM_TYPE = "application/x-www-form-urlencoded"
MOST_BYTES = 1024 * 1024
MOST_FIELDS = 200
READ_SECONDS = 10.0
SECRET = "form_secret"
STALE = (
    "This form has expired",
    "The server may have been restarted. Go back, reload the page, and submit the form again.",
)
LABELS = {
    "goal": "Goal",
    "cycles": "Cycles",
    "workspace": "Workspace",
    "playbook": "Answers from",
    "model": "Model",
    "worktree": "Work in a git worktree",
    "run-tests": "Run the project's tests",
    "comment": "Comment",
    **{name: name.replace("-", " ").capitalize() for name in RAISED},
}
"""The labels of the fields that are not inputs of a flow, by the name of their option."""
_INPUT = re.compile(r"Set --input (?:'(?P<quoted>[^='\s]+)=[^']*'|(?P<bare>[^=\s]+)=<\w+>)")
_GOAL = re.compile(r'Set it with --goal "…" or --goal-file FILE')
_INVALID = re.compile(rf"Invalid value for '--({'|'.join(LABELS)})':")
_OPTION = re.compile(rf"--({'|'.join(LABELS)})\b(?!-)")
_COMMAND_LINE_ONLY = re.compile(r"^hint: See `[^`]*--help`\.$")
_PREFIX = re.compile(r"^(?:error|hint): ")


@dataclass(frozen=True)
class Field:
    """A value in a form, drawn by ``field.html``.

    ``kind``: ``string``, ``path``, ``prose``, ``code``, ``integer``, ``number``, ``boolean`` or ``choice``.
    ``choices``: their words, by value. ``minimum``, ``maximum``: of a number, or of the length of a text.
    """

    name: str
    label: str
    value: str
    kind: str
    help: str
    required: bool = False
    problem: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    minimum: str = ""
    maximum: str = ""


def page(name: str, status_code: int = 200, **values: Any) -> HTMLResponse:  # noqa: ANN401 - what the template names
    """Render the template as a response."""
    return HTMLResponse(template(name, TEMPLATES).render(**values), status_code)


def problem(status_code: int, title: str, advice: str = "") -> Response:
    """Render a page that says what is wrong and what to do."""
    return page("problem.html", status_code, title=title, advice=advice)


def with_form(
    access: Access, act: Callable[[Request, Form], Awaitable[Response]]
) -> Callable[..., Awaitable[Response]]:
    """Create an endpoint that checks that the form comes from a page of ours and passes it to ``act``."""

    async def endpoint(request: Request) -> Response:
        form = await _read(request)
        if form is None:
            return problem(400, "This form cannot be read", "It is too large, malformed, or took too long to arrive.")
        if not access.is_own_form(form.pop(SECRET, "")):
            return problem(403, *STALE)
        return await act(request, form)

    return endpoint


async def _read(request: Request) -> Form | None:
    if request.headers.get("content-type", "").partition(";")[0].strip() != FORM_TYPE:
        return None
    try:
        async with asyncio.timeout(READ_SECONDS):
            body = await request.body()
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict"))
    except (TimeoutError, ValueError, ClientDisconnect):
        return None


def in_form_words(output: str) -> str:
    """Return the error lines of a command with the labels of the form's fields in place of options."""
    lines = (line for line in output.splitlines() if not _COMMAND_LINE_ONLY.match(line))
    return "\n".join(_with_labels(_PREFIX.sub("", line)) for line in lines)


def _with_labels(line: str) -> str:
    line = _INVALID.sub(lambda found: f"{LABELS[found[1]]}:", line)
    line = _GOAL.sub(f"Fill in “{LABELS['goal']}”", line)
    line = _INPUT.sub(lambda found: f"Fill in “{status_in_words(found['quoted'] or found['bare'])}”", line)
    return _OPTION.sub(lambda found: f"“{LABELS[found[1]]}”", line)
