"""Every edge of the diagrams has a test that walks it: the table is held against the list of edges."""

from __future__ import annotations

from tests.support.tables import edges_of, functions_of

ONCE = "test_all_is_reached_at_once"
CRASH = "test_crash_is_passed_to_developer_who_rewrites_tests"
FIX = "test_failing_tests_are_passed_to_developer_who_fixes_them"
APPEND = "test_what_is_not_reached_is_planned_and_appended"
TIMEOUT = "test_when_no_iteration_is_left_it_ends_with_what_there_is"
WINS = "test_better_one_wins"
# (section, from, to, label) → the test that walks it
WALKED = {
    ("1", "CheckIter", "Scenario1", "Yes"): ONCE,
    ("1", "Scenario1", "InvokeLLM1", ""): ONCE,
    ("1", "InvokeLLM1", "Return1", ""): ONCE,
    ("1", "CheckIter", "Scenario2", "No"): APPEND,
    ("1", "Scenario2", "InvokeLLM2", ""): APPEND,
    ("1", "InvokeLLM2", "SaveIncremental", ""): APPEND,
    ("2", "Select", "M1", "iter==0"): ONCE,
    ("2", "Select", "M2", "fail>0"): FIX,
    ("2", "Select", "M3", "error"): CRASH,
    ("2", "Select", "M4", "else"): APPEND,
    ("2", "M1", "LLM_R", ""): ONCE,
    ("2", "M2", "LLM_R", ""): FIX,
    ("2", "M3", "LLM_R", ""): CRASH,
    ("2", "M4", "LLM_A", ""): APPEND,
    ("2", "LLM_R", "Replace", ""): CRASH,
    ("2", "LLM_A", "Append", ""): APPEND,
    ("3", "Check", "ErrS", "Err"): CRASH,
    ("3", "Check", "Pytest", "OK"): ONCE,
    ("3", "Pytest", "Crash", ""): ONCE,
    ("3", "Crash", "ErrC", "Yes"): CRASH,
    ("3", "Crash", "Metrics", "No"): ONCE,
    ("3", "Metrics", "Save", ""): ONCE,
    ("3.1", "P_Check", "P_S1", "Yes"): ONCE,
    ("3.1", "P_Check", "P_S2", "No"): APPEND,
    ("3.1", "P_S1", "P_LLM1", ""): ONCE,
    ("3.1", "P_S2", "P_LLM2", ""): APPEND,
    ("3.1", "P_LLM1", "P_R1", ""): ONCE,
    ("3.1", "P_LLM2", "P_R2", ""): APPEND,
    ("3.1", "D_Select", "D_M1", "iter=0"): ONCE,
    ("3.1", "D_Select", "D_M2", "fail>0"): FIX,
    ("3.1", "D_Select", "D_M3", "err"): CRASH,
    ("3.1", "D_Select", "D_M4", "else"): APPEND,
    ("3.1", "D_M1", "D_LLM_R", ""): ONCE,
    ("3.1", "D_M2", "D_LLM_R", ""): FIX,
    ("3.1", "D_M3", "D_LLM_R", ""): CRASH,
    ("3.1", "D_M4", "D_LLM_A", ""): APPEND,
    ("3.1", "D_LLM_R", "D_Repl", ""): CRASH,
    ("3.1", "D_LLM_A", "D_App", ""): APPEND,
    ("3.1", "V_Check", "V_ErrS", "Err"): CRASH,
    ("3.1", "V_Check", "V_Pytest", "OK"): ONCE,
    ("3.1", "V_Pytest", "V_Crash", ""): ONCE,
    ("3.1", "V_Crash", "V_ErrC", "Yes"): CRASH,
    ("3.1", "V_Crash", "V_Metrics", "No"): ONCE,
    ("3.1", "V_Metrics", "V_Save", ""): ONCE,
    ("4", "Start", "Planner", ""): ONCE,
    ("4", "Planner", "Developer", ""): ONCE,
    ("4", "Developer", "Executor", ""): ONCE,
    ("4", "Executor", "EndTimeout", "1"): TIMEOUT,
    ("4", "Executor", "Developer", "2"): FIX,
    ("4", "Executor", "Planner", "3"): APPEND,
    ("4", "Executor", "EndSuccess", "4"): ONCE,
    ("5", "Start", "Planner", ""): WINS,
    ("5", "Planner", "Developer", ""): WINS,
    ("5", "Developer", "Executor", ""): WINS,
    ("5", "Executor", "EndTimeout", "1"): "test_it_ends_when_no_iteration_is_left",
    ("5", "Executor", "Developer", "2"): "test_both_are_asked_again_when_the_better_one_fails",
    ("5", "Executor", "Planner", "3"): "test_planner_is_asked_again_while_too_little_is_reached",
    ("5", "Executor", "EndSuccess", "4"): WINS,
}


def test_no_edge_is_without_a_test() -> None:
    assert edges_of("testgen") == set(WALKED)


def test_every_test_it_names_is_there() -> None:
    assert set(WALKED.values()) <= functions_of("systems/test_testgen.py", "systems/test_testgen_duel.py")
