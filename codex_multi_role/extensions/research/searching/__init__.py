"""Searches in their own processes, so that a time limit ends them and no document can exhaust the run's memory.

`search_providers` starts ``files_search`` and ``http_search``. They import nothing of the package but modules that
import next to nothing: the checks would take longer than most searches.
"""
