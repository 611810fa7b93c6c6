"""A folder that knows a file by any case of its name, as macOS and Windows do: served by FUSE, from another folder.

    python -m tests.support.folding SOURCE MOUNT_POINT

Mounts ``MOUNT_POINT``, says ``mounted``, and serves it until it is killed. Names keep the case they were made with. The
kernel is made to remember nothing, so that every name is looked up here. Source: the kernel's ``linux/fuse.h``, 7.31.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = 1
MOST_BYTES = 128 * 1024
SET_MODE, SET_SIZE, SET_ATIME, SET_MTIME, SET_HANDLE, ATIME_NOW, MTIME_NOW = 1, 8, 16, 32, 64, 128, 256
HAS_HANDLE = 1
FORGET, BATCH_FORGET, INTERRUPT = 2, 42, 36
KERNEL_ONLY = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
Answer = bytes


class Folder:
    """Answers requests. A node is a file of ``source``, by its inode there; ``paths`` says where it was seen last."""

    def __init__(self, source: Path) -> None:
        self._paths = {ROOT: source}
        self._ids = {source.lstat().st_ino: ROOT}
        self._last = ROOT
        self.answers: dict[int, Callable[[int, bytes], Answer]] = {
            1: lambda node, body: self._entry(self._at(node, body[:-1])),
            3: self._attributes,
            4: self._change,
            5: lambda node, _: os.fsencode(self._paths[node].readlink()),
            6: self._symlink,
            8: self._make_file,
            9: self._make_folder,
            10: lambda node, body: self._remove(self._at(node, body[:-1]), Path.unlink),
            11: lambda node, body: self._remove(self._at(node, body[:-1]), Path.rmdir),
            12: lambda node, body: self._rename(node, struct.unpack_from("Q", body)[0], body[8:]),
            13: self._link,
            14: lambda node, body: self._opened(self._paths[node], *struct.unpack_from("I", body)),
            15: lambda _, body: self._read(*struct.unpack_from("QQI", body)),
            16: lambda _, body: self._write(body),
            17: lambda _, __: self._statfs(),
            18: lambda _, body: self._close(*struct.unpack_from("Q", body)),
            20: lambda _, __: b"",
            25: lambda _, __: b"",
            26: lambda _, body: self._init(*struct.unpack_from("IIII", body)),
            27: lambda _, __: struct.pack("QII", 0, 0, 0),
            28: lambda node, body: self._names(node, *struct.unpack_from("QQI", body)),
            29: lambda _, __: b"",
            35: self._create,
            45: lambda node, body: self._rename(node, struct.unpack_from("Q", body)[0], body[16:]),
        }

    def _at(self, parent: int, name: bytes) -> Path:
        """Where ``name`` is, in whichever case; as it is written where it is not."""
        folder, wanted = self._paths[parent], os.fsdecode(name)
        found = (each for each in folder.iterdir() if each.name.casefold() == wanted.casefold())
        return next(found, folder / wanted)

    def _entry(self, path: Path) -> Answer:
        status = path.lstat()
        if status.st_ino not in self._ids:
            self._last += 1
            self._ids[status.st_ino] = self._last
        node = self._ids[status.st_ino]
        self._paths[node] = path
        return struct.pack("QQQQII", node, 0, 0, 0, 0, 0) + _attributes_of(node, status)

    def _attributes(self, node: int, body: bytes) -> Answer:
        flags, _, handle = struct.unpack_from("IIQ", body)
        status = os.fstat(handle) if flags & HAS_HANDLE else self._paths[node].lstat()
        return struct.pack("QII", 0, 0, 0) + _attributes_of(node, status)

    def _change(self, node: int, body: bytes) -> Answer:
        valid, _, handle, size, _, atime, mtime, _, atime_ns, mtime_ns, _, mode = struct.unpack_from(
            "IIQQQQQQIIII", body
        )
        path = self._paths[node]
        if valid & SET_MODE:
            path.chmod(stat.S_IMODE(mode))
        if valid & SET_SIZE:
            os.truncate(handle if valid & SET_HANDLE else path, size)
        if valid & (SET_ATIME | SET_MTIME):
            now = path.lstat()
            atime = atime * 10**9 + atime_ns if valid & SET_ATIME and not valid & ATIME_NOW else now.st_atime_ns
            mtime = mtime * 10**9 + mtime_ns if valid & SET_MTIME and not valid & MTIME_NOW else now.st_mtime_ns
            os.utime(path, ns=(atime, mtime), follow_symlinks=False)
        return struct.pack("QII", 0, 0, 0) + _attributes_of(node, path.lstat())

    def _symlink(self, node: int, body: bytes) -> Answer:
        name, target = body[:-1].split(b"\0")
        path = self._at(node, name)
        path.symlink_to(os.fsdecode(target))
        return self._entry(path)

    def _make_file(self, node: int, body: bytes) -> Answer:
        path = self._at(node, body[16:-1])
        os.mknod(path, *struct.unpack_from("II", body))
        return self._entry(path)

    def _make_folder(self, node: int, body: bytes) -> Answer:
        path = self._at(node, body[8:-1])
        path.mkdir(*struct.unpack_from("I", body))
        return self._entry(path)

    def _remove(self, path: Path, remove: Callable[[Path], None]) -> Answer:
        status = path.lstat()
        remove(path)
        if status.st_nlink == 1 or stat.S_ISDIR(status.st_mode):
            self._ids.pop(status.st_ino, None)  # the next file may get that number
        return b""

    def _rename(self, node: int, new_parent: int, names: bytes) -> Answer:
        old, new = names[:-1].split(b"\0")
        source, target = self._at(node, old), self._at(new_parent, new)
        if target == source:
            target = self._paths[new_parent] / os.fsdecode(new)
        elif target.exists() and target.is_file():
            self._remove(target, Path.unlink)
        source.rename(target)
        for each, path in self._paths.items():
            if path.is_relative_to(source):
                self._paths[each] = target / path.relative_to(source)
        return b""

    def _link(self, node: int, body: bytes) -> Answer:
        (old,) = struct.unpack_from("Q", body)
        path = self._at(node, body[8:-1])
        path.hardlink_to(self._paths[old])
        return self._entry(path)

    def _opened(self, path: Path, flags: int, mode: int = 0) -> Answer:
        return struct.pack("QII", os.open(path, flags & ~KERNEL_ONLY | (os.O_CREAT if mode else 0), mode), 0, 0)

    def _create(self, node: int, body: bytes) -> Answer:
        flags, mode = struct.unpack_from("II", body)
        path = self._at(node, body[16:-1])
        opened = self._opened(path, flags, mode)
        return self._entry(path) + opened

    def _read(self, handle: int, offset: int, size: int) -> Answer:
        return os.pread(handle, size, offset)

    def _write(self, body: bytes) -> Answer:
        handle, offset, size = struct.unpack_from("QQI", body)
        return struct.pack("II", os.pwrite(handle, body[40 : 40 + size], offset), 0)

    def _close(self, handle: int) -> Answer:
        os.close(handle)
        return b""

    def _names(self, node: int, _: int, offset: int, size: int) -> Answer:
        told = b""
        for number, path in enumerate(sorted(self._paths[node].iterdir())[offset:], start=offset + 1):
            raw = os.fsencode(path.name)
            status = path.lstat()
            entry = struct.pack("QQII", status.st_ino, number, len(raw), status.st_mode >> 12) + raw
            entry += b"\0" * (-len(entry) % 8)
            if len(told) + len(entry) > size:
                break
            told += entry
        return told

    def _statfs(self) -> Answer:
        now = os.statvfs(self._paths[ROOT])
        counts = (now.f_blocks, now.f_bfree, now.f_bavail, now.f_files, now.f_ffree)
        return struct.pack("QQQQQIIII24x", *counts, now.f_bsize, 255, now.f_frsize, 0)

    def _init(self, major: int, minor: int, read_ahead: int, _: int) -> Answer:
        return struct.pack("IIIIHHIIHHI28x", major, min(minor, 31), read_ahead, 0, 12, 9, MOST_BYTES, 1, 0, 0, 0)


def _attributes_of(node: int, status: os.stat_result) -> bytes:
    times = [divmod(each, 10**9) for each in (status.st_atime_ns, status.st_mtime_ns, status.st_ctime_ns)]
    sizes = (node, status.st_size, status.st_blocks, *(seconds for seconds, _ in times))
    rest = (status.st_mode, status.st_nlink, status.st_uid, status.st_gid, status.st_rdev, status.st_blksize, 0)
    return struct.pack("QQQQQQIIIIIIIIII", *sizes, *(nanoseconds for _, nanoseconds in times), *rest)


def serve(source: Path, mount_point: Path) -> None:
    """Mount ``source`` at ``mount_point`` and answer the kernel for ever. Raises `OSError` if it cannot."""
    channel = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={channel},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},default_permissions"
    library = ctypes.CDLL(None, use_errno=True)
    if library.mount(b"folding", os.fsencode(mount_point), b"fuse.folding", 0, options.encode()):
        raise OSError(ctypes.get_errno(), f"mount: {os.strerror(ctypes.get_errno())}")
    os.write(1, b"mounted\n")
    folder = Folder(source)
    os.umask(0)
    while True:
        request = os.read(channel, MOST_BYTES + 4096)
        _, operation, number, node = struct.unpack_from("IIQQ", request)
        if operation in (FORGET, BATCH_FORGET, INTERRUPT):
            continue
        error, body = 0, b""
        try:
            body = folder.answers[operation](node, request[40:])
        except KeyError:
            error = errno.ENOSYS
        except OSError as failure:
            error = failure.errno or errno.EIO
        os.write(channel, struct.pack("IiQ", 16 + len(body), -error, number) + body)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), Path(sys.argv[2]))
