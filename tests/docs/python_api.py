"""The page of the Python API: the public names of the package."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields, is_dataclass

import codex_multi_role
from tests.docs.markdown import code, docstring, page, table

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
    if is_dataclass(thing):
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
    if inspect.isclass(thing) and (is_dataclass(thing) or not inspect.isroutine(getattr(thing, "__init__", None))):
        return f"class {name}"
    if not callable(thing) or inspect.isclass(thing):
        return name
    signature = re.sub(r"'([^']*)'", r"\1", str(inspect.signature(thing)))
    shown = f"{name}{signature}"
    return (
        shown
        if len(shown) <= 100
        else shown.replace(", ", ",\n    ").replace("(", "(\n    ", 1).replace(") ->", "\n) ->")
    )
