"""What an installation weighs: packages and megabytes of the package alone and with each extra.

``python benchmarks/installed_size.py [EXTRA…]``: each in a new environment, by the pip of this Python. Downloads.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

TOP = Path(__file__).parents[1]
EXTRAS = ("", "systems", "web", "machines", "otel", "dev")
INSTALL_SECONDS = 900
MEGABYTE = 1_000_000


def main(extras: list[str]) -> None:
    """Print one row for each extra."""
    print(f"{'installed':<12} {'packages':>8} {'MB':>6} {'of it Codex':>12}")
    for extra in extras:
        with tempfile.TemporaryDirectory() as folder:
            packages = _install(Path(folder), f".[{extra}]" if extra else ".")
            codex = _megabytes(packages.glob("codex_cli_bin*"))
            names = [*packages.glob("*.dist-info")]
            print(f"{extra or '.':<12} {len(names):>8} {_megabytes([packages]):>6} {codex:>12}", flush=True)


def _install(folder: Path, what: str) -> Path:
    """Install into a new environment in the folder; returns the folder of its packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=INSTALL_SECONDS)
    python = str(folder / "bin/python")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile", what]
    subprocess.run(pip, cwd=TOP, check=True, timeout=INSTALL_SECONDS)
    [packages] = folder.glob("lib/python*/site-packages")
    return packages


def _megabytes(folders: Iterable[Path]) -> int:
    """Megabytes of the files below the folders."""
    files = (file for each in folders for file in each.rglob("*") if file.is_file() and not file.is_symlink())
    return round(sum(file.stat().st_size for file in files) / MEGABYTE)


if __name__ == "__main__":
    main(sys.argv[1:] or [*EXTRAS])
