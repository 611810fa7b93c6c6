"""Workflows played with the answers of a case: walked without any process, or as a run on the real binary."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import yaml

from codex_multi_role import RunOptions, RunReport, run
from codex_multi_role.catalog.templates import evaluate
from codex_multi_role.checks import find_check
from codex_multi_role.checks.contract import as_json
from codex_multi_role.errors import Ending, RoleFailed
from codex_multi_role.flow.answer_requirements import removable_nulls
from codex_multi_role.lifecycle.team_loading import load_team
from codex_multi_role.playbook.request import AnswerKey, NextStepRequest
from codex_multi_role.playbook.script import Playbook
from codex_multi_role.playbook.selection import Message, select
from codex_multi_role.reading.json_types import Json
from codex_multi_role.replies import Reply, read_reply, unusable, without
from codex_multi_role.run_folder import Answer, Question
from codex_multi_role.steps import Unit
from codex_multi_role.steps.ask import Ask
from tests.support.scripted import Result, Said, Script
from tests.support.teams import with_traceback
from tests.support.workspaces import Program, write_files

WORKFLOWS = Path(__file__).parent / "workflows"
COUNTS: Json = {"passed": 0, "failed": 0, "errors": 0, "skipped": 0}
UNSTATED: Mapping[str, Json] = {
    "command": {
        **dict.fromkeys(("reason", "stdout", "stderr", "output_path", "command"), ""),
        **{"truncated": False, "json": None, "seconds": 0.0, "sandbox": True},
    },
    "tests": {"reason": "", **COUNTS, "failures": [], "seconds": 0.0, "output_tail": "", "command": "pytest"},
    "merge": {"paths": [], "conflicts": [], "merges": []},
}
"""What the results of checks that start processes have unless an answers file says otherwise."""


@dataclass(frozen=True)
class Answers:
    """One file of answers: what the roles, the checks and a person say.

    ``playbook``: the file's ``roles``, as in a playbook. ``checks`` and ``merges`` by step, as in `Script`; a result
    with a ``when`` is that of the items for which the condition holds. ``reviews``: in order; in the file a mapping
    each. ``files``: programs in the workspace of a run on the real binary, where the checks really run; ``leaves``: its
    files afterwards. ``ends``: the exit code, and the outcome unless the rules leave it open.
    """

    playbook: Playbook
    checks: Mapping[str, Sequence[Json]] = field(default_factory=dict)
    merges: Mapping[str, Sequence[Json]] = field(default_factory=dict)
    reviews: Sequence[Said] = ()
    inputs: Json = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    leaves: Mapping[str, str] = field(default_factory=dict)
    ends: Sequence[int | str] = (0,)
    on_binary: bool = False

    @classmethod
    def load(cls, path: Path) -> Answers:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        roles = yaml.safe_dump({"name": path.stem, "roles": content.pop("roles", {})})
        reviews = [Said(**each) for each in content.pop("reviews", ())]
        return cls(playbook=Playbook.parse(roles, path), reviews=reviews, **content)

    def expects(self, exit_code: int, outcome: str) -> bool:
        return [*self.ends] == [exit_code, outcome][: len(self.ends)]


def walk(roles: Path, answers: Answers, folder: Path) -> Ending:
    """Walk the flow of the catalog's name without any process; ``folder``: for what the walk writes."""
    flows, catalog = load_team(roles.name, roles)
    script = Script(
        folder,
        {role.name: [partial(reply_of, answers.playbook)] for role in catalog.roles},
        {step: results_of(given) for step, given in answers.checks.items()},
        answers.reviews,
        answers.merges,
        judged=True,
    )
    return script.walk_loaded(roles.name, flows, catalog, answers.inputs).ending


def reply_of(playbook: Playbook, ask: Ask) -> Json | RoleFailed:
    """What the role's turn leaves. A wrong answer has no repair turns."""
    prompt = f"{ask.role.prompt_text}\n{ask.task}\n{json.dumps(ask.payload)}"
    key = AnswerKey(ask.role.name, ask.visit, 0, 1)
    answer = select(playbook, NextStepRequest("turn", (), 0, key, prompt, ask.unit)).answer
    assert isinstance(answer, Message)
    reply = read_reply(answer.text, ask.role.output_schema)
    if reply.refusal:
        return RoleFailed(f"role {ask.role.name} declined: {reply.refusal}", "declined")
    if reply.handoff is None:
        return RoleFailed(f"role {ask.role.name}: no valid reply: {reply.problem}", "invalid_reply")
    return reply.handoff


def read(text: str, question: Ask) -> Reply:
    """As a turn reads it."""
    reply = read_reply(text, question.role.output_schema)
    if reply.handoff is None or reply.refusal:
        return reply
    reply = without(reply, removable_nulls(question.expected.contract, reply.handoff))
    problems = question.expected.problems(reply.handoff or {})
    return unusable(reply, problems) if problems else reply


def results_of(given: Sequence[Json]) -> list[Result]:
    if any("when" in each for each in given):
        return [partial(_of_item, given)]
    return [partial(_result, each) for each in given]


def _of_item(given: Sequence[Json], unit: Unit) -> Json:
    matching = (each for each in given if evaluate(each.get("when", "true"), unit.context, unit.where))
    return _result({key: value for key, value in next(matching).items() if key != "when"}, unit)


def _result(given: Json, unit: Unit) -> Json:
    """The whole result of the unit's check, which its model accepts."""
    name = unit.step.check or ""
    model = find_check(name).result
    assert model is not None
    result: Json = as_json(model.model_validate({**UNSTATED.get(name, {}), **given}))
    return {**result, "number": 1} if name == "tests" else result


def play(roles: Path, answers: Answers, folder: Path) -> RunReport:
    """The same as a run on the real binary, in a workspace of its own below ``folder``."""
    workspace, playbook = folder / "workspace", folder / "playbook.yaml"
    workspace.mkdir()
    playbook.write_text(answers.playbook.text, encoding="utf-8")
    write_files(workspace, {name: Program(text) for name, text in answers.files.items()})
    options = RunOptions(
        goal="reach it",
        flow=roles.name,
        roles=roles,
        inputs=answers.inputs,
        workspace=workspace,
        runs_dir=folder / "runs",
        playbook=str(playbook),
        run_tests=False,
        repair_attempts=0,
        cycles=1,
    )
    return with_traceback(run(options, ask_person=_person(answers.reviews)))


def _person(reviews: Sequence[Said]) -> Callable[[Question, object], Answer | None]:
    left = iter(reviews)
    return lambda question, _: answer.to(question) if (answer := next(left, None)) else None
