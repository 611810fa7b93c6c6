"""What a scenario is: the data of a run that a fault strikes, and how it becomes a team and command lines."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from codex_multi_role.lifecycle.model_providers import provider_settings
from tests.support.console import WITHOUT_PLUGINS
from tests.support.disks import PERSON, Disk, git_in
from tests.support.teams import LIMITS, Record, TeamFolder, with_flow

# pytest as the package would run it, without the plugins that happen to be installed: they are most of its start.
PYTEST = shlex.join(["env", f"{WITHOUT_PLUGINS}=1", sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"])


@dataclass(frozen=True, kw_only=True)
class Struck:
    """``kinds``: of the places at which a fault can strike. By default, the work is that of many machines."""

    name: str
    kinds: Collection[str] = ("store", "database")
    concurrency: int = 1


@dataclass(frozen=True, kw_only=True)
class Scenario(Struck):
    """``plays``: what the model answers each role, ask by ask. ``flows``: files of the catalog's, by name; the run
    walks ``flow``. ``files``: the workspace before the run, content and mode by path; ``committed``: to a repository of
    the user's. ``concurrency``: how many turns can be under way at once. ``options``: more of the command line.
    ``racers``: roles that are cancelled, nobody knows when; each is asked at most once by each process.
    """

    kinds: Collection[str] = ("journal", "wire", "files", "children", "starts", "ends", "below")
    roles: Mapping[str, Record]
    plays: Mapping[str, list[Record]]
    files: Mapping[str, tuple[str, int]]
    flow: str = "cycles"
    flows: Mapping[str, Record] = field(default_factory=dict)
    cycles: int = 1
    committed: bool = False
    racers: Collection[str] = ()
    options: Sequence[str] = ()

    def new_team(self, folder: Path, disk: Disk | None = None, limits: Mapping[str, float] = LIMITS) -> TeamFolder:
        """The team in ``folder``, and the workspace it finds. ``disk``: where that folder is, if it is one's own."""
        roles = {name: {**keys, "limits": dict(limits)} for name, keys in self.roles.items()}
        team = TeamFolder(folder, roles, dict(self.plays))
        for path, (content, mode) in self.files.items():
            (team.workspace / path).write_text(content)
            (team.workspace / path).chmod(mode)
        for name, flow in self.flows.items():
            with_flow(team, flow, name)
        if self.committed:
            for arguments in (["init", "--quiet"], ["add", "--all"], [*PERSON, "commit", "--quiet", "--message=begin"]):
                git_in(team.workspace, disk, *arguments).check_returncode()
        return team

    def run_arguments(self, team: TeamFolder, base_url: str, run_id: str) -> list[str]:
        """The command line of the run; its model is the playbook server at ``base_url``, of another process."""
        settings = provider_settings("playbook", "playbook", base_url, "playbook")
        options = {
            "--goal": "reach it",
            "--flow": self.flow,
            "--cycles": str(self.cycles),
            "--roles": str(team.folder / "roles"),
            "--workspace": str(team.workspace),
            "--run-id": run_id,
        }
        given = [part for option in options.items() for part in option]
        configured = [part for each in settings for part in ("-c", each)]
        return ["run", *given, *self.options, *configured, *_common_arguments(team)]

    def resume_arguments(self, team: TeamFolder, run_id: str) -> list[str]:
        """The command line that continues the run."""
        return ["resume", run_id, *_common_arguments(team)]


def _common_arguments(team: TeamFolder) -> list[str]:
    return ["--runs-dir", str(team.runs), "--quiet"]
