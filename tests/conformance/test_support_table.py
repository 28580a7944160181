"""`docs/what-runs-where.md` says it truly: the table is made of what the other tests here prove."""

from __future__ import annotations

from tests.conformance import support_table
from tests.conformance.comparing import ENGINES
from tests.conformance.features import features
from tests.conformance.ledger import LEDGER


def test_the_page_is_current() -> None:
    assert support_table.is_current(), "make support-table"


def test_every_feature_and_every_gap_stands_in_it() -> None:
    table = support_table.table()
    assert [feature.id for feature in features() if feature.name not in table] == []
    shown = [gap for gap in LEDGER if not all(name.startswith("task: ") for name in gap.features)]
    assert [gap.reason for gap in shown if gap.reason not in table] == []


def test_every_row_has_a_cell_for_every_engine() -> None:
    assert {row.count(" | ") for row in support_table.table().splitlines() if not row.startswith("|---")} == {
        len(ENGINES)
    }


def test_a_table_that_is_not_current_is_noticed() -> None:
    page = support_table.PAGE.read_text(encoding="utf-8")
    old = page.replace("**scorers**: code_exec | yes | no", "**scorers**: code_exec | yes | yes")
    assert old != page
    assert support_table.with_table(old) == page
