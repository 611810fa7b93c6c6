"""The page of the Python API: the public names of the package."""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass
from pathlib import Path

import codex_multi_role
from codex_multi_role.run_options import OPTIONS, RunOptions
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
"""


def python_api() -> str:
    """Every public name with its signature, docstring and fields."""
    names = [name for name in codex_multi_role.__all__ if not name.startswith("__")]
    return page("Python API", ABOUT, *(part for name in names for part in _described(name)))


def _described(name: str) -> list[str]:
    thing = getattr(codex_multi_role, name)
    parts = [f"## `{name}`", f"```text\n{_signature(name, thing)}\n```", docstring(thing)]
    if thing is RunOptions:
        rows = [(code(name), code(type_of(each)), prose(each.help)) for name, each in OPTIONS.items()]
        parts.append(table(("keyword", "type", "meaning"), rows))
    elif is_dataclass(thing):
        parts.append(table(("field", "type"), [(code(field.name), code(field.type)) for field in fields(thing)]))
    if inspect.isclass(thing):
        parts += [part for method in _methods(thing) for part in _method(name, thing, method)]
    return parts


def _methods(kind: type) -> list[str]:
    public = [name for name in vars(kind) if not name.startswith("_") and not name.startswith("model_")]
    return [name for name in public if inspect.isroutine(getattr(kind, name))]


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
