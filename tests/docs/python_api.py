"""The page of the Python API: the public names of the package, and those that other modules of it have."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path

from pydantic import BaseModel

import codex_multi_role
from codex_multi_role.run_options import RunOptions, all_options
from tests.docs.markdown import code, docstring, page, prose, table
from tests.docs.option_keywords import type_of

LINE = 100
ABOUT = """
`import codex_multi_role` is cheap: each name is loaded when it is first used. The package is typed.

```python
from codex_multi_role import RunOptions, run

report = run(RunOptions(goal="Write roman.py", playbook="roman-numerals"))
print(report.outcome, report.exit_code, report.folder)
```

More modules have public names: [`codex_multi_role.extensions.results`](#codex_multi_roleextensionsresults),
[`codex_multi_role.extensions.replays`](#codex_multi_roleextensionsreplays) and
[`codex_multi_role.extensions.plan_solve.plan_solver`](#codex_multi_roleextensionsplan_solveplan_solver).
"""
MODULES = {
    "codex_multi_role.extensions.results": (
        "What a run changed: as a patch, and as a branch with one commit per turn.",
        ("diff", "Diff", "export", "Exported"),
    ),
    "codex_multi_role.extensions.replays": (
        "A run again, asking only the turns that changed; see [Repeat only what changed](../how-to/rerun.md).",
        ("rerun",),
    ),
    "codex_multi_role.extensions.plan_solve.plan_solver": (
        "A goal as a plan of tasks; see [Plan and solve](../how-to/plan-and-solve.md).",
        ("create_plan_solver", "PlanSolver", "PlanSolved"),
    ),
}
"""What these modules are for, and their public names, which the package itself does not have."""


def python_api() -> str:
    """Every public name with its signature, docstring, fields and properties."""
    names = [name for name in codex_multi_role.__all__ if not name.startswith("__")]
    described = [part for name in names for part in _described("##", name, getattr(codex_multi_role, name))]
    return page("Python API", ABOUT, *described, *_in_modules())


def _in_modules() -> Iterator[str]:
    for module, (purpose, names) in MODULES.items():
        yield from (f"## `{module}`", purpose)
        for name in names:
            yield from _described("###", name, getattr(import_module(module), name))


def _described(heading: str, name: str, thing: object) -> list[str]:
    parts = [f"{heading} `{name}`", f"```text\n{_signature(name, thing)}\n```", docstring(thing)]
    if thing is RunOptions:
        rows = [(code(name), code(type_of(each)), prose(each.help)) for name, each in all_options().items()]
        parts.append(table(("keyword", "type", "meaning"), rows))
    elif is_dataclass(thing):
        parts.append(table(("field", "type"), [(code(field.name), code(field.type)) for field in fields(thing)]))
    if inspect.isclass(thing):
        parts.append(table(("property", "type", "meaning"), _properties(thing)))
        parts += [part for method in _methods(thing) for part in _method(name, thing, method)]
    return parts


def _properties(kind: type) -> Iterator[tuple[str, str, str]]:
    for name in _members(kind):
        member = inspect.getattr_static(kind, name)
        getter = member.fget if isinstance(member, property) else getattr(member, "func", None)
        if isinstance(member, property | cached_property) and getter:
            yield code(name), code(inspect.signature(getter).return_annotation), docstring(getter)


def _methods(kind: type) -> list[str]:
    return [name for name in _members(kind) if inspect.isroutine(getattr(kind, name))]


def _members(kind: type) -> list[str]:
    """The public names that are defined in the class or a base of ours; in a model's bases, they are not for users."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith(codex_multi_role.__name__)]
    bases = [kind] if issubclass(kind, BaseModel) else ours
    names = dict.fromkeys(name for base in bases for name in vars(base))
    return [name for name in names if not name.startswith("_") and not name.startswith("model_")]


def _method(name: str, kind: type, method: str) -> list[str]:
    function = getattr(kind, method)
    return [f"```text\n{_signature(f'{name}.{method}', function)}\n```", docstring(function)]


def _signature(name: str, thing: object) -> str:
    """On one line if it is short, otherwise one parameter per line."""
    if not inspect.isroutine(thing):
        return f"class {name}" if inspect.isclass(thing) else name
    signature = inspect.signature(thing)
    given: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in given:
            given.append("*")
        given.append(_parameter(parameter))
    result = "" if signature.return_annotation is signature.empty else f" -> {signature.return_annotation}"
    short = f"{name}({', '.join(given)}){result}"
    lines = "".join(f"    {each},\n" for each in given)
    return short if len(short) <= LINE else f"{name}(\n{lines}){result}"


def _parameter(parameter: inspect.Parameter) -> str:
    """As written: annotations are texts, which `inspect` would quote."""
    stars = "*" * (parameter.kind is parameter.VAR_POSITIONAL) + "**" * (parameter.kind is parameter.VAR_KEYWORD)
    kind = "" if parameter.annotation is parameter.empty else f": {parameter.annotation}"
    if parameter.default is parameter.empty:
        return f"{stars}{parameter.name}{kind}"
    return f"{parameter.name}{kind} = {_default(parameter.default)}"


def _default(value: object) -> str:
    if inspect.isclass(value):
        return value.__name__
    return f"Path({str(value)!r})" if isinstance(value, Path) else repr(value)
