"""3, on: what a role must leave alone stays as it is, and no verdict is better than the tests."""

from __future__ import annotations

from functools import partial

from tests.promises.breakage import Breakage

broken = partial(Breakage, 3)
PROTECTION = "steps/test_protection.py"

VERDICTS = (
    broken(
        "what a turn changed of the protected is put back",
        "steps/turn.py",
        "put_back = self.guard.put_back(self.run, self.asked.instance, self.folder) if self.guard else []",
        "put_back: list[str] = []",
        (f"{PROTECTION}::test_changed_protected_files_are_restored_and_reported",),
    ),
    broken(
        "the protected is put back before tests count",
        "steps/protection.py",
        '    before = _put_back_first(run, role, folder / "protected.patch")\n',
        "    before = RestoredFiles()\n",
        (f"{PROTECTION}::test_protected_change_between_sessions_is_undone",),
    ),
    broken(
        "tests that rewrite the protected are not green",
        "steps/protection.py",
        '    during = _put_back_first(run, role, folder / "protected_during.patch")\n',
        "    during = RestoredFiles()\n",
        (f"{PROTECTION}::test_tests_that_are_rewritten_while_they_run_are_not_green",),
    ),
    broken(
        "no documentation passes with a part below its minimum",
        "systems/documentation/quality.py",
        " and (not score.below or not self._options.threshold)",
        "",
        ("systems/documentation/test_gate.py::test_no_threshold_makes_up_for_a_part_but_zero_only_measures",),
    ),
    broken(
        "pages that were named without a search are no sources",
        "systems/research/searches.py",
        '    return int(web.get("web_searches", 0)) > 0\n',
        "    return True\n",
        ("systems/test_research.py::test_pages_that_were_named_without_a_search_do_not_count",),
    ),
    broken(
        "the protected is so by any case of its name",
        "workspace/paths.py",
        '    parts = folded(path).split("/")\n',
        '    parts = path.split("/")\n',
        ("workspace/test_protected.py::test_names_that_differ_by_case_only_count_as_one",),
    ),
    broken(
        "files handed in over the protected are skipped",
        "steps/ask.py",
        "        protected = protected_among(run, question.role, named)\n",
        "        protected: set[str] = set()\n",
        (f"{PROTECTION}::test_submitted_protected_files_are_skipped_with_reason",),
    ),
    broken(
        "the protected is what the run's first session found",
        "workspace/protected.py",
        "        if not known:\n            known = self.take()\n",
        "        if known or not known:\n            known = self.take()\n",
        (
            "workspace/test_protected.py::test_first_state_is_shared_by_later_processes",
            f"{PROTECTION}::test_protected_change_between_sessions_is_undone",
        ),
    ),
    broken(
        "bytecode does not outlive it",
        "workspace/protected.py",
        "            self._drop_bytecode()\n",
        "",
        ("workspace/test_protected.py::test_bytecode_beside_them_does_not_outlive_a_look",),
    ),
    broken(
        "DONE with red tests is no success",
        "engine/durable_run.py",
        'tests["status"] in ("passed", "no tests")',
        'tests["status"]',
        ("steps/test_workspace_changes.py::test_done_with_failing_tests_is_not_success",),
    ),
    broken(
        "a role that may not finish does not",
        "steps/ask.py",
        "done = question.role.behaviors.can_finish and says_done(turn.handoff)",
        "done = says_done(turn.handoff)",
        ("engine/test_cycles.py::test_done_of_any_other_role_is_recorded_and_ignored",),
    ),
    broken(
        "an exit code alone is not believed",
        "checks/tests.py",
        '    return ("passed", "") if code == 0 else',
        '    return ("passed", "") if code is not None else',
        ("checks/test_tests.py::test_verdict",),
    ),
    broken(
        "success without a report is not believed",
        "checks/tests.py",
        "    if counts is None:\n",
        '    if counts is None and code == 0:\n        return ("passed", "")\n    if counts is None:\n',
        ("checks/test_tests.py::test_success_without_a_report_is_not_believed",),
    ),
    Breakage(
        7,
        "a figure is of the copy under test",
        "checks/coverage_run.py",
        "        if problem := self._process.import_problem(measured.unseen):\n",
        "        if (problem := self._process.import_problem(measured.unseen)) and not problem:\n",
        (
            "checks/test_imports.py::test_original_gives_no_figure",
            "checks/test_coverage.py::test_lost_coverage_data_gives_no_figure",
        ),
    ),
)
