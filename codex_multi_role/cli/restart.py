"""``restart``: do one task of a run again."""

from __future__ import annotations

from typing import Any

import click

from codex_multi_role.cli.asking import person_at
from codex_multi_role.cli.fork import changes_for
from codex_multi_role.cli.options import FORKABLE, OF_THIS_PROCESS, RUNS_DIR, command, run_argument
from codex_multi_role.cli.reports import reported
from codex_multi_role.cli.resume import say_changes
from codex_multi_role.cli.run import close
from codex_multi_role.cli.views import open_view
from codex_multi_role.presentation.progress import Progress
from codex_multi_role.run_folder import RunFolder


@command(RUNS_DIR, *FORKABLE, *OF_THIS_PROCESS, short_help="Do one task of a run again, in a new run.")
@run_argument
@click.option("--task", metavar="ID", required=True, help="The task that is done again; `show` lists them.")
@click.pass_context
@reported
def restart(ctx: click.Context, /, run: str, task: str, **values: Any) -> None:  # noqa: ANN401 - the settings above
    """Start a new run with the past of RUN (an id, a unique prefix of one, or `latest`), but for one task.

    The task, an item of a fan-out that has ended, is done again, and so are those that need it, and all that comes
    after them; what the others came to is kept, and not paid for again. RUN is left as it is; nobody may work on it.

    \b
    Examples:
      codex-multi-role restart latest --task T3
      codex-multi-role restart 20260131_101500 --task T3 --model gpt-5-codex
    """
    folder = RunFolder.find(values["runs_dir"], run)
    changes = changes_for(ctx, folder.record()["options"])
    say_changes(ctx, changes)
    progress = Progress()
    from codex_multi_role import api

    with open_view(progress, as_json=values["json"], quiet=values["quiet"], plain=values["plain"]) as view:
        report = api.restart(
            folder.run_id,
            task,
            runs_dir=folder.path.parent,
            changes=changes,
            on_event=view,
            ask_person=person_at(view, as_json=values["json"], awaited=values["await_answers"]),
        )
    close(ctx, report, progress)
