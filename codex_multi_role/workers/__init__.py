"""Runs on many machines: a database that they share, workers that take runs from its queues, and what happens if one dies.

Each run is one DBOS workflow, enqueued under its run ID. DBOS keeps the queues and fences its journal; the few tables here
say what a run needs, who works on it, and who is alive.
"""
