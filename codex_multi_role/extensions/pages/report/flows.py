"""The flow of a run and those that it calls, from the YAML that the run kept, as drawings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from codex_multi_role.catalog import FlowSpec, read_flows
from codex_multi_role.cli.flow_explanation import worst_case_words
from codex_multi_role.errors import CodexMultiRoleError, DefinitionError
from codex_multi_role.extensions.pages.report.flow_picture import Picture, draw, paths_taken
from codex_multi_role.extensions.pages.report.run_tree import ToneOf
from codex_multi_role.flow.chart import Chart, charts
from codex_multi_role.host.redaction import Redactor
from codex_multi_role.lifecycle.team_loading import load_catalog, load_flow_and_called
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.wording import one_line
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_options import RunOptions


@dataclass(frozen=True)
class KnownFlows:
    """The charts of the flows, read once for any number of drawings; ``shown``: the same without secrets.

    ``problem``: why they cannot be drawn; ``at_most``: the worst case of the whole run.
    """

    own: tuple[Chart, ...] = ()
    shown: tuple[Chart, ...] = ()
    problem: str = ""
    at_most: str = ""

    @classmethod
    def of_run(cls, folder: RunFolder, record: Mapping[str, Any], course: Course) -> Self:
        name = str(record.get("flow") or course.started.flow)
        try:
            flows = read_flows(name, (folder.catalog_path / str(record.get("catalog_file", "catalog.yaml"))).parent)
            shown = charts({each: _without_secrets(flow, folder.redact) for each, flow in flows.items()}, name)
            return cls(charts(flows, name), shown, at_most=worst_case_of(folder, record))
        except (CodexMultiRoleError, OSError) as error:
            return cls(problem=one_line(folder.redact(str(error)), 500))

    def drawn(self, course: Course, tone: ToneOf) -> list[Picture]:
        """Draw them as they are now, the run's own flow first."""
        paths = paths_taken(self.own, course.visits, course.ended, tone) if self.own else {}
        pairs = zip(self.own, self.shown, strict=True)
        return [draw(chart, paths[own.name], course.started.roles) for own, chart in pairs]


def _without_secrets(flow: FlowSpec, redact: Redactor) -> FlowSpec:
    """Redact before drawing: in wrapped or cut text, a secret is hidden only in part. Raises `DefinitionError`."""
    try:
        return FlowSpec.model_validate(redact.within(flow.model_dump(by_alias=True, exclude_unset=True)))
    except ValueError as error:
        raise DefinitionError(f"a name in {flow.name} is the value of a secret variable and was masked") from error


def worst_case_of(folder: RunFolder, record: Mapping[str, Any]) -> str:
    """The worst case of the whole run, by the definitions that it kept; empty if they cannot be read."""
    try:
        options = RunOptions.from_record(dict(record["options"]))
        source = folder.catalog_path / str(record.get("catalog_file", "catalog.yaml"))
        flows, catalog = load_flow_and_called(str(record["flow"]), load_catalog(source))
        return worst_case_words(flows, str(record["flow"]), catalog, options)
    except (CodexMultiRoleError, OSError, LookupError, TypeError, ValueError):
        return ""
