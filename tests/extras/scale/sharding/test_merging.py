"""Shard merging: the task is required only for code, compared with the shards, and no partial output is left."""

from __future__ import annotations

import fcntl
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.shards import ENGINE, EQUALS, run_parts, run_whole, write_task

from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError, UsageError
from aigo_bridge.plan.plan import PlanOrigin
from aigo_bridge.results.reading import LogReader
from aigo_bridge.snippets import run_in_process
from aigo_scale.sharding.manifest import FILE, digests_in
from aigo_scale.sharding.merging import LOCK, MergeResult, merge
from aigo_scale.sharding.shard_matching import find_shards

RULE = {
    "key": "odd",
    "action": "exclude_from_metrics",
    "filter": {"op": "equals", "expression": "{{ sample.text }}", "value": "t1"},
}
ALL = {
    "type": "python_all_samples",
    "compute_scores_snippet": "def compute_scores(samples):\n    return [{'of': len(samples)} for _ in samples]\n",
    "metrics": [{"type": "mean", "field": "of"}],
}
CHANCE = {
    **ALL,
    "compute_scores_snippet": "import random\ndef compute_scores(samples):\n    return [{'of': random.random()} for _ in samples]\n",
}


@pytest.fixture(autouse=True)
def in_this_process() -> Any:
    run_in_process()
    yield
    run_in_process(False)


def merged(
    shards: Path, out: Path, origin: PlanOrigin | None = None, *, partial: bool = False
) -> MergeResult:
    return merge(find_shards([shards], partial=partial), ENGINE, out, origin)


def test_shards_without_code_are_merged_from_logs_alone(tmp_path: Path) -> None:
    origin = write_task(tmp_path / "task")
    shards = run_parts(origin, tmp_path / "shards", 3)
    (expected,) = run_whole(origin, tmp_path / "whole").results
    for path in (tmp_path / "task").iterdir():
        path.unlink()
    (outcome,) = merged(shards, tmp_path / "merged").outcomes
    assert [(row.name, row.value, row.num_scored) for row in outcome.metrics] == [
        (row.name, row.value, row.num_scored) for row in expected.metrics
    ]
    assert outcome.passed(0)


@pytest.mark.parametrize(
    ("scorer", "parts", "why"),
    [
        (EQUALS, {"actions": [RULE]}, "action rules"),
        (ALL, {}, "scorer python_all_samples"),
        (
            {**EQUALS, "metrics": [{"type": "python", "compute_metrics_snippet": "def compute_metrics(samples):\n    return {'n': len(samples)}\n"}]},
            {},
            "metrics in Python",
        ),
    ],
)  # fmt: skip
def test_merge_that_needs_code_requires_the_task_path(
    scorer: dict[str, Any], parts: dict[str, Any], why: str, tmp_path: Path
) -> None:
    origin = write_task(tmp_path / "task", scorer, **parts)
    shards = run_parts(origin, tmp_path / "shards", 3)
    with pytest.raises(UsageError, match=why):
        merged(shards, tmp_path / "merged")
    assert not list((tmp_path / "merged").glob("*.json"))
    (outcome,) = merged(shards, tmp_path / "merged", origin).outcomes
    (expected,) = run_whole(origin, tmp_path / "whole").results
    assert [(row.name, row.value) for row in outcome.metrics] == [
        (row.name, row.value) for row in expected.metrics
    ]
    assert outcome.counts == expected.counts


def test_nondeterministic_dataset_scorer_is_rejected_in_a_merge(tmp_path: Path) -> None:
    origin = write_task(tmp_path / "task", CHANCE)
    shards = run_parts(origin, tmp_path / "shards", 2)
    with pytest.raises(EvidenceError, match="is not deterministic"):
        merged(shards, tmp_path / "merged", origin)
    assert not list((tmp_path / "merged").glob("*.json"))


@pytest.mark.parametrize(
    ("given", "message", "code"),
    [
        ({}, "the log does not match", Code.OTHER_PLAN),
        ({"num_samples": 4}, "differ from the shards", Code.SHARDS_APART),
    ],
)
def test_merge_with_another_task_is_rejected(
    given: dict[str, Any], message: str, code: Code, tmp_path: Path
) -> None:
    origin = write_task(tmp_path / "task", ALL)
    shards = run_parts(origin, tmp_path / "shards", 2)
    if not given:
        write_task(tmp_path / "task", ALL, rows=6)
    with pytest.raises(EvidenceError, match=message) as caught:
        merged(shards, tmp_path / "merged", replace(origin, **given))
    assert caught.value.code == code


def test_partial_merge_keeps_the_planned_sample_count(tmp_path: Path) -> None:
    shards = run_parts(write_task(tmp_path / "task", rows=9), tmp_path / "shards", 3)
    (shards / "shard-2-of-3" / FILE).unlink()
    (outcome,) = merged(shards, tmp_path / "merged", partial=True).outcomes
    assert (outcome.num_planned, outcome.num_samples, outcome.num_missing) == (9, 6, 3)
    assert not outcome.passed(0)
    assert outcome.result is not None
    frame = LogReader(outcome.result).frame()
    assert frame.status == "failure"
    assert frame.errors[0].message == "shard 2 of 3 not among them; the result contains 6 of 9 samples"
    assert frame.evidence is not None
    assert frame.evidence.failures is not None
    assert frame.evidence.failures.num_total == 6


def test_concurrent_merge_into_a_folder_is_rejected(tmp_path: Path) -> None:
    shards = run_parts(write_task(tmp_path / "task"), tmp_path / "shards", 2)
    out = tmp_path / "merged"
    out.mkdir()
    with (out / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another merge writes to"):
            merged(shards, out)
    assert [path.name for path in out.iterdir()] == [LOCK]


def test_log_with_rows_of_another_shard_is_rejected(tmp_path: Path) -> None:
    """The logs are swapped, and the manifests have matching checksums."""
    shards = run_parts(write_task(tmp_path / "task", rows=6), tmp_path / "shards", 2)
    first, second = sorted(shards.iterdir())
    (one,), (other,) = first.glob("*.echo.json"), second.glob("*.echo.json")
    one.write_bytes(other.read_bytes())
    manifest = json.loads((first / FILE).read_bytes())
    (first / FILE).write_text(json.dumps({**manifest, "files": digests_in(first)}))
    with pytest.raises(EvidenceError, match="the log belongs to shard 2/2 of 6 rows, not to shard 1/2 of 6"):
        merged(shards, tmp_path / "merged")


def test_log_with_missing_samples_is_rejected_without_output(tmp_path: Path) -> None:
    shards = run_parts(write_task(tmp_path / "task", rows=6), tmp_path / "shards", 2)
    first = shards / "shard-1-of-2"
    (log,) = first.glob("*.echo.json")
    content = json.loads(log.read_bytes())
    log.write_text(json.dumps({**content, "trials": content["trials"][:-1]}))
    manifest = json.loads((first / FILE).read_bytes())
    (first / FILE).write_text(json.dumps({**manifest, "files": digests_in(first)}))
    with pytest.raises(EvidenceError, match="has 2 samples, and had 3 when it ended"):
        merged(shards, tmp_path / "merged")
    assert not list((tmp_path / "merged").glob("*.json"))


def test_run_file_for_shards_of_a_single_task_is_rejected(tmp_path: Path) -> None:
    shards = run_parts(write_task(tmp_path / "task", ALL), tmp_path / "shards", 2)
    (tmp_path / "run.yaml").write_text("evaluation: {}\n")
    with pytest.raises(UsageError, match="shards of a single task"):
        merged(shards, tmp_path / "merged", PlanOrigin(str(tmp_path / "run.yaml"), num_samples=3))


def test_uncalled_model_is_ignored_when_shards_are_merged(tmp_path: Path) -> None:
    """The task evaluates its dataset and ignores `--model`."""
    origin = write_task(tmp_path / "task", ALL)
    text = (tmp_path / "task" / "task.yaml").read_text()
    task = yaml.safe_load(text)
    del task["definition"]["solver"]
    (tmp_path / "task" / "task.yaml").write_text(yaml.safe_dump(task))
    shards = run_parts(origin, tmp_path / "shards", 2)
    (outcome,) = merged(shards, tmp_path / "merged", origin).outcomes
    assert outcome.passed(0)
    assert [row.value for row in outcome.metrics] == [7.0]
