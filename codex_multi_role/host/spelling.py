"""Names that some file systems or folders consider equal: in another case, or with other Unicode composition."""

from __future__ import annotations

import contextlib
import unicodedata
from pathlib import Path


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


def _as_listed(folder: Path, name: str) -> str:
    with contextlib.suppress(OSError):
        if (folder / name).samefile(folder / name.swapcase()):
            names = [entry.name for entry in folder.iterdir()]
            return name if name in names else next((each for each in names if folded(each) == folded(name)), name)
    return name
