"""Disks of a test's own, small, read-only or blind to case, without being root: only the test's commands see them."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

BALLAST = "ballast"
FOLDER = "project"
REPOSITORY = Path(__file__).parents[2]
MOUNT = 'mount -t tmpfs -o "size=$2" none "$1" && mkdir "$1/$3" && echo mounted && exec cat'
PERSON = ("-c", "user.name=somebody", "-c", "user.email=somebody@localhost")
"""Options of git: who commits."""
NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount", "--propagation", "private")


def fill(folder: Path) -> None:
    """Leave not a byte free on the disk of ``folder``."""
    with suppress(OSError), (folder / BALLAST).open("ab", buffering=0) as file:
        while True:
            file.write(b"\0" * 65536)


@dataclass(frozen=True)
class Disk:
    """A file system that exists for the commands of `inside`. ``holder``: the process it lives with.

    ``name``: of the one folder on it, or nothing for its top.
    """

    mounted_at: Path
    holder: int
    name: str = FOLDER

    @property
    def folder(self) -> Path:
        """The one folder on it, as this process sees it."""
        return Path(f"/proc/{self.holder}/root{self.mounted_at}") / self.name

    def inside(self, *command: str) -> list[str]:
        """``command``, to be run in that folder by a process that sees the disk, with paths as that one sees them."""
        there = str(self.mounted_at / self.name)
        enter = ["nsenter", f"--target={self.holder}", "--user", "--mount", "--preserve-credentials"]
        return [*enter, "sh", "-c", 'cd "$0" && exec "$@"', there, *self.translated(*command)]

    def translated(self, *command: str) -> list[str]:
        """``command`` with paths as a process sees them that sees the disk."""
        return [part.replace(str(self.folder), str(self.mounted_at / self.name)) for part in command]

    def fill(self) -> None:
        """Leave not a byte free."""
        fill(self.folder)

    def free(self) -> None:
        """Take back what `fill` wrote."""
        (self.folder / BALLAST).unlink(missing_ok=True)

    def make_read_only(self) -> None:
        """Raises ``CalledProcessError`` if a file on it is being written."""
        self._mount_again("ro")

    def make_writable(self) -> None:
        self._mount_again("rw")

    def _mount_again(self, how: str) -> None:
        subprocess.run(self.inside("mount", "-o", f"remount,{how}", str(self.mounted_at)), check=True, timeout=30)


@contextmanager
def small_disk(mount_point: Path, megabytes: int) -> Iterator[Disk]:
    """A disk of that size. Raises `OSError` where the system gives no namespaces."""
    command = ["sh", "-c", MOUNT, "sh", str(mount_point), f"{megabytes}m", FOLDER]
    with _held(command) as holder:
        yield Disk(mount_point, holder)


@contextmanager
def folding_disk(mount_point: Path, source: Path) -> Iterator[Disk]:
    """``source`` as a folder that knows its files by any case of their names. Raises `OSError` as `small_disk`."""
    with _held([sys.executable, "-m", "tests.support.folding", str(source), str(mount_point)]) as holder:
        yield Disk(mount_point, holder, "")


@contextmanager
def _held(command: list[str]) -> Iterator[int]:
    """A process of ``command`` in a namespace of its own, once it says that it has mounted what it is for."""
    if not all(map(shutil.which, ("unshare", "nsenter"))):
        raise OSError(errno.ENOSYS, "there are no unshare and nsenter")
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*NAMESPACE, *command], stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=REPOSITORY
    ) as holder:
        assert holder.stdout is not None
        assert holder.stderr is not None
        if holder.stdout.readline() != "mounted\n":
            raise OSError(errno.EPERM, holder.stderr.read().strip())
        try:
            yield holder.pid
        finally:
            holder.kill()


def git_in(workspace: Path, disk: Disk | None, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run git in ``workspace``, by a process that sees the ``disk`` of one's own that it lies on."""
    command = ["git", "-C", str(workspace), *arguments]
    return subprocess.run(disk.inside(*command) if disk else command, capture_output=True, text=True, check=False)
