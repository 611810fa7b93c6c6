"""``watch``: show a run as its own terminal does, from another one."""

from __future__ import annotations

from typing import Any

import click

from codex_multi_role.cli.completion import run_ids
from codex_multi_role.cli.foreground import say_end
from codex_multi_role.cli.options import JSON, PLAIN, QUIET, RUNS_DIR, command
from codex_multi_role.cli.output import put_json_line, say
from codex_multi_role.cli.views import open_view
from codex_multi_role.cli.watch_all import watch_all
from codex_multi_role.errors import ExitCode, UsageError
from codex_multi_role.presentation.event_tail import follow
from codex_multi_role.presentation.outcome import resume_command
from codex_multi_role.presentation.progress import Progress
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.owner import is_alive
from codex_multi_role.run_options import RunReport


@command(RUNS_DIR, JSON, PLAIN, QUIET, short_help="Look on while a run works, from another terminal.")
@click.argument("run", metavar="[RUN]", required=False, shell_complete=run_ids)
@click.option("--all", "every", is_flag=True, help="All runs, for as long as any is worked on.")
@click.pass_context
def watch(ctx: click.Context, /, run: str | None, every: bool, **values: Any) -> None:  # noqa: ANN401 - the settings above
    """Show RUN (an id, a unique prefix of one, or `latest`) as its own terminal does, from its beginning to its end.

    Works for runs that are over as well. Ends with the run, and with its exit code; Ctrl-C ends the watching only.

    \b
    Examples:
      codex-multi-role watch latest
      codex-multi-role watch latest --json | grep turn_ended
      codex-multi-role watch --all
    """
    if every == (run is not None):
        raise UsageError("watch takes a RUN or --all", "`codex-multi-role watch latest` shows the newest.")
    if run is None:
        if values["json"] or values["quiet"]:
            raise UsageError("--all takes neither --json nor --quiet", "`codex-multi-role runs --json` lists all runs.")
        watch_all(values["runs_dir"], plain=values["plain"])
        return
    folder = RunFolder.find(values["runs_dir"], run)
    progress = Progress()
    view_options = {"as_json": values["json"], "quiet": values["quiet"], "plain": values["plain"]}
    with open_view(progress, **view_options, over=lambda: not is_alive(folder), write=put_json_line) as view:
        for record in follow(folder):
            view(record)
    _close(ctx, folder, progress)


def _close(ctx: click.Context, folder: RunFolder, progress: Progress) -> None:
    """Close as the run itself does; a run that was killed left no summary."""
    record = folder.record()
    if record.get("exit_code") is None:
        if not ctx.params["json"]:
            say(f"killed: no process works on it, and it has no end\n  next     {_resume(folder, ctx, progress)}")
        ctx.exit(ExitCode.FAILED)
    recorded = {name: record[name] for name in ("status", "outcome", "reason", "exit_code", "totals")}
    say_end(ctx, RunReport(run_id=folder.run_id, folder=folder.path, hint="", **recorded), progress)
    ctx.exit(record["exit_code"])


def _resume(folder: RunFolder, ctx: click.Context, progress: Progress) -> str:
    return resume_command(folder.run_id, ctx.params["runs_dir"])
