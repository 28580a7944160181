"""Shards that do not match are not merged, and all reasons are reported."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.support.shards import run_part, run_parts, write_task

from aigo_bridge.codes import Code
from aigo_bridge.errors import BridgeError, EvidenceError, UsageError
from aigo_scale.sharding.manifest import FILE
from aigo_scale.sharding.shard_matching import find_shards, shard_numbers


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    return run_parts(write_task(tmp_path / "task"), tmp_path / "shards", 3)


def edit(folder: Path, **fields: Any) -> None:
    path = folder / FILE
    manifest = json.loads(path.read_bytes())
    manifest.update(fields)
    path.write_text(json.dumps(manifest))


def edit_job(folder: Path, **fields: Any) -> None:
    (job,) = json.loads((folder / FILE).read_bytes())["jobs"]
    edit(folder, jobs=[{**job, **fields}])


def problems(*places: Path, partial: bool = False) -> str:
    with pytest.raises(BridgeError) as raised:
        find_shards(places, partial=partial)
    return "\n".join(f"{issue.message} {issue.hint}" for issue in getattr(raised.value, "issues", ())) or str(
        raised.value
    )


def test_shards_are_found_by_parent_folder_or_individually(shards: Path) -> None:
    below = find_shards([shards])
    single = find_shards(sorted(shards.iterdir(), reverse=True))
    assert [one.shard.number for one in below.found] == [1, 2, 3]
    assert below == single
    assert find_shards([shards, shards / "shard-2-of-3"]) == below  # a shard named twice counts once
    assert below.is_whole


def test_missing_and_duplicate_shards_are_reported_together(shards: Path, tmp_path: Path) -> None:
    shutil.copytree(shards / "shard-1-of-3", tmp_path / "copy")
    shutil.rmtree(shards / "shard-2-of-3")
    with pytest.raises(EvidenceError) as caught:
        find_shards([shards, tmp_path / "copy"])
    assert {issue.code for issue in caught.value.issues} == {Code.SHARDS_MISSING, Code.SHARDS_APART}
    told = problems(shards, tmp_path / "copy")
    assert "missing: shard 2 of 3 merge the existing shards with --partial" in told
    assert "shard 1 is there 2 times" in told


def test_duplicate_shards_are_rejected_with_partial(shards: Path, tmp_path: Path) -> None:
    shutil.copytree(shards / "shard-1-of-3", tmp_path / "copy")
    assert "shard 1 is there 2 times" in problems(shards, tmp_path / "copy", partial=True)


def test_partial_shards_list_the_missing_numbers(shards: Path) -> None:
    shutil.rmtree(shards / "shard-2-of-3")
    part = find_shards([shards], partial=True)
    assert part.missing == (2,)
    assert not part.is_whole


def test_shards_of_another_run_are_rejected_with_the_difference(shards: Path, tmp_path: Path) -> None:
    origin = write_task(tmp_path / "other", rows=8)
    (tmp_path / "m.jsonl").write_text('{"default": true, "reply": "x"}\n')
    run_part(origin, tmp_path / "data", 1, 3)
    run_part(write_task(tmp_path / "task"), tmp_path / "number", 1, 4)
    run_part(
        write_task(tmp_path / "task"), tmp_path / "model", 1, 3, model=f"scripted/{tmp_path / 'm.jsonl'}"
    )
    assert "the task 'said' or its data have changed" in problems(shards, tmp_path / "data")
    assert "it is one of 4 shards, not of 3" in problems(shards, tmp_path / "number")
    assert "the model was" in problems(shards, tmp_path / "model")


def test_model_with_the_same_name_but_changed_content_is_rejected(shards: Path) -> None:
    edit_job(shards / "shard-3-of-3", fingerprints={"": "0" * 64})
    assert "the model, echo, had another content" in problems(shards)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"engine": "inspect"}, "it was run on inspect, not on echo"),
        ({"versions": {"aigo-bridge": "0.0.1"}}, "aigo-bridge was 0.0.1, not"),
        ({"limits": {"time_limit": 3, "token_limit": None, "cost_limit": None}}, "--time-limit was 3, not"),
        ({"jobs": []}, "it has no 'said'"),
    ],
)
def test_shards_with_other_versions_or_settings_are_rejected(
    shards: Path, fields: dict[str, Any], told: str
) -> None:
    edit(shards / "shard-2-of-3", **fields)
    assert told in problems(shards)
    assert told in problems(shards, partial=True)


def test_a_truncated_or_missing_log_is_reported(shards: Path) -> None:
    (first,) = (shards / "shard-1-of-3").glob("*.echo.json")
    (second,) = (shards / "shard-2-of-3").glob("*.echo.json")
    first.write_bytes(first.read_bytes()[:-5])
    second.unlink()
    told = problems(shards)
    assert "shard 1/3" in told
    assert "was cut off or changed since the shard ended" in told
    assert "shard 2/3" in told
    assert "cannot be read" in told


def test_killed_shard_is_not_merged(shards: Path) -> None:
    edit(shards / "shard-2-of-3", status="started")
    told = problems(shards)
    assert "shard 2 of 3 is incomplete" in told
    assert "--shard 2/3 --resume" in told
    assert find_shards([shards], partial=True).missing == (2,)


def test_stopped_shard_is_only_merged_with_partial(shards: Path) -> None:
    edit(shards / "shard-2-of-3", status="stopped")
    edit_job(shards / "shard-2-of-3", error="interrupted")
    assert "shard 2 of 3 ended early (interrupted)" in problems(shards)
    assert find_shards([shards], partial=True).stopped == (2,)


def test_partial_merge_without_a_complete_shard_is_rejected(shards: Path) -> None:
    for folder in shards.iterdir():
        edit(folder, status="started")
    assert "no shard is complete" in problems(shards, partial=True)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"format": 2}, "has format 2"),
        ({"number": 4}, "its shard is 4/3"),
        ({"number": "1"}, "damaged: number"),
        ({"surplus": 1}, "damaged: surplus"),
        ({"files": {"../../etc/passwd": "0"}}, "which is not in its folder"),
        ({"files": {"/etc/passwd": "0"}}, "which is not in its folder"),
        ({"status": "fine"}, "damaged: status"),
    ],
)
def test_a_damaged_manifest_is_reported(shards: Path, fields: dict[str, Any], told: str) -> None:
    edit(shards / "shard-1-of-3", **fields)
    assert told in problems(shards)


def test_manifest_with_a_path_outside_its_folder_is_rejected(shards: Path, tmp_path: Path) -> None:
    edit_job(shards / "shard-1-of-3", log="../../task/task.yaml")
    assert "which is not in its folder" in problems(shards)


def test_an_invalid_manifest_is_reported(shards: Path) -> None:
    (shards / "shard-1-of-3" / FILE).write_text("[1")
    assert "cannot be read" in problems(shards)
    (shards / "shard-1-of-3" / FILE).write_text("[1]")
    assert "damaged" in problems(shards)


def test_a_folder_without_shards_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no shard"):
        find_shards([tmp_path])
    with pytest.raises(UsageError, match="is not a folder"):
        find_shards([tmp_path / "gone"])


def test_symlink_instead_of_a_shard_log_is_rejected(shards: Path, tmp_path: Path) -> None:
    folder = shards / "shard-1-of-3"
    (log,) = folder.glob("*.echo.json")
    log.rename(tmp_path / "elsewhere.json")
    log.symlink_to("/dev/zero")
    with pytest.raises(EvidenceError, match="cannot be read"):
        find_shards([shards])


def test_shard_numbers_are_formatted_as_ranges() -> None:
    assert shard_numbers([3]) == "shard 3"
    assert shard_numbers([1, 2, 3, 7, 9, 10]) == "shards 1–3, 7, 9–10"
    assert shard_numbers(list(range(1, 200, 2))).endswith("and 80 more ranges")
