from __future__ import annotations

import pytest

from codex_multi_role.extensions.test_generation.tests_source import tests_without_assertion as idle_tests
from codex_multi_role.extensions.test_generation.tests_source import with_unique_names, without_fence


@pytest.mark.parametrize(
    "body",
    [
        "assert f() == 1",
        "with pytest.raises(ValueError): f()",
        "with pytest.warns(UserWarning): f()",
        "self.assertEqual(f(), 1)",
        "mock.assert_called_once_with(1)",
        "np.testing.assert_allclose(f(), 1)",
        "if f(): pytest.fail('no')",
        "if f(): raise AssertionError",
        "check(f())",
        "deeper(f())",
        "def inner(): assert f()\n    inner()",
    ],
)
def test_what_checks_something(body: str) -> None:
    helpers = "def check(x): assert x\ndef deeper(x): check(x)\n"
    assert idle_tests(f"{helpers}def test_x(self, mock):\n    {body}\n") == []


def test_fixtures_and_properties_check() -> None:
    source = "@pytest.fixture\ndef sure(): assert f()\ndef test_a(sure): f()\n@given(text())\ndef test_b(x): f(x)\n"
    assert idle_tests(source) == []


@pytest.mark.parametrize("body", ["f()", "assert True", "assert 1 == 1", "pass", "print(f())", "raise ValueError"])
def test_what_checks_nothing(body: str) -> None:
    assert idle_tests(f"class TestX:\n    def test_x(self): {body}\n") == ["TestX::test_x"]


def test_each_test_name_has_one_definition() -> None:
    source = (
        "def test_a(): assert f(1)\n\ndef test_a():\n    assert f(2)\n\ndef test_a(): assert f(1)\n"
        "class TestX:\n    def test_m(self): assert f(1)\n    def test_m(self): assert f(2)\n"
        "class TestX:\n    def test_m(self): assert f(3)\ndef test_a_2(): assert f(4)\n"
    )
    assert with_unique_names(source) == (
        "def test_a(): assert f(1)\n\ndef test_a_3():\n    assert f(2)\n\n"
        "class TestX:\n    def test_m(self): assert f(1)\n    def test_m_2(self): assert f(2)\n"
        "class TestX_2:\n    def test_m(self): assert f(3)\ndef test_a_2(): assert f(4)\n"
    )
    assert with_unique_names("def test_a(:\n") == "def test_a(:\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("```python\nx = 1\n```", "x = 1\n"),
        ("\n~~~\nx = 1\n~~~\n\n", "x = 1\n"),
        ("````py\nx = '''\n```\n'''\n````", "x = '''\n```\n'''\n"),
        ("```python\nx = 1\n```\nand\n```python\ny = 2\n```", None),
        ("Here:\n```python\nx = 1\n```", None),
        ("x = '```'\n", None),
        ("```", None),
        ("", None),
    ],
)
def test_one_fence_around_all_is_dropped(text: str, code: str | None) -> None:
    assert without_fence(text) == (text if code is None else code)
