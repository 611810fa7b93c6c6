"""Templates and conditions in flows: sandboxed Jinja2 with strict undefined, the way Ansible reads its YAML."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from codex_multi_role.catalog.flow_expressions import (
    has_expressions,
    local_names,
    paths_of,
    sandbox,
    whole_expression,
)
from codex_multi_role.errors import DefinitionError
from codex_multi_role.reading.nearest import no_such
from codex_multi_role.reading.places import Place, Problems
from codex_multi_role.reading.value_types import ANY, Fields

if TYPE_CHECKING:
    from jinja2 import Template
    from jinja2.environment import TemplateExpression

NO_NAME = re.compile(r"\W")
MAX_CACHED = 512
"""More than the texts of any shipped flow and its playbook, which one process may load again and again."""


class TemplateFailed(DefinitionError):
    """A template could not be filled in, or gave an unusable value.

    ``step``: whose result it read, empty if it read none, or those of several. ``missing``: the paths that it read in
    vain.
    """

    step = ""
    missing: Sequence[tuple[str, ...]] = ()


def template_failed(
    where: Place | str, error: Exception | str, text: object = "", context: Mapping[str, object] | None = None
) -> TemplateFailed:
    """The failure at ``where`` of the template ``text``, with the values that it read in ``context``."""
    from codex_multi_role.catalog.template_failures import failure  # imported only after a mistake

    return failure(where, error, text if isinstance(text, str) else "", context or {})


def render(template: object, context: Mapping[str, object], where: Place | str) -> Any:  # noqa: ANN401 - the author's
    """``template`` with its expressions evaluated; lists and mappings are rendered inside, other values stay.

    A text that is one whole ``{{ … }}`` keeps the expression's type; any other shows values as JSON. The result is
    JSON-shaped. Raises ``TemplateFailed`` that begins with ``where`` for any error, such as an unknown name.
    """
    if isinstance(template, str):
        with _problems_at(where, template, context):
            return value_of_text(template, context)
    if isinstance(template, Mapping):
        return {key: render(value, context, _inside(where, key)) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [render(value, context, _inside(where, index)) for index, value in enumerate(template)]
    return template


def render_text(template: str, context: Mapping[str, object], where: Place | str) -> object:
    """As `render`, for a template that must give a text: `TemplateFailed` for none, and for an empty one."""
    value = render(template, context, where)
    if value is None or not str(value).strip():
        raise template_failed(where, "gives no text", template, context)
    return value


def evaluate(expression: str, context: Mapping[str, object], where: Place | str) -> bool:
    """Whether a ``when`` is true. Raises ``TemplateFailed`` that begins with ``where``."""
    with _problems_at(where, f"{{{{ {expression} }}}}", context):
        return bool(value_of(expression, context))


def _inside(where: Place | str, part: int | str) -> Place | str:
    if isinstance(where, Place):
        return where / part
    return f"{where}[{part}]" if isinstance(part, int) else f"{where}.{part}"


Judge = Callable[[str, Fields], Iterable[tuple[str, str]]]
"""Message and hint for each problem of a text with the values that names of these types have."""


def no_judge(text: str, types: Fields) -> Iterable[tuple[str, str]]:
    """`Judge` that finds nothing."""
    return ()


def check_template(text: object, where: Place, types: Fields | None = None, judge: Judge = no_judge) -> None:
    """Raise ``DefinitionError`` for a syntax error and, given the ``types`` of the available names, for unknown ones.

    So are the problems that ``judge`` finds. Lists and mappings are checked inside. All mistakes are reported.
    """
    if isinstance(text, str):
        if has_expressions(text):
            with _problems_at(where):
                _template(text)
                _check_text(text, where, types, judge)
        return
    problems = Problems()
    inner = text.items() if isinstance(text, Mapping) else enumerate(text) if isinstance(text, list | tuple) else ()
    for key, value in inner:
        with problems.collected():
            check_template(value, where / key, types, judge)
    problems.raise_found()


def check_expression(expression: str, where: Place, types: Fields | None = None, judge: Judge = no_judge) -> None:
    """Like ``check_template``, for a ``when``: an expression without braces."""
    if expression.strip().startswith("{{"):
        raise where.error("a condition must not contain {{ }}", "Write the bare expression.")
    with _problems_at(where):
        _expression(expression)
        _check_text(f"{{{{ {expression} }}}}", where, types, judge)


def value_of(expression: str, context: Mapping[str, object]) -> object:
    """The value of an expression without braces. Raises whatever evaluating it raises."""
    from codex_multi_role.catalog.template_sandbox import plain

    return plain(_expression(expression)(context))


def filled(value: object, context: Mapping[str, object]) -> Any:  # noqa: ANN401 - the author's
    """As `render`, raising whatever evaluating a template raises."""
    if isinstance(value, str):
        return value_of_text(value, context)
    if isinstance(value, Mapping):
        return {key: filled(each, context) for key, each in value.items()}
    return [filled(each, context) for each in value] if isinstance(value, list | tuple) else value


def value_of_text(text: str, context: Mapping[str, object]) -> object:
    """Likewise for a text with expressions in it; see `render`."""
    from codex_multi_role.catalog.template_sandbox import MAX_CHARACTERS

    whole = whole_expression(text)
    if whole is not None:
        return value_of(whole, context)
    parts: list[str] = []
    length = 0
    for part in _template(text).generate(context):
        parts.append(part)
        length += len(part)
        if length > MAX_CHARACTERS:
            raise ValueError(f"gives more than {MAX_CHARACTERS} characters")
    return "".join(parts)


def _check_text(text: str, where: Place, types: Fields | None, judge: Judge) -> None:
    if types is None:
        return
    problems = Problems()
    undeclared, local, paths = _used_names(text)
    for owner, name in _misread_ids(text, paths, types):
        hint = f"Write {owner}['{name}'], or call it {re.sub(NO_NAME, '_', name)}."
        raise where.error(f"a template reads {owner}.{name} as several names", hint)
    for name in sorted(undeclared - types.keys()):
        with problems.collected():
            raise where.unknown("template name", name, types)
    given = {name: types[name] for name in undeclared - local if name in types}
    for path in paths:
        with problems.collected():
            _check_path(path, where, given)
    for message, hint in judge(text, given):
        with problems.collected():
            raise where.error(message, hint)
    problems.raise_found()


def _misread_ids(text: str, paths: Sequence[Sequence[str]], types: Fields) -> Iterator[tuple[str, str]]:
    """The steps and roles whose names are written after a dot although they have more than letters: ``steps.a-b``."""
    for owner in ("steps", "roles"):
        known = types.get(owner, ANY).fields
        for name in known:
            first, *more = re.split(NO_NAME, name)
            is_read = any(tuple(path[:2]) == (owner, first) for path in paths)
            if more and is_read and first not in known and f"{owner}.{name}" in text:
                yield owner, name


def _check_path(path: Sequence[str], where: Place, types: Fields) -> None:
    """Raise ``DefinitionError`` for the first attribute of ``path`` that what stands before it cannot have."""
    known = types.get(path[0], ANY)
    for index, attribute in enumerate(path[1:], 1):
        if attribute not in known.fields and not known.is_open:
            kind, owner = (path[0].removesuffix("s"), "") if index == 1 else ("field", f"{'.'.join(path[:index])}: ")
            message, hint = no_such(kind, attribute, known.fields)
            nested = (name for name, each in known.fields.items() if attribute in each.fields and index > 1)
            meant = [f"Write {'.'.join((*path[:index], name, attribute))}." for name in nested][:1]
            raise where.error(f"{owner}{message}", " ".join([*meant, hint]))
        known = known.fields.get(attribute, ANY)


@contextmanager
def _problems_at(where: Place | str, text: str = "", context: Mapping[str, object] | None = None) -> Iterator[None]:
    """A template may call anything and so raise any exception; each becomes a mistake of the template.

    ``text`` was filled in with ``context``; without them, only its syntax was read.
    """
    try:
        yield
    except DefinitionError:
        raise
    except Exception as error:
        raise template_failed(where, error, text, context) from error


@lru_cache(maxsize=MAX_CACHED)
def _used_names(text: str) -> tuple[set[str], set[str], list[Sequence[str]]]:
    """The names from outside that ``text`` uses, those it also sets itself, and the paths of attributes in it."""
    from jinja2 import meta

    syntax = sandbox().parse(text)  # not the shared one: looking for names folds constants in it
    undeclared = meta.find_undeclared_variables(syntax) - sandbox().globals.keys()
    return undeclared, set(local_names(syntax)), list(paths_of(text))


@lru_cache(maxsize=MAX_CACHED)
def _expression(source: str) -> TemplateExpression:
    return sandbox().compile_expression(source, undefined_to_none=False)


@lru_cache(maxsize=MAX_CACHED)
def _template(source: str) -> Template:
    return sandbox().from_string(source)
