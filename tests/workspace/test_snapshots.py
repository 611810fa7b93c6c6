from __future__ import annotations

import os
import resource
import shutil
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import psutil
import pytest

from codex_multi_role.errors import StorageError, UsageError
from codex_multi_role.workspace import Snapshots, Workspace, apply_files, run_command
from codex_multi_role.workspace.git import Git
from codex_multi_role.workspace.snapshots import left_by_tests
from tests.support.workspaces import commit_all, files_of, files_of_git, write_files, write_program
from tests.support.workspaces import git_output as _git

pytestmark = pytest.mark.real

Contents = dict[str, bytes]
SECONDS = 20.0
LATE = "git init took longer"
_contents = partial(files_of, without=(".git", "runs"))


def _snapshots(root: Path) -> Snapshots:
    workspace = Workspace(root, (root / "runs",))
    return Snapshots(workspace.root / "runs" / "r1" / "snapshots.git", workspace)


def _change(root: Path) -> None:
    write_files(root, {"text.txt": b"one\nchanged\nthree\nno end", "crlf.txt": b"a\r\nB\r\nmixed\n"})
    write_files(root, {"binary.dat": bytes(reversed(range(256))) * 3, 'new é "name".txt': "new\n"})
    (root / "gone.txt").unlink()
    write_files(root, {"deep/er/x.py": "x = 1\n"})
    (root / "script.sh").chmod(0o755)


def _fill(root: Path) -> None:
    write_files(root, {"text.txt": b"one\ntwo\nthree\n", "crlf.txt": b"a\r\nb\r\n"})
    write_files(root, {"binary.dat": bytes(range(256)) * 3, "gone.txt": "going\n", "script.sh": "#!/bin/sh\n"})
    (root / "script.sh").chmod(0o644)


def _whole_repository(root: Path) -> None:
    _fill(root)
    commit_all(root)


def _part_of_a_repository(root: Path) -> None:
    _fill(root)
    write_files(root.parent, {"text.txt": "one\ntwo\nthree\n"})
    commit_all(root.parent)


def _with_line_end_attributes(root: Path) -> None:
    _fill(root)
    (root / ".gitattributes").write_text("crlf.txt text eol=crlf\n*.dat binary\n*.py diff=python\ntext.txt -diff\n")
    _git(root, "init", "-q")


def _with_filters(root: Path) -> None:
    _whole_repository(root)
    (root / ".gitattributes").write_text("*.txt filter=shift ident eol=crlf\n*.dat working-tree-encoding=UTF-16\n")
    _git(root, "config", "filter.shift.clean", "tr a-z n-za-m")
    _git(root, "config", "filter.shift.smudge", "tr a-z n-za-m")


@pytest.mark.parametrize("arrange", [_fill, _whole_repository, _part_of_a_repository, _with_line_end_attributes])
def test_git_apply_reverse_takes_a_patch_back(tmp_path: Path, arrange: Callable[[Path], None]) -> None:
    root = tmp_path / "top" / "work"
    arrange(root)
    snapshots, contents = _snapshots(root), _contents(root)
    before = snapshots.take()
    _change(root)
    patch = snapshots.patch(before, snapshots.take())
    _git(root, "apply", "-R", stdin=patch)
    assert _contents(root) == contents
    assert (root / "script.sh").stat().st_mode & 0o111 == 0
    assert (root.parent / "text.txt").exists() == (arrange is _part_of_a_repository)


def test_private_repository_reverts_patch_despite_filters(tmp_path: Path) -> None:
    """Git filters convert the content of the files."""
    _with_filters(tmp_path)
    snapshots, contents = _snapshots(tmp_path), _contents(tmp_path)
    before = snapshots.take()
    _change(tmp_path)
    patch = snapshots.patch(before, snapshots.take())
    _git(tmp_path, "--git-dir=runs/r1/snapshots.git", "--work-tree=.", "apply", "-R", stdin=patch)
    assert _contents(tmp_path) == contents


def test_users_repository_is_not_touched(tmp_path: Path) -> None:
    _whole_repository(tmp_path)
    before = files_of_git(tmp_path)
    _snapshots(tmp_path).take(force=["text.txt"])
    assert files_of_git(tmp_path) == before


def test_patch_names_lines_and_counts_what_has_changed(tmp_path: Path) -> None:
    _with_line_end_attributes(tmp_path)
    snapshots = _snapshots(tmp_path)
    before = snapshots.take()
    assert snapshots.changed_paths(before, snapshots.take()) == []
    _change(tmp_path)
    (tmp_path / "a tab\there").write_text("one\n")
    after = snapshots.take()
    patch, files = snapshots.patch(before, after), snapshots.changes(before, after).files
    counts = {each.path: (each.added, each.removed) for each in files}
    statuses = {each.path: each.status for each in files}
    assert b"--- a/text.txt\n+++ b/text.txt\n@@ -1,3 +1,4 @@\n one\n-two\n+changed\n three\n" in patch
    assert b"GIT binary patch" in patch
    assert counts.items() >= {"crlf.txt": (2, 1), "binary.dat": (None, None), "a tab\there": (1, 0)}.items()
    assert (statuses["a tab\there"], statuses["gone.txt"], statuses["text.txt"]) == ("added", "deleted", "modified")
    changed = {
        "a tab\there",
        "binary.dat",
        "crlf.txt",
        "deep/er/x.py",
        "gone.txt",
        'new é "name".txt',
        "script.sh",
        "text.txt",
    }
    assert set(snapshots.changed_paths(before, after)) == changed


def test_every_snapshot_has_what_changed_a_moment_ago(tmp_path: Path) -> None:
    """Even a change that keeps the size: each snapshot is compared with that of a new repository."""
    root, random = tmp_path / "w", Random(20)
    root.mkdir()
    snapshots, taken = _snapshots(root), list[str]()
    for number in range(20):
        file = root / random.choice("ab")
        match random.choice(("write", "write", "delete", "restore", "nothing")):
            case "write":
                file.write_text(random.choice("xyz"))
            case "delete":
                file.unlink(missing_ok=True)
            case "restore" if taken:
                snapshots.restore(random.choice(taken))
        taken.append(snapshots.take())
        independent = Snapshots(tmp_path / f"{number}.git", Workspace(root, (root / "runs",))).take()
        assert taken[-1] == snapshots.latest() == independent
    assert len(set(taken)) > 5


def test_what_is_ignored_or_off_limits_is_left_out(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("secret.txt\n!runs/\n!runs/**\n")
    snapshots = _snapshots(tmp_path)
    before = snapshots.take()
    left_out = ("secret.txt", "runs/r1/run.json", "__pycache__/x.pyc", ".venv/lib/x.py", ".pytest_cache/x")
    write_files(tmp_path, dict.fromkeys((*left_out, "kept.txt"), "x"))
    after = snapshots.take()
    assert snapshots.changed_paths(before, after) == ["kept.txt"]
    assert b"run.json" not in snapshots.patch(before, after)


def test_forced_paths_are_taken_and_stay_taken(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("build/\n")
    snapshots = _snapshots(tmp_path)
    before = snapshots.take()
    write_files(tmp_path, {"build/out.txt": "made\n", "build/other.txt": "not asked for\n"})
    made = snapshots.take(force=["build/out.txt", "build/missing.txt", "../x", "runs/r1/x"])
    assert snapshots.changed_paths(before, made) == ["build/out.txt"]
    (tmp_path / "build" / "out.txt").unlink()
    assert snapshots.take() == before


def test_existing_ignored_file_is_restored(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.local\n")
    write_files(tmp_path, {"settings.local": "mine\n", "role.txt": "made in the turn, before its files\n"})
    snapshots = _snapshots(tmp_path)
    (tmp_path / "role.txt").unlink()
    before = snapshots.take()
    (tmp_path / "role.txt").write_text("made in the turn, before its files\n")
    paths = ["settings.local", "role.txt", "new.txt"]
    before = snapshots.with_ignored(before, paths)
    apply_files(Workspace(tmp_path), [{"path": path, "content": "theirs\n"} for path in paths])
    patch = snapshots.patch(before, snapshots.take(force=paths))
    _git(tmp_path, "apply", "-R", stdin=patch)
    assert _contents(tmp_path) == {".gitignore": b"*.local\n", "settings.local": b"mine\n"}


def test_with_ignored_changes_nothing_where_nothing_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    snapshots = _snapshots(tmp_path)
    before = snapshots.take()
    assert snapshots.with_ignored(before, ["a.txt", "missing.txt"]) == before
    assert snapshots.with_ignored(before, []) == before


def test_nested_repositories_are_left_out(tmp_path: Path) -> None:
    for name in ("fresh", "used"):
        (tmp_path / name).mkdir()
        _git(tmp_path / name, "init", "-q")
        (tmp_path / name / "a.txt").write_text("a")
    _git(tmp_path / "used", "add", ".")
    _git(tmp_path / "used", "commit", "-qm", "first")
    snapshots = _snapshots(tmp_path)
    before = snapshots.take()
    write_files(tmp_path, {"own.txt": "x", "used/a.txt": "b"})
    _git(tmp_path / "used", "commit", "-qam", "second")
    after = snapshots.take(force=["used/a.txt", "fresh/a.txt", "own.txt"])
    assert snapshots.changed_paths(before, after) == ["own.txt"]


def test_symlinks_and_odd_files_do_no_harm(tmp_path: Path) -> None:
    snapshots = _snapshots(tmp_path)
    before = snapshots.take()
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder" / "a").write_text("a")
    after = snapshots.take(force=["link/a"])
    assert snapshots.changed_paths(before, after) == ["folder/a", "link"]


def test_link_to_non_utf8_name_is_followed(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"odd-\xff")
    odd.write_text("x")
    (tmp_path / "link").symlink_to(odd.name)
    (tmp_path / ".gitignore").write_bytes(b"odd-*\n")
    snapshots = _snapshots(tmp_path)
    before = snapshots.with_ignored(snapshots.take(), ["link"])
    odd.write_text("y")
    assert len(snapshots.changed_paths(before, snapshots.take(force=["link"]))) == 1


def test_users_settings_and_hooks_count_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, home = tmp_path / "work", tmp_path / "home"
    _whole_repository(root)
    write_files(home, {".config/git/ignore": "*\n", ".config/git/attributes": "* filter=boom\n"})
    (home / ".gitconfig").write_text(
        '[core]\n\tautocrlf = true\n\thooksPath = /missing\n[filter "boom"]\n\tclean = false\n'
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", str(root / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(root / ".git" / "index"))
    index = (root / ".git" / "index").read_bytes()
    snapshots = _snapshots(root)
    before = snapshots.take()
    (root / "crlf.txt").write_bytes(b"a\r\nc\r\n")
    assert b"-b\r\n+c\r\n" in snapshots.patch(before, snapshots.take())
    assert (root / ".git" / "index").read_bytes() == index


def test_restore_does_not_write_through_new_links(tmp_path: Path) -> None:
    """The links were made after the snapshot."""
    root, outside = tmp_path / "work", tmp_path / "outside"
    for folder in (root / "sub", outside):
        write_files(folder, {"a.txt": "as it was"})
    (root / "b.txt").write_text("as it was")
    snapshots = _snapshots(root)
    first = snapshots.take()
    (outside / "a.txt").write_text("precious")
    shutil.rmtree(root / "sub")
    (root / "sub").symlink_to(outside)
    (root / "b.txt").unlink()
    os.link(outside / "a.txt", root / "b.txt")
    snapshots.restore(first)
    assert [(path.name, path.read_text()) for path in outside.iterdir()] == [("a.txt", "precious")]
    assert not (root / "sub").is_symlink()
    assert {(root / name).read_text() for name in ("sub/a.txt", "b.txt")} == {"as it was"}


def test_killed_runs_lock_does_not_stop_the_next(tmp_path: Path) -> None:
    first = _snapshots(tmp_path).take()
    (tmp_path / "runs" / "r1" / "snapshots.git" / "index.lock").touch()
    assert _snapshots(tmp_path).take() == first


@pytest.mark.parametrize(
    ("body", "told", "hint"),
    [
        ("kill -9 $$", r"git init was ended by signal 9 \(Killed\)", "memory"),
        ("exec sleep 15", LATE, "large data"),
        (None, "git cannot be run", "install git"),
    ],
    ids=["killed", "hangs", "missing"],
)
def test_git_that_does_not_work_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str | None, told: str, hint: str
) -> None:
    if body:
        write_program(tmp_path / "git", f"#!/bin/sh\n{body}\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}" if body else str(tmp_path))
    monkeypatch.setattr("codex_multi_role.workspace.git.GIT_SECONDS", 0.2 if told == LATE else 60)
    with pytest.raises((StorageError, UsageError), match=told) as caught:
        _snapshots(tmp_path).take()
    assert hint in caught.value.hint
    assert "disk" not in caught.value.hint


@pytest.mark.parametrize("program", ["git", "command"])
def test_too_few_file_descriptors_are_not_a_missing_program(tmp_path: Path, program: str) -> None:
    git = Git(tmp_path, tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open(os.devnull, os.O_RDONLY)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 1, hard))
        with pytest.raises(StorageError, match="Too many open files") as caught:
            _ = git.run("version") if program == "git" else run_command(["true"], tmp_path, os.environ, 5)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        os.close(lowest)
    assert "ulimit -n" in caught.value.hint
    assert "install" not in caught.value.hint


def test_what_a_frozen_git_has_started_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pids = tmp_path / "pids"
    write_program(tmp_path / "git", f"#!/bin/sh\ntrap '' TERM\nsleep 600 &\necho $! $$ > {pids}\nkill -STOP $$\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("codex_multi_role.workspace.git.GIT_SECONDS", 0.4)
    monkeypatch.setattr("codex_multi_role.host.processes.GRACE_SECONDS", 0.2)
    with pytest.raises(StorageError, match=LATE):
        _snapshots(tmp_path).take()
    ended = [psutil.Process(int(pid)) for pid in pids.read_text().split() if psutil.pid_exists(int(pid))]
    assert {each.status() for each in ended} <= {psutil.STATUS_ZOMBIE}


def test_store_that_takes_nothing_is_an_error_not_an_empty_patch(tmp_path: Path) -> None:
    snapshots = _snapshots(tmp_path)
    snapshots.take()
    for number in range(256):
        (tmp_path / "runs" / "r1" / "snapshots.git" / "objects" / f"{number:02x}").touch()
    (tmp_path / "a.txt").write_text("new")
    with pytest.raises(StorageError, match="cannot be recorded"):
        snapshots.take()


def test_workspace_that_is_gone_is_an_error(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    snapshots = Snapshots(tmp_path / "snapshots.git", Workspace(root))
    shutil.rmtree(root)
    with pytest.raises(StorageError, match="no longer exists"):
        snapshots.take()


def _filled(folder: Path, source: Path, tree: str, leave_out: tuple[str, ...] = ()) -> tuple[Snapshots, list[str]]:
    """The snapshots of a new workspace ``folder`` that was filled from another run's."""
    folder.mkdir()
    snapshots = Snapshots(folder.parent / f"{folder.name}.git", Workspace(folder))
    return snapshots, snapshots.fill_from(source, tree, leave_out)


def test_another_runs_snapshot_fills_an_empty_workspace(tmp_path: Path) -> None:
    root = tmp_path / "work"
    _fill(root)
    (root / "link").symlink_to("text.txt")
    (root / "script.sh").chmod(0o755)
    write_files(root, {".gitignore": "*.log\n", "kept.log": "handed in"})
    snapshots = _snapshots(root)
    tree = snapshots.take(force=["kept.log"])
    before = _contents(root)
    _change(root)
    (root / "kept.log").unlink()
    later = snapshots.take()
    source = root / "runs" / "r1" / "snapshots.git"
    restored, nested = _filled(tmp_path / "new", source, tree)
    assert nested == []
    assert _contents(tmp_path / "new") == before
    assert (tmp_path / "new" / "link").readlink() == Path("text.txt")
    assert os.access(tmp_path / "new" / "script.sh", os.X_OK)
    (tmp_path / "new" / "kept.log").write_text("changed")  # ignored, but taken from then on, as where it comes from
    assert restored.changed_paths(tree, restored.take()) == ["kept.log"]
    shutil.rmtree(source)
    assert "text.txt" in restored.changed_paths(tree, later)  # it knows what that one knew, and needs it no more


def test_filling_skips_nested_repositories_and_excluded_folders(tmp_path: Path) -> None:
    root = tmp_path / "work"
    write_files(root, dict.fromkeys(("sub/nested/file", "sub/own.txt", "kept/a.txt", "out/b.txt"), "x"))
    commit_all(root / "sub/nested")
    source = tmp_path / "snapshots.git"
    tree = Snapshots(source, Workspace(root)).take()
    _, nested = _filled(tmp_path / "new", source, tree, ("out",))
    assert nested == ["sub/nested"]
    assert sorted(_contents(tmp_path / "new")) == ["kept/a.txt", "sub/own.txt"]
    assert sorted(path.name for path in (tmp_path / "new" / "sub").iterdir()) == ["own.txt"]


def test_filling_does_not_change_the_source(tmp_path: Path) -> None:
    _fill(tmp_path / "work")
    source = tmp_path / "snapshots.git"
    tree = Snapshots(source, Workspace(tmp_path / "work")).take()
    write_files(source, {"index.lock": "someone is writing", "objects/tmp_obj_x": "half"})
    before = {path: (path.stat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in source.rglob("*")}
    _filled(tmp_path / "new", source, tree)
    assert {
        path: (path.stat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in source.rglob("*")
    } == before
    assert not (tmp_path / "new.git" / "objects" / "tmp_obj_x").exists()


@pytest.mark.parametrize("there", [False, True])
def test_missing_snapshot_is_reported(tmp_path: Path, there: bool) -> None:
    _fill(tmp_path / "work")
    source = tmp_path / "snapshots.git"
    if there:
        Snapshots(source, Workspace(tmp_path / "work")).take()
    with pytest.raises(StorageError, match=str(source)):
        _filled(tmp_path / "new", source, "1" * 40)
    assert list((tmp_path / "new").iterdir()) == []


def _create_and_delete(path: Path) -> None:
    path.write_text("being written")
    path.unlink()


def _write_anew(path: Path, size: int) -> None:
    path.write_bytes(b"x" * size)


@pytest.mark.parametrize(
    ("change", "pause"),
    [
        pytest.param(_create_and_delete, 0.0, id="deleted"),
        pytest.param(partial(_write_anew, size=100), 0.0, id="short"),
        pytest.param(partial(_write_anew, size=200_000), 0.01, id="long"),
    ],
)
def test_files_that_others_change_meanwhile_do_no_harm(
    tmp_path: Path, change: Callable[[Path], None], pause: float
) -> None:
    """As an editor, a database or a development server does: git ends, is killed, or leaves the file out."""
    _fill(tmp_path)
    snapshots, over = _snapshots(tmp_path), threading.Event()

    def work(number: int) -> None:
        while not over.wait(pause):
            change(tmp_path / f"{number}.tmp")

    others = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for each in others:
        each.start()
    try:
        for _ in range(10):
            snapshots.take()
    finally:
        over.set()
        for each in others:
            each.join(SECONDS)
    before = snapshots.take()
    (tmp_path / "text.txt").write_text("changed\n")
    assert snapshots.changed_paths(before, snapshots.take()) == ["text.txt"]


def _litter(root: Path) -> None:
    (root / "text.txt").write_text("by the tests\n")
    (root / "gone.txt").unlink()
    write_files(root, {"made/new.txt": "new\n"})


def _after_tests(root: Path, *, shared: bool = False) -> tuple[Snapshots, str]:
    """Snapshots of files after tests that changed one, deleted one and made one; and the state before them."""
    _fill(root)
    snapshots = _snapshots(root)
    with snapshots.testing(lambda: shared) as before:
        _litter(root)
    return snapshots, before


def test_what_only_tests_have_changed_is_as_it_was_before(tmp_path: Path) -> None:
    snapshots, before = _after_tests(tmp_path)
    for each in (snapshots, _snapshots(tmp_path)):  # also in another process
        assert (each.take(), each.latest()) == (before, before)
    assert (tmp_path / "text.txt").read_text() == "by the tests\n"
    assert left_by_tests(snapshots.repository(), before, before) == ["gone.txt", "made/new.txt", "text.txt"]
    write_files(tmp_path, {"text.txt": "by a role\n", "made/other.txt": "by a role\n"})
    role = snapshots.take()
    assert snapshots.changed_paths(before, role) == ["made/other.txt", "text.txt"]
    assert left_by_tests(snapshots.repository(), before, role) == ["gone.txt", "made/new.txt"]
    with snapshots.testing(lambda: False) as again:
        (tmp_path / "text.txt").write_text("by the tests, again\n")
    assert again == role
    assert snapshots.take() == role
    assert b"+by a role\n" in snapshots.patch(before, role)


def test_file_that_a_role_writes_as_the_tests_left_it_is_its_own(tmp_path: Path) -> None:
    snapshots, before = _after_tests(tmp_path)
    (tmp_path / "made/new.txt").write_text("new\n")
    assert snapshots.changed_paths(before, snapshots.take(force=["made/new.txt"])) == ["made/new.txt"]


def test_restored_files_keep_what_only_tests_have_changed(tmp_path: Path) -> None:
    """A state is restored exactly, without that: nothing is put back, because a person may be writing there."""
    snapshots, before = _after_tests(tmp_path)
    write_files(tmp_path, {"text.txt": "by a role\n", "script.sh": "by a role\n"})
    role = snapshots.take()
    snapshots.restore(before)
    assert snapshots.take() == before
    assert (tmp_path / "text.txt").read_bytes() == b"one\ntwo\nthree\n"
    assert (tmp_path / "made/new.txt").exists()
    assert not (tmp_path / "gone.txt").exists()
    snapshots.restore(role)
    assert snapshots.take() == role
    snapshots.fill(before)
    assert snapshots.take() == before
    assert (tmp_path / "gone.txt").exists()


@pytest.mark.parametrize("meanwhile", [False, True], ids=["alone", "others-at-work"])
def test_what_killed_tests_left_is_known_afterwards(tmp_path: Path, meanwhile: bool) -> None:
    """If others that write took a snapshot at that time, what was changed may be theirs, and counts."""
    _fill(tmp_path)
    killed, others = _snapshots(tmp_path), list[str]()
    running = killed.testing(lambda: bool(others))
    before = running.__enter__()
    _litter(tmp_path)
    assert killed.take() == before
    if meanwhile:
        others.append("writer")
        assert killed.take() != before
    after = _snapshots(tmp_path).take()
    assert (after == before) is not meanwhile
    assert _snapshots(tmp_path).take() == after


def test_what_changed_while_others_could_write_counts(tmp_path: Path) -> None:
    snapshots, before = _after_tests(tmp_path, shared=True)
    assert snapshots.changed_paths(before, snapshots.take()) == ["gone.txt", "made/new.txt", "text.txt"]


def test_tests_at_once_leave_nothing_that_counts(tmp_path: Path) -> None:
    _fill(tmp_path)
    snapshots = _snapshots(tmp_path)
    with snapshots.testing(lambda: False) as before:
        (tmp_path / "text.txt").write_text("by the first\n")
        with snapshots.testing(lambda: False):
            _litter(tmp_path)
        (tmp_path / "late.txt").write_text("late\n")
    assert snapshots.take() == before
