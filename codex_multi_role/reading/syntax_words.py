"""The errors of YAML's and Jinja2's parsers in the words of someone who writes the files, with what to do."""

from __future__ import annotations

import re
from collections.abc import Mapping

import yaml
from yaml.constructor import ConstructorError

from codex_multi_role.reading.nearest import did_you_mean

Words = Mapping[str, tuple[str, str]]
"""A pattern of the parser's message, with our words for it and a hint."""

_INDENT = "Indent with spaces, and all keys of one mapping alike."
_CLOSE = "Close every bracket and quote; put text that begins with [ or { in quotes."
_QUOTE = "Put a text with special characters in quotes."
_YAML: Words = {
    "mapping values are not allowed": ('a ":" is not allowed here', f'Put a text with ": " in it in quotes. {_INDENT}'),
    "tab character": ("a tab is not allowed here", _INDENT),
    "cannot start any token": ("a value cannot begin with a tab or one of % @ `", f"{_INDENT} {_QUOTE}"),
    "did not find expected key": ("a key is expected here", _INDENT),
    "did not find expected '-' indicator": ('an item that begins with "-" is expected here', _INDENT),
    "did not find expected ',' or": ("a list or a mapping in brackets is not closed", _CLOSE),
    "did not find expected node content": ("a value is expected here", _CLOSE),
    "could not find expected ':'": ('a ":" is expected after the key', _INDENT),
    "unexpected end of stream": ("a quoted text is not closed", _CLOSE),
    "unexpected document indicator": ("a quoted text is not closed", _CLOSE),
    "another document": ("a file has only one document", "Remove the line ---."),
    "determine a constructor for the tag": ("tags such as !!set are not supported", "Remove the tag (!)."),
    "undefined alias": ("the alias (*) has no anchor (&)", f"Write the value itself. {_QUOTE}"),
    "unhashable key": ("a key must be a text or a number", ""),
    "control characters": ("it contains a control character", "Remove the invisible character."),
}
_UNCLOSED = "Close every {{ with }}, and every {% if %} with {% endif %}."
_TEMPLATE_HINT = "An expression has names, texts in quotes, and operators, such as inputs.limit > 3."
_TEMPLATE: Words = {
    "end of (print statement|template)": ("the expression ends too early", _UNCLOSED),
    "chunk after expression": ("unexpected text after the expression", _TEMPLATE_HINT),
    r"expected token .*, got '(.*)'": (r'unexpected "\1"', _TEMPLATE_HINT),
    r"[Uu]nexpected '(.*)'": (r'unexpected "\1"', _TEMPLATE_HINT),
    r"unexpected char '(.*)' at": (r'unexpected character "\1"', _TEMPLATE_HINT),
    "unknown tag '(.*?)'": (r'unknown tag "\1"', "Tags are {% if %}, {% for %} and {% set %}."),
    r"'(.*)' is undefined": (r'"\1" has no value', ""),
    r"has no (?:attribute|element) '?(.*?)'?$": (r'"\1" has no value', ""),
    r"'(.*)' not supported between instances of '(.*)' and '(.*)'": (r'"\1" cannot compare <\2> with <\3>', ""),
    r"unsupported operand type\(s\) for (.*): '(.*)' and '(.*)'": (r'"\1" cannot be applied to <\2> and <\3>', ""),
    r'can only concatenate (\w+) \(not "(\w+)"\)': (r'"+" cannot be applied to <\1> and <\2>', ""),
    r"'(\w+)' object is not iterable": ("<\\1> is not a list", ""),
    r"object of type '(\w+)' has no len": ("<\\1> has no length", ""),
}
_KINDS = {"str": "a text", "int": "a number", "float": "a number", "NoneType": "null", "bool": "true or false"}
_KINDS |= {"list": "a list", "dict": "a mapping", "_Shown": "a mapping"}
"""Python's types, in the words of people who write YAML."""
_UNKNOWN_NAME = re.compile(r"No (filter|test) named '(.*)'")


def yaml_problem(error: yaml.YAMLError) -> tuple[int, int, str, str]:
    """Line and column, both from 1, what is wrong, and a hint. libyaml does not report where some characters are."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return (1, 1, *_translated(_YAML, " ".join(str(error).split()), "not valid YAML: "))
    mark = error.problem_mark or error.context_mark
    place = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    is_own = isinstance(error, ConstructorError) and error.context is None
    return (*place, *_translated(_YAML, str(error.problem), "" if is_own else "not valid YAML: "))


def template_problem(error: Exception, known: Mapping[str, object]) -> tuple[str, str]:
    """What is wrong with a template, and a hint. ``known``: the filters and tests."""
    if (found := _UNKNOWN_NAME.search(str(error))) is not None:
        return f'unknown {found[1]} "{found[2]}"{did_you_mean(found[2], known)}', ""
    problem, hint = _translated(_TEMPLATE, str(error), "")
    return re.sub(r"<(\w+)>", lambda found: _KINDS.get(found[1], found[1]), problem), hint


def _translated(words: Words, message: str, otherwise: str) -> tuple[str, str]:
    for pattern, (problem, hint) in words.items():
        if found := re.search(pattern, message):
            return found.expand(problem), hint
    return f"{otherwise}{message}", ""
