"""``roles new`` and ``flows new``: what they write is valid as it is, and they change nothing else.

Costs: each next command is typed, some of them as runs.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from codex_multi_role.catalog import RoleSpecCatalog
from codex_multi_role.cli.boundary import run_guarded
from codex_multi_role.cli.main import group
from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.setup.new_definitions import ROLE, add_flow, add_role, with_entry
from codex_multi_role.reading.shipped import packaged_roles
from tests.support.catalogs import begin
from tests.support.teams import TeamFolder, say

pytestmark = pytest.mark.usefixtures("scripted_codex")

COMMENTED = """# first
version: 1
roles:   # the team
  - name: a    # who
    prompt_text: |
      Do it.

      # not a comment
    # model: x

  # the last one
  - name: b
    prompt_text: "Do it."   # quoted

# what comes after
defaults: {reasoning_effort: medium}   # the end
"""
FIRST = "version: 1\nroles:\n- name: a\n  prompt_text: x\n"


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def team(text: str) -> Path:
    path = Path("roles/catalog.yaml")
    path.parent.mkdir()
    path.write_bytes(text.encode())
    return path


def names() -> list[str]:
    return [role.name for role in RoleSpecCatalog.load(Path("roles")).roles]


def test_new_role_is_valid_and_no_comment_is_lost() -> None:
    catalog = team(COMMENTED)
    assert add_role("c", None) == (Path("roles/c.yaml"), Path("roles/catalog.yaml"))
    assert names() == ["a", "b", "c"]
    entry = "  - name: c\n    role_file: c.yaml\n"
    assert catalog.read_text() == COMMENTED.replace("# quoted\n", f"# quoted\n{entry}")


@pytest.mark.parametrize(
    "text",
    [
        COMMENTED.replace("\n", "\r\n"),
        COMMENTED.partition("\n# what comes after")[0],
        COMMENTED.partition("   # quoted")[0],
        "\ufeff" + COMMENTED,
        "version: 1\nroles:\n- {name: a, prompt_text: x}\n- {name: b,\n   prompt_text: x}",
        f"{FIRST}- name: b\n  prompt_text: |\n    Do it.\n\n    So.\n\n# end\n",
        f"{FIRST}- name: b\n  depends_on: [a]\n  prompt_text: >-\n    x\n",
        f"{FIRST}- prompt_text: x\n  name: b\n  skills: []\n  limits:\n    turn_seconds: 1\n",
    ],
)
def test_catalogs_as_people_write_them_are_added_to(text: str) -> None:
    catalog = team(text)
    add_role("c", None)
    assert names() == ["a", "b", "c"]
    added = catalog.read_bytes().decode()
    for line in text.splitlines():
        assert line in added
    assert ("\r\n" in added) == ("\r\n" in text)
    assert ("depends_on: [b]" in added) == ("depends_on" in text)


@pytest.mark.parametrize(
    "text",
    [
        "version: 1\nroles: [{name: a, prompt_text: x}]\n",
        "version: 1\nroles: &all\n  - {name: a, prompt_text: x}\n",
        "version: 1\ndefaults: &none {}\nroles:\n  - name: a\n    prompt_text: x\n    limits: *none\n",
    ],
)
def test_catalog_whose_end_is_not_plain_to_see_stays_as_it_was(text: str) -> None:
    catalog = team(text)
    with pytest.raises(UsageError, match="nothing was written") as raised:
        add_role("b", None)
    assert "{name: b, role_file: b.yaml}" in raised.value.hint
    assert catalog.read_text() == text
    assert not Path("roles/b.yaml").exists()


@pytest.mark.parametrize(
    ("name", "problem"),
    [("B", "already has a role b"), ("../x", "cannot be a name")],
)
def test_name_that_is_taken_or_none_is_refused(name: str, problem: str) -> None:
    catalog = team(COMMENTED)
    with pytest.raises(UsageError, match=problem):
        add_role(name, None)
    assert catalog.read_text() == COMMENTED
    assert [path.name for path in Path("roles").iterdir()] == ["catalog.yaml"]


@pytest.mark.parametrize("name", ["no", "null", "42", "1_000.5"])
def test_name_may_be_what_yaml_takes_for_something_else(name: str) -> None:
    team(f"{FIRST}- name: b\n  depends_on: [a]\n  prompt_text: x\n")
    assert add_role(name, None)[0].name == f"{name}.yaml"
    add_role("last", None)
    assert names() == ["a", "b", name, "last"]
    Path("roles/catalog.yaml").write_text(f"version: 1\nroles:\n- {{name: '{name}', prompt_text: x}}\n")
    add_flow(name, None)


def test_existing_file_is_not_overwritten() -> None:
    """The catalog stays unchanged as well."""
    team(COMMENTED)
    Path("roles/c.yaml").write_text("mine")
    with pytest.raises(UsageError, match=r"roles/c\.yaml already exists"):
        add_role("c", None)
    assert Path("roles/c.yaml").read_text() == "mine"
    assert names() == ["a", "b"]


def test_shipped_catalog_is_nobodys_to_change() -> None:
    for add in (add_role, add_flow):
        with pytest.raises(UsageError, match=r"no roles/catalog\.yaml in the current folder"):
            add("c", None)
    assert not (packaged_roles() / "c.yaml").exists()


def test_no_other_catalog_than_the_one_that_was_named_is_changed() -> None:
    Path("catalog.yaml").write_text(COMMENTED)
    for add in (add_role, add_flow):
        with pytest.raises(UsageError, match="typo: cannot be read"):
            add("c", Path("typo"))
    assert [path.name for path in Path().iterdir()] == ["catalog.yaml"]
    assert Path("catalog.yaml").read_text() == COMMENTED


def test_every_line_of_a_new_role_can_be_taken_as_it_is() -> None:
    team(COMMENTED)
    path, _ = add_role("c", None)
    lines = re.sub(r"(?m)^# (?=[a-z_]+: )", "", path.read_text())
    assert len(yaml.safe_load(lines)) == len(yaml.safe_load(path.read_text())) + 5
    path.write_text(lines)
    before = yaml.safe_load(ROLE.format(name="c"))
    role = RoleSpecCatalog.load(Path("roles")).role("c")
    assert role.limits.turn_seconds == 600
    assert (role.prompt_flags.allow_write, role.behaviors.can_finish) == (False, False)
    assert before["behaviors"]["timeout_policy"] == "default"


@settings(max_examples=settings().max_examples // 2)
@given(st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, unique=True), st.data())
def test_new_entry_follows_the_last_role_despite_comments(roles: list[str], data: st.DataObject) -> None:
    """This holds wherever the comments are, and everything else stays unchanged."""
    comment = st.sampled_from(["", "# a comment\n", "\n\n", "      # deep\n", "# - name: x\n"])
    text = "version: 1\nroles:\n"
    for role in roles:
        text += data.draw(comment) + f"  - name: {role}\n" + data.draw(comment)
        text += data.draw(
            st.sampled_from(["    prompt_text: x # y\n", "    prompt_text: |\n      x\n", "    skills: []\n"])
        )
    text += data.draw(comment) + data.draw(st.sampled_from(["", "defaults: {}\n"]))
    added = with_entry(text, ["- name: new"], Path("catalog.yaml"))
    assert [role["name"] for role in yaml.safe_load(added)["roles"]] == [*roles, "new"]
    assert added.replace("  - name: new\n", "") == text


@pytest.mark.real
def test_new_flow_is_valid_and_can_be_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plays = {"worker": [say("first"), say("second")]}
    with_team = TeamFolder(tmp_path, {"looker": {}, "worker": {"prompt_flags": {"allow_write": True}}}, plays)
    assert run_guarded(group, ["flows", "new", "mine"]) == 0
    assert "wrote roles/flows/mine.yaml" in capsys.readouterr().err
    (with_team.workspace / "test_bad.py").write_text("def test_bad():\n    assert False\n")
    report = with_team.run(flow="mine", inputs={"most": "2"}, baseline=False)
    assert (report.outcome, report.exit_code) == ("tests_failed", 1)
    assert [role for role, _, _ in with_team.turns()] == ["worker", "worker"]
    with pytest.raises(UsageError, match="flow mine already exists"):
        add_flow("mine", None)


@pytest.mark.parametrize(
    ("line", "where", "shown"),
    [
        ("roles new other", "roles", "ok: roles/catalog.yaml: a, b, other\n"),
        ("roles new other --roles 'my roles'", "my roles", "ok: my roles/catalog.yaml: a, b, other\n"),
        ("flows new mine", "roles", "ok: mine: "),
        ("flows new mine --roles 'my roles'", "my roles", "ok: mine: "),
        ("init elsewhere", "roles", "ok: elsewhere/roles/catalog.yaml: planner"),
    ],
)
def test_every_next_command_can_be_typed(line: str, where: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    team(COMMENTED).parent.rename(where)
    assert run_guarded(group, shlex.split(line)) == 0
    (said,) = [each for each in capsys.readouterr().err.splitlines() if each.startswith("next: ")]
    for command in re.findall("`codex-multi-role (.*?)`", said):
        assert run_guarded(group, shlex.split(command)) == 0, command
    assert capsys.readouterr().out.startswith(shown)


def test_shipped_flows_name_is_taken() -> None:
    team(COMMENTED)
    with pytest.raises(UsageError, match="flow cycles already exists"):
        add_flow("Cycles", None)
    assert not Path("roles/flows").exists()


def test_starter_grows_by_a_role_and_a_flow(capsys: pytest.CaptureFixture[str]) -> None:
    begin("empty")
    assert run_guarded(group, ["roles", "new", "reviewer"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "wrote roles/reviewer.yaml and added it to roles/catalog.yaml",
        "next: edit roles/reviewer.yaml, then run `codex-multi-role roles validate`",
    ]
    assert names() == ["worker", "reviewer"]
    add_flow("mine", None)
    assert "ask: worker" in Path("roles/flows/mine.yaml").read_text()
