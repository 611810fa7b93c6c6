"""Placeholders such as ``{role_name}`` in texts that may contain literal braces."""

from __future__ import annotations

import re
from collections.abc import Mapping


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replace ``{key}`` for every key of ``values``, in one pass.

    ``{{`` and its closing ``}}`` become single braces, as in ``str.format``. Every other brace stays as written:
    ``str.format`` would reject pseudo-schemas like ``{ path: <string> }`` and read the end of ``{"a": {}}`` as ``}``.
    """
    known = "|".join(map(re.escape, values)) or "(?!)"
    token = re.compile(rf"\{{({known})\}}|\{{\{{|[{{}}]")
    parts: list[str] = []
    open_escaped: list[bool] = []
    position = 0
    while found := token.search(text, position):
        parts.append(text[position : found.start()])
        position = found.end()
        if found[1] is not None:
            parts.append(values[found[1]])
        elif found[0] == "}":
            escaped = open_escaped.pop() if open_escaped else True
            position += escaped and text.startswith("}", position)
            parts.append("}")
        else:
            open_escaped.append(found[0] == "{{")
            parts.append("{")
    return "".join([*parts, text[position:]])
