"""Templates and conditions in flows: sandboxed Jinja2 with strict undefined, the way Ansible reads its YAML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, reduce
from operator import truediv
from typing import TYPE_CHECKING, Any

from codex_multi_role.catalog.flow_expressions import (
    has_expressions,
    sandbox,
    whole_expression,
)
from codex_multi_role.errors import DefinitionError
from codex_multi_role.host.spelling import texts_in, with_texts
from codex_multi_role.reading.places import Place, Problems

if TYPE_CHECKING:
    from jinja2 import Template
    from jinja2.environment import TemplateExpression

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


def check_template(text: object, where: Place) -> None:
    """Raise one ``DefinitionError`` for the syntax errors in ``text``, also inside of lists and mappings."""
    problems = Problems()
    for template, place in templates_in(text, where):
        with problems.collected(), _problems_at(place):
            _template(template)
    problems.raise_found()


def check_expression(expression: str, where: Place) -> None:
    """Like ``check_template``, for a ``when``: an expression without braces."""
    if expression.strip().startswith("{{"):
        raise where.error("a condition must not contain {{ }}", "Write the bare expression.")
    with _problems_at(where):
        _expression(expression)


def templates_in(value: object, place: Place) -> Iterator[tuple[str, Place]]:
    """The texts with expressions in ``value``, also inside of lists and mappings, each with its place."""
    for text, keys in texts_in(value):
        if has_expressions(text):
            yield text, reduce(truediv, keys, place)


def value_of(expression: str, context: Mapping[str, object]) -> object:
    """The value of an expression without braces. Raises whatever evaluating it raises."""
    from codex_multi_role.catalog.template_sandbox import plain

    return plain(_expression(expression)(context))


def filled(value: object, context: Mapping[str, object]) -> Any:  # noqa: ANN401 - the author's
    """As `render`, raising whatever evaluating a template raises."""
    return with_texts(value, lambda text: value_of_text(text, context))


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
def names_from_outside(text: str) -> frozenset[str]:
    """The names that ``text`` uses and does not set itself."""
    from jinja2 import meta

    syntax = sandbox().parse(text)  # not the shared one: looking for names folds constants in it
    return frozenset(meta.find_undeclared_variables(syntax) - sandbox().globals.keys())


@lru_cache(maxsize=MAX_CACHED)
def _expression(source: str) -> TemplateExpression:
    return sandbox().compile_expression(source, undefined_to_none=False)


@lru_cache(maxsize=MAX_CACHED)
def _template(source: str) -> Template:
    return sandbox().from_string(source)
