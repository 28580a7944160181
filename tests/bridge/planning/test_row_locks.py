"""Rows without a published digest must equal those of the first run on all rows."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import TASKS

from aigo_bridge.codes import Code
from aigo_bridge.errors import DatasetError
from aigo_bridge.evaluation.task import full_origin, plan
from aigo_bridge.plan.plan import PlanOrigin, TaskPlan
from aigo_bridge.planning.row_locks import LOCK, compare_rows

ROWS = [{"question": f"{number} + 1?", "answer": f"#### {number + 1}"} for number in range(4)]
OTHERS = [{**ROWS[0], "answer": "#### 7"}, *ROWS[1:]]

Plan = Callable[..., TaskPlan]


@pytest.fixture
def planned(tmp_path: Path) -> Plan:
    """Return the plan of gsm8k on a copy of its dataset with these rows."""

    def make(rows: Sequence[dict[str, Any]], digest: str | None = None, **options: Any) -> TaskPlan:
        shutil.copytree(TASKS / "gsm8k", tmp_path / "mine", dirs_exist_ok=True)
        file = tmp_path / "mine" / "dataset.yaml"
        more = f"  digest: {digest}\n" if digest else ""
        text = (TASKS / "gsm8k" / "dataset.yaml").read_text("utf-8")
        file.write_text(text.replace("  num_rows: 1319\n", more), encoding="utf-8")
        (tmp_path / "copy").mkdir(exist_ok=True)
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "copy" / "test.jsonl").write_text(lines, encoding="utf-8")
        origin = PlanOrigin(str(tmp_path / "mine" / "task.yaml"))
        return plan(full_origin(replace(origin, **options), tmp_path / "copy"))

    return make


def test_first_run_on_all_rows_records_their_digest(tmp_path: Path, planned: Plan) -> None:
    out = tmp_path / "out"
    assert compare_rows([planned(ROWS, num_samples=2)], out) == []
    assert not out.exists()

    (first,) = compare_rows([planned(ROWS)], out)
    (entry,) = json.loads((out / LOCK).read_text("utf-8")).values()
    (again,) = compare_rows([planned(ROWS)], out)

    assert "is stored" in first
    assert " match datasets.lock.json" in again
    assert entry == {"num_rows": 4, "digest": planned(ROWS).dataset.digest}  # type: ignore[union-attr]


def test_changed_rows_are_rejected_after_the_first_run(tmp_path: Path, planned: Plan) -> None:
    compare_rows([planned(ROWS)], tmp_path)
    kept = (tmp_path / LOCK).read_bytes()

    with pytest.raises(DatasetError, match=r"have the digest .*, expected .* as in an earlier run"):
        compare_rows([planned(OTHERS)], tmp_path)
    with pytest.raises(DatasetError, match="num_rows 3, expected 4") as caught:
        compare_rows([planned(ROWS[1:], num_samples=1)], tmp_path)
    assert caught.value.code == Code.CHANGED_ROWS
    assert (tmp_path / LOCK).read_bytes() == kept


def test_dataset_with_published_digest_needs_no_lock_file(tmp_path: Path, planned: Plan) -> None:
    known = planned(ROWS).dataset
    assert known is not None
    plan_ = planned(ROWS, digest=known.digest)

    assert compare_rows([plan_], tmp_path) == []
    assert not (tmp_path / LOCK).exists()
    assert any(tag.endswith(f"digest {known.digest} as published") for tag in plan_.tags)


@pytest.mark.parametrize("content", ["{", "[]", '{"x": 1}', "\udcff"])
def test_invalid_lock_file_is_reported(content: str, tmp_path: Path, planned: Plan) -> None:
    (tmp_path / LOCK).write_bytes(content.encode("utf-8", "surrogateescape"))

    with pytest.raises(DatasetError, match=LOCK):
        compare_rows([planned(ROWS)], tmp_path)


def test_evidence_names_number_and_digest_of_the_rows(planned: Plan) -> None:
    every, some = planned(ROWS), planned(ROWS, num_samples=2)
    assert every.dataset is not None
    (note,) = [tag for tag in every.tags if tag.startswith("rows of ")]
    (other,) = [tag for tag in some.tags if tag.startswith("rows of ")]

    source = "rows of openai/gsm8k main test@cc7b047b6e5bb11b4f1af84efc572db110a51b3c"
    assert note == f"{source}: 4 rows, number not known, digest not known, found {every.dataset.digest}"
    assert other == f"{source}: 4 rows, number not known, digest not known"
