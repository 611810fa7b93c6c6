"""Spellings of names that some file systems consider equal, and the characters of a text that nobody sees."""

from __future__ import annotations

import contextlib
import unicodedata
from pathlib import Path

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


def printable(text: str, keep: str = "") -> str:
    """Remove control and format characters, such as escapes and bidi controls, and lone surrogates, except ``keep``."""
    if text.isprintable():  # fast, and nearly always so
        return text
    hidden = [ord(letter) for letter in {*text} - {*keep} if unicodedata.category(letter).startswith("C")]
    return text.translate(dict.fromkeys(hidden)) if hidden else text
