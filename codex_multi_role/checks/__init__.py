"""Checks: work that needs no model, one module each. Plug-ins add more by entry point ``codex_multi_role.checks``."""

from __future__ import annotations

from codex_multi_role.checks.contract import (
    Check,
    CheckContext,
    CheckFunction,
    RunFacts,
    Settings,
    declare_check,
)
from codex_multi_role.registry import Registry

__all__ = [
    "CHECKS",
    "Check",
    "CheckContext",
    "CheckFunction",
    "RunFacts",
    "Settings",
    "check_names",
    "declare_check",
    "find_check",
]

CHECKS = {
    "answer": "answer_file:write_answer",
    "tests": "tests:run_tests",
    "command": "command:run_argv",
    "coverage": "coverage:measure_coverage",
    "schema": "json_schema:check_schema",
    "plan": "plan:check_plan",
    "choose": "choose:choose_best",
    "merge": "merge:merge_copies",
    "merge_items": "merge_items:merge_items",
    "read_file": "text_files:read_file",
    "write_file": "text_files:write_file",
    "write_tests": "text_files:write_tests",
    "python_files": "python_files:find_python_files",
    "judge_tests": "judge_tests:judge_tests",
    "prune_tests": "prune_tests:prune_tests",
    "test_results": "results_file:write_test_results",
    "merge_tests": "merge_tests:merge_tests",
    "mutation": "mutation:judge_mutants",
    "flaky": "flaky:find_flaky",
    "code_graph": "code_graph.dependency_graph:read_code_graph",
    "document_quality": "documentation.quality:measure_documents",
    "document_plan": "documentation.document_plan:plan_documents",
    "document_sources": "documentation.document_sources:read_sources",
    "document_notes": "documentation.notes:judge_notes",
    "document_pages": "documentation.pages:write_pages",
    "document_write": "documentation.pages:write_one_document",
    "search": "search:search",
    "search_ready": "search:search_ready",
    "prose": "citations:check_prose",
    "research_plan": "research.research_plan:research_plan",
    "research_sources": "research.rounds:research_sources",
    "research_findings": "research.rounds:research_findings",
    "research_groups": "research.facts:research_groups",
    "research_facts": "research.facts:research_facts",
    "research_report": "research.research_report:research_report",
}
_REGISTRY: Registry[Check | CheckFunction] = Registry("check", __name__, CHECKS)


def check_names() -> list[str]:
    """Sorted names of all checks, built in and installed."""
    return _REGISTRY.names()


def find_check(name: str) -> Check:
    """The check called ``name``. Raises UsageError if it does not exist or cannot be loaded.

    A plain function of another package is a check that declares nothing.
    """
    found = _REGISTRY.find(name)
    return found if isinstance(found, Check) else Check(found)
