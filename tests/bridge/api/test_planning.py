"""Plans from Python: task text and in-memory rows give the same plans and errors as files."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]  # its types are a package of their own
import pyarrow as pa  # type: ignore[import-untyped]  # has no types
import pytest
from tests.bridge.jsonl_spec.jsonl_records import record

import aigo_bridge
from aigo_bridge.errors import DatasetError, SpecError, UsageError
from aigo_bridge.plan.plan import TEXT, TaskPlan

TASK = """\
key: t
display_name: T
description: ""
definition:
  dataset: {key: q}
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages:
        - {role: user, content: "{{ sample.question }}"}
  scorers:
    - {type: string_equals, ground_truth: "{{ sample.answer }}"}
"""
ROWS = [{"question": "one", "answer": "1"}, {"question": "two", "answer": "2"}]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "task.yaml").write_text(TASK)
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def content(plan: TaskPlan) -> tuple[Any, ...]:
    return plan.digest, plan.samples, plan.dataset, plan.definition, plan.warnings


def test_task_file_folder_text_and_in_memory_rows_give_the_same_plan(folder: Path) -> None:
    of_file = aigo_bridge.plan_task("task.yaml")
    others = [
        aigo_bridge.plan_task(folder),
        aigo_bridge.plan_task(text=TASK),
        aigo_bridge.plan_task(text=TASK.replace("\n", "\r\n")),
        aigo_bridge.plan_task(text=TASK, datasets={"q": "q.jsonl"}),
        aigo_bridge.plan_task("task.yaml", datasets={"q": ROWS}),
        aigo_bridge.plan_task(text=TASK, datasets={"q": ROWS}),
    ]

    assert [content(other) for other in others] == [content(of_file)] * len(others)


class Frame:
    """Table that returns its rows like a polars DataFrame."""

    def __iter__(self) -> Iterator[Any]:
        yield from ("question", "answer")

    def to_dicts(self) -> list[dict[str, Any]]:
        return [dict(row) for row in ROWS]


@pytest.mark.parametrize(
    "table",
    [
        lambda: tuple(ROWS),
        lambda: (row for row in ROWS),
        lambda: [OrderedDict(row) for row in ROWS],
        lambda: pd.DataFrame(ROWS, index=[7, 8]),
        lambda: pa.Table.from_pylist(ROWS),
        Frame,
    ],
)
def test_rows_may_come_from_any_table_type(folder: Path, table: Callable[[], Any]) -> None:
    plan = aigo_bridge.plan_task("task.yaml", datasets={"q": table()})

    assert content(plan) == content(aigo_bridge.plan_task("task.yaml"))


def test_dataframe_values_are_converted_to_json_types(folder: Path) -> None:
    frame = pd.DataFrame({"question": ["a", None, "c"], "n": pd.array([1, pd.NA, 3], dtype="Int64")})
    frame["day"] = pd.to_datetime(["2026-01-02", None, None])
    frame["answer"] = [(1, 2), {"x": dt.date(2026, 1, 2)}, 0.5]

    plan = aigo_bridge.plan_task("task.yaml", datasets={"q": frame})

    first, second, _ = [sample.data for sample in plan.samples]
    assert first == {"question": "a", "n": 1, "day": "2026-01-02T00:00:00", "answer": [1, 2]}
    assert second["answer"] == {"x": "2026-01-02"}
    assert all(
        isinstance(second[name], float) and math.isnan(second[name]) for name in ("question", "n", "day")
    )


def test_all_invalid_rows_are_reported(folder: Path) -> None:
    rows: Any = [{"question": "a", "answer": object()}, "b", {"question": {1}, "answer": "c"}]

    with pytest.raises(DatasetError) as raised:
        aigo_bridge.plan_task("task.yaml", datasets={"q": rows})

    assert [issue.message for issue in raised.value.issues] == [
        "dataset 'q': row 0, column 'answer': a value of type 'object' cannot be written as JSON",
        "dataset 'q': row 1 is a value of type 'str', expected a mapping from columns to values",
        "dataset 'q': row 2, column 'question': a value of type 'set' cannot be written as JSON",
    ]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (5, "found a value of type 'int', expected rows"),
        ({"question": ["a"]}, "found a value of type 'dict', expected rows"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "several columns are called 'a'"),
        ([], "dataset 'q' is empty"),
    ],
)
def test_a_value_that_is_not_a_table_is_reported(folder: Path, table: Any, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        aigo_bridge.plan_task("task.yaml", datasets={"q": table})


def test_dataset_text_replaces_a_file(folder: Path) -> None:
    (folder / "inner").mkdir()
    (folder / "inner" / "r.md").write_text("Read me.")
    (folder / "inner" / "q.jsonl").write_text((folder / "q.jsonl").read_text())
    text = TASK.replace('description: ""', 'description: ""\nlong_description: !include r.md')

    for place in ("inner", "inner/task.yaml"):
        assert aigo_bridge.plan_task(place, text=text).task.long_description == "Read me."
    with pytest.raises(SpecError, match=r"'r\.md' does not exist"):
        aigo_bridge.plan_task(text=text)


def test_errors_in_task_text_have_positions(folder: Path) -> None:
    text = TASK.replace("sample.answer", "sample.anser").replace("  scorers:", "  scorerz: 1\n  scorers:")

    with pytest.raises(SpecError) as raised:
        aigo_bridge.plan_task(text=text)

    (issue,) = raised.value.issues
    assert (issue.place, issue.source_line) == (f"{TEXT}:12:3", "  scorerz: 1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "no task given"),
        ({"task": "nowhere.yaml"}, "file 'nowhere.yaml' does not exist"),
        ({"task": "task.yaml#t"}, "found 'task.yaml#t', expected a task"),
        ({"task": "task.yaml", "subsampling": "first"}, "subsampling: found 'first'"),
        ({"task": "task.yaml", "num_samples": 0}, "num_samples is 0, expected at least 1"),
        ({"task": "task.yaml", "num_trials": 0}, "num_trials is 0, expected at least 1"),
        (
            {"task": "task.yaml", "datasets": {"r": ROWS}},
            "the task does not use dataset 'r'; its dataset is 'q'",
        ),
        ({"task": "task.yaml", "datasets": {"q": "r.jsonl"}}, "r.jsonl' does not exist"),
        ({"task": "task.yaml", "addresses": ["a/b"]}, "a/b"),
    ],
)
def test_invalid_arguments_of_plan_task_are_refused(
    folder: Path, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        aigo_bridge.plan_task(**arguments)


def test_given_rows_override_rows_of_task_records(tmp_path: Path) -> None:
    (tmp_path / "records.jsonl").write_text(json.dumps(record()) + "\n")
    of_file = aigo_bridge.plan_task(tmp_path / "records.jsonl")
    assert of_file.dataset is not None
    rows = [{**sample.data, "targets": ["2"]} for sample in of_file.samples]

    plan = aigo_bridge.plan_task(tmp_path / "records.jsonl", datasets={of_file.dataset.key: rows})

    assert [sample.data["targets"] for sample in plan.samples] == [["2"]]


def test_different_rows_have_different_names(folder: Path) -> None:
    """Results of different rows are stored next to each other, like results of different files."""
    origins = [
        aigo_bridge.plan_task("task.yaml", datasets={"q": rows}).origin for rows in (ROWS, ROWS[:1], ROWS)
    ]
    names = [origin.datasets["q"] for origin in origins if origin is not None]

    assert names[0] == names[2] != names[1]


def test_rows_are_fetched_only_if_allowed(folder: Path) -> None:
    (folder / "q.jsonl").unlink()
    (folder / "q.yaml").write_text(
        "key: q\ndisplay_name: Q\ndescription: ''\nsource: {type: url, url: 'https://data.example/q.jsonl'}\n"
    )

    with pytest.raises(DatasetError, match="network"):
        aigo_bridge.plan_task("task.yaml", network=False)
