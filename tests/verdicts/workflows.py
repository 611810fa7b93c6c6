"""Workflows of other products as flows of ours, and how each ends with good and with bad answers.

A workflow is in ``workflows/<name>/``: a catalog, the flow ``<name>`` with those that it calls, and its ``answers/``.
The flows keep what is characteristic of their source: its routes, its fan-out, its questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "workflows"
CONDUCTOR = "microsoft/conductor: examples"
ARCHON = "coleam00/Archon: .archon/workflows"
SMITHERS = "smithersai/smithers: examples"


@dataclass(frozen=True)
class Ended:
    """``outcome``: empty if the rules decide only the exit code."""

    exit_code: int
    outcome: str = ""


SUCCESS, DECLINED, WRONG_USAGE = Ended(0, "success"), Ended(3, "declined"), Ended(2, "wrong_usage")
INVALID_REPLY = Ended(3, "invalid_reply")
STEP_FAILED = Ended(1)
"""A bad result that was neither routed nor continued: the flow ends with exit 1 and the reason."""


@dataclass(frozen=True)
class Case:
    """``answers``: the name of their file. ``before``: how the run ends without verdicts.

    ``by_rules``: how it must end by the three rules of verdicts, written by hand, with the reason ``why``; None: the
    same as there. ``on_binary``: whether it is also played on the real binary. ``to_keep``: if the rules end it in
    another way than its source, what the flow needs to end as there.
    """

    answers: str
    before: Ended
    why: str
    by_rules: Ended | None = None
    on_binary: bool = False
    to_keep: str = ""

    @property
    def expected(self) -> Ended:
        return self.by_rules or self.before

    def is_met(self, exit_code: int, outcome: str) -> bool:
        """Whether a run that ended so ended as expected."""
        return self.expected in (Ended(exit_code, outcome), Ended(exit_code))


@dataclass(frozen=True)
class Workflow:
    """``source``: the project and the file. ``trick``: a step or form that only replaces what flows cannot express."""

    name: str
    source: str
    shows: str
    good: Sequence[Case]
    bad: Sequence[Case]
    trick: str = ""

    @property
    def folder(self) -> Path:
        return FOLDER / self.name

    @property
    def cases(self) -> Sequence[Case]:
        return (*self.good, *self.bad)


def good(before: Ended = SUCCESS, answers: str = "good", *, on_binary: bool = False) -> Case:
    """A case in which nothing goes wrong, or only what the flow repairs."""
    return Case(answers, before, "every bad result is routed by its own step, or absent", on_binary=on_binary)


FROM_CONDUCTOR = (
    Workflow(
        "for-each",
        f"{CONDUCTOR}/for-each-simple.yaml",
        "a fan-out that continues on errors (continue_on_error), then a reducer",
        [good()],
        [
            Case("one-item-fails", SUCCESS, "under on_error: skip, good items are left"),
            Case("every-item-fails", SUCCESS, "under on_error: skip, no item is good", STEP_FAILED),
        ],
    ),
    Workflow(
        "parallel-validation",
        f"{CONDUCTOR}/parallel-validation.yaml",
        "four validators at once, all or nothing; three ways on, by the answer of a role",
        [good(Ended(0, "approved"))],
        [
            Case("rejected", Ended(0, "rejected"), "a role's answer has no verdict, and the author named that end"),
            Case("one-validator-fails", DECLINED, "a failed item without on_error: skip ends the run"),
        ],
    ),
    Workflow(
        "set-step",
        f"{CONDUCTOR}/set-step.yaml",
        "values derived from inputs, a route by them, programs as the last steps",
        [good(Ended(0, "announced_as_breaking"))],
        [
            Case(
                "announcement-fails",
                Ended(0, "announced_as_breaking"),
                "exit 1, and the entry that is taken has no condition that reads it",
                STEP_FAILED,
            ),
        ],
        "the command `true`, because a route needs a step before it",
    ),
    Workflow(
        "script-typed-output",
        f"{CONDUCTOR}/script-typed-output.yaml",
        "a program whose JSON has a declared form, and routes by its fields",
        [good(Ended(0, "planned"), on_binary=True)],
        [
            Case(
                "other-form",
                Ended(0, "planned"),
                "the schema does not match, and the conditions of its step read another step",
                STEP_FAILED,
                on_binary=True,
            ),
            Case("program-fails", WRONG_USAGE, "exit 1 without a route, before its output is read", STEP_FAILED, True),
        ],
        "a step `schema`, because a program's output has no declared form",
    ),
    Workflow(
        "script-stdin",
        f"{CONDUCTOR}/script-stdin.yaml",
        "a role's answer as the input of a program, which is the last step",
        [good()],
        [Case("program-fails", SUCCESS, "exit 1 of the last step", STEP_FAILED)],
        "the input is an argument, because commands have no standard input",
    ),
    Workflow(
        "subflow-for-each",
        f"{CONDUCTOR}/subworkflow-foreach-inline.yaml",
        "a called flow per item that continues on errors",
        [good()],
        [
            Case("one-flow-ends-without-its-goal", SUCCESS, "a bad item; under on_error: skip, good ones are left"),
            Case("every-flow-ends-without-its-goal", SUCCESS, "under on_error: skip, no item is good", STEP_FAILED),
        ],
    ),
    Workflow(
        "subflow",
        f"{CONDUCTOR}/subworkflow-inline.yaml",
        "a called flow, whose answer the next step reads",
        [good()],
        [Case("flow-ends-without-its-goal", SUCCESS, "a called flow that ended with exit 1, unrouted", STEP_FAILED)],
    ),
    Workflow(
        "terminate",
        f"{CONDUCTOR}/terminate.yaml",
        "named ends with and without success, by the output of a program",
        [good(), good(Ended(0, "no_change"), "nothing-to-do")],
        [
            Case("unsafe", Ended(1, "aborted"), "the flow's own end"),
            Case("precheck-fails", SUCCESS, "exit 1, but the conditions of its step read the output, if not the code"),
            Case(
                "precheck-fails-without-output",
                WRONG_USAGE,
                "exit 1, and no entry can be taken, because no condition can be evaluated",
                STEP_FAILED,
            ),
        ],
    ),
    Workflow(
        "wait-loop",
        f"{CONDUCTOR}/wait-step.yaml",
        "a program asked again after a pause, for a bounded number of attempts",
        [good()],
        [
            Case("never-ready", Ended(1, "not_ready"), "the flow's own end"),
            Case("pause-times-out", SUCCESS, "timed out, and the entry that is taken has no condition", STEP_FAILED),
        ],
        "the command `sleep`, in place of a step that waits",
    ),
    Workflow(
        "validator",
        f"{CONDUCTOR}/validator.yaml",
        "a judge whose issues are sent back once; the second answer is final",
        [good(Ended(0, "valid"))],
        [Case("never-valid", Ended(0, "accepted_with_issues"), "a role's answer has no verdict, and the end is named")],
    ),
    Workflow(
        "questions",
        f"{CONDUCTOR}/questions.yaml",
        "a person answers a list of questions, or skips some of them",
        [good()],
        [
            Case("one-skipped", SUCCESS, "a field that is left out has its default, so no item is bad"),
            Case("all-skipped", Ended(0, "unanswered"), "no item is bad, and the author named that end"),
        ],
    ),
    Workflow(
        "gate-options",
        f"{CONDUCTOR}/test.yaml and tests/fixtures/valid_full.yaml",
        "a person approves, requests changes, or rejects",
        [good(on_binary=True)],
        [
            Case(
                "rejected",
                Ended(0, "rejected"),
                "an option is no bad result, and the author decided that this end is a success",
                on_binary=True,
            ),
            Case("no-option", STEP_FAILED, "a rejection has no option, so no condition of the review can be evaluated"),
        ],
    ),
    Workflow(
        "output-constraints",
        f"{CONDUCTOR}/output-constraints.yaml",
        "an answer whose values are constrained",
        [good(on_binary=True)],
        [
            Case("failed-audit", SUCCESS, "a role's answer has no verdict", on_binary=True),
            Case("beyond-the-constraints", INVALID_REPLY, "the role failed", on_binary=True),
        ],
    ),
)
FROM_ARCHON = (
    Workflow(
        "fan-out-all-done",
        f"{ARCHON}/test-workflows/e2e-fanout-alldone.yaml",
        "a fan-out of called flows, joined when all are done",
        [good()],
        [
            Case("one-item-bad", SUCCESS, "exit 1 is its flow's verdict; under on_error: skip, good items are left"),
            Case(
                "every-item-bad",
                SUCCESS,
                "under on_error: skip, no item is good",
                STEP_FAILED,
                to_keep="on_bad: continue on the fan-out, whose results the report reads",
            ),
        ],
    ),
    Workflow(
        "fan-out-all-success",
        f"{ARCHON}/test-workflows/e2e-fanout-allsuccess.yaml",
        "a fan-out of called flows, joined only if all succeed",
        [good()],
        [
            Case("one-item-bad", SUCCESS, "a fan-out without on_error: skip is bad if one item is", STEP_FAILED),
            Case("every-item-bad", SUCCESS, "a fan-out without on_error: skip is bad if one item is", STEP_FAILED),
        ],
    ),
    Workflow(
        "pull-request-review",
        f"{ARCHON}/defaults/archon-comprehensive-pr-review.yaml",
        "five reviewers of which one is enough (one_success), then fixes",
        [good()],
        [
            Case("rebase-conflict", SUCCESS, "exit 1 without a route", STEP_FAILED),
            Case("every-reviewer-fails", SUCCESS, "under on_error: skip, no item is good", STEP_FAILED),
            Case("red-tests", SUCCESS, "failing tests as the last step", STEP_FAILED),
        ],
    ),
    Workflow(
        "multi-choice",
        f"{ARCHON}/defaults/archon-smart-pr-review.yaml",
        "any subset of branches, chosen by a role, then a step that only sometimes runs",
        [
            good(Ended(0, "notified")),
            good(Ended(0, "notified"), "nothing-chosen"),
        ],
        [
            Case("no-channel", Ended(0, "reviewed"), "exit 1, and a condition of its step reads the exit code"),
            Case("every-reviewer-fails", Ended(0, "notified"), "under on_error: skip, no item is good", STEP_FAILED),
        ],
    ),
    Workflow(
        "joins",
        f"{ARCHON}/test-workflows/e2e-joins.yaml",
        "a branch that is taken or not, a join, a loop that a program ends",
        [good()],
        [
            Case("branch-fails", SUCCESS, "exit 2 without a route", STEP_FAILED),
            Case("never-enough", Ended(1, "never_enough"), "the flow's own end"),
            Case("verification-fails", SUCCESS, "exit 1 of the last step", STEP_FAILED),
        ],
        "branches run one after the other; a join is the place where both ways meet",
    ),
    Workflow(
        "ralph",
        f"{ARCHON}/defaults/archon-ralph-dag.yaml",
        "one story per turn until all are done, then a report",
        [good()],
        [
            Case("no-stories", SUCCESS, "exit 1 without a route", STEP_FAILED),
            Case("red-tests", SUCCESS, "failing tests without a route, before the report", STEP_FAILED),
            Case("never-done", Ended(1, "stories_left"), "the flow's own end"),
        ],
    ),
    Workflow(
        "plan-implement-validate",
        f"{ARCHON}/defaults/archon-piv-loop.yaml",
        "a plan that a person approves, a loop with tests, and a person at the end",
        [good()],
        [
            Case(
                "rejected-at-the-end",
                SUCCESS,
                "no entry of the review is taken, and the following step would come",
                STEP_FAILED,
            ),
            Case("red-tests", Ended(1, "still_red"), "failing tests, routed by their own step"),
        ],
    ),
    Workflow(
        "interactive-prd",
        f"{ARCHON}/defaults/archon-interactive-prd.yaml",
        "questions to a person without routes, whose answers later roles read",
        [good()],
        [Case("rejected", SUCCESS, "a rejection without a route", STEP_FAILED, on_binary=True)],
    ),
)
FROM_SMITHERS = (
    Workflow(
        "debate",
        f"{SMITHERS}/debate.jsx",
        "two sides at once for a number of rounds, then a judge",
        [good()],
        [
            Case("draw", SUCCESS, "a role's answer has no verdict"),
            Case("one-side-fails", DECLINED, "a failed item without on_error: skip ends the run"),
        ],
    ),
    Workflow(
        "panel",
        f"{SMITHERS}/panel.jsx",
        "reviewers that an input names, then a moderator",
        [good()],
        [
            Case("changes-requested", SUCCESS, "a role's answer has no verdict"),
            Case("specialist-fails", DECLINED, "a failed item without on_error: skip ends the run"),
            Case("unknown-specialist", Ended(3), "no role of the step has that name: its item fails as well"),
        ],
    ),
    Workflow(
        "supervisor",
        f"{SMITHERS}/supervisor.jsx",
        "workers in copies of the workspace, repeated until a supervisor is satisfied",
        [good()],
        [
            Case("conflicts", SUCCESS, "a merge with conflicts, without a route", STEP_FAILED, on_binary=True),
            Case("one-worker-fails", SUCCESS, "under on_error: skip, good items are left"),
            Case(
                "every-worker-fails-first",
                SUCCESS,
                "under on_error: skip, no item is good, before the supervisor could repeat them",
                STEP_FAILED,
                to_keep="on_bad: continue on the workers, whose results the supervisor reads",
            ),
            Case("never-done", SUCCESS, "a role's answer has no verdict, and the loop ends by visits"),
        ],
    ),
    Workflow(
        "kanban",
        f"{SMITHERS}/kanban.jsx",
        "items that return to the backlog until they are approved",
        [good()],
        [
            Case(
                "item-blocked",
                SUCCESS,
                "under on_error: skip, no item of the second round is good, because only the blocked one is left",
                STEP_FAILED,
                to_keep="on_bad: continue on the work, whose results the reviewers read",
            ),
            Case("merge-conflict", SUCCESS, "an item that cannot be merged fails and is repeated"),
            Case("never-approved", SUCCESS, "a role's answer has no verdict, and the loop ends by visits"),
        ],
    ),
    Workflow(
        "prompt-optimizer",
        f"{SMITHERS}/prompt-optimizer-harness.jsx",
        "candidates until one reaches a target, then the best of them",
        [good()],
        [
            Case("target-not-reached", SUCCESS, "the best candidate is chosen, as the author routes"),
            Case("no-winner", SUCCESS, "no candidate is chosen, by the last step", STEP_FAILED),
        ],
    ),
    Workflow(
        "switchboard",
        f"{SMITHERS}/classifier-switchboard.jsx",
        "a role per item, chosen by its domain",
        [good()],
        [
            Case(
                "unknown-domain", INVALID_REPLY, "the classifier must answer a role of the list, and has no repair turn"
            ),
            Case("handler-fails", SUCCESS, "under on_error: skip, good items are left"),
            Case("every-handler-fails", SUCCESS, "under on_error: skip, no item is good", STEP_FAILED),
        ],
    ),
    Workflow(
        "retry-budget",
        f"{SMITHERS}/retry-budget-manager.jsx",
        "a program repeated within a budget, a controller between attempts, an escalation",
        [good()],
        [
            Case("budget-used-up", SUCCESS, "exit 1, and a condition of its step reads the exit code"),
            Case("persistent-failure", SUCCESS, "exit 78, and a condition of its step reads the exit code"),
        ],
    ),
    Workflow(
        "approval-if-borderline",
        f"{SMITHERS}/lead-router-with-approval.jsx",
        "a person decides only about borderline scores; the last step reads the decision",
        [good(), good(answers="not-borderline")],
        [
            Case("declined", SUCCESS, "an option is no bad result, and the last step reads it"),
            Case(
                "no-option",
                SUCCESS,
                "a rejection without a route; that another step reads it does not count",
                STEP_FAILED,
            ),
        ],
    ),
    Workflow(
        "canary-judge",
        f"{SMITHERS}/canary-judge.jsx",
        "a judge's decision, carried out by programs with ends of their own",
        [good(Ended(0, "promoted"))],
        [
            Case("rollback", Ended(1, "rolled_back"), "the flow's own end"),
            Case(
                "promotion-fails",
                Ended(0, "promoted"),
                "exit 1, and the entry that is taken has no condition that reads it",
                STEP_FAILED,
            ),
            Case(
                "rollback-fails",
                Ended(1, "rolled_back"),
                "timed out, and the entry that is taken has no condition that reads it",
                STEP_FAILED,
            ),
        ],
    ),
)
WORKFLOWS = (*FROM_CONDUCTOR, *FROM_ARCHON, *FROM_SMITHERS)
