"""3, on: what a role must leave alone stays as it is, and no verdict is better than the tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from codex_multi_role.checks.tests import judge
from codex_multi_role.engine.fan_out import FanOut
from codex_multi_role.engine.flow_walk import FlowWalk
from codex_multi_role.extensions.documentation.quality import _Gate
from codex_multi_role.extensions.measuring.measured_process import MeasuredProcess
from codex_multi_role.extensions.research.search_providers import _has_searched
from codex_multi_role.flow.result_reads import check_measured, routes_on_result
from codex_multi_role.flow.routing import is_survived
from codex_multi_role.flow.state import passes
from codex_multi_role.host.spelling import folded
from codex_multi_role.steps.ask import ask
from codex_multi_role.steps.baseline import _verdict
from codex_multi_role.steps.protection import ProtectedState, _put_back, protected_among
from codex_multi_role.steps.review import _rejected
from codex_multi_role.steps.test_runs import _baseline_of
from codex_multi_role.steps.turn_events import says_done
from codex_multi_role.steps.unit import StepOutcome, _not_merged
from codex_multi_role.workspace.protected import ProtectedFiles, RestoredFiles
from tests.promises.breakage import Breakage, breakages
from tests.promises.change import ReplacedFunction, replaced, returns

PROTECTION = "steps/test_protection.py"


def _not_put_back(name: str) -> ReplacedFunction:
    """Of a check: what it finds, or what it leaves; a turn has a number."""

    def put_back(
        put_back: Callable[..., RestoredFiles], run: object, state: object, patch: Path, *of: Any
    ) -> RestoredFiles:
        return RestoredFiles() if patch.name == name and not of[-1] else put_back(run, state, patch, *of)

    return replaced(_put_back, put_back)


def _by_its_total_only(measured: Callable[..., dict[str, object]], self: _Gate) -> dict[str, object]:
    score, _ = self._best()
    return {**measured(self), "status": "passed" if score.total >= self._options.threshold else "below"}


def _whoever_said_it(ask: Callable[..., StepOutcome], *given: object) -> StepOutcome:
    outcome = ask(*given)
    return replace(outcome, done=says_done(outcome.output))


def _without_verdict(outcome: Callable[..., StepOutcome], *given: object) -> StepOutcome:
    return replace(outcome(*given), bad="")


counted = partial(Breakage, 9)
KINDS = "verdicts/test_table.py::test_bad_result_ends_its_flow_unless_read_or_tried_again"
RULES = "verdicts/test_rules.py::test_minimal_flow_follows_its_rule"
BAD_RESULTS = (
    counted("a bad result counts by itself", returns(is_survived, True), (f"{KINDS}[command: failed]",)),
    counted(
        "a route that does not read the result does not decide on it",
        returns(routes_on_result, True),
        (f"{RULES}[V2: a route that reads no result does not decide on it]",),
    ),
    counted("a rejection is bad", returns(_rejected, ""), (f"{KINDS}[review: rejected]",)),
    counted(
        "one bad item is enough", returns(FanOut._why_bad, ""), (f"{RULES}[R1: each try of a call repeats its items]",)
    ),
    counted(
        "a called flow that ended without its goal is bad",
        replaced(FlowWalk.outcome, _without_verdict),
        (f"{KINDS}[call: ended with exit 1]",),
    ),
    counted(
        "a copy that cannot be merged has failed",
        returns(_not_merged, ""),
        ("engine/test_isolation.py::test_item_whose_copy_cannot_be_merged_has_failed",),
    ),
    counted(
        "what is only measured is read",
        returns(check_measured, None),
        ("flow/test_notes.py::test_measured_result_that_nothing_reads_is_refused",),
    ),
)
STALE = (
    counted(
        "what a copy lacks is not the turn's failure",
        replaced(_baseline_of, lambda _, run: run.services.baseline),
        ("steps/test_baseline.py::test_copies_have_a_baseline_of_their_own",),
    ),
    counted(
        "a test that is skipped since is a new failure",
        returns(_verdict, "passed"),
        ("steps/test_baseline.py::test_done_counts_unless_a_failure_is_new[green test muted]",),
    ),
)
VERDICTS = (
    *breakages(
        3,
        {
            "what a turn changed of the protected is put back": (
                returns(ProtectedState.put_back, list[str]()),
                f"{PROTECTION}::test_changed_protected_files_are_restored_and_reported",
            ),
            "the protected is put back before tests count": (
                _not_put_back("protected.patch"),
                f"{PROTECTION}::test_protected_change_between_sessions_is_undone",
            ),
            "tests that rewrite the protected are not green": (
                _not_put_back("protected_during.patch"),
                f"{PROTECTION}::test_tests_that_are_rewritten_while_they_run_are_not_green",
            ),
            "no documentation passes with a part below its minimum": (
                replaced(_Gate.measured, _by_its_total_only),
                "extensions/documentation/test_gate.py::test_no_threshold_makes_up_for_a_part_but_zero_only_measures",
            ),
            "pages that were named without a search are no sources": (
                returns(_has_searched, True),
                "extensions/research/test_research_flow.py::test_pages_that_were_named_without_a_search_do_not_count",
            ),
            "the protected is so by any case of its name": (
                replaced(folded, lambda _, name: name),
                "workspace/test_protected.py::test_names_that_differ_by_case_only_count_as_one",
            ),
            "files handed in over the protected are skipped": (
                returns(protected_among, set[str]()),
                f"{PROTECTION}::test_submitted_protected_files_are_skipped_with_reason",
            ),
            "the protected is what the run's first session found": (
                replaced(ProtectedFiles.first, lambda _, self: self.take()),
                "workspace/test_protected.py::test_first_state_is_shared_by_later_processes",
                f"{PROTECTION}::test_protected_change_between_sessions_is_undone",
            ),
            "bytecode does not outlive it": (
                returns(ProtectedFiles._drop_bytecode, None),
                "workspace/test_protected.py::test_bytecode_beside_them_does_not_outlive_a_look",
            ),
            "DONE with red tests is no success": (
                returns(passes, True),
                "steps/test_workspace_changes.py::test_done_with_failing_tests_is_not_success",
            ),
            "a role that may not finish does not": (
                replaced(ask, _whoever_said_it),
                "engine/test_flows.py::test_done_of_any_other_role_is_recorded_and_ignored",
            ),
            "an exit code alone is not believed": (
                replaced(
                    judge,
                    lambda judge, ran, counts, broken: judge(
                        replace(ran, returncode=0) if counts else ran, counts, broken
                    ),
                ),
                "checks/test_tests.py::test_verdict",
            ),
            "success without a report is not believed": (
                replaced(
                    judge,
                    lambda judge, ran, counts, broken: (
                        ("passed", "") if counts is None and ran.returncode == 0 else judge(ran, counts, broken)
                    ),
                ),
                "checks/test_tests.py::test_success_without_a_report_is_not_believed",
            ),
        },
    ),
    Breakage(
        7,
        "a figure is of the copy under test",
        returns(MeasuredProcess.import_problem, ""),
        (
            "extensions/measuring/test_imports.py::test_original_gives_no_figure",
            "extensions/measuring/test_coverage.py::test_lost_coverage_data_gives_no_figure",
        ),
    ),
    *BAD_RESULTS,
    *STALE,
)
