"""What is registered: ``batch``, ``work-on``, ``worker``, ``workers`` and ``queues``.

Beside the commands, `workers.finding.RunsOnWorkers.open` finds runs, and `batches.goal_line.GoalLine` is a kind of
schema.
"""

from codex_multi_role.cli.lazy_group import LazyCommand

batch = LazyCommand(f"{__package__}.commands.batch:batch", "Run many goals, from a file with one per line.")
work_on = LazyCommand(f"{__package__}.commands.batch:work_on")
worker = LazyCommand(f"{__package__}.commands.workers:worker", "Take runs from the queues of a database.")
workers = LazyCommand(
    f"{__package__}.commands.workers:workers",
    "List the workers of a database, and what they work on.",
)
queues = LazyCommand(f"{__package__}.commands.workers:queues", "List the queues of a database, and why runs wait.")
