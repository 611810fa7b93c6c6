"""Searches in their own processes, so that a time limit ends them and no document can exhaust the run's memory.

`search_providers` runs ``searching.files_search`` and ``searching.http_search`` without the rest of the package, whose
import would take longer than most searches. Hence the relative imports.
"""
