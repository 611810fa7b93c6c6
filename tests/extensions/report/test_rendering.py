"""Templates: values are escaped, unknown names are errors, and compiled ones are only kept if possible."""

from __future__ import annotations

from pathlib import Path

import pytest
from jinja2 import UndefinedError

from codex_multi_role.extensions.report import rendering


@pytest.fixture
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the templates, with one; none is loaded yet."""
    (tmp_path / "one.html").write_text("<b>{{ word }}</b>")
    monkeypatch.setattr(rendering, "TEMPLATES", tmp_path)
    monkeypatch.setattr(rendering, "_environment", rendering._environment.__wrapped__)
    return tmp_path


def shown() -> str:
    return rendering.template("one.html").render(word="<&>")


def test_values_are_escaped_and_unknown_names_are_errors(templates: Path) -> None:
    assert shown() == "<b>&lt;&amp;&gt;</b>"
    with pytest.raises(UndefinedError, match="'word' is undefined"):
        rendering.template("one.html").render()


@pytest.mark.parametrize("keep", [0, 5, 30, 200])
def test_damaged_compiled_template_is_compiled_again(templates: Path, keep: int) -> None:
    shown()
    (compiled,) = (templates / "__pycache__").iterdir()
    whole = compiled.read_bytes()
    compiled.write_bytes(whole[:keep])
    assert shown() == "<b>&lt;&amp;&gt;</b>"
    assert compiled.read_bytes() == whole


def test_changed_template_is_compiled_again(templates: Path) -> None:
    shown()
    (templates / "one.html").write_text("<i>{{ word }}</i>")
    assert shown() == "<i>&lt;&amp;&gt;</i>"


def test_templates_work_where_nothing_can_be_kept(templates: Path) -> None:
    (templates / "__pycache__").write_text("")
    assert shown() == "<b>&lt;&amp;&gt;</b>"
