"""`--full`: the real rows of a shipped task, compared with the facts in its dataset file."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # has no types
import pytest
import yaml
from tests.support.commands import TASKS

from aigo_bridge.codes import Code
from aigo_bridge.errors import DatasetError
from aigo_bridge.evaluation.task import full_origin, plan
from aigo_bridge.plan.plan import PlanOrigin, TaskPlan

ROWS = [
    {"question": f"What is {number} + 1?", "answer": f"One more.\n#### {number + 1}"} for number in range(6)
]
OTHERS = [{**row, "answer": "#### 7"} for row in ROWS]


@pytest.fixture
def task(tmp_path: Path) -> Callable[..., Path]:
    """Return a copy of gsm8k with changed facts in its dataset file."""

    def make(**source: Any) -> Path:
        folder = tmp_path / "mine"
        if not folder.exists():
            shutil.copytree(TASKS / "gsm8k", folder)
        document = yaml.safe_load((TASKS / "gsm8k" / "dataset.yaml").read_text("utf-8"))
        document["source"] |= source
        document["source"] = {name: value for name, value in document["source"].items() if value is not None}
        (folder / "dataset.yaml").write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
        return folder / "task.yaml"

    return make


def write(file: Path, rows: Sequence[dict[str, Any]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(list(rows)), file)
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def full(task: Path, copy: Path, **rest: Any) -> TaskPlan:
    return plan(full_origin(replace(PlanOrigin(str(task)), **rest), copy))


def warnings(planned: TaskPlan) -> str:
    return "\n".join(issue.message for issue in planned.warnings)


@pytest.mark.parametrize(
    "place",
    [
        "test.jsonl",
        "data/test.jsonl",
        "main/test-00000-of-00001.parquet",
        "openai/gsm8k/main/test.parquet",
    ],
)
def test_local_copy_is_used_instead_of_the_hub(task: Callable[..., Path], tmp_path: Path, place: str) -> None:
    write(tmp_path / "copy" / place, ROWS)

    planned = full(task(num_rows=6), tmp_path / "copy")

    assert planned.dataset is not None
    assert (planned.dataset.key, planned.dataset.is_sample) == ("gsm8k", False)
    assert [sample.data for sample in planned.samples] == ROWS
    assert planned.dataset.digest in warnings(planned)


def test_split_in_several_files_is_read_as_one(task: Callable[..., Path], tmp_path: Path) -> None:
    write(tmp_path / "copy" / "main" / "test-00000-of-00002.parquet", ROWS[:4])
    write(tmp_path / "copy" / "main" / "test-00001-of-00002.parquet", ROWS[4:])
    write(tmp_path / "one" / "test.jsonl", ROWS)

    several, one = (full(task(num_rows=6), tmp_path / name) for name in ("copy", "one"))

    assert several.dataset is not None
    assert one.dataset is not None
    assert several.dataset.digest == one.dataset.digest
    assert len(several.samples) == 6


def test_rows_that_differ_from_the_published_dataset_are_rejected(
    task: Callable[..., Path], tmp_path: Path
) -> None:
    write(tmp_path / "copy" / "test.jsonl", ROWS)
    known = full(task(num_rows=6), tmp_path / "copy").dataset
    assert known is not None
    assert warnings(full(task(num_rows=6, digest=known.digest), tmp_path / "copy")) == ""
    # All rows are checked even if only a few are run.
    few = full(task(num_rows=6, digest=known.digest), tmp_path / "copy", num_samples=2, subsampling="random")
    assert (len(few.samples), warnings(few)) == (2, "")

    write(tmp_path / "copy" / "test.jsonl", OTHERS)
    for options in ({}, {"num_samples": 1}):
        with pytest.raises(DatasetError) as refused:
            full(task(num_rows=1319, digest=known.digest), tmp_path / "copy", **options)
        texts = [str(issue) for issue in refused.value.issues]
        assert "found 6 rows, expected 1,319" in texts[0]
        assert f"expected {known.digest}" in texts[1]
        assert all("dataset.yaml:" in text for text in texts)
        assert {issue.code for issue in refused.value.issues} == {Code.UNPINNED_SOURCE}


def test_unknown_revision_row_count_and_digest_are_reported(
    task: Callable[..., Path], tmp_path: Path
) -> None:
    write(tmp_path / "copy" / "test.jsonl", ROWS)
    unpinned = {"load_dataset_kwargs": {"name": "main", "revision": "main"}, "num_rows": None}

    text = warnings(full(task(**unpinned), tmp_path / "copy", num_samples=2))

    assert "the revision 'main' may change" in text
    assert "the number of rows is unknown (found 6)" in text
    assert text.endswith("their digest is unknown")  # two rows have no digest


def test_copy_without_the_split_is_an_error_with_searched_files(
    task: Callable[..., Path], tmp_path: Path
) -> None:
    write(tmp_path / "copy" / "train.jsonl", ROWS)
    with pytest.raises(DatasetError, match="split 'test' of 'openai/gsm8k' is not in") as caught:
        full(task(), tmp_path / "copy")
    assert caught.value.code == Code.MISSING_COPY


def test_shipped_dataset_descriptions_name_the_number_of_rows() -> None:
    for file in TASKS.glob("*/*.yaml"):
        document = yaml.safe_load(file.read_text("utf-8").replace("!include", ""))
        source = document.get("source") or {}
        if source.get("type") == "huggingface":
            assert f"{source['num_rows']:,}" in document["description"], file
