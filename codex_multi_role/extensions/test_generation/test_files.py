"""The check ``write_tests``, and the test files for one source file: one, or more from several developers, merged."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from pydantic import Field

from codex_multi_role.checks import CheckContext, CheckOptions, declare_check, inside, no_time
from codex_multi_role.checks.text_files import TextFileResult, put
from codex_multi_role.extensions.test_generation.removed_tests import without
from codex_multi_role.extensions.test_generation.tests_source import (
    functions_in,
    named_by_behaviour,
    with_unique_names,
    without_fence,
)


class WriteTestsOptions(CheckOptions):
    """``code`` is the whole file, or is appended to the tests in ``before``; no test is named after one of ``ids``."""

    path: str = Field(min_length=1, description="a file of the workspace")
    code: str = Field(description="Python source, as a role gave it")
    before: str = Field(default="", description="Python source")
    ids: list[str] = Field(default=[], description="ids of the plan's items")
    copy_: str = Field(default="", alias="copy", description="the copy of a result of a step with isolate")


class TestFile(CheckOptions):
    """A test file and its whole text."""

    __test__ = False

    path: str = Field(min_length=1)
    content: str


Texts = Mapping[str, str]


def texts_of(files: Sequence[TestFile]) -> dict[str, str]:
    """The texts by path, in order."""
    return {file.path: file.content for file in files}


def shown(texts: Texts) -> str:
    """All texts in one: a single one as it is, several with their paths."""
    if len(texts) == 1:
        return next(iter(texts.values()))
    return "\n\n".join(f"# {path}\n{text}" for path, text in texts.items())


def put_all(context: CheckContext, texts: Texts) -> None:
    """Write the files into the workspace. Raises CheckFailed."""
    for path, text in texts.items():
        put(context, path, text)


def remove(context: CheckContext, paths: Iterable[str]) -> None:
    """Remove the files that exist. Raises UsageError for one outside the workspace."""
    for path in paths:
        inside(context.workspace, path, "a file of tests").unlink(missing_ok=True)


def names_in(path: str, tests: Iterable[str]) -> list[str]:
    """The functions of the pytest names in ``tests`` that are in the file at ``path``, as `functions_in` names them.

    ``tests.test_shapes.TestShape::test_area[1]`` is ``TestShape::test_area`` of ``tests/test_shapes.py``.
    """
    return [name.partition("[")[0] for name in rows_in(path, tests)]


def rows_in(path: str, tests: Iterable[str]) -> list[str]:
    """As `names_in`, with the parameters: ``TestShape::test_area[1]``."""
    stem, names = PurePosixPath(path).stem, []
    for test in tests:
        whole, bracket, row = test.partition("[")
        place, _, function = whole.rpartition("::")
        if stem in (parts := place.split(".")):
            names.append("::".join([*parts[parts.index(stem) + 1 :], f"{function}{bracket}{row}"]))
    return names


def without_tests(texts: Texts, tests: Collection[str]) -> dict[str, str]:
    """``texts`` without these pytest ``tests``; a file with no test left is dropped."""
    left = {}
    for path, text in texts.items():
        smaller = without(text, names) if (names := rows_in(path, tests)) else text
        if smaller == text or functions_in(smaller):
            left[path] = smaller
    return left


@declare_check(options=WriteTestsOptions, result=TextFileResult, max_seconds=no_time)
def write_tests(context: CheckContext) -> TextFileResult:
    """Write tests without a Markdown fence and with one definition per test name. Raises UsageError, CheckFailed."""
    options = context.read_options(WriteTestsOptions, "write_tests")
    code = named_by_behaviour(without_fence(options.code), options.ids)
    content = with_unique_names(f"{options.before.strip()}\n\n\n{code}" if options.before.strip() else code)
    put(context.in_copy(options.copy_), options.path, content)
    return TextFileResult(status="written", path=options.path, content=content)
