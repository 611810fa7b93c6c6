"""Prompts: the parts that all roles of a catalog share, and how a role's prompt is built from them, in one fixed order.

All text of the parts is YAML, so that a catalog uses one language. Placeholders such as ``{role_name}`` are filled in;
literal braces stay.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

from pydantic import AfterValidator, ConfigDict

from codex_multi_role.catalog.definition import Definition, Nested, closed_properties, optional
from codex_multi_role.catalog.role_spec import RoleSpec
from codex_multi_role.reading.shipped import packaged_roles
from codex_multi_role.reading.yaml_source import load_yaml, validate

KNOWN_SECTION = "known_section"
REFUSAL_RULE = "refusal_rule"
ANALYSIS = "analysis_md"
FAR_CHARACTERS = 8000
"""More material than that after the first paragraph of a task lets the prompt repeat the paragraph."""
_RULE = re.compile(r"\n(?=[-*] )")


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replace ``{key}`` for every key of ``values``, in one pass.

    ``{{`` and its closing ``}}`` become single braces, as in ``str.format``. Every other brace stays as written:
    ``str.format`` would reject pseudo-schemas like ``{ path: <string> }`` and read the end of ``{"a": {}}`` as ``}``.
    """
    known = "|".join(map(re.escape, values)) or "(?!)"
    token = re.compile(rf"\{{({known})\}}|\{{\{{|[{{}}]")
    parts: list[str] = []
    open_escaped: list[bool] = []
    position = 0
    while found := token.search(text, position):
        parts.append(text[position : found.start()])
        position = found.end()
        if found[1] is not None:
            parts.append(values[found[1]])
        elif found[0] == "}":
            escaped = open_escaped.pop() if open_escaped else True
            position += escaped and text.startswith("}", position)
            parts.append("}")
        else:
            open_escaped.append(found[0] == "{{")
            parts.append("{")
    return "".join([*parts, text[position:]])


def _holding(placeholder: str) -> AfterValidator:
    """Requires the placeholder of a section, which shows nothing without it; a blank text omits the section."""

    def check(text: str) -> str:
        if text.strip() and placeholder not in text:
            raise ValueError(f"must hold {placeholder}")
        return text

    return AfterValidator(check)


class CapabilityRules(Definition):
    """What a role reads about its ``prompt_flags``, skills, tools and fields, one line each."""

    tools_allowed: str = optional("", "For a role with `allow_tools`.")
    tools_forbidden: str = optional("", "For a role without `allow_tools`.")
    files_read_and_write: str = optional("", "For a role with `allow_read` and `allow_write`.")
    files_read_only: str = optional("", "For a role with `allow_read` alone.")
    files_write_only: str = optional("", "For a role with `allow_write` alone.")
    files_forbidden: str = optional("", "For a role without `allow_read` and `allow_write`.")
    file_suggestions: str = optional("", "For a role with `allow_file_suggestions`, unless its schema forbids `files`.")
    skills: Annotated[str, _holding("{skills}")] = optional("", "Its skills: `{skills}`.")
    own_tools: Annotated[str, _holding("{tools}")] = optional("", "Its `tools`: `{tools}`.")
    analysis: str = optional("", "For a role whose described answer has the field `analysis_md`.")

    def lines(self, role: RoleSpec) -> list[str]:
        """The rules that apply to ``role``. Codex loads a skill when the prompt contains its name as ``$name``."""
        flags = role.prompt_flags
        access = {
            (True, True): self.files_read_and_write,
            (True, False): self.files_read_only,
            (False, True): self.files_write_only,
            (False, False): self.files_forbidden,
        }
        names = ", ".join(f"${skill}" for skill in role.skills)
        described = role.schema_hint if role.output_schema is None else str(role.output_schema.get("properties"))
        return [
            self.tools_allowed if flags.allow_tools else self.tools_forbidden,
            access[flags.allow_read, flags.allow_write] if flags.allow_tools else "",
            self.file_suggestions if flags.allow_file_suggestions and not _forbids(role, "files") else "",
            self.skills.replace("{skills}", names) if names else "",
            self.own_tools.replace("{tools}", ", ".join(role.tools)) if role.tools else "",
            self.analysis if ANALYSIS in described else "",  # no rule alone asks for it
        ]


def _forbids(role: RoleSpec, field: str) -> bool:
    fields = closed_properties(role.output_schema or {})
    return fields is not None and field not in fields


class GeneralPrompts(Definition):
    """``general_prompts``: the original's six keys, and the parts this project added. Blank parts are left out.

    ``{role_name}`` is available in all of them; a section also has the placeholder that it is named after. If
    ``known_section`` is blank, every prompt repeats the role's instructions and rules; it is never added to a catalog
    with parts of its own, which may be in another language. ``refusal_rule`` is the end of ``json_contract``, and never
    added to one that the catalog wrote. ``schema_section`` describes the answer of a role without a hint of its own.
    The texts for ``{problem}`` and ``{needed}`` are English, so a catalog in another language may leave them out.
    """

    role_header: str = optional("", "The first line of every prompt.")
    goal_section: Annotated[str, _holding("{goal}")] = optional("", "The goal: `{goal}`.")
    task_section: Annotated[str, _holding("{task}")] = optional("", "The `prompt` of the step: `{task}`.")
    earlier_section: Annotated[str, _holding("{earlier}")] = optional(
        "", "The role's last handoffs, in a new conversation: `{earlier}`."
    )
    input_section: Annotated[str, _holding("{input}")] = optional("", "The handoff that it gets: `{input}`.")
    tests_section: Annotated[str, _holding("{tests}")] = optional("", "The latest test result: `{tests}`.")
    rules_header: str = optional("", "The line above the rules.")
    capability_rules: Nested[CapabilityRules] = optional(CapabilityRules(), "What a role may do, a line each.")
    analysis_rules: str = optional("", "Rules for every role: lines that begin with `-`.")
    task_again_section: Annotated[str, _holding("{task}")] = optional(
        "", "The beginning of a task that is far above: `{task}`."
    )
    json_contract: str = optional("", "That the answer is one JSON object.")
    refusal_rule: str = optional("", "How a role says that it cannot do its task.")
    schema_section: Annotated[str, _holding("{schema}")] = optional(
        "", "The answer of a role without a hint: `{schema}`."
    )
    needed_section: Annotated[str, _holding("{needed}")] = optional(
        "", "What later steps read of the answer: `{needed}`."
    )
    known_section: str = optional("", "Instead of what a conversation still knows; if blank, that is repeated.")
    continue_section: str = optional("", "To a role that stopped before its work was done.")
    repair_section: str = optional("", "To a role whose answer could not be used: `{problem}`.")
    long_prompt_section: Annotated[str, _holding("{file}")] = optional(
        "", "Where the rest of a prompt is that is too long to send: `{file}`."
    )


class _ShippedCatalog(Definition):
    model_config = ConfigDict(extra="ignore")

    general_prompts: GeneralPrompts


def missing_parts(given: GeneralPrompts) -> list[str]:
    """The keys of the parts that `completed` adds."""
    rules = [f"capability_rules.{key}" for key in CapabilityRules.model_fields if key not in _never_added(given)]
    missing_rules = [key for key in rules if key.partition(".")[2] not in given.capability_rules.model_fields_set]
    excluded = given.model_fields_set | _never_added(given)
    parts = [key for key in GeneralPrompts.model_fields if key not in excluded]
    return [*(key for key in parts if key != "capability_rules"), *missing_rules]


def _never_added(given: GeneralPrompts) -> set[str]:
    """The parts that belong to others which the catalog wrote itself."""
    written = given.model_fields_set
    belongs = {REFUSAL_RULE: "json_contract", "analysis": "analysis_rules"}
    return {*([KNOWN_SECTION] if written else []), *(key for key, other in belongs.items() if other in written)}


def completed(given: GeneralPrompts) -> GeneralPrompts:
    """``given`` with the shipped catalog's text for every part that it lacks."""
    if not missing_parts(given):
        return given
    path = packaged_roles() / "catalog.yaml"
    shipped = validate(_ShippedCatalog, load_yaml(path), path).general_prompts.model_dump(exclude_unset=True)
    written = given.model_dump(exclude_unset=True)
    for key in _never_added(given):
        (shipped if key in shipped else shipped["capability_rules"]).pop(key)
    rules = shipped["capability_rules"] | written.get("capability_rules", {})
    return GeneralPrompts.model_validate(shipped | written | {"capability_rules": rules})


def build_prompt(
    texts: GeneralPrompts,
    role: RoleSpec,
    goal: str,
    payload: Mapping[str, object] | None = None,
    tests: Mapping[str, object] | None = None,
    *,
    task: str = "",
    earlier: Sequence[Mapping[str, object]] = (),
    known: bool = False,
) -> str:
    """The prompt of a turn.

    ``payload``: the incoming handoff; ``tests``: the latest test result; ``task``: the step's own; ``earlier``: the
    role's own last handoffs, for a thread that does not remember them; ``known``: the thread still has the role's
    instructions and rules, so that ``known_section`` takes their place. Order: role header (the first line), role
    instructions, goal, task, earlier handoffs, payload, tests, rules, the task again if it is far above, and the
    description of the answer. Empty parts are left out.
    """
    named = {"role_name": role.name}
    reminder = fill(texts.known_section, named) if known else ""
    first, _, more = task.strip().partition("\n\n")
    material = [
        fill(texts.earlier_section, named | {"earlier": _pretty(earlier)}) if earlier else "",
        fill(texts.input_section, named | {"input": _pretty(payload)}) if payload else "",
        fill(texts.tests_section, named | {"tests": _pretty(tests)}) if tests else "",
    ]
    is_far = first and sum(map(len, [more, *material])) > FAR_CHARACTERS
    sections = [
        fill(texts.role_header, named),
        reminder or role.prompt_text,
        fill(texts.goal_section, named | {"goal": goal}),
        fill(texts.task_section, named | {"task": task}) if first else "",
        *material,
        "" if reminder else _rules(texts, role),
        fill(texts.task_again_section, named | {"task": first}) if is_far else "",
        *_answer(texts, role),
    ]
    return _joined(sections)


def answer_shape(texts: GeneralPrompts, role: RoleSpec) -> str:
    """How the role's answer looks: its own hint as it is written, otherwise its schema with what that is."""
    if role.schema_hint or role.output_schema is None:
        return role.schema_hint
    return fill(texts.schema_section, {"role_name": role.name, "schema": _pretty(role.output_schema)})


def instructions_digest(texts: GeneralPrompts, role: RoleSpec) -> str:
    """Identifies what a prompt leaves out for a thread that knows it; empty if every prompt repeats it."""
    standing = _joined([role.prompt_text, _rules(texts, role)])
    return hashlib.sha256(standing.encode()).hexdigest()[:16] if texts.known_section.strip() else ""


def build_repair_prompt(texts: GeneralPrompts, role: RoleSpec, problem: str) -> str:
    """The prompt that asks for the last answer again; ``problem`` says what was wrong with it."""
    named = {"role_name": role.name}
    repair = fill(texts.repair_section, named | {"problem": problem})
    return _joined([fill(texts.role_header, named), repair, *_answer(texts, role)])


def build_continue_prompt(texts: GeneralPrompts, role: RoleSpec) -> str:
    """The prompt for a role that stopped before its work was finished."""
    named = {"role_name": role.name}
    return _joined([fill(texts.role_header, named), fill(texts.continue_section, named), *_answer(texts, role)])


def _answer(texts: GeneralPrompts, role: RoleSpec) -> list[str]:
    """A refusal is not offered where the schema forbids it: a model that it binds could not answer it."""
    may_refuse = (role.output_schema or {}).get("additionalProperties") is not False
    lines = [texts.json_contract, texts.refusal_rule if may_refuse else ""]
    contract = "\n".join(text.strip("\n") for text in lines if text.strip())
    return [fill(contract, {"role_name": role.name}), answer_shape(texts, role)]


def _rules(texts: GeneralPrompts, role: RoleSpec) -> str:
    """The rules for the role, without those of a catalog on a field that the role's schema forbids."""
    rules = _RULE.split(texts.analysis_rules.strip("\n"))
    allowed = [rule for rule in rules if ANALYSIS not in rule or not _forbids(role, ANALYSIS)]
    lines = [texts.rules_header, *texts.capability_rules.lines(role), *allowed]
    return "\n".join(fill(line.strip("\n"), {"role_name": role.name}) for line in lines if line.strip())


def _pretty(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _joined(sections: Iterable[str]) -> str:
    """Join sections with one blank line between any two, with or without line breaks at their ends.

    A lone surrogate cannot be sent as UTF-8 (Codex drops the line and never answers), so it becomes U+FFFD.
    """
    text = "\n\n".join(section.strip("\n") for section in sections if section.strip()) + "\n"
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
