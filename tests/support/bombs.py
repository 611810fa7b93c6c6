"""What is small when packed and has no end, or leads elsewhere, when unpacked."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from codex_multi_role.workspace.git import Git

MANY = "abcdefghij"


def make_tree(git: Git, *entries: str) -> str:
    """A tree of lines as `git mktree` reads them."""
    return git.run("mktree", "--missing", stdin="\n".join(entries).encode()).stdout.decode().strip()


def make_blob(git: Git, content: bytes) -> str:
    return git.run("hash-object", "-w", "--stdin", stdin=content).stdout.decode().strip()


def nested(git: Git, inner: str, levels: int, names: str = MANY) -> str:
    """``inner`` in folders in folders: each holds the one below it once per name."""
    for _ in range(levels):
        inner = make_tree(git, *(f"040000 tree {inner}\t{name}" for name in names))
    return inner


def zip_of(*members: tuple[str, bytes], mode: int = 0o100644, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as archive:
        for name, content in members:
            info = zipfile.ZipInfo(name)
            info.external_attr, info.compress_type = mode << 16, method
            archive.writestr(info, content)
    return data.getvalue()


def tar_of(*members: tuple[str, bytes], kind: bytes = tarfile.REGTYPE, mode: str = "w") -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.type, info.size, info.linkname = kind, len(content), "/etc/passwd"
            archive.addfile(info, io.BytesIO(content))
    return data.getvalue()


def one_file(git: Git) -> str:
    return make_tree(git, f"100644 blob {make_blob(git, b'x')}\tfile")


def bomb(git: Git) -> str:
    return nested(git, one_file(git), 40)


def raw_tree(git: Git, *entries: tuple[str, str]) -> str:
    """A tree of modes and objects as they are, each with a letter as its name."""
    content = b"".join(
        f"{mode} {name}\0".encode() + bytes.fromhex(oid)
        for name, (mode, oid) in zip("abcdefghij", entries, strict=False)
    )
    made = git.run("hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=content)
    return made.stdout.decode().strip()


def under_modes(git: Git, *modes: str) -> str:
    inner = one_file(git)
    for level in range(40):
        inner = raw_tree(git, *[(modes[level % len(modes)], inner)] * 10)
    return inner


def folders_of_other_modes(git: Git) -> str:
    """Git takes many modes for folders, also one that is too large for its number."""
    return under_modes(git, "40755", "040000", "41777", "20000040000")


@pytest.fixture
def only_below(tmp_path: Path) -> Iterator[None]:
    """Nothing that is called so appears anywhere near."""
    yield
    assert not [path for path in (*tmp_path.parent.glob("*evil*"), *tmp_path.rglob("evil")) if path.is_file()]
