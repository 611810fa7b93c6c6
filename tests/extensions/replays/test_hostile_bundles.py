"""A bundle that a stranger packed to fill the disk, to lead elsewhere or to hang: it is refused with its reason.

Nothing of it runs, and nothing is written outside its folder.
"""

from __future__ import annotations

import hashlib
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from codex_multi_role.errors import CodexMultiRoleError
from codex_multi_role.extensions.replays.verifying import verify_bundle
from codex_multi_role.workspace.git import Git
from codex_multi_role.workspace.trees import write_commit
from tests.support.bombs import (
    bomb,
    folders_of_other_modes,
    make_blob,
    make_tree,
    many_large,
    nested,
    one_file,
    under_modes,
    zip_of,
)
from tests.support.bundles import Parts

Edit = Callable[[Parts], None]


@pytest.fixture(autouse=True)
def _only_below(tmp_path: Path) -> Iterator[None]:
    """Nothing that is called so appears anywhere near."""
    yield
    assert not [path for path in (*tmp_path.parent.glob("*evil*"), *tmp_path.rglob("evil")) if path.is_file()]


def first_state(make: Callable[[Git], str]) -> Edit:
    return lambda parts: parts.replace_state(parts.observed["first"], make(parts.states))


def later_state(parts: Parts) -> None:
    parts.replace_state(parts.observed["changes"][1]["after"], bomb(parts.states))


def state_of_a_copy(parts: Parts) -> None:
    change = {**parts.observed["changes"][0], "after": bomb(parts.states)}
    parts.observed["in_copies"] = [change]


def state_without_its_blob(git: Git) -> str:
    return make_tree(git, f"100644 blob {'e' * 40}\tfile")


def commit_as_state(git: Git) -> str:
    return write_commit(git, one_file(git), ())


def pack_of_a_large_delta() -> bytes:
    """Sixteen megabytes of zeros, and two hundred times the same: a few bytes of copy instructions."""
    base = bytes(0xFFFFFF)
    oid = hashlib.sha1(b"blob %d\0" % len(base) + base).digest()
    delta = varint(len(base)) + varint(200 * len(base)) + b"\xf0\xff\xff\xff" * 200
    packed = entry(3, base) + entry(7, delta, oid)
    content = b"PACK" + struct.pack(">II", 2, 2) + packed
    return content + hashlib.sha1(content).digest()


def varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def entry(kind: int, content: bytes, base: bytes = b"") -> bytes:
    size = len(content)
    head = bytearray([kind << 4 | size & 0xF])
    size >>= 4
    while size:
        head[-1] |= 0x80
        head.append(size & 0x7F)
        size >>= 7
    return bytes(head) + base + zlib.compress(content)


def claim(**fields: Any) -> Edit:
    return lambda parts: parts.claims.update(fields)


def header(**fields: Any) -> Edit:
    return lambda parts: parts.recording[0].update(fields)


def more(**files: bytes) -> Edit:
    return lambda parts: parts.more.update({f"team/{name}": content for name, content in files.items()})


def deep_json(parts: Parts) -> None:
    value: list[Any] = []
    for _ in range(900):
        value = [value]
    parts.recording.insert(1, {"type": "exchange", "items": value})


def team_file(text: str) -> Edit:
    return lambda parts: parts.team.update({"team/catalog.yaml": text})


ALIASES = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
BUNDLES: dict[str, tuple[Edit, str]] = {
    "nested_trees": (first_state(bomb), "more than 100000 files"),
    "nested_trees_without_files": (first_state(lambda git: nested(git, make_tree(git), 40)), "more than 100000 files"),
    "folders_of_other_modes": (first_state(folders_of_other_modes), "its states are damaged"),
    "folders_named_as_files": (first_state(lambda git: under_modes(git, "100644")), "its states are damaged"),
    "deep_tree": (first_state(lambda git: nested(git, one_file(git), 150, "a")), "100 nested folders"),
    "one_large_blob_many_times": (first_state(many_large), "1024 MiB"),
    "later_state": (later_state, "more than 100000 files"),
    "state_of_a_copy": (state_of_a_copy, "more than 100000 files"),
    "state_without_its_blob": (first_state(state_without_its_blob), "its states are damaged"),
    "endless_seconds": (claim(test_seconds=1e308), "claims.json: test_seconds: Input should be less than or equal"),
    "no_seconds": (claim(test_seconds=0.0), "claims.json: test_seconds: Input should be greater than"),
    "infinite_seconds": (claim(test_seconds=float("inf")), "claims.json: test_seconds: "),
    "absolute_catalog": (claim(catalog_file="/etc/passwd"), "it has no team//etc/passwd"),
    "catalog_above": (claim(catalog_file="../../evil"), "it has no team/../../evil"),
    "file_below_a_file": (lambda parts: parts.more.update({"team/catalog.yaml/evil": b""}), "a file below a file"),
    "long_name": (more(**{"e" * 300: b""}), "a name that is too long"),
    "long_path": (more(**{"/".join(["e" * 200] * 6): b""}), "a name that is too long"),
    "deep_path": (more(**{"/".join("e" * 120): b""}), "100 nested folders"),
    "many_cycles_as_text": (header(cycles="9" * 9), "cycles: Input should be a valid integer"),
    "number_of_many_digits": (lambda parts: parts.recording.insert(1, {"n": "DIGITS"}), "is not a bundle"),
    "nested_answer": (deep_json, ""),
    "catalog_of_aliases": (team_file(ALIASES), "catalog.yaml"),
    "flow_elsewhere": (header(flow="../../../etc/passwd"), ""),
    "lines_of_no_kind": (
        lambda parts: parts.recording.insert(1, {"type": "evil"}),
        "lines that no run writes: lines 2",
    ),
    "line_that_is_a_list": (
        lambda parts: parts.recording.insert(1, cast(Any, ["evil"])),
        "lines that no run writes: lines 2",
    ),
    "second_header": (lambda p: p.recording.insert(2, p.recording[0]), "lines that no run writes: lines 3"),
    "end_before_the_end": (lambda p: p.recording.insert(1, p.ended), "lines that no run writes: lines 2"),
    "commit_as_state": (first_state(commit_as_state), "is claimed, but not in the bundle"),
    "blob_as_state": (first_state(lambda git: make_blob(git, b"x")), "is claimed, but not in the bundle"),
}


def reasons(path: Path) -> str:
    """Why the bundle is refused, before anything of it runs."""
    ran: list[str] = []
    try:
        result = verify_bundle(path, {}, on_command=ran.append)
    except CodexMultiRoleError as error:
        assert not ran
        return str(error)
    assert not ran
    assert result.exit_code == 1
    return "\n".join(line.text for line in result.lines if line.status == "differs")


@pytest.mark.real
@pytest.mark.usefixtures("scripted_codex")
@pytest.mark.parametrize("name", BUNDLES)
def test_hostile_bundle_is_refused_before_it_runs(name: str, shop_bundle: Path, tmp_path: Path) -> None:
    edit, words = BUNDLES[name]
    parts = Parts.of(shop_bundle, tmp_path / "parts")
    edit(parts)
    found = reasons(parts.write(tmp_path / "hostile.bundle", {'"DIGITS"': "1" * 5000}))
    assert words in found
    assert found


@pytest.mark.real
@pytest.mark.usefixtures("scripted_codex")
def test_delta_of_gigabytes_is_refused(shop_bundle: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(shop_bundle) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    path = tmp_path / "hostile.bundle"
    path.write_bytes(zip_of(*{**files, "states.pack": pack_of_a_large_delta()}.items()))
    assert "over limit" in reasons(path)
