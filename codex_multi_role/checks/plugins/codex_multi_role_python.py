"""A program: print what the checks need to know about the Python that runs it, as JSON.

``{version, prefix, packages: {name: boolean}, roots: [folder]}``; ``roots`` are the folders it imports from,
including those of editable installs.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("pytest", "coverage")


def described() -> dict[str, object]:
    return {
        "version": sys.version.split()[0],
        "prefix": sys.prefix,
        "packages": {name: _has(name) for name in PACKAGES},
        "roots": [*filter(None, sys.path[1:]), *_editable()],
    }


def _has(package: str) -> bool:
    """Whether it can be imported; a plain folder of that name, without code, cannot."""
    spec = find_spec(package)
    return spec is not None and spec.origin is not None


def _editable() -> list[str]:
    """The folders of editable installs by setuptools, whose finder maps each package if a path entry is not enough."""
    # A copy is made in one go: a plain list makes garbage, whose collection may let another thread import.
    finders = [module for name, module in sys.modules.copy().items() if name.startswith("__editable__")]
    mappings = [getattr(finder, "MAPPING", {}) for finder in finders]
    return [str(Path(folder).parent) for mapping in mappings for folder in mapping.values()]


if __name__ == "__main__":
    print(json.dumps(described()))  # noqa: T201 - its answer
