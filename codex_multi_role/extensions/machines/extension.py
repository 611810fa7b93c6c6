"""What is registered: ``batch``, ``work-on``, ``worker``, ``workers`` and ``queues``.

Beside the commands, `workers.finding.RunsOnWorkers.open` finds runs, and `batches.goal_line.GoalLine` is a kind of
schema.
"""

from codex_multi_role.extensions.machines.commands.batch import batch, work_on
from codex_multi_role.extensions.machines.commands.workers import queues, worker, workers

__all__ = ["batch", "queues", "work_on", "worker", "workers"]
