"""Skills: found beside the catalog, read within bounds, and never written outside their folder."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codex_multi_role.catalog import RoleSpecCatalog, build_prompt
from codex_multi_role.catalog.skills import BUDGET, find_skill, read_skill
from codex_multi_role.errors import DefinitionError
from codex_multi_role.host.unpacking import write_files
from tests.support.catalogs import SKILL as TEXT
from tests.support.catalogs import Write, problem_of, seven_zipped, zipped
from tests.support.catalogs import files_of_skill as files_of

Pack = Callable[[dict[str, bytes]], bytes]
PACK = pytest.mark.parametrize("pack", [zipped, seven_zipped])


@PACK
@pytest.mark.parametrize("prefix", ["", "draw/"])
def test_archive_is_read_whole(write: Write, pack: Pack, prefix: str, tmp_path: Path) -> None:
    files = {**files_of("draw", prefix), f"{prefix}empty.txt": b"", "__MACOSX/x": b"x"}
    skill = read_skill(write(pack(files), "skills/draw.skill"))
    assert (skill.name, skill.kept_name) == ("draw", "draw")
    assert skill.files == {**files_of("draw"), "empty.txt": b""}
    write_files(tmp_path / "out", skill.files)
    assert (tmp_path / "out/SKILL.md").read_bytes() == files_of("draw")["SKILL.md"]
    assert stat.S_IMODE((tmp_path / "out/scripts/run.sh").stat().st_mode) == 0o755


@pytest.mark.parametrize(
    ("pack", "name"),
    [
        (zipped, "/etc/outside"),  # a 7z writer makes it relative
        *((pack, name) for pack in (zipped, seven_zipped) for name in ("../../o", "a/../../o", "c:\\o", "a\\..\\o")),
    ],
)
def test_entry_outside_the_folder_is_refused(
    write: Write, monkeypatch: pytest.MonkeyPatch, pack: Pack, name: str
) -> None:
    if pack is seven_zipped:
        pytest.importorskip("py7zr", reason="the extra [7z] is not installed")
        monkeypatch.setattr("py7zr.py7zr.check_archive_path", lambda path: True)  # it would not write such an archive
    archive = write(pack({**files_of("draw"), name: b"x"}), "skills/draw.skill")
    message = problem_of(lambda: read_skill(archive))
    assert message.startswith(f"{archive}: ")
    assert "cannot be unpacked" in message


def test_links_are_refused(write: Write, tmp_path: Path) -> None:
    link = zipfile.ZipInfo("passwords")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    data = io.BytesIO(zipped(files_of("draw")))
    with zipfile.ZipFile(data, "a") as archive:
        archive.writestr(link, "/etc/passwd")
    assert "links" in problem_of(lambda: read_skill(write(data.getvalue(), "skills/draw.skill")))
    write(TEXT.format(name="paint"), "skills/paint/SKILL.md")
    (tmp_path / "skills/paint/passwords").symlink_to("/etc/passwd")
    assert "links" in problem_of(lambda: read_skill(tmp_path / "skills/paint"))


@PACK
def test_what_unpacks_to_too_much_is_refused(write: Write, pack: Pack) -> None:
    large = {**files_of("draw"), "large": bytes(BUDGET.max_bytes)}
    many = {**files_of("draw"), **{f"file{number}": b"" for number in range(BUDGET.max_entries)}}
    for files in (large, many):
        archive = write(pack(files), "skills/draw.skill")
        assert "it has more than 500 files, 10 MiB" in problem_of(partial(read_skill, archive))


WHOLE = st.deferred(lambda: st.sampled_from([pack(files_of("draw")) for pack in (zipped, seven_zipped)]))


@settings(deadline=None)
@given(st.binary(max_size=200), WHOLE, st.floats(0, 1))
def test_damaged_archive_is_an_error_with_its_name(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, whole: bytes, where: float
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.skill"
    at = int(where * len(whole))
    path.write_bytes(whole[:at] + noise + whole[at + len(noise) :])
    message = problem_of(lambda: read_skill(path))  # whatever else it raises fails the test
    assert not message or message.startswith(str(path))


@pytest.mark.parametrize("text", ["none", "---\nname: x\n---\n", "---\n- a\n---\n", TEXT.format(name="'a b'")])
def test_skill_that_codex_would_ignore_is_an_error(write: Write, text: str) -> None:
    assert "needs a name and a description" in problem_of(lambda: read_skill(write(text, "skills/x/SKILL.md").parent))


def test_unknown_skill_is_named_with_its_line_and_the_nearest(write: Write) -> None:
    write(TEXT.format(name="draw"), "skills/draw/SKILL.md")
    role = write("name: a\nprompt_text: A\nskills:\n  - draw\n  - drow\n", "roles/a.yaml")
    path = write("version: 1\nroles:\n  - role_file: roles/a.yaml\n")
    with pytest.raises(DefinitionError) as caught:
        RoleSpecCatalog.load(path)
    assert str(caught.value) == f'{role}:5:5: skills[1]: unknown skill "drow"; did you mean "draw"?'
    assert caught.value.hint.startswith("Known: draw")
    path = write("version: 1\nroles:\n  - name: b\n    prompt_text: B\n    skills: [x]\n")
    assert problem_of(lambda: RoleSpecCatalog.load(path)).startswith(f"{path}:5:14: role b: skills[0]: ")


def test_skill_appears_in_the_prompt_by_its_declared_name(write: Write) -> None:
    """The archive and the skill in it may have different names; a role may use either."""
    write(seven_zipped(files_of("painter")), "skills/draw.skill")
    roles = "{name: a, prompt_text: A, skills: [draw]}, {name: b, prompt_text: B, skills: [$painter]}"
    catalog = RoleSpecCatalog.load(write(f"version: 1\nroles: [{roles}]\n"))
    assert [role.skills for role in catalog.roles] == [("painter",), ("painter",)]
    assert "- Use these skills: $painter\n" in build_prompt(catalog.general_prompts, catalog.role("a"), "g")
    assert [path.name for path in catalog.files] == ["catalog.yaml", "draw.skill"]


def test_projects_and_the_users_skills_are_found(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    catalog = write("version: 1", "project/roles/catalog.yaml")
    (tmp_path / "project/.git").mkdir()
    for folder in ("project/.agents", "project/.codex", "home/.agents", "codex", ".agents"):
        name = folder.replace("/", "").replace(".", "")
        write(TEXT.format(name=name), f"{folder}/skills/{name}/SKILL.md")
    found = {name for name in ("projectagents", "projectcodex", "homeagents", "codex") if find_skill(name, catalog)}
    assert found == {"projectagents", "projectcodex", "homeagents", "codex"}
    assert find_skill("agents", catalog) is None  # above the repository, where anybody may write
