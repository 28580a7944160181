"""A converted task contains exactly the definitions that it uses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from aigo_bridge.exporting.carried_code import NotCarriedError, carried, module_of, problem_of, with_code

CODE = '''\
from __future__ import annotations

import json, re
import numpy as np
import helpers
from os import path as place
from .near import thing

TABLE: dict = {}
TABLE["a"] = 1
UNUSED = helpers.value
FIRST, SECOND = 1, 2
try:
    import missing_package
except ImportError:
    missing_package = None

for number in range(2):
    TABLE[number] = number


def square(x):
    return x * x  # with a remark


class Base:
    """Says \\\\ and \'\'\' and more."""

    limit = SECOND


class Child(Base):
    def run(self, x):
        return square(x) + TABLE["a"] + self.limit


def helped():
    return helpers.value


def near():
    return thing


def located():
    return place.join(__file__, "x")


def optional():
    return missing_package is None


if __name__ == "__main__":
    print(Child().run(2))
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "my eval.py"
    path.write_text(CODE)
    return path


def test_required_definitions_are_copied_in_order(file: Path) -> None:
    text = carried(file, ["Child"])
    names: dict[str, object] = {"__name__": "elsewhere"}
    exec(text, names)
    assert names["Child"]().run(3) == 12  # type: ignore[operator]
    assert names["TABLE"] == {"a": 1, 0: 0, 1: 1}
    for left_out in ("helpers", "UNUSED", "json", "numpy", "__main__", "missing_package"):
        assert left_out not in text
    assert text.startswith("from __future__ import annotations\n")
    assert "# with a remark" in text


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("helped", "imports 'helpers', which is another file of yours"),
        ("near", "imports '.near', which is another file of yours"),
        ("located", "looks for files next to it (__file__)"),
        ("optional", "imports 'missing_package', which is another file of yours"),
        ("nothing", "'nothing' is not defined at the top level of my eval.py"),
    ],
)
def test_code_that_cannot_be_copied_is_refused_with_the_reason(name: str, reason: str, file: Path) -> None:
    with pytest.raises(NotCarriedError, match=reason.replace("(", r"\(").replace(")", r"\)")):
        carried(file, [name])


def test_a_file_that_is_not_python_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("def (")
    for path in (tmp_path / "x.py", tmp_path / "nothere.py"):
        with pytest.raises(NotCarriedError, match="cannot be read"):
            carried(path, ["a"])


@pytest.mark.parametrize(
    "text", ["A = 1\n", "A = '''x'''\n", 'A = """x"""\n', "A = '''x''' + \"\"\"\\\\\"\"\"\n", "A = '\\\\'\n"]
)
def test_code_in_the_snippet_keeps_its_value(text: str, tmp_path: Path) -> None:
    file = tmp_path / "a b.py"
    snippet = with_code("from own_a_b import A\n", {file: text})
    names: dict[str, object] = {}
    try:
        exec(snippet, names)
    finally:
        del sys.modules[module_of(file)]
    expected: dict[str, object] = {}
    exec(text, expected)
    assert names["A"] == expected["A"]
    assert str(tmp_path) not in snippet


def test_scorer_that_cannot_run_in_a_snippet_is_reported(tmp_path: Path) -> None:
    def scorer(body: str) -> dict[str, str]:
        own = with_code("", {tmp_path / "x.py": body})
        call = "def compute_scores(sample, solver_output):\n    from own_x import grade\n    return {'a': grade()}\n"
        return {"compute_scores_snippet": own + call}

    assert problem_of(scorer("def grade():\n    return 1.0\n"), {}, "answer") is None
    assert "grades.txt" in str(
        problem_of(scorer("def grade():\n    return open('grades.txt')\n"), {}, "answer")
    )
    assert problem_of({"type": "string_equals"}, {}, "answer") is None
