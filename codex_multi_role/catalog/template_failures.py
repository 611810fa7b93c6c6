"""Why a template could not be filled in: what it read, and whose result that was. Imported only after a failure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from jinja2 import TemplateError, UndefinedError

from codex_multi_role.catalog.flow_expressions import local_names, parse_template, paths_of, sandbox
from codex_multi_role.catalog.shown_fields import OF_STEP
from codex_multi_role.catalog.templates import TemplateFailed
from codex_multi_role.catalog.unknown_values import UnknownValue
from codex_multi_role.reading.places import Place
from codex_multi_role.reading.syntax_words import template_problem

MAX_SHOWN_CHARACTERS = 60
MAX_SHOWN_VALUES = 3
UNDEFINED = "StrictUndefined"
"""What an operation names that finds a missing value where it wants another one."""
_MISSING = object()

Path = tuple[str, ...]


def failure(where: Place | str, error: Exception | str, text: str, context: Mapping[str, object]) -> TemplateFailed:
    """The failure of the template ``text`` at ``where``."""
    known = {**sandbox().filters, **sandbox().tests}
    problem, hint = (error, "") if isinstance(error, str) else template_problem(error, known)
    is_missing = isinstance(error, UndefinedError) or UNDEFINED in str(error)
    read = list(_read(text, context, str(error) if is_missing else ""))
    read = [(path, value) for path, value in read if not isinstance(value, UnknownValue)]
    shown = "; ".join(_shown(*each) for each in read[:MAX_SHOWN_VALUES])
    message = f"{problem}{f' ({shown})' if shown else ''}"
    place = (str(where.file), where.position()) if isinstance(where, Place) else ()
    missing = [path for path, value in read if value is _MISSING]
    failed = TemplateFailed(f"{where}: {message}", hint or _hint(read, missing), *place)
    failed.problem, failed.missing = message, missing
    steps = {path[1] for path, _ in read if path[0] == "steps" and len(path) > 2 and path[2] not in OF_STEP}
    failed.step = steps.pop() if len(steps) == 1 else ""
    return failed


def _read(text: str, context: Mapping[str, object], undefined: str) -> Iterator[tuple[Path, object]]:
    """The paths that the template reads, with their values; only missing ones if they are what was ``undefined``."""
    try:
        own = local_names(parse_template(text))
    except TemplateError:
        return
    values = dict(_resolved(path, context) for path in paths_of(text) if path[0] in context and path[0] not in own)
    missing = [path for path, value in values.items() if value is _MISSING]
    found = [path for path in missing if repr(path[-1]) in undefined or UNDEFINED in undefined]
    found = found or [*(values.keys() - {*missing})]
    yield from ((path, values[path]) for path in sorted(found))


def _resolved(path: Path, context: Mapping[str, object]) -> tuple[Path, object]:
    """The path, up to its first missing part, and what it leads to."""
    value: object = context
    for index, part in enumerate(path):
        if isinstance(value, UnknownValue):
            break
        own = getattr(value, "__dict__", {})
        value = value[part] if isinstance(value, Mapping) and part in value else own.get(part, _MISSING)
        if value is _MISSING:
            return path[: index + 1], _MISSING
    return path, value


def _shown(path: Path, value: object) -> str:
    if value is _MISSING:
        return f"{'.'.join(path)} is missing"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return f"{'.'.join(path)} is {text if len(text) <= MAX_SHOWN_CHARACTERS else f'{text[:MAX_SHOWN_CHARACTERS]}…'}"


def _hint(read: list[tuple[Path, object]], missing: list[Path]) -> str:
    """What the author can do about it."""
    if missing:
        return f"If it may be missing, give it a default: {'.'.join(missing[0])} | default(…)."
    asked = any(path[0] in ("steps", "roles") for path, _ in read)
    return "Convert it, such as with `| int`, or require its type in a `reply` schema." if asked else ""
