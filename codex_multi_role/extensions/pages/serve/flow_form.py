"""The form of a flow: one field per input, as the flow's YAML describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codex_multi_role.catalog import list_flows
from codex_multi_role.cli.flow_explanation import worst_case_words
from codex_multi_role.errors import CodexMultiRoleError, UsageError
from codex_multi_role.extensions.pages.serve.forms import Form
from codex_multi_role.extensions.pages.serve.starting import NewRun
from codex_multi_role.lifecycle.team_loading import load_catalog, load_flow_and_called, roles_folder
from codex_multi_role.option import as_typed
from codex_multi_role.run_options import OPTIONS, RunOptions

if TYPE_CHECKING:
    from codex_multi_role.catalog import FlowEntry, FlowSpec, InputSpec

PREFIX = "input."
MORE = ("model", "max_turns", "max_tokens", "max_cost", "max_seconds")
SWITCHES = ("worktree", "run_tests")
"""Options beside the goal, the cycles, the workspace and the playbook; switches are on or off."""
YAML_TYPES = ("list", "mapping")
NUMBERS = ("integer", "number")


@dataclass(frozen=True)
class StartableFlows:
    """``whole``: meant to be started. ``parts``: internal to others. ``broken``: unreadable."""

    whole: list[FlowEntry]
    parts: list[FlowEntry]
    broken: list[FlowEntry]

    def find(self, name: str) -> FlowSpec | None:
        return next((each.flow for each in (*self.whole, *self.parts) if each.name == name), None)


@dataclass(frozen=True)
class Field:
    """One input. ``kind``: of the form field. ``value``: as sent before, otherwise the default."""

    name: str
    kind: str
    value: str
    required: bool
    help: str
    choices: tuple[str, ...] = ()
    minimum: str = ""
    maximum: str = ""
    step: str = ""


@dataclass(frozen=True)
class FlowForm:
    """The form of one flow; ``goal`` to ``more``: as sent before, otherwise the defaults."""

    flow: FlowSpec
    fields: list[Field]
    playbooks: list[str]
    goal: str = ""
    cycles: str = ""
    workspace: str = ""
    playbook: str = ""
    more: Form = field(default_factory=dict)


def read_flows(roles: Path | None) -> StartableFlows:
    """Read the flows of the roles folder and the shipped ones."""
    entries = list_flows(roles_folder(roles))
    whole = [each for each in entries if each.flow and not each.is_internal]
    return StartableFlows(
        whole=sorted(whole, key=lambda each: (each.name != "cycles", each.name)),
        parts=[each for each in entries if each.is_internal],
        broken=[each for each in entries if not each.flow],
    )


def form_of(flow: FlowSpec, playbooks: list[str], sent: Form | None = None) -> FlowForm:
    """Build the form, empty or as it was ``sent``."""
    sent = sent or {}
    return FlowForm(
        flow=flow,
        fields=[_field(name, spec, sent) for name, spec in flow.inputs.items()],
        playbooks=playbooks,
        goal=sent.get("goal", ""),
        cycles=sent.get("cycles", str(RunOptions.cycles)),
        workspace=sent.get("workspace", str(Path.cwd())),
        playbook=sent.get("playbook", ""),
        more={name: sent.get(name, "") for name in MORE}
        | {name: sent.get(name, "" if "goal" in sent else _text(OPTIONS[name].default)) for name in SWITCHES},
    )


def as_sent(record: Mapping[str, Any]) -> Form:
    """The form that would start the run of ``record`` again. Texts of a run from elsewhere are only filled in."""
    options = record.get("options") or {}
    names = ("goal", "cycles", "workspace", "playbook", *MORE, *SWITCHES)
    inputs = {f"{PREFIX}{name}": _text(value) for name, value in (record.get("inputs") or {}).items()}
    return {"goal": "", **{name: _text(options.get(name)) for name in names}, **inputs}


def worst_case_of(form: FlowForm, roles: Path | None) -> str:
    """The worst case of what the form starts, in words, or what is wrong with it."""
    inputs = {each.name: each.value for each in form.fields if each.value}
    try:
        more = {name: _number(name, value) for name, value in _options(form).items()}
        more |= {"cycles": int(form.cycles or RunOptions.cycles)}
        flows, catalog = load_flow_and_called(form.flow.name, load_catalog(roles))
        return worst_case_words(flows, form.flow.name, catalog, RunOptions(inputs=inputs, **more))
    except (CodexMultiRoleError, ValueError) as error:
        return str(error)


def requested_run(form: FlowForm) -> NewRun:
    """Convert what was sent to a run; inputs left empty get the flow's defaults.

    Raises `UsageError` for an unknown playbook: whoever names one does not want the model, which costs money.
    """
    if form.playbook and form.playbook not in form.playbooks:
        raise UsageError(f"unknown playbook {form.playbook}", "Choose one from the list.")
    inputs = {each.name: each.value for each in form.fields if each.value}
    goal, cycles, workspace = form.goal.strip(), form.cycles.strip(), form.workspace.strip()
    options = _options(form)
    return NewRun(form.flow.name, goal, cycles, workspace, form.playbook, options, inputs)


def _options(form: FlowForm) -> dict[str, str | bool]:
    """The options beside those of every form that were filled in, or switched from their default."""
    texts: dict[str, str | bool] = {name: form.more[name].strip() for name in MORE if form.more[name].strip()}
    switched = {name: form.more[name] == "true" for name in SWITCHES}
    return texts | {name: on for name, on in switched.items() if on != OPTIONS[name].default}


def _number(name: str, value: str | bool) -> Any:  # noqa: ANN401 - as the option wants it
    return value if isinstance(value, bool) or OPTIONS[name].kind is str else OPTIONS[name].kind(value)


def _field(name: str, spec: InputSpec, sent: Form) -> Field:
    kind = "choice" if spec.choices else "yaml" if spec.type in YAML_TYPES else spec.type
    value = _text(spec.default)
    if sent:
        value = sent.get(f"{PREFIX}{name}", "false" if kind == "boolean" else "")
    return Field(
        name=name,
        kind="number" if kind in NUMBERS else kind,
        value=value,
        required=spec.required,
        help="; ".join(filter(None, (spec.description, spec.wanted if not spec.choices else ""))),
        choices=tuple(map(_text, spec.choices)),
        minimum=_text(spec.minimum),
        maximum=_text(spec.maximum),
        step="1" if spec.type == "integer" else "any",
    )


def _text(value: object) -> str:
    """Convert to what would be typed after ``--input``."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else as_typed(value)
