"""Spellings of names that some file systems consider equal, the characters that nobody sees, and texts in values."""

from __future__ import annotations

import contextlib
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from codex_multi_role.errors import UsageError

KEPT_IN_PAGES = "\n\r\t\u200c\u200d"  # the last two join letters and emoji, or keep them apart


def folded(name: str) -> str:
    """The same value for all spellings of ``name``: Unicode's canonical caseless matching."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


def as_on_disk(path: Path) -> Path:
    """The real path of ``path``, which need not exist, in the spelling of the folders on disk.

    Two paths to one place then compare equal everywhere, for us and for the sandbox.
    """
    resolved = path.resolve()
    real = Path(resolved.anchor)
    for name in resolved.parts[1:]:
        real /= _as_listed(real, name)
    return real


def require_utf8(path: Path) -> Path:
    """Return ``path``. Raises `UsageError` if it is not valid UTF-8, which is all that Codex and JSON can name."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"the path {path} is not UTF-8", "Rename the folder, or name another one.") from error
    return path


def _as_listed(folder: Path, name: str) -> str:
    with contextlib.suppress(OSError):
        if (folder / name).samefile(folder / name.swapcase()):
            names = [entry.name for entry in folder.iterdir()]
            return name if name in names else next((each for each in names if folded(each) == folded(name)), name)
    return name


def texts_in(value: object, keys: tuple[Any, ...] = ()) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The texts in ``value``, also inside of lists and mappings, each with the keys that lead to it."""
    if isinstance(value, str):
        yield value, keys
    elif isinstance(value, Mapping | list | tuple):
        for key, each in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from texts_in(each, (*keys, key))


def with_texts(value: Any, change: Callable[[str], Any]) -> Any:  # noqa: ANN401 - any JSON
    """``value`` with every text in it changed, except keys."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: with_texts(each, change) for key, each in value.items()}
    return [with_texts(each, change) for each in value] if isinstance(value, list | tuple) else value


def printable(text: str, keep: str = "") -> str:
    """Remove control and format characters, such as escapes and bidi controls, and lone surrogates, except ``keep``."""
    if text.isprintable():  # fast, and nearly always so
        return text
    hidden = [ord(letter) for letter in {*text} - {*keep} if unicodedata.category(letter).startswith("C")]
    return text.translate(dict.fromkeys(hidden)) if hidden else text
