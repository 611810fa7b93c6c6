"""The step kind ``ask``: one role, one prompt, and everything that follows from it.

turn → repair turns → files → tests, each recorded separately, so that a killed run resumes after the last finished one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from codex_multi_role.catalog import (
    GeneralPrompts,
    RoleSpec,
    StepSpec,
    answer_shape,
    build_continue_prompt,
    build_prompt,
    build_repair_prompt,
    fill,
    instructions_digest,
)
from codex_multi_role.errors import CodexError, RoleFailed
from codex_multi_role.flow import ExpectedAnswer
from codex_multi_role.flow.answer_requirements import Contract, in_words
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import TurnFolder
from codex_multi_role.run_folder.events import FilesApplied, RoleSkipped
from codex_multi_role.run_folder.turn_folder import ANALYSIS, ANALYSIS_PATH
from codex_multi_role.steps.baseline import OFTEN_EMPTY
from codex_multi_role.steps.protection import SHOWN_PATHS, TOLD, protected_among
from codex_multi_role.steps.recovery import finished_before
from codex_multi_role.steps.resources import Recorder, RunResources
from codex_multi_role.steps.test_runs import run_tests, without_tree
from codex_multi_role.steps.turn import store_patch, take_turn
from codex_multi_role.steps.turn_events import says_done
from codex_multi_role.steps.turn_record import (
    COMPLETED,
    CURRENT_THREAD,
    GAVE_UP,
    UNFINISHED,
    WEB_SEARCHES,
    PromptTexts,
    TurnPrompt,
    TurnResult,
)
from codex_multi_role.steps.unit import StepOutcome, Unit
from codex_multi_role.workspace import apply_files

MAX_ANALYSIS_CHARACTERS = 50_000
"""Of an analysis that a prompt has for a role which cannot open files."""
TESTS_TOLD = 20
"""How many tests of a kind a prompt names."""


@dataclass(frozen=True)
class Ask:
    """What a role is asked: the handoff it starts from, the latest test result and the step's own task, all optional.

    ``instance``: the process to ask, named after the role; ``thread`` as in `TurnPrompt`. ``earlier``: the role's own
    last handoff, for a lost thread. ``visit``: the number of this ask of the role. ``tolerate``: a failure is an answer
    and does not end the run. ``copy``: the key of the workspace copy to work in, or empty. ``unit``: the key of the
    asking unit, empty in a team. ``may_decline``: a refusal is an answer, which the next role sees. ``expected``: what
    later steps need of the answer.
    """

    role: RoleSpec
    instance: str
    earlier: Json | None
    visit: int
    cycle: int
    payload: Json | None = None
    tests: Json | None = None
    task: str = ""
    thread: str = CURRENT_THREAD
    tolerate: bool = False
    copy: str = ""
    unit: str = ""
    may_decline: bool = False
    expected: ExpectedAnswer = field(default_factory=ExpectedAnswer)


def ask(run: RunResources, question: Ask, record: Recorder) -> StepOutcome:
    """Carry out the ask. Raises `RoleFailed` or `CodexError` if a failure is not tolerated."""
    question = replace(
        question, role=told_what_is_required(question.role, run.catalog.general_prompts, question.expected.contract)
    )
    turn, tests, tested = _answered(run, question, record), None, ""
    if turn.handoff is None:
        return StepOutcome({}, turn.problem, turn)
    changed, put_back = turn.changed_paths, turn.protected_restored
    # Recorded even if this session's options leave nothing to do, because every session must find the same slots.
    if "files" in turn.handoff:
        with record("apply files") as work:
            if work.is_due:
                work.result = _apply(run, question, turn)
        changed = work.result["changed_paths"]
        put_back = sorted({*put_back, *work.result.get("protected", ())})
    if changed or put_back:
        with record("run tests") as work:
            if work.is_due:
                work.result = _test(run, question, turn, put_back)
        tests, tested = without_tree(run, work.result)
    done = question.role.behaviors.can_finish and says_done(turn.handoff) and not turn.error
    handoff = _passed_on(run, turn, turn.handoff, put_back)
    return StepOutcome(handoff, turn.problem, replace(turn, handoff=handoff), done, tests or None, tested=tested)


def ask_step(_: RunResources, unit: Unit) -> StepOutcome:
    """The step kind ``ask`` for one role."""
    return unit.ask_role(unit)


def role_for(role: RoleSpec, step: StepSpec, prompt: str) -> tuple[RoleSpec, str]:
    """``role`` with the reply and the limits of the step, and its task: the step's ``prompt``, filled in.

    A prompt that replaces the role's instructions is not a task.
    """
    changes: dict[str, Any] = {"prompt_text": prompt} if step.prompt_replaces else {}
    if step.reply is not None:
        changes |= {"output_schema": step.reply, "schema_hint": ""}
    own = step.limits.model_dump(include={"turn_seconds", "idle_seconds"}, exclude_none=True)
    changes["limits"] = role.limits.model_copy(update=own)
    return role.model_copy(update=changes), "" if step.prompt_replaces else prompt


def told_what_is_required(role: RoleSpec, texts: GeneralPrompts, contract: Contract) -> RoleSpec:
    """``role`` with what later steps need after the shape of its answer, so that every prompt of it says so."""
    if not contract:
        return role
    needed = fill(texts.needed_section, {"needed": in_words(contract)})
    shape = answer_shape(texts, role).rstrip()
    return role.model_copy(update={"schema_hint": f"{shape}\n\n{needed}".strip()})


def _answered(run: RunResources, question: Ask, record: Recorder) -> TurnResult:
    """The last turn, with the changes, restored files and searches of all turns it took."""
    asked = _first_prompt(run, question)
    turn = _recorded(run, asked, question, record)
    changed, put_back, searches = set(turn.changed_paths), set(turn.protected_restored), turn.web_searches
    while turn.ask_again:
        asked = _next_prompt(run, asked, turn)
        turn = _recorded(run, asked, question, record)
        changed.update(turn.changed_paths)
        put_back.update(turn.protected_restored)
        searches += turn.web_searches
    return replace(turn, changed_paths=sorted(changed), protected_restored=sorted(put_back), web_searches=searches)


def _next_prompt(run: RunResources, asked: TurnPrompt, turn: TurnResult) -> TurnPrompt:
    if turn.status == UNFINISHED:
        return asked.continuing(turn, build_continue_prompt(run.catalog.general_prompts, asked.role))
    return asked.repairing(turn, build_repair_prompt(run.catalog.general_prompts, asked.role, turn.problem))


def _first_prompt(run: RunResources, question: Ask) -> TurnPrompt:
    texts = run.catalog.general_prompts
    standing = question.role.prompt_text == run.catalog.role(question.role.name).prompt_text  # no step replaces it

    def prompt(earlier: list[Json], known: bool = False) -> str:
        given, before = with_analyses(question.role, [question.payload, earlier], run.services.folder.path)
        goal, tests, task = run.settings.goal, _told(question.tests), question.task
        return build_prompt(texts, question.role, goal, given, tests, task=task, earlier=before, known=known)

    return TurnPrompt(
        role=question.role,
        instance=question.instance,
        texts=PromptTexts(
            prompt=prompt([]),
            when_forgotten=prompt([question.earlier] if question.earlier else []),
            when_known=prompt([], known=True),
            instructions=instructions_digest(texts, question.role) if standing else "",
        ),
        visit=question.visit,
        cycle=question.cycle,
        thread=question.thread,
        unit=question.unit,
        expected=question.expected,
    )


def _recorded(run: RunResources, asked: TurnPrompt, question: Ask, record: Recorder) -> TurnResult:
    """The turn, taken now or before. A tolerated failure becomes a result; any other is raised."""
    repair, step = asked.follows.repair, asked.follows.step
    which = f"repair turn {repair}" if repair else f"continued turn {step}" if step else "turn"
    may_decline = question.tolerate or question.may_decline
    with record(f"{asked.role.name} {which}") as work:
        if work.is_due:
            turn = finished_before(run, work.place, asked.role.name, may_decline=may_decline)
            turn = turn or _taken(run, replace(asked, place=work.place), question)
            work.result = turn.as_json()
    return TurnResult(**work.result)


def _taken(run: RunResources, asked: TurnPrompt, question: Ask) -> TurnResult:
    """The turn, from an observer that knows it already, otherwise from Codex."""
    if question.tests or question.copy or not run.settings.only_reads(question.role.name):
        run.after_baseline()  # anyone else neither changes the files nor reads what the tests say
    in_copy = run.in_copy(question.copy, fresh=asked.follows.repair + asked.follows.step == 0)
    may_decline = question.tolerate or question.may_decline
    try:
        known = (each.take(in_copy, asked, may_decline=may_decline) for each in run.services.observers(in_copy))
        turn = next(filter(None, known), None) or take_turn(in_copy, asked)
        return _accepted(run, question, turn, asked.follows.repair)
    except (RoleFailed, CodexError) as error:
        if not question.tolerate:
            raise
        run.services.events.publish(RoleSkipped(asked.instance, str(error)))
        return TurnResult(asked.role.name, asked.instance, 0, "", "failed", error.reason, str(error))


def _accepted(run: RunResources, question: Ask, turn: TurnResult, repairs: int) -> TurnResult:
    """The turn, if it leaves an answer or another one follows. Raises `RoleFailed` otherwise.

    A refusal is an answer if the role may decline, or if its failure is tolerated.
    """
    if turn.ask_again or turn.status == COMPLETED or (turn.declined and question.may_decline):
        return turn
    folder = run.services.folder
    if turn.status == GAVE_UP:
        raise RoleFailed(f"role {turn.instance} gave up: {turn.problem}", turn.outcome)
    if turn.declined:
        declined = f"role {turn.instance} declined: {turn.problem}"
        if question.tolerate:
            run.services.events.publish(RoleSkipped(turn.instance, declined))
            return turn
        hint = "Provide what it needs, then `codex-multi-role resume RUN` asks it again."
        raise RoleFailed(declined, turn.outcome, hint)
    raise RoleFailed(
        f"role {turn.instance}: no valid reply after {repairs} repair turns: {turn.problem}",
        turn.outcome,
        f"See {folder.role_path(turn.instance)}; raise --repair-attempts or fix the role's prompt, "
        "then `codex-multi-role resume RUN`.",
    )


def _apply(run: RunResources, question: Ask, turn: TurnResult) -> Json:
    """Write ``files[]`` into the workspace if the role may; the turn's patch then covers all changes."""
    if not (question.role.behaviors.apply_files and turn.snapshot):
        return {"changed_paths": turn.changed_paths}
    run = run.in_copy(question.copy, fresh=False)
    folder = TurnFolder.of(run.services.folder, turn.instance, turn.number)
    with run.progress.stays.at(run.workspace.root), run.progress.workspace_lock:
        entries = (turn.handoff or {}).get("files")
        named = named_paths(entries)
        protected = protected_among(run, question.role, named)
        before = run.snapshots.with_ignored(turn.snapshot, named)
        applied = [entry.as_json() for entry in apply_files(run.workspace, entries, protected)]
        folder.write_files(applied)
        written = [str(entry["path"]) for entry in applied if entry["status"] == "WROTE"]
        after = run.snapshots.take(force=written)
        changed = sorted({*turn.changed_paths, *store_patch(run, folder, before, after)})
    event = FilesApplied(turn.instance, turn.number, len(written), len(applied) - len(written), written[:SHOWN_PATHS])
    run.services.events.publish(event)
    return {"changed_paths": changed, "protected": sorted(protected)}


def _test(run: RunResources, question: Ask, turn: TurnResult, put_back: list[str]) -> Json:
    """The test result; empty if the run has no tests."""
    if not run.settings.tests.enabled:
        return {}
    return run_tests(run.in_copy(question.copy, fresh=False), turn.instance, turn.number, put_back=put_back)


def _told(tests: Json | None) -> Json | None:
    """A test result for a prompt: without what it has nothing to say of, and with the first of many tests."""
    if tests is None:
        return None
    kept = {name: value for name, value in tests.items() if value or name not in OFTEN_EMPTY}
    return {name: _first(value) if name.endswith("_tests") else value for name, value in kept.items()}


def _first(tests: list[str]) -> list[str]:
    return [*tests[:TESTS_TOLD], *([f"and {len(tests) - TESTS_TOLD} more"] if len(tests) > TESTS_TOLD else [])]


def _passed_on(run: RunResources, turn: TurnResult, handoff: Json, put_back: list[str]) -> Json:
    """The handoff as the next role and templates see it."""
    seen = TurnFolder.of(run.services.folder, turn.instance, turn.number).passed_on(handoff)
    seen = {name: value for name, value in seen.items() if name != WEB_SEARCHES}  # a role cannot claim it
    restored = {TOLD: put_back} if put_back else {}
    searches = {WEB_SEARCHES: turn.web_searches} if turn.web_searches else {}
    return {**seen, **restored, **searches}


def named_paths(entries: object) -> list[str]:
    """The paths a role's ``files[]`` names, whatever shape it has."""
    listed = entries if isinstance(entries, list) else []
    return [entry["path"] for entry in listed if isinstance(entry, dict) and isinstance(entry.get("path"), str)]


def payload_from(handoffs: dict[str, Any]) -> Json | None:
    """A single handoff as it is, without fields that are null; several under the names of their roles."""
    given = {role: {key: value for key, value in each.items() if value is not None} for role, each in handoffs.items()}
    return next(iter(given.values())) if len(given) == 1 else given or None


def with_analyses(role: RoleSpec, payload: Any, run_folder: Path) -> Any:  # noqa: ANN401 - JSON
    """``payload`` as ``role`` can read it: with the text of each analysis, if all commands of the role are declined."""
    if role.approval_policy != "untrusted" or role.auto_approve.commands:
        return payload
    return _with_texts(payload, run_folder.absolute())


def _with_texts(value: Any, run_folder: Path) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, list):
        return [_with_texts(item, run_folder) for item in value]
    if not isinstance(value, dict):
        return value
    found = {key: _with_texts(item, run_folder) for key, item in value.items() if key != ANALYSIS_PATH}
    if ANALYSIS_PATH not in value:
        return found
    text = _analysis(value[ANALYSIS_PATH], run_folder)
    return {**found, ANALYSIS_PATH: value[ANALYSIS_PATH]} if text is None else {**found, "analysis_md": text}


def _analysis(named: object, run_folder: Path) -> str | None:
    """The text of a turn's analysis; None for any other path, which a model may have written."""
    path = Path(str(named))
    is_of_run = path.parent.parent.parent == run_folder and ".." not in path.parts
    if not is_of_run or path.name != ANALYSIS or not path.is_file():
        return None
    text = path.read_text(encoding="utf-8", errors="replace")
    left_out = len(text) - MAX_ANALYSIS_CHARACTERS
    return text if left_out <= 0 else f"{text[:MAX_ANALYSIS_CHARACTERS]}\n[{left_out} characters left out]"
