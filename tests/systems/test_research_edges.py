"""Every edge of the research diagrams has a test that walks it: the table is held against the list of edges."""

from __future__ import annotations

from tests.support.tables import edges_of, edges_walked, functions_of

WHOLE = "systems/test_research.py::test_question_is_researched_verified_and_reported"
DEEPER = "systems/test_research.py::test_new_topics_are_followed_to_preset_depth"
REFUSED = "systems/test_research.py::test_invalid_research_input_is_refused_before_start"
FEW = "systems/test_research.py::test_without_questions_enough_nothing_is_searched"
FAILS = "systems/test_research.py::test_role_that_fails_for_good_fails_the_run"
UNREAD = "systems/test_research.py::test_unreadable_source_is_reported_and_others_count"
SHORT = "systems/test_research.py::test_short_section_is_expanded_up_to_limit_and_reported"
DOWN = "systems/test_research.py::test_search_without_provider_fails_and_resume_retries"
SEARCHED = "systems/research/test_search.py::test_providers_are_queried_in_parallel_with_failures_shown"
LANGUAGE = "systems/research/test_search.py::test_only_those_in_the_language_asked_for_are_kept"
COPIES = "systems/research/test_search.py::test_one_address_and_nearly_the_same_text_are_one_result"
MODEL = "catalog/test_role_spec.py::test_which_model_counts"
NO_PROVIDER = "test_login.py::test_missing_login_spends_nothing_and_lists_solutions"
LIMITED = "systems/test_research.py::test_failed_or_malformed_model_reply_is_requested_again"
FAULT = "faults/test_played.py::test_fault_has_one_word_everywhere_and_next_command_works"

PLANNER, RESEARCHER, VERIFIER, SYNTHESIZER, STATES, MODEL_CLIENT, SEARCH_CLIENT = (
    *(f"{name} Service Flow" for name in ("Planner", "DeepResearcher", "Verifier", "Synthesizer")),
    "Orchestrator Coordination",
    "LLM Client Flow",
    "Search Client Flow",
)
# (section, the way through it) → the test that walks it
WALKED = {
    (
        PLANNER,
        "Start ValidateInput GetConfig BuildPrompt CallLLM ParseResponse ValidateCount CreateSubQuestions",
    ): WHOLE,
    (PLANNER, "CreateSubQuestions BuildPlan LogSuccess Return"): WHOLE,
    (PLANNER, "ValidateInput Error400"): REFUSED,
    (PLANNER, "CallLLM RaiseError"): FAILS,
    (PLANNER, "ValidateCount RaiseError"): FEW,
    (RESEARCHER, "Start SetDepth SortQuestions LoopQ SetInProgress CheckDepth CheckVisited AddVisited Search"): WHOLE,
    (RESEARCHER, "CheckDepth SkipQ"): DEEPER,
    (RESEARCHER, "CheckVisited SkipQ NextQ"): DEEPER,
    (RESEARCHER, "Search LogWarn SetComplete NextQ LoopQ"): WHOLE,
    (RESEARCHER, "Search LoopR Extract CreateFinding CheckRecurse Recurse NextResult LoopR"): DEEPER,
    (RESEARCHER, "CheckRecurse NextResult SetComplete"): WHOLE,
    (RESEARCHER, "Extract LogError"): UNREAD,
    (RESEARCHER, "NextQ Return"): WHOLE,
    (VERIFIER, "Start GroupByTopic LoopG CheckSources CreateSingleFact Next LoopG"): WHOLE,
    (VERIFIER, "CheckSources CrossRef CreateVerifiedFact Next Return"): WHOLE,
    (VERIFIER, "CrossRef CreateDiscrepancy Next"): WHOLE,
    (SYNTHESIZER, "Start Categorize GenerateSummary LoopS GenerateSection ValidateWords AddSection NextS LoopS"): WHOLE,
    (SYNTHESIZER, "ValidateWords Expand ValidateWords"): SHORT,
    (SYNTHESIZER, "NextS BuildReport Return"): WHOLE,
    (STATES, "[*] PENDING PLANNING EXECUTING VERIFYING SYNTHESIZING COMPLETED [*]"): WHOLE,
    (STATES, "PLANNING FAILED [*]"): FEW,
    (STATES, "EXECUTING FAILED"): DOWN,
    (STATES, "VERIFYING FAILED"): FAILS,
    (STATES, "SYNTHESIZING FAILED"): FAILS,
    (MODEL_CLIENT, "Start SelectModel CheckProvider"): MODEL,
    (MODEL_CLIENT, "CheckProvider RaiseError"): NO_PROVIDER,
    (MODEL_CLIENT, "CheckProvider PrepareRequest CallAPI Wait CallAPI"): LIMITED,
    (MODEL_CLIENT, "CallAPI Retry CallAPI"): FAULT,
    (MODEL_CLIENT, "Retry RaiseTimeout"): FAULT,
    (MODEL_CLIENT, "CallAPI ParseJSON Return"): WHOLE,
    (MODEL_CLIENT, "ParseJSON RaiseParseError"): LIMITED,
    (SEARCH_CLIENT, "Start LoopP CheckEnabled NextP LoopP"): SEARCHED,
    (SEARCH_CLIENT, "CheckEnabled ExecuteSearch LogTimeout NextP"): SEARCHED,
    (SEARCH_CLIENT, "ExecuteSearch LogError NextP"): SEARCHED,
    (SEARCH_CLIENT, "ExecuteSearch FilterEnglish AddResults NextP"): SEARCHED,
    (SEARCH_CLIENT, "FilterEnglish ApplyFilter AddResults"): LANGUAGE,
    (SEARCH_CLIENT, "NextP Combine Return"): COPIES,
}


def test_no_edge_is_without_a_test() -> None:
    assert edges_of("research") == set(edges_walked(WALKED))


def test_every_test_it_names_is_there() -> None:
    for test in set(WALKED.values()):
        file, name = test.split("::")
        assert name in functions_of(file), test
