"""Duration budgets: `make durations` fails if they are exceeded, and committed lists name existing tests."""

from __future__ import annotations

import ast
import tomllib

import pytest
from tests.architecture.sources import ROOT
from tests.support.durations import (
    BUDGETS,
    NIGHTLY,
    Budgets,
    Durations,
    budgets,
    is_nightly,
    missing_parameters,
    without_parameters,
)

TABLE = tomllib.loads(BUDGETS.read_text("utf-8"))


def exists(test: str) -> bool:
    """Return whether a folder, file or test exists, without its parameters."""
    path, _, names = without_parameters(test).partition("::")
    if not names:
        return (ROOT / path).exists()
    body: list[ast.stmt] = ast.parse((ROOT / path).read_text("utf-8")).body if (ROOT / path).is_file() else []
    for name in names.split("::"):
        body = [
            node
            for parent in body
            if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            and parent.name == name
            for node in [*parent.body, ast.Pass()]
        ]
    return bool(body)


COVERING = {test for tests in NIGHTLY.values() for test in tests}


@pytest.mark.parametrize("test", [*TABLE["slow"], *TABLE["reasons"], *NIGHTLY, *sorted(COVERING)])
def test_listed_tests_exist(test: str) -> None:
    assert exists(test)


def test_every_nightly_test_has_a_covering_test_in_the_submission() -> None:
    assert all(NIGHTLY.values())
    assert not any(is_nightly(test) for test in COVERING)


def test_parameters_that_stay_in_the_submission_are_known() -> None:
    function = (
        "tests/end_to_end/test_options_verified.py::test_honest_run_is_proved_with_and_without_its_task"
    )
    kept = [test for test in NIGHTLY[f"{function}[*]"] if test.startswith(function)]
    assert not any(is_nightly(f"{test}{group}") for test in kept for group in ("", "@lighteval"))
    assert is_nightly(f"{function}[task.yaml -n 2]@group")
    assert missing_parameters(kept) == []
    assert missing_parameters([*kept[1:], f"{function}[new]"]) == kept[:1]


def test_missing_test_is_found() -> None:
    assert exists("tests/architecture/test_durations.py::test_missing_test_is_found")
    assert not exists("tests/architecture/test_durations.py::test_gone")
    assert not exists("tests/architecture/test_gone.py::test_gone")
    assert not exists("tests/gone")


def test_every_exception_has_a_reason() -> None:
    assert all(len(reason.split()) >= 3 for reason in budgets().reasons.values())


def test_tests_and_suite_over_budget_are_reported() -> None:
    plugin = Durations(Budgets(suite=200, test=20, unit=1, reasons={"a.py::dear": "renders a long film"}))
    plugin.seconds = {
        "a.py::dear[x]": 90,
        "a.py::dear@group": 90,
        "a.py::long[x]": 21,
        "a.py::short": 19,
        "a.py::unit": 2,
    }
    plugin.units = {"a.py::unit"}
    total = "all tests: 222 CPU seconds, expected at most 200"
    assert list(plugin.over_budget()) == [
        total,
        "a.py::long[x]: 21.0 CPU seconds, expected at most 20",
        "a.py::unit: 2.0 CPU seconds, expected at most 1",
    ]
    plugin.each = False
    assert list(plugin.over_budget()) == [total]


@pytest.mark.xdist_group("together")
def test_grouped_tests_run_in_one_process(request: pytest.FixtureRequest) -> None:
    """Otherwise each process prepares shared data and loads lighteval: a quarter of the suite's time."""
    by_groups = getattr(request.config.option, "loadgroup", False)
    assert request.node.nodeid.endswith("@together") == by_groups
