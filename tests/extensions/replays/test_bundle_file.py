"""Only a whole bundle of this version is unpacked, and nothing outside the folder that is meant for it."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.replays.bundle_file import BUDGET
from codex_multi_role.extensions.replays.verifying import verify_bundle
from tests.support.bundles import Parts

pytestmark = [pytest.mark.usefixtures("scripted_codex"), pytest.mark.real]


def refusal(path: Path) -> str:
    with pytest.raises(UsageError) as refused:
        verify_bundle(path, {})
    return str(refused.value)


@pytest.mark.parametrize(
    "name", ["team/../../evil", "team/./x", "team//x", "/evil", "../evil", "team\\..\\evil", "other.txt", "team/c:x"]
)
def test_file_outside_the_folder_is_refused(name: str, shop_bundle: Path, tmp_path: Path) -> None:
    parts = Parts.of(shop_bundle, tmp_path / "parts")
    parts.more[name] = b"evil"
    assert "a file that does not belong there" in refusal(parts.write(tmp_path / "evil.bundle"))
    assert not list(tmp_path.rglob("evil"))


EDITS: dict[str, Callable[[Parts], object]] = {
    "claims.json: made_by: Extra inputs are not permitted": lambda parts: parts.claims.update(made_by="me"),
    "claims.json: observed.turns: Field required": lambda parts: parts.observed.pop("turns"),
    "claims.json: observed.first: String should match": lambda parts: parts.observed.update(first="--help"),
    "claims.json: version: Input should be 1": lambda parts: parts.claims.update(version=2),
    "it has no team/elsewhere.yaml": lambda parts: parts.claims.update(catalog_file="elsewhere.yaml"),
    "it has no team/../claims.json": lambda parts: parts.claims.update(catalog_file="../claims.json"),
    f"it has more than {BUDGET.max_entries} files": lambda parts: parts.more.update(
        {f"team/{number}": b"" for number in range(BUDGET.max_entries)}
    ),
}


@pytest.mark.parametrize("words", EDITS)
def test_claims_with_other_fields_are_refused(words: str, shop_bundle: Path, tmp_path: Path) -> None:
    parts = Parts.of(shop_bundle, tmp_path / "parts")
    EDITS[words](parts)
    assert words in refusal(parts.write(tmp_path / "edited.bundle"))


def test_damaged_archive_is_refused(shop_bundle: Path, tmp_path: Path) -> None:
    content, path = shop_bundle.read_bytes(), tmp_path / "damaged.bundle"
    for damaged in (b"", content[:-100], content[: len(content) // 2], b"PK" + content[50:]):
        path.write_bytes(damaged)
        assert "is not a bundle" in refusal(path)
    with zipfile.ZipFile(shop_bundle) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    for name, words in (("states.pack", "its states are damaged"), ("recording.ndjson", "not valid JSON")):
        with zipfile.ZipFile(path, "w") as archive:
            for each, text in files.items():
                archive.writestr(each, text[:20] + b"\n" + text[20:] if each == name else text)
        assert words in refusal(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("claims.json", "{}")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("claims.json", "{}")
    assert "it has two files claims.json" in refusal(path)


@pytest.mark.parametrize("name", [".git", "..", "a/../../evil"])
def test_state_with_a_path_that_leads_elsewhere_is_refused(name: str, shop_bundle: Path, tmp_path: Path) -> None:
    parts = Parts.of(shop_bundle, tmp_path / "parts")
    evil = parts.states.run("hash-object", "-w", "--stdin", stdin=b"evil").stdout.decode().strip()
    entry = f"100644 {name}\0".encode() + bytes.fromhex(evil)
    made = parts.states.run("hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=entry)
    parts.replace_state(parts.observed["first"], made.stdout.decode().strip())
    assert "its states are damaged" in refusal(parts.write(tmp_path / "evil.bundle"))
    assert not list(tmp_path.rglob("evil"))
