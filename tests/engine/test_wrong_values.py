"""Values that only a run knows, and that a step cannot use: its failure, never a wrong usage. No process is started."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codex_multi_role.errors import DefinitionError
from codex_multi_role.reading.json_types import Json
from tests.support.scripted import FAILS, Play, Script, Walked

PLAN: Json = {"id": "plan", "ask": "one"}
COMMAND: Json = {"id": "run", "check": "command"}


@dataclass(frozen=True)
class Case:
    """``steps`` follow the step ``plan``, whose role answers ``answer``.

    ``step``: the one that fails, where ``where`` is written in its line of the file. ``problem``: in the reason.
    ``again``: the visit to fork from.
    """

    name: str
    answer: Json
    steps: list[Json]
    step: str
    where: str
    problem: str
    again: str = "plan:1"


def build(**keys: object) -> Json:
    return {"id": "build", "ask": "two", **keys}


def tasks(*needs: list[str]) -> Json:
    return {"tasks": [{"id": f"T{number}", "needs": each} for number, each in enumerate(needs)]}


EACH: Json = {"for_each": "{{ steps.plan.tasks }}", "as": "task", "max_items": 2}
WHEN = [{"when": "steps.plan.score >= 8", "end": "good"}]
COUNTED = {"set": {"n": "{{ vars.n + steps.plan.found }}"}}
CASES = (
    Case("prompt-missing", {}, [build(prompt="Do {{ steps.plan.brief }}.")], "build", "prompt",
         '"brief" has no value (steps.plan.brief is missing)'),
    Case("prompt-null", {"brief": None}, [build(prompt="{{ steps.plan.brief }}")], "build", "prompt",
         "gives no text (steps.plan.brief is null)"),
    Case("prompt-number-of-null", {"n": None}, [build(prompt="Do {{ steps.plan.n + 1 }}.")], "build", "prompt",
         '"+" cannot be applied to null and a number (steps.plan.n is null)'),
    Case("prompt-too-long", {"text": "x" * 600_000}, [build(prompt="{{ steps.plan.text }} {{ steps.plan.text }}")],
         "build", "prompt", "gives more than 1048576 characters"),
    Case("prompt-text-for-mapping", {"task": "sort"}, [build(prompt="Do {{ steps.plan.task.title }}.")], "build",
         "prompt", '"title" has no value (steps.plan.task.title is missing)'),
    Case("with-missing", {}, [build(**{"with": {"a": {"b": ["{{ steps.plan.brief }}"]}}})], "build", "with.a.b[0]",
         '"brief" has no value'),
    Case("role-missing", {}, [build(prompt="Do {{ roles.one.brief }}.")], "build", "prompt", '"brief" has no value',
         "build:1"),
    Case("review-missing", {}, [{"id": "ok", "review": "Is {{ steps.plan.brief }} right?"}], "ok", "review",
         '"brief" has no value'),
    Case("show-missing", {}, [{"id": "ok", "review": "Right?", "show": "{{ steps.plan.brief }}"}], "ok", "show",
         '"brief" has no value'),
    Case("call-input", {"n": "many"}, [{"id": "sub", "call": "inner", "with": {"n": "{{ steps.plan.n }}"}}], "sub", "",
         'flow inner: the input "n" is not of type integer: \'many\''),
    Case("tasks-missing", {}, [build(**EACH)], "build", "for_each", '"tasks" has no value'),
    Case("tasks-null", {"tasks": None}, [build(**EACH)], "build", "for_each", "must be a list, not null"),
    Case("tasks-text", {"tasks": "a, b"}, [build(**EACH)], "build", "for_each",
         'must be a list, not a text (steps.plan.tasks is "a, b")'),
    Case("tasks-mapping", {"tasks": {"a": 1}}, [build(**EACH)], "build", "for_each", "must be a list, not an object"),
    Case("too-many-tasks", {"tasks": [1, 2, 3]}, [build(**EACH)], "build", "for_each", "3 items, max_items is 2"),
    Case("concurrency-text", {"tasks": [1], "most": "two"}, [build(**EACH, concurrency="{{ steps.plan.most }}")],
         "build", "concurrency", "must be a number from 1 to 64, not 'two'"),
    Case("item-lacks-field", {"tasks": ["a"]}, [build(**EACH, prompt="{{ task.title }}")], "build", "prompt",
         '"title" has no value (task.title is missing)'),
    Case("needs-unknown", tasks(["T9"]), [build(**EACH, needs="{{ task.needs }}")], "build", "needs",
         "T0 needs ['T9']: must be a list of item ids"),
    Case("needs-circular", tasks(["T1"], ["T0"]), [build(**EACH, needs="{{ task.needs }}")], "build", "needs",
         "items depend on each other: T0 -> T1 -> T0"),
    Case("needs-text", {"tasks": [{"id": "A", "needs": 7}]}, [build(**EACH, needs="{{ task.needs }}")], "build",
         "needs", "A needs 7: must be a list of item ids"),
    Case("argv-mapping", {"n": {"a": 1}}, [{**COMMAND, "with": {"argv": ["echo", "{{ steps.plan.n }}"]}}], "run", "",
         'check command: argv[1]: must be text, not {"a": 1}'),
    Case("argv-too-long", {"n": "x" * 140_000}, [{**COMMAND, "with": {"argv": ["echo", "{{ steps.plan.n }}"]}}], "run",
         "", "check command: argv: argument 1 has 140000 bytes, programs get at most 131071"),
    Case("option-text", {"n": "soon"},
         [{**COMMAND, "with": {"argv": ["echo"], "timeout_seconds": "{{ steps.plan.n }}"}}], "run", "",
         "check command: timeout_seconds: input should be a valid number, not 'soon'"),
    Case("candidates-text", {"found": "none"},
         [{"id": "run", "check": "choose", "with": {"candidates": "{{ steps.plan.found }}", "by": [{"key": "a",
          "prefer": "highest"}]}}], "run", "", "check choose: candidates: input should be a valid list, not 'none'"),
)  # fmt: skip
OWN = (
    Case("when-missing", {}, [{"next": WHEN}], "plan", "next[0].when", '"score" has no value'),
    Case("when-null", {"score": None}, [{"next": WHEN}], "plan", "next[0].when",
         '">=" cannot compare null with a number (steps.plan.score is null)'),
    Case("when-text", {"score": "9"}, [{"next": WHEN}], "plan", "next[0].when",
         '">=" cannot compare a text with a number (steps.plan.score is "9")'),
    Case("when-list", {"score": [9]}, [{"next": WHEN}], "plan", "next[0].when",
         '">=" cannot compare a list with a number (steps.plan.score is [9])'),
    Case("set-missing", {}, [COUNTED], "plan", "set.n", '"found" has no value'),
    Case("set-text", {"found": "two"}, [COUNTED], "plan", "set.n", '"+" cannot be applied to a number and a text'),
)  # fmt: skip
"""In the ``set`` and ``next`` of the step ``plan`` itself: its keys are the only element of ``steps``."""
EVERY = [*CASES, *OWN]


def steps_of(case: Case) -> list[Json]:
    return [PLAN | case.steps[0], {"id": "end", "ask": "two"}] if case in OWN else [PLAN, *case.steps]


def walk(folder: Path, steps: list[Json], *plays: Play) -> Walked:
    inner = {"name": "inner", "inputs": {"n": 1}, "steps": [{"id": "last", "ask": "two"}]}
    script = Script(folder, {"one": plays, "two": [{}]})
    return script.walk({"vars": {"n": 0}, "steps": steps}, inner)


@pytest.mark.parametrize("case", EVERY, ids=[case.name for case in EVERY])
def test_wrong_value_fails_the_step_that_gets_it(case: Case, tmp_path: Path) -> None:
    walked = walk(tmp_path, steps_of(case), case.answer)
    ending = walked.ending
    assert (ending.status, ending.outcome, ending.exit_code) == ("failed", "wrong_value", 3), ending
    flow = tmp_path / "roles" / "flows" / "own.yaml"
    place, _, rest = ending.reason.partition(f": step {case.step}: ")
    file, line, _ = place.rsplit(":", 2)
    assert Path(file).resolve() == flow.resolve()
    written = flow.read_text().splitlines()[int(line) - 1]
    assert rest.startswith(f"{case.where}: {case.problem}" if case.where else case.problem), ending.reason
    assert (case.where.rpartition(".")[2].partition("[")[0] or "- ") in written
    assert ending.suggestion == f"fork RUN --from {case.again}"
    assert walked.path[-1] == case.step
    assert len(walked.asks) == 1


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_wrong_value_can_be_skipped_like_a_failure(case: Case, tmp_path: Path) -> None:
    """Not what a person is to see, and not the list of a fan-out, of which only items can be skipped."""
    if "review" in case.steps[0]:
        return
    walked = walk(tmp_path, [PLAN, {**case.steps[0], "on_error": "skip"}, {"id": "end", "ask": "two"}], case.answer)
    if case.where in ("for_each", "concurrency", "needs"):
        assert (walked.ending.outcome, walked.ending.exit_code) == ("wrong_value", 3), walked.ending
    elif "for_each" in case.steps[0]:
        assert (walked.ending.outcome, walked.ending.exit_code) == ("build_failed", 1), walked.ending
        assert case.problem in walked.ending.reason
    else:
        assert walked.ending.outcome == "success", walked.ending
        assert (walked.state.steps[case.step].status, walked.path[-1]) == ("failed", "end")
        assert case.problem in walked.state.steps[case.step].error


@pytest.mark.parametrize("case", EVERY, ids=[case.name for case in EVERY])
def test_wrong_value_in_a_called_flow_fails_the_call(case: Case, tmp_path: Path) -> None:
    called = {"name": "whole", "vars": {"n": 0}, "steps": steps_of(case)}
    inner = {"name": "inner", "inputs": {"n": 1}, "steps": [{"id": "last", "ask": "two"}]}
    script = Script(tmp_path, {"one": [case.answer], "two": [{}]})
    walked = script.walk({"steps": [{"id": "sub", "call": "whole"}]}, called, inner)
    assert (walked.ending.outcome, walked.ending.exit_code) == ("wrong_value", 3), walked.ending
    assert (walked.ending.suggestion, walked.path[-1]) == ("fork RUN --from sub:1", f"sub/{case.step}")
    skipping = {"id": "sub", "call": "whole", "on_error": "skip"}
    walked = Script(tmp_path / "skips", {"one": [case.answer], "two": [{}]}).walk(
        {"steps": [skipping, {"id": "end", "ask": "two"}]}, called, inner
    )
    assert (walked.ending.outcome, walked.state.steps["sub"].status) == ("success", "failed"), walked.ending
    assert case.problem in walked.state.steps["sub"].error


def test_wrong_value_is_tried_again_like_a_failure(tmp_path: Path) -> None:
    step = build(prompt="{{ steps.plan.brief }}", retry={"attempts": 2, "backoff_seconds": 0})
    assert walk(tmp_path, [PLAN, step], {}).ending.outcome == "wrong_value"


def test_only_the_item_with_the_wrong_value_fails(tmp_path: Path) -> None:
    step = build(**EACH, prompt="Do {{ task.title }}.", on_error="skip")
    walked = walk(tmp_path, [PLAN, step], {"tasks": [{"title": "a"}, {"name": "b"}]})
    results = walked.state.steps["build"].output["results"]
    assert [each["status"] for each in results] == ["done", "failed"]
    assert "task.title is missing" in results[1]["error"]
    assert [ask.task for ask in walked.asks[1:]] == ["Do a."]


def test_number_of_the_next_ask_is_not_drawn_by_a_failed_template(tmp_path: Path) -> None:
    step = build(prompt="{{ steps.plan.brief }}", on_error="skip")
    walked = walk(tmp_path, [PLAN, step, {"id": "end", "ask": "two"}], {})
    assert [ask.visit for ask in walked.asks] == [1, 1]


def test_step_that_reads_a_skipped_one_fails(tmp_path: Path) -> None:
    steps = [{**PLAN, "on_error": "skip", "next": WHEN}]
    assert walk(tmp_path, steps, FAILS).ending.outcome == "wrong_value"


@pytest.mark.parametrize(
    "step", [build(prompt="{{ inputs.n.most }}"), {**COMMAND, "with": {"argv": ["x", "{{ inputs }}"]}}]
)
def test_wrong_value_of_the_first_step_is_wrong_usage(step: Json, tmp_path: Path) -> None:
    """Nothing was spent, and no result is to blame."""
    walked = Script(tmp_path, {"two": [{}]}).walk({"inputs": {"n": 1}, "steps": [step]})
    assert (walked.ending.outcome, walked.ending.exit_code) == ("wrong_usage", 2), walked.ending
    assert walked.ending.suggestion == ""


_NAMES = st.sampled_from(["tasks", "id", "needs", "title", "n", "items"])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3) | st.sampled_from(["T0", "\ud800", "{{ x }}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=6,
)
_LISTS = st.sampled_from(["steps.plan.tasks", "steps.plan.items", "roles.one.needs", "steps.plan.tasks[0].needs"])
_READS = _LISTS | st.sampled_from(
    ["steps.plan.n + 1", "steps.plan.items | length", "steps.plan.tasks[0].title", "roles.one.n ~ steps.plan.n"],
)
_ITEMS = _READS | st.sampled_from(["task", "task.title", "task.needs | join", "task.n + 1"])


@settings(max_examples=25)
@given(st.dictionaries(_NAMES, _VALUES), st.lists(_LISTS, min_size=3, max_size=3), st.lists(_READS, min_size=4),
       st.lists(_ITEMS, min_size=2), st.booleans(), st.permutations(range(6)))  # fmt: skip
def test_no_answer_ends_a_run_as_wrong_usage(
    tmp_path_factory: pytest.TempPathFactory,
    answer: Json,
    lists: list[str],
    reads: list[str],
    items: list[str],
    skips: bool,
    order: list[int],
) -> None:
    """A flow that reads the answer everywhere, in ways that fit some answers only."""
    given, (first, second, third), own = ([f"{{{{ {each} }}}}" for each in those] for those in (reads, lists, items))
    skip, by = {"on_error": "skip"} if skips else {}, [{"key": "n", "prefer": "highest"}]
    steps: list[Json] = [
        {"id": "note", "ask": "two", "set": {"n": given[0]}},
        build(**EACH | {"for_each": first}, needs="{{ task.needs | default([]) }}", prompt=f"Do {own[0]}.", **skip),
        {"id": "some", "ask": "two", **EACH | {"for_each": second}, "prompt": own[1], **skip},
        {"id": "sub", "call": "inner", "with": {"n": given[1]}, **skip},
        {"id": "run", "check": "choose", "with": {"candidates": third, "by": by}, **skip},
        {"id": "end", "ask": "two", "prompt": given[2], "next": [{"when": reads[3], "end": "one"}]},
    ]
    with suppress(DefinitionError):  # such as an input that cannot be a text
        ordered = [PLAN, *(steps[index] for index in order)]
        ending = walk(tmp_path_factory.mktemp("random"), ordered, answer).ending
        code = {"wrong_value": 3, "one": 0, "success": 0, "some_failed": 1, "build_failed": 1, "run_failed": 1}
        assert ending.exit_code == code[ending.outcome], ending
        assert ending.exit_code != 3 or "own.yaml:" in ending.reason
