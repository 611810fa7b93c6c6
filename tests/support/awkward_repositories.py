"""Git repositories as people have them, with a clean status: what their owner's git ignores, skips and converts."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.disks import PERSON
from tests.support.histories import Files
from tests.support.workspaces import Link, Program, write_files

CRLF = "one\r\ntwo\r\n"
FILES: Files = {
    "a.txt": "one\ntwo\nthree\n",
    "src/b.py": "b = 1\n",
    "src/deep/c.bin": bytes(range(256)),
    "docs/guide.md": "guide\n",
    "docs/more/notes.md": "notes\n",
    "run.sh": Program("#!/bin/sh\n"),
    "link": Link("a.txt"),
}
SECRET = "TOKEN=of-the-owner\n"
"""What no state, commit or bundle may have."""


@dataclass(frozen=True)
class Awkward:
    """``workspace``: the folder to work in, at or below ``top``. ``paths``: what is interesting to change."""

    top: Path
    workspace: Path
    paths: tuple[str, ...] = ()

    def git(self, *arguments: str, stdin: bytes = b"", **variables: str) -> bytes:
        return git(self.top, *arguments, stdin=stdin, **variables)

    def added(self, folder: Path) -> str:
        """The tree that the owner's `git add --all` gives in the workspace."""
        index = folder / "index.of-owner"
        shutil.copyfile(
            os.fsdecode(self.git("rev-parse", "--path-format=absolute", "--git-path", "index").strip()), index
        )
        place = str(self.workspace.relative_to(self.top))
        self.git("add", "--all", "--sparse", "--", place, GIT_INDEX_FILE=str(index))
        return self.git("write-tree", GIT_INDEX_FILE=str(index)).decode().strip()


def git(folder: Path, *arguments: str, stdin: bytes = b"", **variables: str) -> bytes:
    command = ["git", *PERSON, "-c", "protocol.file.allow=always", *arguments]
    variables = {**os.environ, **variables}
    done = subprocess.run(command, cwd=folder, input=stdin, env=variables, capture_output=True, check=False)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def awkward(kind: str, folder: Path, rng: random.Random) -> Awkward:
    """A repository of one of `KINDS` in ``folder``, which is also the owner's home."""
    top = folder / "project"
    top.mkdir()
    settings = folder / "settings"
    settings.write_text("")
    os.environ["GIT_CONFIG_GLOBAL"] = str(settings)  # the test restores it
    made = KINDS[kind](top, rng)
    found = git(made.top, "status", "--porcelain", "--ignore-submodules=none")
    assert found == b"", (kind, found)
    return made


def repository(top: Path, files: Files = FILES, *options: str) -> Awkward:
    write_files(top, files)
    git(top, "init", "-q", "-b", "main", *options)
    return committed(top)


def committed(top: Path) -> Awkward:
    git(top, "add", "--all", "--force")
    git(top, "commit", "-q", "-m", "x")
    return Awkward(top, top)


def _nested_rules(top: Path, rng: random.Random) -> Awkward:
    repository(top, {**FILES, "kept/keep.log": "kept\n", "src/build/made.py": "made\n"})
    rules = {
        ".gitignore": "*.log\nbuild/\n!important.log\n\\#hash\ntrail\\ \n",
        "src/.gitignore": "/local\n!*.log\n*.tmp\n",
    }
    write_files(top, {**rules, "kept/.gitignore": "*\n!.gitignore\n", ".env": None})
    committed(top)
    write_files(top, {"x.log": SECRET, "build/y": SECRET, "src/local": SECRET, "src/z.tmp": SECRET, "kept/new": SECRET})
    return Awkward(
        top, top, ("kept/keep.log", "src/build/made.py", "kept/other", "important.log", "src/q.log", "#hash")
    )


def _own_rules(top: Path, rng: random.Random) -> Awkward:
    repository(top, {**FILES, "config.local": "shared\n"})
    (top / ".git/info/exclude").write_bytes(b"\xef\xbb\xbf.env\r\n/private/\nconfig.local\n*.secret\n")
    write_files(top, {".env": SECRET, "src/.env": SECRET, "private/key": SECRET, "a.secret": SECRET})
    return Awkward(top, top, ("config.local", "src/private/open", "b.secret"))


def _rules_of_the_user(top: Path, rng: random.Random) -> Awkward:
    repository(top, {**FILES, "notes.todo": "tracked\n"})
    ignored = top.parent / "ignored everywhere"
    ignored.write_text(".env\n*.todo\n/top-only\n.idea/\n")
    git(top, "config", "--global", "core.excludesFile", str(ignored))
    write_files(top, {".env": SECRET, "x.todo": SECRET, "top-only": SECRET, ".idea/w.xml": SECRET})
    return Awkward(top, top, ("notes.todo", "src/top-only", "src/new.todo"))


def _default_rules_of_the_user(top: Path, rng: random.Random) -> Awkward:
    repository(top)
    write_files(Path(os.environ["XDG_CONFIG_HOME"]), {"git/ignore": ".env\n"})
    write_files(top, {".env": SECRET})
    return Awkward(top, top)


def _subfolder(top: Path, rng: random.Random) -> Awkward:
    below = "packages/app one"
    repository(top, {**{f"{below}/{path}": content for path, content in FILES.items()}, "other/x.txt": "x\n"})
    rules = (
        "*.log",
        f"/{below}/local",
        "packages/*/cache/",
        "**/made",
        "/packages/**/deep/*.o",
        "!keep.log",
        "/other/",
    )
    (top / ".gitignore").write_text("\n".join(rules) + "\n")
    (top / "packages/.gitignore").write_text("/app*/generated\n[a-c]pp one/odd\n")
    (top / ".git/info/exclude").write_text(f"/{below}/.env\n/.env\n")
    committed(top)
    app = top / below
    write_files(app, {"x.log": SECRET, "local": SECRET, "cache/c": SECRET, "src/made": SECRET, "src/deep/d.o": SECRET})
    write_files(app, {"generated": SECRET, "odd": SECRET, ".env": SECRET})
    return Awkward(top, app, ("keep.log", "src/local", "src/cache", "src/odd", "src/.env"))


def _sparse(*options: str) -> Callable[[Path, random.Random], Awkward]:
    def made(top: Path, rng: random.Random) -> Awkward:
        repository(top)
        git(top, "sparse-checkout", "set", *options)
        assert not (top / "docs/guide.md").exists()
        return Awkward(top, top, ("docs/guide.md", "src/new.py"))

    return made


def _skipped(top: Path, rng: random.Random) -> Awkward:
    repository(top, {**FILES, "config.ini": "shared\n", "src/gone.ini": "gone\n"})
    git(top, "update-index", "--skip-worktree", "config.ini", "src/gone.ini")
    write_files(top, {"config.ini": SECRET, "src/gone.ini": None})
    return Awkward(top, top)


def _submodules(top: Path, rng: random.Random) -> Awkward:
    library = top.parent / "library"
    library.mkdir()
    repository(library, {"lib.py": "lib = 1\n"})
    repository(top)
    for name in ("lib", "absent"):
        git(top, "submodule", "--quiet", "add", str(library), f"vendor/{name}")
    committed(top)
    git(top, "submodule", "--quiet", "deinit", "-f", "vendor/absent")
    return Awkward(top, top)


def _line_ends(top: Path, rng: random.Random) -> Awkward:
    """Files whose content in the repository is not what `git add` would make of them, though their status is clean."""
    git(top, "init", "-q", "-b", "main")
    write_files(top, {**FILES, "raw.txt": CRLF, "mixed.txt": "a\r\nb\n", "forced.bat": CRLF})
    git(top, "config", "core.autocrlf", "false")
    committed(top)
    if rng.random() < 0.5:
        git(top, "config", "core.autocrlf", rng.choice(("true", "input")))
    else:
        write_files(top, {".gitattributes": "* text=auto\n*.py eol=crlf\n*.bin -text\n"})
        committed(top)
    git(top, "reset", "--hard", "-q")
    git(top, "status")
    return Awkward(top, top, ("raw.txt", "mixed.txt", "forced.bat", "src/b.py"))


def _other_attributes(top: Path, rng: random.Random) -> Awkward:
    repository(top, {**FILES, "utf16.txt": "text\n".encode("utf-16")})
    attributes = "utf16.txt working-tree-encoding=UTF-16\nsrc/b.py ident\n"
    if rng.random() < 0.5:
        write_files(top, {".gitattributes": attributes})
    else:
        (top / ".git/info/attributes").write_text(attributes)
    write_files(top, {"utf16.txt": "encoded\n".encode("utf-16")})
    committed(top)
    for path in ("utf16.txt", "src/b.py"):
        (top / path).unlink()
    git(top, "checkout", "--", ".")
    return Awkward(top, top, ("src/b.py",))


def _case(top: Path, rng: random.Random) -> Awkward:
    if rng.random() < 0.3:
        repository(top)
        git(top, "config", "core.ignoreCase", "true")
        return Awkward(top, top)
    repository(top, {**FILES, "A.txt": "large\n", "SRC/b.py": "b = 2\n", "Docs/Guide.md": "other\n"})
    return Awkward(top, top, ("A.txt", "SRC/b.py", "a.TXT"))


def _names(top: Path, rng: random.Random) -> Awkward:
    names = (
        "sp ace",
        " lead",
        "trail ",
        "st*r",
        "qu?",
        "[br]",
        "back\\slash",
        "#hash",
        "!not",
        "new\nline",
        "caf\udce9",
    )
    odd = (*names, "tab\tx", ":colon", "-dash", "é/ü.txt", '"quoted"', "\u202eevil")
    repository(top, {**FILES, **{name: f"{number}\n" for number, name in enumerate(odd)}})
    (top / ".git/info/exclude").write_bytes(b"caf\xe9.local\nqu\xff\n*.me\n")
    write_files(top, {"caf\udce9.local": SECRET, "qu\udcff": SECRET, "\u202e.me": SECRET})
    return Awkward(top, top, odd)


def _filter(top: Path, rng: random.Random) -> Awkward:
    """A filter as Git LFS has it, but without a program of its own to install."""
    turn = "tr 'a-zA-Z' 'n-za-mN-ZA-M'"
    for direction in ("clean", "smudge"):
        git(top, "config", "--global", f"filter.turned.{direction}", turn)
    git(top, "config", "--global", "filter.turned.required", "true")
    repository(
        top, {**FILES, "secret.turned": "hidden\n", "src/x.turned": "x\n", ".gitattributes": "*.turned filter=turned\n"}
    )
    return Awkward(top, top, ("secret.turned", "src/x.turned", "new.turned"))


def _large_files(top: Path, rng: random.Random) -> Awkward:
    """Git LFS, where it is installed; otherwise its attributes without it."""
    if shutil.which("git-lfs"):
        git(top, "lfs", "install", "--skip-repo")
    repository(top, {**FILES, "big.dat": bytes(1000), ".gitattributes": "*.dat filter=lfs diff=lfs merge=lfs -text\n"})
    return Awkward(top, top, ("big.dat", "src/new.dat"))


def _tracked_caches(top: Path, rng: random.Random) -> Awkward:
    cached: Files = {"node_modules/x/index.js": "x\n", ".venv/bin/tool": "t\n", "src/__pycache__/b.pyc": b"\x00\x01"}
    repository(top, {**FILES, **cached, ".gitignore": "*.pyc\n"})
    return Awkward(top, top, tuple(cached))


def _linked_worktree(top: Path, rng: random.Random) -> Awkward:
    repository(top, {**FILES, "kept.env": "tracked\n"})
    (top / ".git/info/exclude").write_text("*.env\n")
    place = top.parent / "linked"
    git(top, "worktree", "add", "-q", "-b", "side", str(place))
    write_files(place, {".env": SECRET})
    if rng.random() < 0.5:
        git(place, "sparse-checkout", "set", "src")
    return Awkward(place, place, ("kept.env", "docs/guide.md"))


def _alternates(top: Path, rng: random.Random) -> Awkward:
    repository(source := top.parent / "source")
    git(top.parent, "clone", "-q", "--shared", str(source), str(top))
    return Awkward(top, top)


def _shallow(top: Path, rng: random.Random) -> Awkward:
    repository(source := top.parent / "source")
    git(source, "commit", "-q", "--allow-empty", "-m", "y")
    git(top.parent, "clone", "-q", "--depth=1", f"file://{source}", str(top))
    git(top, "checkout", "-q", "--detach")
    return Awkward(top, top)


def _modes(top: Path, rng: random.Random) -> Awkward:
    repository(top)
    git(top, "config", "core.fileMode", "false")
    (top / "a.txt").chmod(0o755)
    (top / "run.sh").chmod(0o644)
    return Awkward(top, top, ("run.sh",))


def _links_as_files(top: Path, rng: random.Random) -> Awkward:
    repository(top)
    git(top, "config", "core.symlinks", "false")
    write_files(top, {"link": None})
    git(top, "checkout", "--", "link")
    assert not (top / "link").is_symlink()
    return Awkward(top, top, ("link",))


def _links_of_folders(top: Path, rng: random.Random) -> Awkward:
    repository(top, {**FILES, "linked": Link("src"), "outside": Link("/etc"), "ignored.link": Link("docs")})
    write_files(top, {".gitignore": "*.link\n"})
    committed(top)
    return Awkward(top, top, ("ignored.link", "linked"))


def _packed(top: Path, rng: random.Random) -> Awkward:
    made = repository(top)
    git(top, "gc", "-q")
    git(top, "update-index", "--index-version=4", "--split-index" if rng.random() < 0.5 else "--no-split-index")
    return made


KINDS: Mapping[str, Callable[[Path, random.Random], Awkward]] = {
    "nested-rules": _nested_rules,
    "own-rules": _own_rules,
    "rules-of-the-user": _rules_of_the_user,
    "default-rules-of-the-user": _default_rules_of_the_user,
    "subfolder": _subfolder,
    "sparse-cone": _sparse("--cone", "src"),
    "sparse-index": _sparse("--cone", "--sparse-index", "src"),
    "sparse-patterns": _sparse("--no-cone", "/*", "!/docs/"),
    "skip-worktree": _skipped,
    "submodules": _submodules,
    "line-ends": _line_ends,
    "other-attributes": _other_attributes,
    "case": _case,
    "names": _names,
    "filter": _filter,
    "large-files": _large_files,
    "tracked-caches": _tracked_caches,
    "linked-worktree": _linked_worktree,
    "alternates": _alternates,
    "shallow": _shallow,
    "sha256": lambda top, _: repository(top, FILES, "--object-format=sha256"),
    "modes": _modes,
    "links-as-files": _links_as_files,
    "links-of-folders": _links_of_folders,
    "packed": _packed,
}
