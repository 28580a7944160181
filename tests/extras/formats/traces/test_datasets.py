"""Trace datasets: rows for `pass_through_solver` and `load_trace` from files in the root folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from aigo_bridge.datasets.rows import Rows
from aigo_bridge.datasets.sources import DatasetTools, load_dataset
from aigo_bridge.dtypes import ChatCompletionModelOutput
from aigo_bridge.errors import DatasetError
from aigo_bridge.evaluation.planning import trace_reader
from aigo_bridge.solving.solvers import PassThrough
from aigo_bridge.spec.datasets import DatasetSource, DatasetSpec
from aigo_bridge.spec.solvers import PassThroughSolver

GOLDEN = Path(__file__).parents[3] / "golden" / "traces"
ANSWERS = {
    "claude_code": ("sub-agent", "The bug is in main.py."),
    "opentelemetry": ("agent-with-tool", "It is rainy."),
    "phoenix": ("agent-with-tool", "It was shipped."),
    "langsmith": ("langgraph", "It is foggy."),
}
PROJECT = {"phoenix": {"project": "p"}}


def load(root: Path, **source: Any) -> Rows:
    source = {**PROJECT.get(source["type"], {}), **source}
    spec = DatasetSpec(key="d", display_name="D", source=TypeAdapter(DatasetSource).validate_python(source))
    return load_dataset(spec, base=root, root=root, tools=DatasetTools(read_traces=trace_reader(root)))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    for source, (case, _) in ANSWERS.items():
        shutil.copytree(GOLDEN / source / case / "files", folder / source)
    return folder


@pytest.mark.parametrize("source", ANSWERS)
def test_trace_rows_are_passed_to_the_solver_unchanged(root: Path, source: str) -> None:
    rows = load(root, type=source, path=source)
    (row,) = rows.rows
    output = PassThrough(PassThroughSolver(type="pass_through_solver", trace_column="trace")).output(row.data)
    (answer,) = output.raw_outputs
    assert isinstance(answer, ChatCompletionModelOutput)
    assert answer.choices[0].message.content == ANSWERS[source][1] == row.data["output"]
    assert row.sample_id == row.data["trace"]["metadata"]["trace_id"]
    assert rows.digest == load(root, type=source, path=source).digest


def test_rows_do_not_contain_the_project_path(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(root, other)
    assert (
        load(root, type="claude_code", path="claude_code").digest
        == load(other, type="claude_code", path="claude_code").digest
    )


@pytest.mark.parametrize("source", ["claude_code", "langsmith", "phoenix"])
def test_trace_dataset_without_a_path_is_rejected(root: Path, source: str) -> None:
    with pytest.raises(DatasetError, match="'path' is missing") as caught:
        load(root, type=source)
    assert caught.value.issues[0].hint


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ({"path": "../x"}, "outside the root folder"),
        ({"path": "gone"}, "does not exist"),
        ({"path": "langsmith", "limit": 0}, "expected 1 or more"),
        ({"path": "langsmith", "filter": "eq(a, 1)"}, "'filter' is a query of the service"),
        ({"path": "langsmith", "dataset": "d"}, "'dataset' is a query of the service"),
    ],
)
def test_unsupported_sources_are_reported(root: Path, source: dict[str, Any], problem: str) -> None:
    with pytest.raises(DatasetError, match=problem):
        load(root, type="langsmith", **source)


def test_symlink_out_of_the_root_is_rejected(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.jsonl").write_text("{}")
    (root / "langsmith" / "link.jsonl").symlink_to(tmp_path / "secret.jsonl")
    with pytest.raises(DatasetError, match="outside the root folder"):
        load(root, type="langsmith", path="langsmith")


def test_damaged_file_rejects_the_whole_dataset(root: Path) -> None:
    file = next((root / "claude_code").glob("*.jsonl"))
    file.write_text(file.read_text() + '{"type": "user", "mess')
    with pytest.raises(DatasetError) as caught:
        load(root, type="claude_code", path="claude_code")
    assert caught.value.issues[0].file == str(file)
    assert "line 5" in caught.value.issues[0].message


def test_sessions_can_be_filtered_by_id_limit_and_time(root: Path) -> None:
    other = next((GOLDEN / "claude_code/question/files").glob("*.jsonl"))
    shutil.copy(other, root / "claude_code")
    assert len(load(root, type="claude_code", path="claude_code").rows) == 2
    assert len(load(root, type="claude_code", path="claude_code", limit=1).rows) == 1
    (row,) = load(root, type="claude_code", path="claude_code", session_id=other.stem).rows
    assert row.data["input"] == "What is 2 + 2?"
    assert len(load(root, type="claude_code", path="claude_code", from_time="2026-03-02").rows) == 0
