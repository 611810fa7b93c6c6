"""The teams that ``init`` offers: small catalogs, each for one purpose, with the shipped roles they name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from codex_multi_role.cli.settings import FILE
from codex_multi_role.run_options import LOCAL_ROLES

STARTERS = "starters"
SETTINGS = """# Settings for codex-multi-role in this folder: any option of `codex-multi-role run`, without its dashes.
# A flag wins over an environment variable (CODEX_MULTI_ROLE_<NAME>), and that over this file.
"""


@dataclass(frozen=True)
class StarterTeam:
    """``flow``: the team's default. ``settings_of_checks``: files beside the catalog that its checks read."""

    name: str
    purpose: str
    flow: str
    settings_of_checks: tuple[str, ...] = ()


ALL = (
    StarterTeam("coding", "write code: a planner, an implementer, a tester and a reviewer", "cycles"),
    StarterTeam("tests", "write tests for Python code that is there, and measure them", "testgen"),
    StarterTeam(
        "research", "research a question in documents, and report it with its sources", "research", ("search.yaml",)
    ),
    StarterTeam("documentation", "document a repository", "document"),
    StarterTeam("plan-solve", "split a goal into tasks, solve each, and check the answer", "plan-solve"),
    StarterTeam("empty", "something else: one role to start from", "cycles"),
)


def starter(name: str) -> StarterTeam:
    """Find a team by its name, or by its number in `ALL`, counted from 1. Raises `KeyError`."""
    by_name = {known: each for number, each in enumerate(ALL, 1) for known in (each.name, str(number))}
    return by_name[name]


def contents_of(chosen: StarterTeam) -> Iterator[tuple[Path, bytes]]:
    """Yield path and content of each file, relative to the project's folder."""
    from codex_multi_role.catalog import packaged_roles
    from codex_multi_role.reading.yaml_source import load_yaml  # here: the catalog loads pydantic

    shipped = packaged_roles()
    catalog = shipped / STARTERS / chosen.name / "catalog.yaml"
    yield LOCAL_ROLES / "catalog.yaml", catalog.read_bytes()
    roles = load_yaml(catalog)["roles"]  # type: ignore[index]  # tests load every starter
    named = [role["role_file"] for role in roles if "role_file" in role]
    for name in (*named, *chosen.settings_of_checks):
        yield LOCAL_ROLES / name, (shipped / name).read_bytes()
    yield Path(FILE), f"{SETTINGS}flow: {chosen.flow}\n".encode()
