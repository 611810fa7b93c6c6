"""The pages of checks, tools and events."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields

from pydantic import BaseModel

from codex_multi_role.checks import CHECKS, Check, check_names, find_check
from codex_multi_role.checks.tools import find_tool, tool_names
from codex_multi_role.run_folder import events as event_module
from codex_multi_role.run_folder.events import RunEvent, TurnEvent, UnknownEvent
from tests.docs.markdown import code, docstring, in_words, keys, page, prose, table

ABOUT_CHECKS = """
A check is a step that needs no model: `check: <name>`, with its options in `with`. Templates see its result as
`steps.<id>`. Every result has a `status`. Packages add checks by the entry point `codex_multi_role.checks`.
[When a step fails](../how-to/when-a-step-fails.md) says what a bad result does.
"""
ABOUT_TOOLS = """
A tool is work that a role's model can request during its turn. The role's key `tools` names those that it gets.
Packages add tools by the entry point `codex_multi_role.tools`.
"""
ABOUT_EVENTS = """
`events.jsonl` has one event per line, in order. `--json` prints the same lines, and the live view, `watch`, the
pages and telemetry read nothing else. Every event also has `type` and `at`, its time in UTC (ISO 8601).
Packages add subscribers by the entry point `codex_multi_role.subscribers`.
"""
SYSTEMS = {
    "checks": "Checks for any flow",
    "measuring": "Measured tests",
    "test_generation": "Test generation",
    "documentation": "Documentation",
    "research": "Research",
    "plan_solve": "Plan and solve",
}


FOR_DEVELOPERS = re.compile(r"\s*Options: `\w+`[.;]|\s*Raises\s[^.]*\.")
"""Sentences of a check's docstring about its model and its exceptions."""


def checks() -> str:
    """Every check with its options and its result; those of a system after the others."""
    found = _checks()
    overview = [(f"[`{name}`](#{name})", check.what_is_bad or "never") for name, check in found.items()]
    parts = [ABOUT_CHECKS, table(("check", "bad results"), overview)]
    for system, title in SYSTEMS.items():
        parts.append(f"## {title}")
        for name, check in found.items():
            if _system(check) == system:
                parts += _check(name, check)
    return page("Checks", *parts)


def with_bad_results(text: str) -> str:
    """``text`` with the table of the checks whose results can be bad."""
    heading = "| check | bad results |"
    bad = {name: check.what_is_bad for name, check in _checks().items() if check.what_is_bad}
    rows = (f"| [`{name}`](../reference/checks.md#{name}) | {words} |" for name, words in bad.items())
    written = "\n".join((heading, "|---|---|", *rows))
    return re.sub(rf"^{re.escape(heading)}\n(\|.*\n)*", lambda _: f"{written}\n", text, flags=re.MULTILINE)


def _checks() -> dict[str, Check]:
    """Ours, by name."""
    return {name: find_check(name) for name in check_names() if name in CHECKS or _is_ours(find_check(name))}


def _is_ours(check: Check) -> bool:
    return check.run.__module__.startswith("codex_multi_role.")


def _system(check: Check) -> str:
    names = check.run.__module__.split(".")
    return names[2] if names[1] == "extensions" else "checks"


def _check(name: str, check: Check) -> Iterator[str]:
    yield f"### `{name}`"
    yield FOR_DEVELOPERS.sub("", docstring(check.run))
    facts = ["Read-only."] if check.read_only else []
    facts += ["It uses the project's Python."] if check.uses_python else []
    facts += [f"Settings: `{check.settings.file}` beside the catalog."] if check.settings else []
    yield " ".join(facts)
    if check.options is not None and check.options.model_fields:
        yield docstring(check.options)
        yield keys(check.options, "option")
    if check.result is not None:
        yield _result(check.result)


def _result(model: type[BaseModel]) -> str:
    schema = model.model_json_schema(by_alias=True, mode="serialization")
    named = [f"{code(name)} ({in_words(field, schema)})" for name, field in schema.get("properties", {}).items()]
    return "\n\n".join(filter(None, [f"Result: {', '.join(named)}." if named else "", docstring(model)]))


def tools() -> str:
    """Every tool, as it is described to a model."""
    parts = [ABOUT_TOOLS]
    for name in tool_names():
        tool = find_tool(name)
        given = tool.input_schema.get("properties", {})
        required = tool.input_schema.get("required", ())
        rows = [
            (
                code(key),
                in_words(field, tool.input_schema),
                "yes" if key in required else "",
                prose(field.get("description", "")),
            )
            for key, field in given.items()
        ]
        parts += [f"## `{name}`", prose(tool.description), table(("argument", "type", "required", "meaning"), rows)]
    return page("Tools", *parts)


def events() -> str:
    """Every event with its fields."""
    kinds = [kind for kind in vars(event_module).values() if inspect.isclass(kind) and issubclass(kind, RunEvent)]
    parts = [ABOUT_EVENTS]
    for kind in kinds:
        if kind not in (RunEvent, TurnEvent, UnknownEvent):
            rows = [(code(field.name), code(field.type)) for field in fields(kind) if field.name != "at"]
            parts += [
                f"## `{kind.type}`",
                docstring(kind) if not _made_up(kind) else "",
                table(("field", "type"), rows),
            ]
    return page("Events", *parts)


def _made_up(kind: type) -> bool:
    """Whether `dataclass` wrote the docstring: the signature, if a class has none."""
    return (kind.__doc__ or "").startswith(f"{kind.__name__}(")
