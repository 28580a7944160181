"""Selected rows, their ids and their digest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.datasets.files import load_file
from aigo_bridge.datasets.rows import Rows, Selection, collect
from aigo_bridge.datasets.tables import ObjectTable
from aigo_bridge.errors import UsageError


def rows_of(data: Sequence[Any], selection: Selection | None = None) -> Rows:
    return collect(ObjectTable(data), selection or Selection())


def numbers(rows: Rows) -> list[int]:
    return [row.data["n"] for row in rows.rows]


NUMBERED = [{"n": number} for number in range(1_000)]


def test_head_selects_the_first_rows_and_counts_all() -> None:
    rows = rows_of(NUMBERED, Selection(3))
    assert numbers(rows) == [0, 1, 2]
    assert rows.total == 1_000


def test_selection_larger_than_the_source_returns_all_rows() -> None:
    assert numbers(rows_of(NUMBERED[:5], Selection(10))) == [0, 1, 2, 3, 4]
    assert numbers(rows_of(NUMBERED[:5], Selection(10, "random"))) == [0, 1, 2, 3, 4]


def test_random_selection_is_reproducible_and_keeps_the_order() -> None:
    found = numbers(rows_of(NUMBERED, Selection(8, "random")))
    # Fixed values: every machine, Python version and release must select the same rows.
    assert found == EXPECTED_RANDOM
    assert found == sorted(found)


def test_different_seed_selects_different_rows() -> None:
    assert numbers(rows_of(NUMBERED, Selection(8, "random", seed=1))) != EXPECTED_RANDOM


def test_random_selection_covers_the_whole_source_evenly() -> None:
    counts = [0] * 10
    for seed in range(200):
        for number in numbers(rows_of(NUMBERED[:100], Selection(10, "random", seed))):
            counts[number // 10] += 1
    assert sum(counts) == 2_000
    assert all(140 < count < 260 for count in counts)


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 50))
def test_larger_random_selection_contains_the_smaller_one(small: int, large: int, size: int) -> None:
    small, large = sorted((small, large))
    data = NUMBERED[:size]
    few = set(numbers(rows_of(data, Selection(small, "random"))))
    many = set(numbers(rows_of(data, Selection(large, "random"))))
    assert few <= many
    assert len(few) == min(small, size)


@pytest.mark.parametrize("number", [0, -1])
def test_selection_of_less_than_one_sample_is_refused(number: int) -> None:
    with pytest.raises(UsageError, match="expected at least 1"):
        Selection(number)


def ids(*values: Any) -> list[str | int]:
    return [row.sample_id for row in rows_of([{"sample_id": value} for value in values]).rows]


def test_unique_sample_id_column_is_used_as_the_id() -> None:
    assert ids("b", "a") == ["b", "a"]
    assert ids(5, 3) == [5, 3]
    assert ids(1.5, "x") == ["1.5", "x"]
    assert ids(True, False) == ["True", "False"]


@pytest.mark.parametrize(
    "values", [("a", "a"), ("1", 1), (None, "a"), ("", "a"), (float("nan"), 1), ([1], [2]), ({"a": 1}, "b")]
)
def test_rows_without_unique_sample_ids_are_numbered(values: tuple[Any, ...]) -> None:
    assert ids(*values) == [0, 1]


def test_all_rows_are_numbered_if_one_has_no_sample_id() -> None:
    rows = rows_of([{"sample_id": "a"}, {"x": 1}])
    assert [row.sample_id for row in rows.rows] == [0, 1]


def test_ids_do_not_depend_on_the_selection() -> None:
    data = [{"sample_id": "a"}, {"sample_id": "b"}, {"sample_id": "a"}]
    assert [row.sample_id for row in rows_of(data, Selection(1)).rows] == [0]


def test_columns_and_missing_values_do_not_depend_on_the_selection() -> None:
    rows = collect(ObjectTable([{"a": 1}, {"b": 2}]), Selection(1), missing="none")
    assert rows.rows[0].data == {"a": 1, "b": None}
    assert rows.columns == ("a", "b")


def test_row_numbers_of_a_random_selection_match_the_source() -> None:
    rows = rows_of(NUMBERED, Selection(8, "random"))
    assert [row.sample_id for row in rows.rows] == numbers(rows)


def test_digest_depends_only_on_the_selected_rows() -> None:
    one = rows_of([{"q": "é", "n": 1.5, "l": [None, True]}])
    assert one.digest == KNOWN_DIGEST
    assert rows_of([{"l": [None, True], "n": 1.5, "q": "é"}]).digest == KNOWN_DIGEST
    assert rows_of([*NUMBERED[:3], {"n": 99}], Selection(3)).digest == rows_of(NUMBERED[:3]).digest


@given(
    st.lists(
        st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=3), max_size=5
    )
)
def test_different_rows_have_different_digests(data: list[dict[str, Any]]) -> None:
    one = collect(ObjectTable(data), Selection(), missing="absent")
    other = collect(ObjectTable([*data, {"extra": 1}]), Selection(), missing="absent")
    assert one.digest == collect(ObjectTable(data), Selection(), missing="absent").digest
    assert one.digest != other.digest


def test_memory_for_a_large_file_depends_only_on_the_selected_rows(tmp_path: Path) -> None:
    import tracemalloc

    path = tmp_path / "d.jsonl"
    with path.open("w") as file:
        for number in range(30_000):
            file.write(json.dumps({"sample_id": f"row-{number}", "text": "x" * 100}) + "\n")
    tracemalloc.start()
    try:
        rows = load_file(path, Selection(10, "random"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert rows.total == 30_000
    assert rows.rows[0].sample_id == f"row-{rows.rows[0].data['sample_id'][4:]}"
    # The file has 4 MB. Only eight bytes per id and a read buffer stay in memory.
    assert peak < 900_000


EXPECTED_RANDOM = [216, 385, 407, 446, 522, 551, 574, 785]
KNOWN_DIGEST = "4744a8b7ffd23f12c72e75da5249d0d4c28049b6e7a9e93592280d28e433fc9d"
