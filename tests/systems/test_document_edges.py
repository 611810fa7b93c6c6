"""Every edge of the diagrams has a test that walks it: the table is held against the list of edges."""

from __future__ import annotations

from tests.support.tables import edges_of, functions_of

APPROVED = "test_repository_is_documented_after_plan_approval"
COMMENT = "test_comment_on_a_rejected_plan_reaches_planning"
AGENTIC = "test_agentic_planning_and_synthesis_build_on_earlier_turns"
REFINED = "test_low_quality_documents_are_refined"
BELOW = "test_refining_ends_after_three_rounds_and_keeps_documents"
KILLED = "test_run_killed_in_batch_resumes_without_finished_batches"
LIBRARY = "test_real_library"
# (section, from, to, label) → the test that walks it
WALKED = {
    ("A", "[*]", "static_analysis", ""): APPROVED,
    ("A", "static_analysis", "planning", ""): APPROVED,
    ("A", "planning", "human_review", ""): APPROVED,
    ("A", "human_review", "human_review_fork", ""): APPROVED,
    ("A", "human_review_fork", "batch_execution", "approved"): APPROVED,
    ("A", "human_review_fork", "planning", "rejected"): COMMENT,
    ("A", "human_review_fork", "human_review", "waiting"): APPROVED,
    ("A", "batch_execution", "synthesis", ""): APPROVED,
    ("A", "synthesis", "quality_gate", ""): APPROVED,
    ("A", "quality_gate", "quality_gate_fork", ""): APPROVED,
    ("A", "quality_gate_fork", "[*]", "pass"): APPROVED,
    ("A", "quality_gate_fork", "refine", "fail & iter < 3"): REFINED,
    ("A", "quality_gate_fork", "[*]", "fail & iter >= 3"): BELOW,
    ("A", "refine", "quality_gate", ""): REFINED,
    ("B", "START", "analyze_structure", ""): AGENTIC,
    ("B", "analyze_structure", "identify_patterns", ""): AGENTIC,
    ("B", "identify_patterns", "semantic_grouping", ""): AGENTIC,
    ("B", "semantic_grouping", "generate_hints", ""): AGENTIC,
    ("B", "generate_hints", "END_", ""): AGENTIC,
    ("C", "START", "identify_patterns", ""): AGENTIC,
    ("C", "identify_patterns", "cross_compare", ""): AGENTIC,
    ("C", "cross_compare", "generate_overview", ""): AGENTIC,
    ("C", "generate_overview", "generate_architecture", ""): AGENTIC,
    ("C", "generate_architecture", "generate_getting_started", ""): AGENTIC,
    ("C", "generate_getting_started", "generate_concepts", ""): AGENTIC,
    ("C", "generate_concepts", "END_", ""): AGENTIC,
    ("D", "User", "CLI", "lantern run --workflow"): KILLED,
    ("D", "CLI", "Exec", "LanternWorkflowExecutor(repo, backend, config)"): KILLED,
    ("D", "Exec", "WF", "invoke(initial_state, thread_id)"): KILLED,
    ("D", "WF", "CP", "save checkpoint (initial)"): KILLED,
    ("D", "WF", "SA", "static_analysis_node(state)"): APPROVED,
    ("D", "SA", "WF", "dependency_graph, layers, mermaid"): AGENTIC,
    ("D", "WF", "CP", "save checkpoint"): KILLED,
    ("D", "WF", "PL", "planning_node(state)"): APPROVED,
    ("D", "PL", "WF", "plan, pending_batches"): APPROVED,
    ("D", "WF", "HR", "human_review_node(state)"): APPROVED,
    ("D", "HR", "WF", "plan_approved = true"): LIBRARY,
    ("D", "HR", "WF", "plan_rejected = true"): COMMENT,
    ("D", "WF", "PL", "loop back to planning"): COMMENT,
    ("D", "WF", "BE", "batch_execution_node(state, backend, runner)"): APPROVED,
    ("D", "BE", "LLM", "invoke / invoke_structured"): APPROVED,
    ("D", "LLM", "BE", "analysis results"): APPROVED,
    ("D", "BE", "WF", "completed_batches, sense_records"): APPROVED,
    ("D", "WF", "SY", "synthesis_node(state, backend)"): APPROVED,
    ("D", "SY", "LLM", "generate docs (batch or agentic)"): AGENTIC,
    ("D", "LLM", "SY", "OVERVIEW, ARCHITECTURE, CONCEPTS, GETTING_STARTED"): APPROVED,
    ("D", "SY", "WF", "documents, quality_score"): APPROVED,
    ("D", "WF", "QG", "quality_gate_node(state)"): APPROVED,
    ("D", "QG", "WF", "quality_ok = true"): APPROVED,
    ("D", "WF", "Exec", "final state"): APPROVED,
    ("D", "QG", "WF", "quality_ok = false"): REFINED,
    ("D", "WF", "RF", "refine_node(state)"): REFINED,
    ("D", "RF", "WF", "improved documents"): REFINED,
    ("D", "WF", "QG", "loop back"): REFINED,
    ("D", "WF", "CP", "save checkpoint (final)"): KILLED,
    ("D", "Exec", "CLI", "final state"): KILLED,
    ("D", "CLI", "User", "done"): KILLED,
    ("D", "User", "CLI", "lantern run --workflow --resume abc123"): KILLED,
    ("D", "CLI", "Exec", "LanternWorkflowExecutor(...)"): KILLED,
    ("D", "Exec", "WF", 'invoke(state, thread_id="abc123")'): KILLED,
    ("D", "WF", "CP", "restore checkpoint"): KILLED,
}


def test_no_edge_is_without_a_test() -> None:
    assert edges_of("document") == set(WALKED)


def test_every_test_it_names_is_there() -> None:
    assert set(WALKED.values()) <= functions_of("systems/test_document.py")
