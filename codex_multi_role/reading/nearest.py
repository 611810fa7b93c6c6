"""Messages for an unknown name: the nearest known one, and all of them."""

from __future__ import annotations

from collections.abc import Iterable


def find_nearest(name: str, known: Iterable[str]) -> list[str]:
    """The nearest of ``known``, or nothing if none is near."""
    from difflib import get_close_matches  # imported only after a mistake

    by_folded = {candidate.casefold(): candidate for candidate in known}
    return [by_folded[close] for close in get_close_matches(name.casefold(), by_folded, n=1)]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean "planner"?`` for the nearest of ``known``, an empty string if none is near."""
    return "".join(f'; did you mean "{nearest}"?' for nearest in find_nearest(name, known))


def no_such(kind: str, name: str, known: Iterable[str]) -> tuple[str, str]:
    """Message and hint for an unknown ``name`` of a ``kind`` such as "role"; fits the errors' arguments."""
    names = list(known)
    message = f'unknown {kind} "{name}"{did_you_mean(name, names)}'
    return message, f"Known: {', '.join(names)}." if names else f"No {kind} is defined."
