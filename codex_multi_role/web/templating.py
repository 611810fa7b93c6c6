"""Pages from the templates in this folder; all values are escaped."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

from codex_multi_role.presentation.outcome import exit_meaning, outcome_in_words
from codex_multi_role.presentation.wording import (
    amounts,
    clock,
    compact,
    duration,
    moment,
    one_line,
    plural,
    printable,
    verdict,
)

FOLDER = Path(__file__).parent
SYMBOLS = {
    "waiting": "?",
    "running": "▶",
    "succeeded": "✓",
    "ended": "■",
    "failed": "✗",
    "parked": "Ⅱ",
    "interrupted": "■",
    "killed": "✗",
}
"""Symbols beside a status, for people who cannot tell its colour."""


def page(name: str, status_code: int = 200, **values: Any) -> HTMLResponse:  # noqa: ANN401 - what the template names
    """Render the template as a response."""
    return HTMLResponse(fill(name, **values), status_code)


def fill(name: str, **values: Any) -> str:  # noqa: ANN401 - as above
    return _environment().get_template(name).render(**values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "line": one_line,
        "lines": _lines,
        "duration": duration,
        "compact": compact,
        "clock": _time_filter(clock),
        "day": _time_filter(lambda at: f"{moment(at):%Y-%m-%d %H:%M}"),
        "machine_time": _time_filter(lambda at: moment(at).astimezone(UTC).isoformat()),
        "amounts": amounts,
        "plural": plural,
        "verdict": lambda tests: verdict(vars(tests)),
        "outcome": outcome_in_words,
        "symbol": lambda status: SYMBOLS.get(status, "•"),
        "exit_meaning": lambda code: exit_meaning(code, ""),
        "words": lambda name: one_line(str(name).replace("_", " ")),
    }
    return environment


def _time_filter(shown: Callable[[str], str]) -> Callable[[Any], str]:
    """Create a filter for times from a file; it returns an empty text for an invalid one."""

    def show(at: object) -> str:
        with suppress(ValueError, OverflowError):
            return shown(str(at))
        return ""

    return show


def _lines(text: str) -> str:
    """Remove control characters, except line breaks."""
    return "\n".join(map(printable, text.expandtabs().splitlines()))
