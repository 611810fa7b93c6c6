"""``diff``, ``blame``, ``apply`` and ``export``: what a run changed, and its result in a checkout or on a branch."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from codex_multi_role.cli.options import JSON, RUNS_DIR, command, run_argument
from codex_multi_role.cli.output import diff_style, put_bytes, put_json, put_line, say
from codex_multi_role.cli.run_additions import find_run
from codex_multi_role.errors import ExitCode
from codex_multi_role.extensions.results.applying import apply_result
from codex_multi_role.extensions.results.changed_lines import written_by
from codex_multi_role.extensions.results.exporting import export as export_run
from codex_multi_role.extensions.results.lines import line_history, runs_in_the_same_workspace
from codex_multi_role.extensions.results.patches import diff as diff_of_run
from codex_multi_role.extensions.results.run_history import history_of, result_of
from codex_multi_role.presentation.wording import plural
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.folder import LATEST
from codex_multi_role.run_folder.past import NOW, START
from codex_multi_role.workspace import Workspace

if TYPE_CHECKING:
    from codex_multi_role.extensions.results.applying import Applied

KINDS = {
    "modified here, deleted in the copy": "you changed it, the run deleted it",
    "deleted here, modified in the copy": "you deleted it, the run changed it",
    "both modified": "you and the run changed it",
    "both added": "you and the run added it",
}
repository_option = click.option(
    "--repo",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    metavar="DIR",
    help="A git repository; by default that of the run's workspace, or the current one if workers executed the run.",
)


@command(RUNS_DIR, finds=True)
@run_argument
@click.option("--role", metavar="ROLE", help="Only the turns of this role, one after the other.")
@click.option("--turn", type=click.IntRange(min=1), metavar="N", help="Only this turn.")
@click.option("--since", metavar="POINT", default=START, help="From there: STEP:VISIT, or the key of a question.")
@click.option("--until", metavar="POINT", default=NOW, help="Up to there: STEP:VISIT, or the key of a question.")
@click.option("--stat", is_flag=True, help="Only how many lines changed in each file.")
def diff(run: str, role: str | None, turn: int | None, since: str, until: str, stat: bool, runs_dir: Path) -> None:
    """Print what RUN (default: the latest run) changed as a patch, from its first state to its latest.

    Works for every run: ended, killed, or still running. Paths are relative to the workspace.

    \b
    Examples:
      codex-multi-role diff
      codex-multi-role diff latest --stat
      codex-multi-role diff latest --since review:1
      codex-multi-role diff latest --role implementer --turn 2
    """
    found = diff_of_run(folder := find_run(run, runs_dir), role=role, turn=turn, since=since, until=until, stat=stat)
    if not found.patches:
        say(f"Run {found.run_id} changed no files.")
    elif sys.stdout.isatty():  # with colours, and without control characters
        for line in found.text.splitlines():
            put_line(line, **diff_style(line))
    else:
        put_bytes(found.patch)
    say_left_out(folder)


def say_left_out(run: RunFolder) -> None:
    """Say what only test runs changed, which is in no patch, commit or checkout."""
    if left := history_of(run).left_out:
        say(f"left by test runs, and no part of the result: {left}")


@command(RUNS_DIR, JSON, finds=True)
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--run", default=LATEST, metavar="RUN", show_default=True, help="The last run to look at.")
def blame(path: Path, run: str, runs_dir: Path, json: bool) -> None:
    """Show for each line of PATH, a file of the workspace, which turn of which run wrote it.

    All earlier runs in the same workspace count. Lines that moved within the file keep their origin. A line without a
    role came between the turns of a step: from a check or a person. One without a run is by a person or left by tests.

    --json also names the file with the prompt of the turn.

    \b
    Examples:
      codex-multi-role blame roman.py
      codex-multi-role blame roman.py --json | jq -r '.[].role'
    """
    folder = find_run(run, runs_dir)
    root = Path(str(folder.record().get("workspace", "")))
    below = _below(path, root)
    now = root / below if (root / below).is_file() else None
    with line_history(runs_in_the_same_workspace(folder)) as recorded:
        lines = recorded.origins(below.as_posix(), now)
    if json:
        put_json([asdict(each) for each in lines])
        return
    wrote = [f"{line.run}  {written_by(line)}" if line.run else "no run" for line in lines]
    longest, width = max(map(len, wrote), default=0), len(str(len(lines)))
    for who, line in zip(wrote, lines, strict=True):
        put_line(f"{who:{longest}}  {line.line:{width}}  {line.text.expandtabs()}")


def _below(path: Path, root: Path) -> Path:
    """The file relative to the workspace: as given from the current folder, otherwise from the workspace."""
    here = Path.cwd() / path
    for place in (here, here.resolve()):
        if place.is_relative_to(root):
            return place.relative_to(root)
    return path


@command(RUNS_DIR, JSON, finds=True)
@run_argument
@click.option(
    "--to",
    "target",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    default=".",
    show_default="the current folder",
    metavar="DIR",
    help="The checkout.",
)
@click.option("--copy", "key", metavar="KEY", help="The result of one isolated copy, by its key, such as `write.1.0`.")
@click.option("--3way", "mark_conflicts", is_flag=True, help="Mark conflicts in the files, as git does.")
def apply(run: str, target: Path, key: str | None, mark_conflicts: bool, runs_dir: Path, json: bool) -> None:
    """Merge what RUN (default: the latest run) changed into a checkout; nothing that you changed is overwritten.

    If a file conflicts, nothing is written, and the exit code is 1. With --3way the other files are written, and texts
    that conflict get both versions between markers. The index and the branches of the checkout stay as they are.

    \b
    Examples:
      codex-multi-role apply latest --to ../main
      codex-multi-role apply 2026 --3way
    """
    folder = find_run(run, runs_dir)
    result = result_of(history_of(folder), key)
    workspace = Workspace.of_run(target.resolve(), folder.path.resolve())
    applied = apply_result(result, workspace, folder.path / "applied", mark_conflicts=mark_conflicts)
    if json:
        put_json(
            {
                "to": str(workspace.root),
                "paths": applied.paths,
                "marked": applied.marked,
                "conflicts": [conflict.as_json() for conflict in applied.conflicts],
            }
        )
    else:
        for line in _lines(applied, workspace.root):
            put_line(line)
    say_left_out(folder)
    if applied.conflicts:
        if not mark_conflicts:
            say("hint: --3way writes the other files, and marks the conflicts.")
        raise click.exceptions.Exit(ExitCode.GOAL_NOT_REACHED)


def _lines(applied: Applied, root: Path) -> Iterator[str]:
    for conflict in applied.conflicts:
        marked = "; both versions are in it, between markers" if conflict.path in applied.marked else ""
        yield f"conflict: {conflict.path}: {KINDS.get(conflict.kind, conflict.kind)}{marked}"
    if applied.paths:
        yield from (f"changed {path}" for path in applied.paths)
    elif not applied.conflicts:
        yield f"nothing to do: {root} has these changes"
    elif not applied.marked:
        yield f"nothing was written: {plural(len(applied.conflicts), 'conflict')}"


@command(RUNS_DIR, JSON, finds=True)
@run_argument
@click.option("--branch", required=True, metavar="NAME", help="The branch: new, or from an earlier export of RUN.")
@repository_option
def export(run: str, branch: str, repo: Path | None, runs_dir: Path, json: bool) -> None:
    """Make a branch with one commit per turn of RUN (default: the latest run) that changed files.

    It starts at the commit that was checked out when the run started. The author of a commit is the role; what checks
    or a person changed between turns is a commit of its own. Exporting a run again gives the same commits. The work
    tree, the index, hooks and signing are not used.

    \b
    Examples:
      codex-multi-role export --branch agents/roman
      codex-multi-role export 2026 --branch agents/roman --repo ../clone
    """
    exported = export_run(folder := find_run(run, runs_dir), branch=branch, repo=repo)
    say_left_out(folder)
    place = str(exported.repository)
    if json:
        put_json({**asdict(exported), "repository": place})
        return
    known = "" if exported.is_new else ", as before"
    onto = f" on {exported.base[:12]}" if exported.base else ""
    put_line(f"branch {branch}: {plural(len(exported.commits), 'commit')}{onto} in {place}{known}")
    if exported.ignored:
        put_line(f"left out, because git ignores them: {', '.join(exported.ignored)}")
    put_line(f"next: git -C {shlex.quote(place)} log {shlex.quote(branch)}")
