"""The one place that unpacks what a stranger packed: archives, compressed data and trees of git, within a budget.

Declared sizes may be wrong, so everything is counted while it is unpacked, before any of it is written.
"""

from __future__ import annotations

import io
import os
import re
import stat
import tarfile
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from graphlib import TopologicalSorter
from pathlib import Path, PurePosixPath
from subprocess import CompletedProcess
from typing import IO, Any, Literal, cast
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

from codex_multi_role.errors import how_to_add
from codex_multi_role.host.atomic import make_folder, storage_errors

ZIP, SEVEN_ZIP = b"PK\x03\x04", b"7z\xbc\xaf\x27\x1c"
"""How such archives begin."""
GZIP = 16 + zlib.MAX_WBITS
MAX_NAME_BYTES, MAX_PATH_BYTES = 255, 1024
_ZIP_ENTRY = b"PK\x01\x02"
_CHUNK_BYTES = 1024 * 1024
_UNSAFE = re.compile(r"[\\:\0]")

Kind = Literal["file", "folder", "link"]
Member = tuple[str, Kind, Callable[[], IO[Any]]]  # its name, what it is, and how a file is opened
RunGit = Callable[..., CompletedProcess[bytes]]  # `Git.run` of a repository


class UnpackingRefused(ValueError):
    """Why something is not unpacked: it is damaged, exceeds its budget, or has a name that leads elsewhere."""


@dataclass(frozen=True)
class UnpackBudget:
    """The most that one thing may take. ``max_depth``: folders in folders."""

    max_bytes: int
    max_entries: int
    max_depth: int
    max_seconds: float


class Charges:
    """What has been unpacked so far, including what is about to be."""

    def __init__(self, budget: UnpackBudget) -> None:
        self._budget = budget
        self._bytes = self._entries = 0
        self._end = time.monotonic() + budget.max_seconds

    def add(self, size: int = 0, entries: int = 0, depth: int = 0) -> None:
        """Raise `UnpackingRefused` if that exceeds the budget."""
        self._bytes += size
        self._entries += entries
        budget = self._budget
        if self._entries > budget.max_entries or self._bytes > budget.max_bytes or depth > budget.max_depth:
            most = f"{budget.max_entries} files, {budget.max_bytes // 2**20} MiB or {budget.max_depth} nested folders"
            raise UnpackingRefused(f"it has more than {most}")
        if time.monotonic() > self._end:
            raise UnpackingRefused(f"unpacking took longer than {budget.max_seconds:.0f} s")


def unpack_zip(data: bytes, budget: UnpackBudget) -> dict[str, bytes]:
    """The files of a zip archive. Raises `UnpackingRefused`."""
    with _refusing():
        Charges(budget).add(entries=data.count(_ZIP_ENTRY))  # they are read into memory at once
        with ZipFile(io.BytesIO(data)) as archive:
            if any(each.compress_type not in (ZIP_STORED, ZIP_DEFLATED) for each in archive.infolist()):
                raise UnpackingRefused("it is neither stored nor deflated")  # others inflate without a bound
            entries = [(each, stat.S_ISLNK(each.external_attr >> 16)) for each in archive.infolist()]
            members = ((e.filename, _kind(e.is_dir(), is_link), partial(archive.open, e)) for e, is_link in entries)
            return collect(members, budget)


def unpack_tar(data: bytes, budget: UnpackBudget) -> dict[str, bytes]:
    """The files of a tar archive that is not compressed. Raises `UnpackingRefused`."""
    with _refusing(), tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        members = ((e.name, _kind(e.isdir(), not e.isreg()), partial(archive.extractfile, e)) for e in archive)
        return collect(cast(Iterator[Member], members), budget)


def unpack_seven_zip(data: bytes, budget: UnpackBudget) -> dict[str, bytes]:
    """The files of a 7z archive. Its library counts as it unpacks. Raises `UnpackingRefused`."""
    try:
        from py7zr import SevenZipFile  # as above
        from py7zr.io import BytesIOFactory
    except ModuleNotFoundError as error:
        raise UnpackingRefused(f"a 7z archive needs {error.name}: {how_to_add('7z')}") from error
    contents = BytesIOFactory(budget.max_bytes)
    with _refusing(), SevenZipFile(io.BytesIO(data), max_extract_size=budget.max_bytes) as archive:
        entries = archive.list()
        kinds = {each.filename: _kind(each.is_directory, each.is_symlink) for each in entries}
        Charges(budget).add(sum(each.uncompressed for each in entries), len(entries))
        if len(kinds) < len(entries):
            raise UnpackingRefused("it has two entries of the same name")
        collect(((name, kind, io.BytesIO) for name, kind in kinds.items()), budget)
        archive.extractall(factory=contents)
        return {name: product.read() for name, product in contents.products.items()}


def collect(members: Iterable[Member], budget: UnpackBudget) -> dict[str, bytes]:
    """The files among ``members`` by name. Raises `UnpackingRefused` for links and names that lead elsewhere, too."""
    charges, files = Charges(budget), dict[str, bytes]()
    for name, kind, open_file in members:
        path = _checked(name.rstrip("/") if kind == "folder" else name)
        charges.add(entries=1, depth=len(path.parts) - 1)
        if kind == "link":
            raise UnpackingRefused(f"it must not contain links: {name!r}")
        if kind == "file":
            if name in files:
                raise UnpackingRefused(f"it has two files {name}")
            with open_file() as file:
                pieces = []
                while piece := file.read(_CHUNK_BYTES):
                    charges.add(len(piece))
                    pieces.append(piece)
            files[name] = b"".join(pieces)
    if inner := next((name for name in files for each in PurePosixPath(name).parents if str(each) in files), None):
        raise UnpackingRefused(f"it has a file below a file: {inner!r}")
    return files


def inflate(data: bytes, budget: UnpackBudget, window: int = zlib.MAX_WBITS) -> bytes:
    """``data`` as `zlib.compress` packed it, or with the ``window`` `GZIP`. Raises `UnpackingRefused`."""
    with _refusing():
        inflater = zlib.decompressobj(window)
        content = inflater.decompress(data, budget.max_bytes + 1)
        Charges(budget).add(len(content))
        if not inflater.eof:
            raise UnpackingRefused("it is cut short")
    return content


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write unpacked files below ``folder``; scripts can be executed. Raises `StorageError`."""
    for name, content in files.items():
        path = folder / name
        make_folder(path.parent)
        with storage_errors(path):
            path.write_bytes(content)
            path.chmod(0o755 if content.startswith(b"#!") else 0o644)


def measure_trees(run: RunGit, trees: Collection[str], budget: UnpackBudget) -> None:
    """Raise `UnpackingRefused` if one of the ``trees``, which must exist, exceeds the budget.

    Git must not walk them before: a few small trees that hold each other many times stand for any number of files.
    Here each distinct tree is read once.
    """
    inside = _read_trees(run, trees, budget)
    files = (stat.S_IFREG, stat.S_IFLNK)  # anything else is a repository, which git leaves empty
    blobs = sorted({oid for entries in inside.values() for kind, oid in entries if kind in files})
    sizes = dict(zip(blobs, (size for _, size in _described(run, blobs)), strict=True))
    below = {tree: [oid for kind, oid in entries if kind == stat.S_IFDIR] for tree, entries in inside.items()}
    weights: dict[str, tuple[int, int, int]] = {}
    for tree in TopologicalSorter(below).static_order():
        weight, count, depth = zip(*(weights[oid] for oid in below[tree]), (0, 0, -1), strict=True)
        size = sum(sizes.get(oid, 0) for _, oid in inside[tree])
        weights[tree] = (size + sum(weight), len(inside[tree]) + sum(count), 1 + max(depth))
    for tree in trees:
        Charges(budget).add(*weights[tree])


def _read_trees(run: RunGit, trees: Collection[str], budget: UnpackBudget) -> dict[str, list[tuple[int, str]]]:
    """The type and object of every entry of ``trees`` and all trees in them, by tree."""
    charges, inside, level, depth = Charges(budget), dict[str, list[tuple[int, str]]](), sorted({*trees}), 0
    while level:
        described = _described(run, level)
        charges.add(16 * sum(size for _, size in described), depth=depth)  # their memory here
        printed = io.BytesIO(run("cat-file", "--batch", stdin="\n".join(level).encode()).stdout)
        for tree, (type_, size) in zip(level, described, strict=True):
            printed.readline()  # waits: for nothing: bytes in memory
            content, _ = printed.read(size), printed.read(1)
            if type_ != "tree":
                raise UnpackingRefused("its states are damaged: what is named as a folder is none")
            found = re.findall(rb"([0-7]+) ([^\0]+)\0(.{%d})" % (len(tree) // 2), content, re.DOTALL)
            if any(len(name) > MAX_NAME_BYTES for _, name, _ in found):
                raise UnpackingRefused("it has a name that is too long")
            inside[tree] = [(stat.S_IFMT(int(mode, 8) & 0xFFFF), oid.hex()) for mode, _, oid in found]  # as git does
        below = {oid for tree in level for kind, oid in inside[tree] if kind == stat.S_IFDIR}
        level, depth = sorted(below - inside.keys()), depth + 1
    return inside


def _described(run: RunGit, objects: Collection[str]) -> list[tuple[str, int]]:
    """The type and size of each object."""
    named = "\n".join(objects).encode()
    lines = run("cat-file", "--batch-check=%(objecttype) %(objectsize)", stdin=named).stdout.decode().splitlines()
    if any(line.endswith(" missing") for line in lines):
        raise UnpackingRefused("its states are damaged: an object is missing")
    return [(kind, int(size)) for kind, size in map(str.split, lines)]


def _checked(name: str) -> PurePosixPath:
    """Raise `UnpackingRefused` unless it is the plain path of something below the folder."""
    path = PurePosixPath(name)
    is_plain = path.as_posix() == name and bool(path.parts) and not path.is_absolute() and ".." not in path.parts
    is_long = len(os.fsencode(name)) > MAX_PATH_BYTES or any(len(os.fsencode(p)) > MAX_NAME_BYTES for p in path.parts)
    if is_long:
        raise UnpackingRefused(f"it has a name that is too long: {name[:MAX_NAME_BYTES]!r}")
    if not is_plain or _UNSAFE.search(name):
        raise UnpackingRefused(f"it has a file that does not belong there: {name[:MAX_NAME_BYTES]!r}")
    return path


def _kind(is_folder: bool, is_link: bool) -> Kind:
    return "folder" if is_folder else "link" if is_link else "file"


@contextmanager
def _refusing() -> Iterator[None]:
    """A damaged archive raises errors of many kinds, few of them the libraries' own."""
    try:
        yield
    except UnpackingRefused:
        raise
    except Exception as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or str(error) or "damaged"
        raise UnpackingRefused(reason) from error
