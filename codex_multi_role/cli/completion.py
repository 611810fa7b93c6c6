"""Shell completion: the script that a shell needs, and the names of runs, flows, roles and playbooks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from codex_multi_role.cli.output import put_text
from codex_multi_role.errors import UsageError
from codex_multi_role.presentation.recorded import read_record
from codex_multi_role.presentation.wording import one_line
from codex_multi_role.run_folder.folder import LATEST, PROGRAM, list_runs

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

VARIABLE = "_CODEX_MULTI_ROLE_COMPLETE"
Offer = list["CompletionItem"]


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands, options, runs, flows and roles in SHELL.

    The script calls this program whenever you press Tab.

    \b
    Examples:
      eval "$(codex-multi-role completion bash)"      in ~/.bashrc; bash >= 4.4
      eval "$(codex-multi-role completion zsh)"       in ~/.zshrc, after compinit
      codex-multi-role completion fish | source       in config.fish
    """
    from click.shell_completion import get_completion_class

    shell_class = get_completion_class(shell)
    if shell_class is None:  # a click release that no longer supports this shell
        raise UsageError(f"completion for {shell} is not supported")
    script = shell_class(ctx.find_root().command, {}, PROGRAM, VARIABLE)
    put_text(script.source_template % script.source_vars(), exact=True)


def run_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> Offer:
    """Offer ``latest`` and all runs, newest first, each with its goal."""
    found = list_runs(Path(ctx.params.get("runs_dir") or "runs"))
    goals = {folder.run_id: str(read_record(folder).get("goal", "")) for folder in reversed(found)}
    return _offer({**({LATEST: "the newest run"} if goals else {}), **goals}, incomplete)


def flow_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> Offer:
    from codex_multi_role.catalog import list_flows

    flows = list_flows(_roles_folder(ctx))
    return _offer({flow.name: flow.description for flow in flows if not flow.is_internal}, incomplete)


def role_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> Offer:
    from codex_multi_role.lifecycle.team_loading import load_catalog

    return _offer(dict.fromkeys((role.name for role in load_catalog(ctx.params.get("roles")).roles), ""), incomplete)


def playbook_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> Offer:
    from codex_multi_role import playbook

    return _offer(dict.fromkeys(playbook.playbook_names(_roles_folder(ctx)), ""), incomplete)


def _roles_folder(ctx: click.Context) -> Path:
    from codex_multi_role.lifecycle.team_loading import roles_folder

    return roles_folder(ctx.params.get("roles"))


def _offer(named: dict[str, str], incomplete: str) -> Offer:
    from click.shell_completion import CompletionItem

    offered = (name for name in named if name.startswith(incomplete) and name.isprintable())
    return [CompletionItem(name, help=one_line(named[name], 80)) for name in offered]
