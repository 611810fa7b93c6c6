"""What this extension registers: its commands. Its part of the report page is `changed_lines.lines`."""

from codex_multi_role.cli.lazy_group import LazyCommand, ended

diff = LazyCommand(f"{__package__}.commands:diff", "Show what a run, a role or a turn changed.", "Look")
blame = LazyCommand(f"{__package__}.commands:blame", "Show which turn wrote each line of a file.", "Look")
bisect = ended(
    "bisect", "`export --branch NAME` makes one commit per turn, in which `git bisect run COMMAND` finds the turn"
)
apply = LazyCommand(f"{__package__}.commands:apply", "Bring the result of a run into a checkout.", "Use the result")
export = LazyCommand(f"{__package__}.commands:export", "Make a branch with one commit per turn.", "Use the result")
pr = LazyCommand(
    f"{__package__}.pull_request_command:pr", "Describe a run as a pull request; create it.", "Use the result"
)
