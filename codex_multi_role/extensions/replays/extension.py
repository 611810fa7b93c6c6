"""What this extension registers: its commands, and a hint."""

from codex_multi_role.cli.lazy_group import LazyCommand, ended

rerun = LazyCommand(f"{__package__}.rerun_command:rerun", "Repeat a run; equal turns are not asked again.", "Run")

RECORDED = "record with `run --record FILE`; `run --replay FILE` runs it again without a model"
bundle = ended("bundle", RECORDED)
verify = ended("verify", RECORDED)
replay_test = ended("replay-test", "`run --replay FILE` exits with 3 if anything is not as recorded")

NOT_AS_RECORDED = "If the change is intended, record the run again, or replay it with --replay-match nearest."
MOVED = f"from {__package__} import rerun"
