"""The project's Python: one rule finds it for every check and reports what named it; the environment of its tests."""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event

from pydantic import BaseModel

from codex_multi_role.checks.environments import PLUGINS, has_python, known_folders, named_by_tools, project_folders
from codex_multi_role.checks.plugins.codex_multi_role_python import PACKAGES, described
from codex_multi_role.errors import UsageError
from codex_multi_role.host.own_python import OWN_PYTHON
from codex_multi_role.host.redaction import without_secrets
from codex_multi_role.workspace import run_command
from codex_multi_role.workspace.commands import Sandbox

OWN = "codex-multi-role"
"""The source of the Python that runs this program, used if a project has none."""
FROM_OPTION = "--python"
"""The source of the Python that the user named."""
BASE_OF_CONDA = frozenset({"base", "root"})
ANSWER_SECONDS = 30.0
COVERAGE = "coverage"
PROGRAM = PLUGINS / "codex_multi_role_python.py"
NO_ANSWER = "it does not describe itself as a Python does"
PYTEST, PYTHON = frozenset({"pytest", "py.test"}), frozenset({"python", "python3"})
TESTS_FAILED, NO_TESTS_COLLECTED = 1, 5
"""Exit codes of pytest."""


@dataclass(frozen=True)
class Interpreter:
    """``path`` is the program, ``source`` what named it: ``--python``, ``VIRTUAL_ENV``, ``.venv``, `OWN`, and so on.

    `inspect` sets ``version``, ``folders`` (those of ``project`` that it imports from by itself, relative to it), and
    ``problem`` and ``hint``, which say why it cannot run the tests and how to fix it. ``only_unmeasured``: it can run
    them, but not measure their coverage.
    """

    path: Path
    source: str
    version: str = ""
    project: Path | None = None
    folders: tuple[Path, ...] = ()
    problem: str = ""
    hint: str = ""
    only_unmeasured: bool = False

    @property
    def environment(self) -> Path:
        """The folder of the virtual or conda environment, or any other folder that contains the program's ``bin``."""
        return self.path.parent.parent

    def as_json(self) -> dict[str, str]:
        return {"path": str(self.path), "version": self.version, "source": self.source}

    def activate(self, environment: Mapping[str, str]) -> dict[str, str]:
        """``environment`` with this Python activated, so that ``pytest`` and ``python`` are its own.

        The environment that was active, and that of this program, are left: a ``pytest`` that is missing here must not
        be theirs.
        """
        others = {environment.get("VIRTUAL_ENV", ""), sys.prefix} - {"", sys.base_prefix}
        left = {f"{each}/bin" for each in others}
        places = [each for each in environment.get("PATH", "").split(":") if each and each.rstrip("/") not in left]
        active = {name: value for name, value in environment.items() if name not in ("VIRTUAL_ENV", "PYTHONHOME")}
        if (self.environment / "pyvenv.cfg").is_file():
            active["VIRTUAL_ENV"] = str(self.environment)
        return {**active, "PATH": ":".join([str(self.path.parent), *places])}


def find_interpreter(root: Path, environment: Mapping[str, str], setting: Path | None = None) -> Interpreter:
    """Find the Python of the project at ``root`` without running any of its code.

    The order is: ``setting``, a program or the folder of an environment; the active environment, VIRTUAL_ENV or
    CONDA_PREFIX; ``.venv``; ``venv``; what uv, poetry or conda name for the project; the same in the folders above, up
    to the top of the repository; the Python that runs this program. Its own environment says nothing about the project
    when active, nor does conda's base, which is always active.

    Raises UsageError if ``setting`` is not a Python.
    """
    if setting is not None:
        program = setting / "bin" / "python" if setting.is_dir() else setting
        if not program.is_file():
            hint = "Name a Python executable, or the folder of a virtual environment."
            raise UsageError(f"--python: {setting.absolute()} is not a Python executable", hint)
        return Interpreter(program.absolute(), FROM_OPTION)
    for source, folder in _environments(root, environment):
        if has_python(folder):
            return Interpreter(folder.absolute() / "bin" / "python", source)
    return Interpreter(Path(OWN_PYTHON), OWN)


def starts_own_pytest(command: str) -> bool:
    """Whether the command line, empty for the default, starts pytest in the project's Python, found by its name."""
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    return not words or words[0] in PYTEST or (words[0] in PYTHON and words[1:3] == ["-m", "pytest"])


def _environments(root: Path, environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if (active := environment.get("VIRTUAL_ENV")) and not _is_own(Path(active), root):
        yield "VIRTUAL_ENV", Path(active)
    if (active := environment.get("CONDA_PREFIX")) and environment.get("CONDA_DEFAULT_ENV") not in BASE_OF_CONDA:
        yield "CONDA_PREFIX", Path(active)
    for folder in project_folders(root):
        yield ".venv", folder / ".venv"
        yield "venv", folder / "venv"
        yield from named_by_tools(folder, environment)


def _is_own(active: Path, root: Path) -> bool:
    """Whether the active environment is only the one in which this program is installed."""
    return active.resolve() == Path(sys.prefix).resolve() and not active.absolute().is_relative_to(root)


def inspect(
    found: Interpreter, root: Path, environment: Mapping[str, str], sandbox: Sandbox, stopping: Event | None = None
) -> Interpreter:
    """Run ``found`` in ``sandbox`` to fill in the fields that need it. Raises RunInterrupted."""
    if found.source == OWN:
        return _judged(found, _Facts.model_validate(described()), root)
    with tempfile.TemporaryDirectory(prefix="check-") as folder:
        scratch = Path(folder).resolve()
        argv = sandbox([str(found.path), str(PROGRAM)], scratch)
        given = {**without_secrets(environment), "TMPDIR": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            ran = run_command(argv, root, given, ANSWER_SECONDS, stopping=stopping, separate_errors=True)
            facts = _Facts.model_validate_json((ran.output.strip().splitlines() or [""])[-1])
        except (UsageError, ValueError) as error:
            message = (
                str(error) if isinstance(error, UsageError) else (ran.errors.strip().splitlines() or [NO_ANSWER])[-1]
            )
            hint = f"Recreate the environment, or name another Python with --python: {found.path}"
            return replace(found, problem=f"{_label(found)} cannot be started: {message[:300]}", hint=hint)
    return _judged(found, facts, root)


class _Facts(BaseModel):
    """What `PROGRAM` prints, in its last line: the environment may print lines of its own before."""

    version: str
    packages: dict[str, bool]
    roots: list[str]


def _judged(found: Interpreter, facts: _Facts, root: Path) -> Interpreter:
    # Imported here, in the thread of the inspection, because it is slow to import.
    from codex_multi_role.checks.requirements import how_to_install, unmet_requirements

    inspected = replace(
        found,
        version=facts.version,
        project=root,
        folders=known_folders(root, facts.roots),
    )
    if missing := [name for name in PACKAGES if not facts.packages.get(name)]:
        problem = f"{_label(found)} has no {' and no '.join(missing)}"
        hint = how_to_install(found.path, missing)
        return replace(inspected, problem=problem, hint=hint, only_unmeasured=missing == [COVERAGE])
    if found.source == OWN and (unmet := unmet_requirements(root)):
        return replace(
            inspected,
            problem=f"the project needs {', '.join(unmet)} and has no Python environment of its own",
            hint=f"{_new_environment(root)}; or name its Python with --python.",
        )
    return inspected


def _label(found: Interpreter) -> str:
    return f"the Python that runs the tests ({found.source}: {found.path})"


def _new_environment(root: Path) -> str:
    what = "-e ." if (root / "pyproject.toml").is_file() else "-r requirements.txt"
    return f"Run in {root}: python3 -m venv .venv && .venv/bin/python -m pip install {' '.join(PACKAGES)} {what}"
