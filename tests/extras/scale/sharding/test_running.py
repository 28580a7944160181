"""Shard runs: a shard folder is resumed or kept, and never overwritten."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path

import pytest
import yaml
from tests.support.shards import ENGINE, prepared, run_part, run_parts, write_task

from aigo_bridge.engine.protocol import RunSettings
from aigo_bridge.errors import UsageError
from aigo_bridge.plan.plan import PlanOrigin
from aigo_bridge.plan.shards import Shard
from aigo_scale.sharding.manifest import FILE, LOCK, read_manifest
from aigo_scale.sharding.running import run_shard


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_shard_contains_its_rows_and_its_position_in_the_run(tmp_path: Path) -> None:
    outcome = run_part(write_task(tmp_path), tmp_path / "out", 2, 3)
    manifest = read_manifest(outcome.folder)
    (job,) = manifest.jobs
    assert (manifest.status, manifest.number, manifest.of) == ("complete", 2, 3)
    assert (job.total, job.num_samples, outcome.parts[0].rows) == (7, 2, (2, 4))
    log = json.loads((outcome.folder / str(job.log)).read_bytes())
    assert [trial["id"] for trial in log["trials"]] == [2, 3]
    assert log["plan"]["shard"] == [2, 3, 7]
    assert not list(outcome.folder.glob("*.tasklog.json"))  # metrics of a single shard are not meaningful


def test_shard_without_rows_is_complete_without_a_log(tmp_path: Path) -> None:
    outcome = run_part(write_task(tmp_path, rows=1), tmp_path / "out", 1, 3)
    assert outcome.manifest.status == "complete"
    assert outcome.manifest.jobs[0].log is None


def test_existing_shard_is_not_run_again(tmp_path: Path) -> None:
    origin = write_task(tmp_path)
    folder = run_part(origin, tmp_path / "out", 1, 3).folder
    before = contents(folder)
    with pytest.raises(UsageError, match=r"already contains this shard \(complete\)"):
        run_part(origin, tmp_path / "out", 1, 3)
    assert run_part(origin, tmp_path / "out", 1, 3, resume=True).was_complete
    assert contents(folder) == before


def test_shard_with_changed_data_is_not_resumed(tmp_path: Path) -> None:
    folder = run_part(write_task(tmp_path), tmp_path / "out", 1, 3).folder
    before = contents(folder)
    with pytest.raises(
        UsageError, match=r"is a shard of another run \(the task 'said' or its data have changed"
    ):
        run_part(write_task(tmp_path, rows=8), tmp_path / "out", 1, 3, resume=True)
    assert contents(folder) == before


def test_concurrent_run_of_a_shard_is_rejected(tmp_path: Path) -> None:
    folder = tmp_path / "out" / "shard-1-of-3"
    folder.mkdir(parents=True)
    with (folder / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="is being run in"):
            run_part(write_task(tmp_path), tmp_path / "out", 1, 3)
    assert not (folder / FILE).exists()


def test_shards_of_a_task_on_another_task_result_are_rejected(tmp_path: Path) -> None:
    write_task(tmp_path)
    data = {
        "key": "second", "display_name": "Second", "description": "",
        "definition": {"dataset": {"key": "task", "source": "task_result"}, "scorers": [{"type": "python", "compute_scores_snippet": "def compute_scores(sample):\n    return {'x': 1}\n"}]},
    }  # fmt: skip
    (tmp_path / "second.yaml").write_text(yaml.safe_dump(data))
    run_file = {
        "models": [{"$provider": "scripted/m.jsonl"}],
        "tasks": [{"$ref": "task.yaml"}, {"$ref": "second.yaml"}],
        "evaluation": {
            "key": "ev", "display_name": "Ev", "description": "",
            "task_specifications": [{"key": "task", "task_key": "said", "model_key": "scripted$m-jsonl"}, {"key": "second", "task_key": "second"}],
        },
    }  # fmt: skip
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(run_file))
    shard = Shard(1, 2)
    evaluations = prepared(PlanOrigin(str(tmp_path / "run.yaml")), shard)
    with pytest.raises(UsageError, match="the rows of 'second' come from the result of 'task'"):
        run_shard(evaluations, ENGINE, RunSettings(tmp_path / "out"), shard)
    assert not (tmp_path / "out").exists()


def test_shard_folder_names_sort_by_number(tmp_path: Path) -> None:
    out = run_parts(write_task(tmp_path, rows=3), tmp_path / "out", 10)
    assert [path.name for path in sorted(out.iterdir())][:2] == ["shard-01-of-10", "shard-02-of-10"]
