"""Shell completion of the names of existing runs, flows, roles and playbooks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from codex_multi_role.presentation.wording import one_line

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Offer = list["CompletionItem"]


def run_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> Offer:
    """Offer ``latest`` and all runs, newest first, each with its goal."""
    from codex_multi_role.presentation.recorded import read_record
    from codex_multi_role.run_folder.folder import LATEST, list_runs

    found = list_runs(Path(ctx.params.get("runs_dir") or "runs"))
    goals = {folder.run_id: str(read_record(folder).get("goal", "")) for folder in reversed(found)}
    return _offer({**({LATEST: "the newest"} if goals else {}), **goals}, incomplete)


def flow_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> Offer:
    from codex_multi_role.catalog import list_flows

    return _offer({flow.name: flow.description for flow in list_flows(_roles_folder(ctx))}, incomplete)


def role_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> Offer:
    from codex_multi_role.lifecycle.definitions import load_catalog

    return _offer(dict.fromkeys((role.name for role in load_catalog(ctx.params.get("roles")).roles), ""), incomplete)


def playbook_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> Offer:
    from codex_multi_role.playbook import list_playbooks

    return _offer(dict.fromkeys(list_playbooks(_roles_folder(ctx)), ""), incomplete)


def _roles_folder(ctx: click.Context) -> Path:
    from codex_multi_role.lifecycle.definitions import roles_folder

    return roles_folder(ctx.params.get("roles"))


def _offer(named: dict[str, str], incomplete: str) -> Offer:
    from click.shell_completion import CompletionItem

    return [
        CompletionItem(name, help=one_line(words, 80)) for name, words in named.items() if name.startswith(incomplete)
    ]
