"""Runs on many machines: a database that they share, and workers that take runs from its queues.

Each run is one DBOS workflow, enqueued under its run ID. DBOS keeps the queues and fences its journal. The few tables
here record what a run needs, who works on it, and who is alive.
"""
