"""Names that some file system, or some folder of one, takes for the same: in another case, or composed otherwise."""

from __future__ import annotations

import contextlib
import unicodedata
from pathlib import Path


def folded(name: str) -> str:
    """The same for all spellings of ``name``: Unicode's canonical caseless matching."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


def as_on_disk(path: Path) -> Path:
    """The real path of ``path``, which need not exist, spelled as the folders on its way have it.

    So two paths to one place are alike wherever they are compared, by us or by the sandbox.
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
