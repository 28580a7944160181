"""The tables in `docs/reference/feature-matrix.md` match the results of the conformance tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

import pytest
from tests.conformance import support_table
from tests.conformance.comparing import ENGINES
from tests.conformance.features import features
from tests.conformance.ledger import LEDGER

from aigo_bridge.spec.metric import METRICS
from aigo_bridge.spec.scorers import SCORERS
from aigo_bridge.spec.solvers import SOLVERS
from aigo_bridge.spec.trials import Aggregator


def test_the_support_table_is_up_to_date() -> None:
    assert support_table.is_current(), "make support-table"


def test_the_table_lists_every_feature_and_gap() -> None:
    table = support_table.table()
    assert [feature.id for feature in features() if feature.name not in table] == []
    shown = [gap for gap in LEDGER if not all(name.startswith("task: ") for name in gap.features)]
    assert [gap.reason for gap in shown if gap.reason not in table] == []


def test_every_name_of_a_task_component_is_used_by_a_feature() -> None:
    """Every name then has a row, and a feature proves its content."""
    functions = {
        word
        for model in get_args(get_args(Aggregator)[0])
        for word in get_args(model.model_fields["function"].annotation)
    }
    expected = {
        "solver": _shipped(SOLVERS),
        "scorer": _shipped(SCORERS),
        "metric": _shipped(METRICS),
        "aggregator": functions,
    }
    assert {kind: set(uses) for kind, uses in support_table.names().items()} == expected


def _shipped(types: Mapping[str, type]) -> set[str]:
    """Return names without the registrations of other tests in this process."""
    return {name for name, spec in types.items() if spec.__module__.startswith("aigo_bridge.")}


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("`agent_solver`", "yes | no: sandbox not available"),
        ("`string_equals_mcqa`", "yes | yes"),
        ("`pass@k`", "yes | yes"),
    ],
)
def test_a_name_has_the_support_of_its_best_feature(name: str, cells: str) -> None:
    (row,) = [row for row in support_table.names_table().splitlines() if name in row]
    assert row.endswith(f" | {cells} |")


def test_every_row_has_a_cell_for_every_engine() -> None:
    for table, columns in ((support_table.table(), 1), (support_table.names_table(), 2)):
        rows = [row for row in table.splitlines() if not row.startswith("|---")]
        assert {row.count(" | ") for row in rows[1:]} == {len(ENGINES) + columns - 1}


def test_an_outdated_table_is_detected() -> None:
    page = support_table.PAGE.read_text(encoding="utf-8")
    old = page.replace("**scorers**: code_exec | yes | no", "**scorers**: code_exec | yes | yes")
    old = old.replace("`pass^k` | yes | yes", "`pass^k` | yes | no")
    assert old.count("pass^k") == page.count("pass^k")
    assert old.count("yes") == page.count("yes")
    assert support_table.with_table(old) == page
