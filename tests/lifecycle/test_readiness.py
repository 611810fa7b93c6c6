from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.errors import UsageError
from codex_multi_role.lifecycle.dry_run import dry_run
from tests.support.teams import Record, TeamFolder, say, with_flow

pytestmark = pytest.mark.usefixtures("scripted_codex")

FINISHES: Record = {"behaviors": {"can_finish": True}}


def test_missing_input_file_stops_before_there_is_a_run(tmp_path: Path) -> None:
    team = with_flow(
        TeamFolder(tmp_path, {"one": {}}, {"one": [say()]}),
        {"inputs": {"target": {"type": "path", "must_exist": True}}, "steps": [{"ask": "one"}]},
    )
    (team.workspace / "sign.py").touch()
    for start in (team.run, lambda **options: dry_run(team.options(**options))):
        with pytest.raises(UsageError, match=r"the input target is not .*/sing\.py; did you mean \"sign\.py\"\?$"):
            start(flow="own", inputs={"target": "sing.py"})
    assert not team.runs.exists()
    assert team.run(flow="own", inputs={"target": "sign.py"}).exit_code == 0


@pytest.mark.parametrize(
    ("roles", "plays", "missing"),
    [
        ({"one": {}, "two": {}, "three": {}}, {"one": [say()]}, "two, three"),
        ({"one": FINISHES, "two": {}}, {"one": [say()]}, "two"),
        ({"one": {}}, {"other": [say()]}, "one"),
        ({"one": {}}, {}, "one"),
    ],
)
def test_playbook_of_another_team_starts_nothing(
    tmp_path: Path, roles: dict[str, Record], plays: dict[str, list[Record]], missing: str
) -> None:
    team = TeamFolder(tmp_path, roles, plays)
    with pytest.raises(UsageError, match=f"test cannot play this team: it has no answers for {missing}$") as caught:
        team.run()
    assert caught.value.hint.startswith(f"It has answers for {', '.join(plays) or 'no role'}. ")
    assert not team.runs.exists()


def test_playbook_may_leave_out_roles_that_need_not_be_asked(tmp_path: Path) -> None:
    """A role may finish, or fail, before them; a condition may lead past them; `default` answers for any role."""
    done = TeamFolder(tmp_path / "done", {"one": FINISHES, "two": {}}, {"one": [say(status="DONE")]})
    assert done.run().outcome == "done"
    rest = TeamFolder(tmp_path / "rest", {"one": {}, "two": {}}, {"one": [say()]}, {"default": say()})
    assert rest.run().outcome == "cycles_used_up"
    routed = with_flow(
        TeamFolder(tmp_path / "routed", {"one": {}, "two": {}}, {"one": [say()]}),
        {"steps": [{"ask": "one", "next": [{"when": "steps.one.summary", "end": "enough"}]}, {"ask": "two"}]},
    )
    assert routed.run(flow="own").outcome == "enough"
