from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.errors import DefinitionError, UsageError
from codex_multi_role.playbook import list_playbooks, load_playbook


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / "playbooks" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_project_s_playbook_comes_before_a_packaged_one(tmp_path: Path) -> None:
    own = write(tmp_path, "roman-numerals", "name: mine\ndefault: {text: hi}\n")
    assert load_playbook("roman-numerals").name == "roman-numerals"
    assert load_playbook("roman-numerals", tmp_path).name == "mine"
    assert list_playbooks(tmp_path)["roman-numerals"] == own
    assert load_playbook("roman-numerals", tmp_path).source == own


def test_path_is_read_as_it_is(tmp_path: Path) -> None:
    path = write(tmp_path, "mine", "name: mine\ncycles: 2\nroles: {planner: [{json: {summary: hi}}]}\n")
    assert load_playbook(str(path)).cycles == 2


def test_unknown_name_suggests_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r'no playbook "roman-numeral"; did you mean "roman-numerals"\?'):
        load_playbook("roman-numeral", tmp_path)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"nowhere\.yaml"):
        load_playbook(str(tmp_path / "nowhere.yaml"))


@pytest.mark.parametrize(
    ("entry", "place"),
    [
        ("{json: {summary: '{{ promt }}'}}", r"roles.planner\[0\].json.summary: .*promt"),
        ("{text: '{{ prompt '}", r"roles.planner\[0\].text: "),
        ("{steps: [{call: x, arguments: {a: '{{ nope }}'}}]}", r"roles.planner\[0\].steps\[0\].arguments.a: "),
        ("{text: a, repairs: [{patch: '{{ nope }}'}]}", r"roles.planner\[0\].repairs\[0\].patch: "),
        ("{choose: [{when: 'promt', text: a}]}", r"roles.planner\[0\].choose\[0\].when: "),
        ("{txt: a}", r"roles.planner\[0\].txt: unknown key; did you mean \"text\""),
    ],
)
def test_mistakes_are_found_when_the_file_is_loaded(tmp_path: Path, entry: str, place: str) -> None:
    path = write(tmp_path, "wrong", f"name: wrong\nroles: {{planner: [{entry}]}}\n")
    with pytest.raises(DefinitionError, match=place) as caught:
        load_playbook("wrong", tmp_path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("name", list_playbooks())
def test_every_shipped_playbook_loads(name: str) -> None:
    playbook = load_playbook(name)
    assert playbook.name == name
    assert playbook.description
    assert playbook.goal
