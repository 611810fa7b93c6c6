"""What this extension registers: its commands."""

from codex_multi_role.cli.lazy_group import LazyCommand

TEAM, SET_UP, BELOW = "Your team", "Set up", "Commands"

init = LazyCommand(f"{__package__}.init:init", "Create a team of your own.", TEAM)
demo = LazyCommand(f"{__package__}.demo:demo", "Watch a team solve a small task. Needs no model and no login.", TEAM)
schema = LazyCommand(
    f"{__package__}.json_schemas:schema", "Print the JSON Schema of a kind of file, or of events.", TEAM
)
doctor = LazyCommand(f"{__package__}.doctor:doctor", "Check that everything a run needs is installed.", SET_UP)
config = LazyCommand(f"{__package__}.config:config", "Show each setting and where its value comes from.", SET_UP)
new_role = LazyCommand(f"{__package__}.new_definitions:new_roles", "Add a role to your catalog.", BELOW)
new_flow = LazyCommand(f"{__package__}.new_definitions:new_flows", "Add a flow to your roles folder.", BELOW)
migrate_flow = LazyCommand(f"{__package__}.flow_migration:migrate_flows", "Rewrite former keys of steps.", BELOW)

NO_CATALOG = "`codex-multi-role init` writes one to begin with."
SETTINGS_FILES = "`codex-multi-role config show` says where they are read."
