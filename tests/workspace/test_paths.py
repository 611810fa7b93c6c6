from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codex_multi_role.errors import UsageError
from codex_multi_role.workspace import PathRefused, Workspace, apply_files
from tests.support.catalogs import raised
from tests.support.teams import Record

PARTS = st.sampled_from(
    ["..", ".", "", "~", ".git", ".codex", "a", "b c", "link", "runs", "C:", "\\", "\x00", "é", "x" * 256, "/"]
)


def _reason(workspace: Workspace, path: str) -> str:
    return raised(PathRefused, workspace.resolve_inside, path).reason


INSIDE = ("a.py", "src/deep/er/a.py", "./a.py", "a//b.py", "with space.txt", "é/ü.py", "-rf", "a~", "link/a.py")
LIKE_GIT = (
    ".gitignore",
    ".github/workflows/ci.yml",
    "git/a",
    "a.git",
    ".gitattributes",
    "fixtures/.codex/a",
    ".codexrc",
)
OUTSIDE = ("/etc/passwd", "//server/share", "..", "../a", "a/../../b", "a/..", "~/a", "~root/a", "C:/a", "c:a", "a\\b")
GIT = (".git/config", "a/.git/hooks/x", ".GIT/config", ".git", ".git /x", ".git./x", ".Git.. /x", "git~1/x", "GIT~1/x")
SPELT = (".g\u200cit/x", ".git\u200d/x", ".git::$INDEX_ALLOCATION/x", "\uff0egit/x", "..\\a")
CODEX = (".codex/config.toml", ".Codex/rules/x", "./.agents/skills/x", ".codex", "out/x")
LINKED = ("a/link/new.txt", "a/link/new/folder/x.txt", "one/config", "two/run.json")
RUNS = ("runs", "runs/x", "runs/r1/run.json", "./runs//r1/x")


def link(root: Path, **targets: str) -> None:
    for name, target in targets.items():
        (root / name).symlink_to(target)


@pytest.mark.parametrize("path", [*INSIDE, *LIKE_GIT, "runs2/x"])
def test_relative_path_leads_inside(workspace: Workspace, path: str) -> None:
    (workspace.root / "src").mkdir()
    link(workspace.root, link="src")
    assert workspace.resolve_inside(path) == workspace.root / path.replace("link/", "src/")


@pytest.mark.parametrize("path", [*OUTSIDE, *GIT, *SPELT, *CODEX, *LINKED, *RUNS])
def test_path_outside_or_off_limits_is_unsafe_by_every_spelling(workspace: Workspace, path: str) -> None:
    """What git or Codex runs of a project, and the folders of runs, also through a link."""
    for name in (".codex", ".git", "a"):
        (workspace.root / name).mkdir()
    link(workspace.root, out=".codex", one=".git", two="runs/r1")
    link(workspace.root / "a", link="../../outside")
    assert _reason(workspace, path) == "unsafe path"


@pytest.mark.parametrize(
    "path",
    ["", "a/", ".", "./", "a\x00b", "a\nb", "\x1b[0m", "a\x85", "x" * 256, "é" * 128, "a/" * 2100 + "b", "\ud800"],
)
def test_invalid_file_name_is_refused(workspace: Workspace, path: str) -> None:
    assert _reason(workspace, path) == "invalid path"


def test_only_a_plain_file_can_be_replaced(workspace: Workspace) -> None:
    (workspace.root / "folder").mkdir()
    os.mkfifo(workspace.root / "pipe")
    assert _reason(workspace, "folder") == "invalid path"
    assert _reason(workspace, "pipe") == "invalid path"


@pytest.mark.parametrize("target", ["../outside", "../outside/precious.txt", "../outside/missing", "/", "loop"])
def test_symlinks_that_lead_outside_or_nowhere(workspace: Workspace, target: str) -> None:
    """The original checked the text of a path only."""
    (workspace.root / "loop").symlink_to(target)
    assert _reason(workspace, "loop") == "unsafe path"


def test_forbidden_folder_that_does_not_exist_yet(tmp_path: Path) -> None:
    assert _reason(Workspace(tmp_path, (tmp_path / "runs",)), "runs/x") == "unsafe path"


@pytest.mark.parametrize(("root", "forbidden"), [("shop", "runs"), ("runs/r1/workspace", "runs/r2")])
def test_runs_folder_or_own_run_folder_is_forbidden(tmp_path: Path, root: str, forbidden: str) -> None:
    """The folder of all runs is forbidden. If it contains the workspace, only the run's own folder is."""
    (tmp_path / root).mkdir(parents=True)
    assert Workspace.of_run(tmp_path / root, tmp_path / "runs/r2").forbidden == (tmp_path / forbidden,)


def test_forbidden_folder_is_known_by_identity_too(tmp_path: Path) -> None:
    """As on a file system that knows one folder by several spellings; here a link that nobody has followed."""
    (tmp_path / "real" / "runs").mkdir(parents=True)
    (tmp_path / "alias").symlink_to("real")
    workspace = Workspace(tmp_path / "real", (tmp_path / "real" / "runs",))
    assert workspace.is_forbidden(tmp_path / "alias/runs/x")
    assert not workspace.is_forbidden(tmp_path / "alias/x")


def test_workspace_must_be_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is not a folder"):
        Workspace(tmp_path / "file")
    with pytest.raises(UsageError, match="does not exist"):
        Workspace(tmp_path / "missing")


@pytest.fixture(scope="module")
def trapped(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    base = tmp_path_factory.mktemp("trapped")
    (base / "work" / "runs").mkdir(parents=True)
    (base / "work" / "link").symlink_to("..")
    return Workspace(base / "work", (base / "work" / "runs",))


@given(st.lists(PARTS, max_size=5).map("/".join) | st.text(max_size=30))
@example("link/work/runs/x")
@example("link/work/link/outside")
def test_no_path_ever_leads_outside(trapped: Workspace, path: str) -> None:
    try:
        resolved = trapped.resolve_inside(path)
    except PathRefused:
        return
    assert resolved.is_relative_to(trapped.root)
    assert resolved != trapped.root
    assert not resolved.is_relative_to(trapped.root / "runs")
    assert ".git" not in resolved.parts
    assert not resolved.is_relative_to(trapped.root / ".codex")
    assert Path(os.path.realpath(resolved)) == resolved


def test_path_too_long_with_workspace_prefix_is_invalid(tmp_path: Path) -> None:
    """The text alone is short enough. The target of a link and the path of the workspace also count."""
    nearly = "/".join(["n" * 200] * 20)
    root = tmp_path / ("w" * 200)
    root.mkdir()
    assert _reason(Workspace(root), nearly) == "invalid path"


CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = touch {ran}; false\n"
BARE: Record = {"HEAD": "ref: refs/heads/main\n", "config": CONFIG, "objects/x": "", "refs/x": ""}


def apply(workspace: Workspace, files: Record) -> list[str | None]:
    return [each.reason for each in apply_files(workspace, [{"path": name, "content": files[name]} for name in files])]


@pytest.mark.parametrize("last", BARE)
@pytest.mark.parametrize("folder", ["", "sub/deep/"])
def test_bare_repository_is_never_completed(tmp_path: Path, last: str, folder: str) -> None:
    ran = tmp_path / "ran"
    root = tmp_path / "work"
    root.mkdir()
    for name in sorted(BARE, key=last.__eq__):  # as in turns of their own
        apply(Workspace(root), {f"{folder}{name}": BARE[name].format(ran=ran)})
    if folder:
        subprocess.run(["git", "status"], cwd=root / folder, capture_output=True, check=False, timeout=20)
        assert not ran.exists()
    assert subprocess.run(
        ["git", "rev-parse", "--git-dir"], cwd=root / folder, capture_output=True, check=False
    ).returncode


@pytest.mark.parametrize(
    "files",
    [
        {"HEAD": "x", "objects/x": "", "refs/x": ""},
        {"refs/x": "", "Objects/x": "", "head": "x"},
        {"HEAD": "x", "commondir": "../elsewhere"},
        {"a/commondir": "x", "a/HeAd": "x"},
        {"refs/x": "", "objects/x": "", "HEAD/x": ""},
    ],
)
def test_last_piece_is_refused_whatever_it_is_and_in_any_case(tmp_path: Path, files: Record) -> None:
    assert apply(Workspace(tmp_path), files) == [None] * (len(files) - 1) + ["unsafe path"]


def test_nothing_is_written_into_a_bare_repository_that_exists(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--bare", "-q", "fixture.git"], cwd=tmp_path, check=True)
    assert apply(Workspace(tmp_path), {"fixture.git/config": "x", "fixture.git/hooks/x": "x"}) == ["unsafe path"] * 2


@pytest.mark.parametrize("name", [".git", "sub/.git", "sub/.GIT"])
def test_file_that_says_where_the_repository_is_is_refused(tmp_path: Path, name: str) -> None:
    assert apply(Workspace(tmp_path), {name: "gitdir: ../evil"}) == ["unsafe path"]


def test_incomplete_repository_parts_are_ordinary_files(tmp_path: Path) -> None:
    files = {"head/x": "", "objects/a.py": "", "refs.txt": "", "config": "", "src/HEAD": "", "src/refs/x": ""}
    assert apply(Workspace(tmp_path), files) == [None] * len(files)
