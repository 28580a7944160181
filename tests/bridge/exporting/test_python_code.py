"""Generated files contain only the runtime code that the template uses."""

from __future__ import annotations

import ast
from pathlib import Path

import jinja2
import pytest

from aigo_bridge.exporting.python_code import names_in, rendered, with_runtime

RUNTIME = "aigo_bridge.exporting.runtime"
SOURCE = '''"""A file."""

import json
from pathlib import Path

DATA = [Path("."), 1]


def last() -> object:
    return {code}
'''


def definitions(source: str) -> list[str]:
    return [node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]


def test_only_required_definitions_are_copied_before_the_last_statement() -> None:
    source = with_runtime(SOURCE.replace("{code}", "metric_values([], [])"), RUNTIME)

    assert definitions(source) == ["mean", "deviation", "metric_values", "last"]
    assert "import statistics\n" in source
    assert "sacrebleu" not in source
    assert "json" not in source
    assert source.index("DATA = ") < source.index("FORMULAS: ") < source.index("def metric_values")


def test_third_party_imports_follow_standard_library_imports() -> None:
    source = with_runtime(SOURCE.replace("{code}", "bleu"), RUNTIME)

    head = source[: source.index("DATA")].strip().splitlines()
    assert head == [
        '"""A file."""',
        "",
        "from pathlib import Path",
        "from typing import Any",
        "",
        "from sacrebleu.metrics.bleu import BLEU",
    ]


def test_copied_constant_keeps_its_docstring() -> None:
    source = with_runtime(SOURCE.replace("{code}", "string_equals"), RUNTIME)

    assert 'Any]]\n"""Scores by name, and the compared values."""\n' in source


def test_generated_file_runs() -> None:
    space: dict[str, object] = {}
    exec(
        with_runtime(SOURCE.replace("{code}", 'compared_text(" A ", {}, ["trim", "lower"])'), RUNTIME), space
    )

    assert space["last"]() == "a"  # type: ignore[operator]  # the function of the source


def test_template_inserts_texts_as_data(tmp_path: Path) -> None:
    """Text of an author is never executed as Jinja or Python code."""
    text = "{{ 1 + 1 }}\"\"\"'''\n{% raw %}"
    template = tmp_path / "x.py.jinja"
    template.write_text("A = {{ text | text }}\nB = {{ [text] | literal }}\n")
    space: dict[str, object] = {}

    exec(rendered(template, text=text), space)

    assert (space["A"], space["B"]) == (text, [text])


def test_missing_template_value_is_an_error(tmp_path: Path) -> None:
    template = tmp_path / "x.py.jinja"
    template.write_text("{{ missing }}")

    with pytest.raises(jinja2.UndefinedError):
        rendered(template)


def test_module_names_include_used_and_defined_names() -> None:
    assert names_in("def a(b):\n    c = d(e=f)\n") >= {"a", "b", "c", "d", "f"}
