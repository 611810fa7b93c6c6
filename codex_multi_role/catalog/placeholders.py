"""Placeholders such as ``{role_name}`` in texts that may hold literal braces."""

from __future__ import annotations

import re
from collections.abc import Mapping


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replace ``{key}`` for every key of ``values``, in one pass; every other brace stays as it was written.

    ``str.format`` would read pseudo-schemas like ``{ path: <string> }`` as fields (a fault of the original).
    """
    if not values:
        return text
    known = "|".join(re.escape(key) for key in values)
    return re.sub(rf"\{{({known})\}}", lambda match: values[match[1]], text)
