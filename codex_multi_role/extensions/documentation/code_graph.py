"""The check ``code_graph``: the contents of a folder of source code, and which file depends on which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import Field

from codex_multi_role.checks import CheckContext, CheckOptions, CheckResult, ResultPart, TimeLeft, declare_check
from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.documentation import other_code, python_code
from codex_multi_role.extensions.documentation.discovery import Folder, SourceFile, Symbols
from codex_multi_role.extensions.documentation.layers import batches_of, drawn, layers_of
from codex_multi_role.workspace import project_name

MOST_FILES = 3_000
MOST_NAMES = 100_000
"""Limit for all symbols together: a flow passes the graph on, and templates limit the number of values."""
PYTHON = "Python"
_SYMBOL_FIELDS = ("functions", "classes", "constants", "problem", "partly")


class CodeGraphOptions(CheckOptions):
    """``repo`` is a folder, absolute or relative to the workspace; ``exclude`` are globs of paths below it."""

    repo: str = Field(default=".", min_length=1, description="a folder with source code")
    exclude: list[str] = Field(default=[], description='globs such as "tests/*", relative to the folder')


@dataclass
class Known:
    """The files read so far: the reported facts and the symbols of each, both by path."""

    files: dict[str, dict[str, object]] = field(default_factory=dict)
    symbols: dict[str, Symbols] = field(default_factory=dict)
    other: Mapping[str, int] = field(default_factory=dict)


class AnalysedFile(ResultPart):
    """``deferred``: imports inside functions, which do not count for layers.

    A file with a ``problem`` (binary, not UTF-8, too large, invalid syntax, no grammar installed) is listed without
    symbols, one read ``partly`` with those outside the named lines.
    """

    path: str
    language: str
    lines: int
    bytes: int
    sha256: str
    layer: int
    dependencies: list[str]
    deferred: list[str]
    functions: list[str]
    classes: list[str]
    constants: list[str]
    problem: str
    partly: str


class CodeGraphResult(CheckResult):
    """A layer depends on those before it; the files of a cycle share one. ``batches``: three files of a layer each.

    ``external``: names imported from elsewhere. ``problems`` and ``partly`` count files, ``other`` those that are not
    source code, by their ending, and ``languages`` those of each language.
    """

    bad = ()

    status: Literal["analysed", "empty"]
    reason: str
    repo: str
    name: str
    files: list[AnalysedFile]
    layers: list[list[str]]
    cycles: list[list[str]]
    batches: list[list[str]]
    mermaid: str
    mermaid_of: Literal["files", "folders"]
    external: list[str]
    problems: int
    partly: int
    other: dict[str, int]
    languages: dict[str, int]


@declare_check(options=CodeGraphOptions, result=CodeGraphResult, read_only=True)
def read_code_graph(context: CheckContext) -> CodeGraphResult:
    """Analyse a folder of source code without importing or running it. Leaves ``result.json``.

    Options: `CodeGraphOptions`. Raises UsageError for a wrong option, a missing folder, or one with more than
    ``MOST_FILES`` source files or ``MOST_NAMES`` symbols; CheckFailed when it takes too long, RunInterrupted.
    """
    options = context.read_options(CodeGraphOptions, "code_graph")
    root = repository(context, options.repo, "code_graph")
    return CodeGraphResult.model_validate(_result(root, options.repo, _read(context, root, options)))


def repository(context: CheckContext, repo: str, check: str) -> Path:
    """The folder that the user named. Raises UsageError if it is not a folder."""
    root = (context.workspace.root / repo).resolve()
    if not root.is_dir():
        what = "is not a folder" if root.exists() else "the folder does not exist"
        raise UsageError(f"check {check}: repo: {repo}: {what}", "Name a folder with source code.")
    return root


def _read(context: CheckContext, root: Path, options: CodeGraphOptions) -> Known:
    time_left = TimeLeft(context, "code_graph")
    folder = Folder(root, options.exclude, context.workspace.forbidden)
    known = Known(other=folder.other)
    names = 0
    try:
        for file in folder.sources():
            time_left.require()
            if len(known.files) == MOST_FILES:
                raise ValueError(f"more than {MOST_FILES} source files")
            symbols = known.symbols[file.path] = symbols_of(file)
            names += len(symbols.functions) + len(symbols.classes) + len(symbols.constants)
            if names > MOST_NAMES:
                raise ValueError(f"more than {MOST_NAMES} functions, classes and constants")
            facts = {"language": file.language, "lines": file.lines, "bytes": file.size, "sha256": file.sha256}
            known.files[file.path] = {"path": file.path, **facts}
    except ValueError as error:
        hint = "Name a smaller folder, or exclude parts of it with exclude."
        raise UsageError(f"check code_graph: repo: {options.repo}: {error}", hint) from error
    return known


def symbols_of(file: SourceFile) -> Symbols:
    """The names that the file defines and imports, read by its language."""
    if file.problem:
        return Symbols(problem=file.problem)
    if file.language == PYTHON:
        return python_code.read_python(file.text)
    return other_code.read_other(file.language, file.text)


def _result(root: Path, repo: str, known: Known) -> dict[str, object]:
    # Python imports to Python files, and imports in the other languages to files of any of these
    python = {path: each for path, each in known.symbols.items() if known.files[path]["language"] == PYTHON}
    others = {path: each for path, each in known.symbols.items() if path not in python}
    connections = python_code.connect_modules(python, project_name(root)) | other_code.connect_files(others)
    dependencies = connections.dependencies
    layers, cycles = layers_of(dependencies)
    layer_of = {path: number for number, layer in enumerate(layers) for path in layer}
    mermaid, mermaid_of = drawn(dependencies)
    files = [
        {
            **facts,
            "layer": layer_of[path],
            "dependencies": sorted(dependencies[path]),
            "deferred": sorted(connections.deferred[path]),
            **{name: getattr(known.symbols[path], name) for name in _SYMBOL_FIELDS},
        }
        for path, facts in known.files.items()
    ]
    return {
        "status": "analysed" if files else "empty",
        "reason": "" if files else f"{repo} contains no source file in a supported language",
        "repo": repo,
        "name": project_name(root),
        "files": files,
        "layers": layers,
        "cycles": cycles,
        "batches": batches_of(layers),
        "mermaid": mermaid,
        "mermaid_of": mermaid_of,
        "external": sorted(connections.outside),
        "problems": sum(bool(symbols.problem) for symbols in known.symbols.values()),
        "partly": sum(bool(symbols.partly) for symbols in known.symbols.values()),
        "other": dict(sorted(known.other.items())),
        "languages": dict(sorted(Counter(str(facts["language"]) for facts in known.files.values()).items())),
    }
