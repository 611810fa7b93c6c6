"""Pages from templates: ``report.html`` beside this module, and those of extensions; all values are escaped."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from codex_multi_role.extensions.pages.report.run_tree import TONES
from codex_multi_role.extensions.pages.report.values import result_html
from codex_multi_role.host.spelling import KEPT_IN_PAGES, printable
from codex_multi_role.presentation.outcome import (
    GLYPHS,
    IDLE,
    exit_in_words,
    outcome_in_words,
    run_status,
    status_in_words,
    tone_of,
)
from codex_multi_role.presentation.wording import (
    amounts,
    clock,
    compact,
    duration,
    moment,
    one_line,
    plural,
    price,
)

TEMPLATES, ASSETS = (Path(__file__).parent / name for name in ("templates", "assets"))


def template(name: str, folder: Path | None = None) -> Template:
    """Return a template, of ``folder`` if it is an extension's; raises jinja2's errors for a mistake in it."""
    return _environment(folder or TEMPLATES).get_template(name)


def asset(name: str) -> Markup:
    """Read a file of the package that is part of a page as it is."""
    return Markup((ASSETS / name).read_text(encoding="utf-8"))


@cache
def _environment(folder: Path) -> Environment:
    environment = Environment(
        loader=FileSystemLoader([folder, TEMPLATES]),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "line": one_line,
        "duration": duration,
        "compact": compact,
        "cost": price,
        "clock": _time_filter(clock),
        "day": _time_filter(lambda at: f"{moment(at):%Y-%m-%d %H:%M}"),
        "machine_time": _time_filter(lambda at: moment(at).astimezone(UTC).isoformat()),
        "amounts": amounts,
        "plural": plural,
        "outcome": outcome_in_words,
        "exit": lambda code: exit_in_words(code, ""),
        "words": status_in_words,
        "tone": tone_of,
        "glyph": lambda tone: "" if tone == IDLE else GLYPHS.get(tone, ""),
        "in_words": TONES.get,
        "run_status": run_status,
        "result_html": result_html,
    }
    return environment


def _time_filter(shown: Callable[[str], str]) -> Callable[[Any], str]:
    """Create a filter for times from a file; it returns an empty text for an invalid one."""

    def show(at: object) -> str:
        with suppress(ValueError, OverflowError):
            return shown(str(at))
        return ""

    return show


def _shown(value: object) -> object:
    """Make a value of a page printable; markup is made of such values, or is ours."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else printable(value, keep=KEPT_IN_PAGES)
