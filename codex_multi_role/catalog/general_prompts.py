"""The parts shared by all prompts of a catalog. Their text is all YAML, so that a catalog uses one language."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, ConfigDict

from codex_multi_role.catalog.definition import Definition
from codex_multi_role.catalog.packaged import packaged_roles
from codex_multi_role.catalog.role_spec import RoleSpec
from codex_multi_role.reading.yaml_source import load_yaml, validate


class _Holding:
    """Requires the placeholder of a section, which shows nothing without it; a blank text omits the section."""

    def __init__(self, placeholder: str) -> None:
        self._placeholder = placeholder

    def __call__(self, text: str) -> str:
        if text.strip() and self._placeholder not in text:
            raise ValueError(f"must hold {self._placeholder}")
        return text


class CapabilityRules(Definition):
    """What a role reads about its ``prompt_flags``, skills and tools, one line each.

    ``skills`` contains ``{skills}``, ``own_tools`` contains ``{tools}``.
    """

    tools_allowed: str = ""
    tools_forbidden: str = ""
    files_read_and_write: str = ""
    files_read_only: str = ""
    files_write_only: str = ""
    files_forbidden: str = ""
    file_suggestions: str = ""
    skills: Annotated[str, AfterValidator(_Holding("{skills}"))] = ""
    own_tools: Annotated[str, AfterValidator(_Holding("{tools}"))] = ""

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
        return [
            self.tools_allowed if flags.allow_tools else self.tools_forbidden,
            access[flags.allow_read, flags.allow_write],
            self.file_suggestions if flags.allow_file_suggestions else "",
            self.skills.replace("{skills}", names) if names else "",
            self.own_tools.replace("{tools}", ", ".join(role.tools)) if role.tools else "",
        ]


class GeneralPrompts(Definition):
    """``general_prompts``: the original's six keys, and the parts this project added. Blank parts are left out.

    ``{role_name}`` is available in all of them; a section also has the placeholder that it is named after. The text for
    ``{problem}`` is English, so a catalog in another language may leave it out.
    """

    role_header: str = ""
    goal_section: Annotated[str, AfterValidator(_Holding("{goal}"))] = ""
    earlier_section: Annotated[str, AfterValidator(_Holding("{earlier}"))] = ""
    input_section: Annotated[str, AfterValidator(_Holding("{input}"))] = ""
    tests_section: Annotated[str, AfterValidator(_Holding("{tests}"))] = ""
    json_contract: str = ""
    rules_header: str = ""
    capability_rules: CapabilityRules = CapabilityRules()
    analysis_rules: str = ""
    continue_section: str = ""
    repair_section: str = ""
    long_prompt_section: Annotated[str, AfterValidator(_Holding("{file}"))] = ""


class _ShippedCatalog(Definition):
    model_config = ConfigDict(extra="ignore")

    general_prompts: GeneralPrompts


def missing_parts(given: GeneralPrompts) -> list[str]:
    """The keys of the parts that `completed` adds."""
    rules = [f"capability_rules.{key}" for key in CapabilityRules.model_fields]
    missing_rules = [key for key in rules if key.partition(".")[2] not in given.capability_rules.model_fields_set]
    parts = [key for key in GeneralPrompts.model_fields if key not in given.model_fields_set]
    return [*(key for key in parts if key != "capability_rules"), *missing_rules]


def completed(given: GeneralPrompts) -> GeneralPrompts:
    """``given`` with the shipped catalog's text for every part that it lacks."""
    if not missing_parts(given):
        return given
    path = packaged_roles() / "catalog.yaml"
    shipped = validate(_ShippedCatalog, load_yaml(path), path).general_prompts.model_dump(exclude_unset=True)
    written = given.model_dump(exclude_unset=True)
    rules = shipped["capability_rules"] | written.get("capability_rules", {})
    return GeneralPrompts.model_validate(shipped | written | {"capability_rules": rules})
