"""Small catalogs, the skills of their roles, and what is wrong with them."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest

from codex_multi_role.catalog import FlowSpec, RoleSpecCatalog, read_flows
from codex_multi_role.errors import DefinitionError
from codex_multi_role.flow.references import check_flows, template_types
from codex_multi_role.reading.value_types import MAPPING

Write = Callable[..., Path]
Mistake = Callable[..., str]
E = TypeVar("E", bound=BaseException)
Given = ParamSpec("Given")
TWO_ROLES = """\
version: 1
roles:
  - {name: planner, prompt_text: Plan.}
  - {name: developer, prompt_text: Develop.}
"""
CATALOG = """
version: 1
roles:
  - name: thinker
    prompt_text: Think.
    model_env: THINKER_MODEL
  - name: doer
    prompt_text: Do.
    prompt_flags: {allow_write: true}
    depends_on: [thinker]
"""
SKILL = "---\nname: {name}\ndescription: does it\n---\nHow to do it.\n"


def problem_of(call: Callable[[], object]) -> str:
    """The message of the ``DefinitionError`` that ``call`` raises, or an empty string."""
    try:
        call()
    except DefinitionError as error:
        return str(error)
    return ""


def raised(kind: type[E], call: Callable[Given, object], *given: Given.args, **named: Given.kwargs) -> E:
    """The error of this kind that ``call`` has to raise."""
    with pytest.raises(kind) as caught:
        call(*given, **named)
    return caught.value


def message_at(file: Path, error: BaseException) -> str:
    """The message of ``error``, which is at a line and column of ``file``, without these."""
    message = str(error)
    place = re.match(rf"{re.escape(str(file))}:\d+:\d+: ", message)
    assert place is not None, message
    return message[place.end() :]


def files_of_skill(name: str, prefix: str = "") -> dict[str, bytes]:
    """The files of the skill ``name`` by their path in an archive, below ``prefix`` (with its slash)."""
    return {f"{prefix}SKILL.md": SKILL.format(name=name).encode(), f"{prefix}scripts/run.sh": b"#!/bin/sh\necho done\n"}


def zipped(files: dict[str, bytes]) -> bytes:
    """The bytes of a zip archive of ``files``."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def seven_zipped(files: dict[str, bytes]) -> bytes:
    """The bytes of a 7z archive of ``files``."""
    py7zr = pytest.importorskip("py7zr", reason="the extra [7z] is not installed")
    data = io.BytesIO()
    with py7zr.SevenZipFile(data, "w") as archive:
        for name, content in files.items():
            archive.writestr(content, name)
    return data.getvalue()


def begin(name: str) -> None:
    """Write the files of the starter ``name`` into the current folder, as ``init --for`` does."""
    from codex_multi_role.extensions.setup.init import starter_files  # here: the tests of the core do without

    for path, content in starter_files(name):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def write_team(folder: Path, **flows: str) -> Path:
    """Write `CATALOG` to ``folder/team`` and each of ``flows`` to its ``flows/<name>.yaml``; ``folder``."""
    (folder / "team" / "flows").mkdir(parents=True)
    (folder / "team" / "catalog.yaml").write_text(CATALOG)
    for name, text in flows.items():
        (folder / "team" / "flows" / f"{name}.yaml").write_text(text)
    return folder


def load_flow(name: str, roles_dir: Path | None, catalog: RoleSpecCatalog) -> FlowSpec:
    """The flow with that name; checks and raises like `load_flows`."""
    return load_flows(name, roles_dir, catalog)[name]


def load_flows(name: str, roles_dir: Path | None, catalog: RoleSpecCatalog) -> dict[str, FlowSpec]:
    """Read and check the flow and those that it calls, without what is known of the results of their steps."""
    flows = read_flows(name, roles_dir)
    check_flows(
        flows, catalog, {flow.name: template_types(flow, catalog, lambda _: MAPPING) for flow in flows.values()}
    )
    return flows


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """``write("text", "name")`` puts the text (or bytes) into a file of the test's folder and returns its path."""

    def written(content: str | bytes, name: str = "catalog.yaml") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return written


@pytest.fixture
def mistake(tmp_path: Path, write: Write, two_roles: RoleSpecCatalog) -> Mistake:
    """``mistake("steps: …")``: what is wrong with the flow ``f`` of this text, without the place in its file.

    With a name as well, the text is that of another flow, which ``f`` calls.
    """

    def found(text: str, name: str = "f") -> str:
        path = write(text, f"flows/{name}.yaml")
        return message_at(path, raised(DefinitionError, load_flow, "f", tmp_path, two_roles))

    return found


@pytest.fixture
def two_roles(write: Write) -> RoleSpecCatalog:
    """A catalog of planner and developer, without any texts of its own."""
    return RoleSpecCatalog.load(write(TWO_ROLES))
