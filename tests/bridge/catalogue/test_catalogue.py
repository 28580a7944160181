"""Every error has a code, every code is explained, and numbers are unique."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from tests.architecture.sources import SOURCES
from tests.support.commands import REPOSITORY, Run

import aigo_bridge.errors
from aigo_bridge.catalogue import CATALOGUE, FAMILIES, family_of
from aigo_bridge.codes import Code
from aigo_bridge.errors import BridgeError, Issue, SampleError, UsageError, code_of_kind

EVER = REPOSITORY / "tests" / "bridge" / "catalogue" / "codes.txt"
"""All codes that were ever given, `AB116 UNKNOWN_KEY`; behind a retired one stands `retired`."""
WITH_MESSAGES = {
    "UsageError",
    "UnsupportedPlanError",
    "EngineError",
    "SnippetError",
    "Issue",
}
"""What has a message and no list of issues: none without a code."""
WITH_ISSUES = {"SpecError", "TemplateError", "DatasetError", "EvidenceError"}
"""What has a message with a code, or issues that have theirs; mypy tells the two apart."""


def made_without_code(tree: ast.AST) -> Iterator[int]:
    """Return the lines that create an error or issue without a code."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            continue
        names = {keyword.arg for keyword in node.keywords}
        if "code" in names or None in names:  # `Issue(**values)`, which `issue_from` makes
            continue
        is_text = bool(node.args) and isinstance(node.args[0], (ast.Constant, ast.JoinedStr, ast.BinOp))
        if node.func.id in WITH_MESSAGES or (node.func.id in WITH_ISSUES and is_text):
            yield node.lineno


def test_every_error_has_a_code() -> None:
    without = [
        f"{name}:{line}" for name, source in SOURCES.items() for line in made_without_code(source.tree)
    ]
    assert without == []


def test_error_without_a_code_is_found() -> None:
    text = "raise UsageError('a')\nIssue(message)\nSpecError(f'{a}')\nSpecError(issues)\nUsageError('a', code=Code.NO_LOGS)\n"
    assert [*made_without_code(ast.parse(text))] == [1, 2, 3]


def test_every_code_is_used_and_explained() -> None:
    used = {
        node.attr
        for source in SOURCES.values()
        if ".catalogue" not in source.name
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Code"
    }
    assert {code.name for code in Code} == used
    assert set(CATALOGUE) == set(Code)
    assert {code for code, entry in CATALOGUE.items() if entry.code != code} == set()


def test_every_kind_of_sample_error_has_a_code() -> None:
    kinds = {
        keyword.value.value
        for source in SOURCES.values()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"SampleError", "JudgeError"}
        for keyword in node.keywords
        if keyword.arg == "kind" and isinstance(keyword.value, ast.Constant)
    }
    assert len(kinds) > 30
    assert {kind for kind in kinds if code_of_kind(str(kind)) == Code.FAILED_SAMPLE} == set()


def test_error_numbers_are_unique_and_never_reused() -> None:
    rows = [line.split() for line in EVER.read_text("utf-8").splitlines()]
    assert [number for number, times in Counter(row[0] for row in rows).items() if times > 1] == []
    living = {row[0]: row[1] for row in rows if "retired" not in row}
    assert living == {code.value: code.name for code in Code}
    assert all(re.fullmatch(r"AB\d{3}", code) and family_of(code) in FAMILIES.values() for code in Code)


def test_codes_without_an_example_have_a_test() -> None:
    silent = {code: entry.test for code, entry in CATALOGUE.items() if entry.example is None}
    assert {code for code, test in silent.items() if test is None} == set()
    assert {
        code: test
        for code, test in silent.items()
        if test is not None and not asserts(code, *definitions(test))
    } == {}


def definitions(test: str) -> Iterator[ast.FunctionDef]:
    """Return the named test and the functions of its module that it calls for assertions."""
    file, _, name = test.partition("::")
    tree = ast.parse((REPOSITORY / file).read_text("utf-8"))
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    yield functions[name]
    for node in ast.walk(functions[name]):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in functions:
            yield functions[node.func.id]


def asserts(code: Code, *tests: ast.FunctionDef) -> bool:
    """Return whether a test asserts this code, by number, by name or through a parameter."""
    parametrized = any(is_of(code, decorator) for test in tests for decorator in test.decorator_list)
    return any(
        is_of(code, node) or (parametrized and ".code ==" in ast.unparse(node))
        for test in tests
        for node in ast.walk(test)
        if isinstance(node, ast.Assert)
    )


def is_of(code: Code, part: ast.AST) -> bool:
    """Return whether a source segment names a code."""
    return any(
        (isinstance(node, ast.Constant) and isinstance(node.value, str) and code.value in node.value)
        or ast.unparse(node) == f"Code.{code.name}"
        for node in ast.walk(part)
        if isinstance(node, ast.Constant | ast.Attribute)
    )


def test_test_that_checks_only_the_message_is_found() -> None:
    texts = {
        "assert error.code == Code.NO_LOGS": True,
        "assert '[AB701]' in done.err": True,
        "assert 'no logs' in done.err": False,
        "'AB701'": False,
        "assert error.code == Code.NO_ROWS": False,
    }
    for text, is_asserted in texts.items():
        (test,) = ast.parse(f"def test_it():\n    {text}\n").body
        assert isinstance(test, ast.FunctionDef)
        assert asserts(Code.NO_LOGS, test) is is_asserted, text


def test_errors_have_the_code_of_their_first_issue() -> None:
    issues = [Issue("a", code=Code.NO_LOGS), Issue("b", code=Code.NO_ROWS)]
    assert aigo_bridge.errors.SpecError(issues).code == Code.NO_LOGS
    assert aigo_bridge.errors.SpecError("a", code=Code.NO_ROWS).issues[0].code == Code.NO_ROWS
    assert SampleError("a", stage="solver", kind="NotRecorded").code == Code.NOT_RECORDED


def test_error_from_third_party_code_has_no_code() -> None:
    assert UsageError("an addition of others raises this").code == Code.UNCODED
    assert BridgeError().code == Code.UNCODED


def test_the_command_explains_a_code(aigo: Run) -> None:
    done = aigo("error", "ab116")
    assert done.code == 0
    assert done.out.startswith("# AB116: A key is not allowed in this place\n")
    assert "+ ground_thruth:" in done.out


def test_the_command_lists_all_codes(aigo: Run) -> None:
    listed = aigo("error").out
    assert sorted(re.findall(r"^  (AB\d{3})  \S", listed, re.MULTILINE)) == sorted(Code)


def test_an_invalid_code_is_refused(aigo: Run) -> None:
    done = aigo("error", "AB999")
    assert done.code == 2
    assert "unknown error code 'AB999'" in done.err
    assert "[AB805]" in done.err
