"""Attempts of an eval set: results of superseded attempts are marked, and each task counts once."""

import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run

from aigo_inspect.importing.attempts import superseded
from aigo_inspect.logs.reader import open_log
from aigo_report.tables.results import results_at

Json = dict[str, Any]
FIRST, SECOND, OTHER = "a" * 22, "b" * 22, "c" * 22


def log(
    folder: Path,
    name: str,
    *,
    task_id: str,
    created: str,
    eval_id: str,
    status: str = "success",
    task: str = "t",
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    spec: Json = {"task": task, "task_id": task_id, "eval_id": eval_id, "run_id": "r", "created": created}
    spec |= {"model": "m/m", "dataset": {}, "config": {}, "eval_set_id": "set"}
    score = {"match": {"value": "C" if status == "success" else "I"}}
    sample = {"id": 1, "epoch": 1, "input": "i", "target": "t", "messages": [], "scores": score}
    with zipfile.ZipFile(folder / name, "w") as archive:
        archive.writestr(
            "header.json", json.dumps({"version": 2, "status": status, "eval": spec, "stats": {}})
        )
        archive.writestr("samples/1_epoch_1.json", json.dumps(sample))
    return folder / name


def eval_set(folder: Path) -> None:
    """Write a task with two failed attempts (the second is renamed) and a retry, and a task without a retry."""
    log(
        folder,
        f"1_t_{FIRST}.eval",
        task_id=FIRST,
        created="2026-01-01T00:00:01+00:00",
        eval_id="1",
        status="error",
    )
    log(
        folder,
        "renamed.eval",
        task_id=FIRST,
        created="2026-01-01T00:00:02+00:00",
        eval_id="2",
        status="error",
    )
    last = log(folder, f"0_t_{FIRST}.eval", task_id=FIRST, created="2026-01-01T00:00:03+00:00", eval_id="3")
    shutil.copy(last, folder / "copy of the last.eval")
    log(
        folder,
        f"1_u_{SECOND}.eval",
        task_id=SECOND,
        created="2026-01-01T00:00:01+00:00",
        eval_id="4",
        task="u",
    )


def marks(folder: Path) -> dict[str, Any]:
    results = {path.name: json.loads(path.read_text()) for path in sorted(folder.glob("*.tasklog.json"))}
    return {
        name.removesuffix(".tasklog.json"): result["specification"]["config"]
        .get("aigo_bridge", {})
        .get("superseded_by")
        for name, result in results.items()
    }


@pytest.mark.parametrize("listed", [False, True])
def test_earlier_attempts_are_marked_with_the_latest(listed: bool, aigo: Run, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    eval_set(folder)
    if listed:
        headers = {}
        for path in folder.glob("*.eval"):
            with zipfile.ZipFile(path) as archive:
                headers[path.name] = json.loads(archive.read("header.json"))
        (folder / "logs.json").write_text(json.dumps(headers))
    (folder / "eval-set.json").write_text(json.dumps({"eval_set_id": "set", "tasks": [{"task_id": FIRST}]}))
    done = aigo("import", folder, "--out", "out")
    assert done.code == 0, done.err
    assert done.out.count("a later attempt of the same run") == 2
    found = marks(tmp_path / "out")
    assert {name: mark and mark["task_id"] for name, mark in found.items()} == {
        f"0_t_{FIRST}": None,
        f"1_t_{FIRST}": FIRST,
        f"1_u_{SECOND}": None,
        "copy of the last": None,
        "renamed": FIRST,
    }
    assert {mark["log"] for mark in found.values() if mark} <= {f"0_t_{FIRST}.eval", "copy of the last.eval"}
    assert {mark["eval_set_id"] for mark in found.values() if mark} == {"set"}


def test_attempts_with_a_damaged_header_are_found_in_the_eval_set_list(aigo: Run, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    eval_set(folder)
    headers = {}
    for path in folder.glob("*.eval"):
        with zipfile.ZipFile(path) as archive:
            headers[path.name] = json.loads(archive.read("header.json"))
    (folder / "logs.json").write_text(json.dumps(headers))
    path = folder / f"1_t_{FIRST}.eval"
    path.write_bytes(path.read_bytes().replace(b'"version"', b'"\0ersion"'))
    assert aigo("import", path, "--out", "out").code == 3
    assert marks(tmp_path / "out")[f"1_t_{FIRST}"]["task_id"] == FIRST


def test_tasks_of_the_same_name_are_not_attempts(aigo: Run, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    log(
        folder,
        f"1_t_{FIRST}.eval",
        task_id=FIRST,
        created="2026-01-01T00:00:01+00:00",
        eval_id="1",
        status="error",
    )
    log(folder, f"2_t_{SECOND}.eval", task_id=SECOND, created="2026-01-01T00:00:02+00:00", eval_id="2")
    # The name marks it as an attempt, the header does not.
    log(folder, f"3_t_{FIRST}.eval", task_id=OTHER, created="2026-01-01T00:00:03+00:00", eval_id="3")
    assert aigo("import", folder, "--out", "out").code == 0
    assert set(marks(tmp_path / "out").values()) == {None}


def test_every_surface_counts_a_task_once(aigo: Run, tmp_path: Path) -> None:
    eval_set(tmp_path / "logs")
    (tmp_path / "logs" / "copy of the last.eval").unlink()
    aigo("import", "logs", "--out", "out")
    stats = aigo("stats", "out", "--json")
    assert sorted(Path(result["result"]).name for result in stats.json) == [
        f"0_t_{FIRST}.tasklog.json", f"1_u_{SECOND}.tasklog.json",
    ]  # fmt: skip
    assert "left out: a later attempt of the same run supersedes it" in stats.err
    named = aigo("stats", f"out/1_t_{FIRST}.tasklog.json", "--json")
    assert len(named.json) == 1
    rows = list(results_at([tmp_path / "out"]).results())
    assert sorted(row["superseded_by"] or "" for row in rows) == ["", "", *[f"0_t_{FIRST}.eval"] * 2]
    report = aigo("report", "out", "--out", "r.html")
    assert report.code == 0, report.err


def test_comparison_of_folders_leaves_out_superseded_results(aigo: Run, tmp_path: Path) -> None:
    for name in ("x", "y"):
        eval_set(tmp_path / name)
        aigo("import", name, "--out", f"out/{name}")
    done = aigo("compare", "out/x", "out/y", "--json")
    assert done.code == 0, done.err
    assert {Path(each["base"]).name for each in done.json["comparisons"]} == {
        f"0_t_{FIRST}.tasklog.json", f"1_u_{SECOND}.tasklog.json", "copy of the last.tasklog.json",
    }  # fmt: skip


def test_new_attempt_is_found_in_a_folder_that_was_listed_before(tmp_path: Path) -> None:
    name = f"1_t_{FIRST}.eval"
    path = log(tmp_path, name, task_id=FIRST, created="2026-01-01T00:00:01+00:00", eval_id="1")
    os.utime(tmp_path, (1, 1))
    for later in (None, "renamed.eval", f"2_t_{FIRST}.eval"):
        if later is not None:
            created = f"2026-01-01T00:00:0{2 + later.startswith('2')}+00:00"
            log(tmp_path, later, task_id=FIRST, created=created, eval_id=later)
        with open_log(path) as reader:
            assert superseded(reader).get("aigo_bridge", {}).get("superseded_by", {}).get("log") == later


def test_folder_is_listed_again_only_after_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [
        log(tmp_path, f"1_t_{one}.eval", task_id=one, created="2026-01-01T00:00:01+00:00", eval_id=one)
        for one in (FIRST, SECOND, OTHER)
    ]
    os.utime(tmp_path, (1, 1))
    listed: list[Path] = []
    names = [path.name for path in paths]

    def listing(folder: Path) -> list[str]:
        listed.append(folder)
        return names

    monkeypatch.setattr(os, "listdir", listing)
    for path in paths:
        with open_log(path) as reader:
            assert superseded(reader) == {}
    assert listed == [tmp_path]
