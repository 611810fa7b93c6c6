"""``flows new``: a small commented flow to start from."""

from __future__ import annotations

from pathlib import Path

from codex_multi_role.cli.new_definitions import checked, in_yaml, own_catalog, refuse_existing, write_if_valid
from codex_multi_role.errors import UsageError

FLOW = """# The flow {name}. `codex-multi-role flows graph {name} --ascii` draws it.
# `codex-multi-role flows validate {name}` checks it, and says what it takes at most.
description: {role} works until the tests pass.

# What a run of it may be given, as in   --input most=5
inputs:
  most: {{type: integer, default: 3, minimum: 1, description: how often it is tried}}

# Steps are taken in order, unless `next` says otherwise.
steps:
  - id: work
    ask: {asked}                  # a turn of this role; "*" would ask every role of the catalog

  - id: measure
    check: tests                 # pytest; the README lists the other checks
    next:                        # the first entry whose `when` holds; an end has exit code 0 unless it says 1
      - {{when: "steps.measure.verdict in ['passed', 'no tests']", end: done}}
      - {{when: "steps.work.visits >= inputs.most", end: tests_failed, exit: 1}}
      - {{to: work}}
"""


def add_flow(name: str, given: Path | None) -> Path:
    """Write ``flows/<name>.yaml`` beside the catalog; returns its path.

    Raises `UsageError`, also for a name that is taken, and `StorageError`; then nothing is changed.
    """
    from codex_multi_role.catalog import list_flows
    from codex_multi_role.catalog.role_spec import check_name
    from codex_multi_role.lifecycle.definitions import (  # here: `--help` loads no catalog
        load_catalog,
        load_flow_and_called,
    )

    catalog = load_catalog(own_catalog(given))
    folder = catalog.source.parent
    if known := [each for each in list_flows(folder) if each.name.casefold() == checked(name, check_name).casefold()]:
        raise UsageError(
            f"nothing was written: there is a flow {known[0].name} already ({known[0].source})", "Take another name."
        )
    path = folder / "flows" / f"{name}.yaml"
    refuse_existing(path)
    role = next((role for role in catalog.roles if role.may_change_workspace), catalog.roles[0])
    content = FLOW.format(name=name, role=role.name, asked=in_yaml(role.name)).encode()
    write_if_valid({path: content}, lambda: (load_flow_and_called(name, catalog), None)[1])
    return path
