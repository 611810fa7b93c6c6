"""The environments of `compare.py`: one for each driver, kept in a folder, and what was installed in them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
INSTALL_SECONDS = 1200
MARKER = "requirements.txt"
OWN_TOOLS = ("pip", "setuptools")
INVENTORY = f"""
import json
from importlib.metadata import distributions
found = [each for each in distributions() if each.name.lower() not in {OWN_TOOLS}]
size = sum(file.locate().stat().st_size for each in found for file in each.files or () if file.locate().is_file())
print(json.dumps([{{each.name.lower().replace("_", "-"): each.version for each in found}}, size]))
"""


class NotMeasured(Exception):
    """Why there is no figure for a driver."""


@dataclass(frozen=True)
class Environment:
    """``versions``: of all installed distributions except pip's own, by name; ``megabytes``: their files, compiled."""

    python: Path
    versions: dict[str, str]
    megabytes: float


def prepare(folder: Path, name: str, requirements: tuple[str, ...]) -> Environment:
    """Create the environment ``name``, or reuse it if its requirements are the same. Raises `NotMeasured`."""
    home = folder / name.replace(" ", "-")
    python, marker = home / "bin" / "python", home / MARKER
    if not marker.is_file() or marker.read_text().split("\n") != list(requirements):
        shutil.rmtree(home, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(home)])
        _run([str(python), "-m", "pip", "install", "--quiet", *requirements])
        marker.write_text("\n".join(requirements))
    return inspect(python)


def prepare_ours(folder: Path) -> Environment:
    """The environment with our package as it is now, not editable: what a user gets. Raises `NotMeasured`."""
    environment = prepare(folder, "codex-multi-role", (str(ROOT),))
    _run([str(environment.python), "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall", str(ROOT)])
    return inspect(environment.python)


def inspect(python: Path) -> Environment:
    versions, size = json.loads(_run([str(python), "-c", INVENTORY]))
    return Environment(python, versions, size / 1e6)


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=INSTALL_SECONDS)
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or [f"exit code {error.returncode}"])[-1]
        raise NotMeasured(f"{' '.join(command[1:4])} failed: {last}") from error
    except subprocess.TimeoutExpired as error:
        raise NotMeasured(f"not installed within {INSTALL_SECONDS} s") from error
    return done.stdout
