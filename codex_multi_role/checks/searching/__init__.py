"""What searches in a process of its own, so that a time limit ends it and no document can take the run's memory.

Run by `search_providers` as ``searching.files`` and ``searching.http``: without the rest of the package, whose import
would take longer than most searches. Hence the relative imports.
"""
