"""Entries that `view` lists for a folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.results import metric, question, result, write_result

from aigo_bridge.dtypes import TaskResultLog
from aigo_bridge.engine.engine import RunState
from aigo_bridge.results.writing import write_log
from aigo_report.viewing import folder as module
from aigo_report.viewing.folder import Folder, stamp_at

LOG = b'{"version": 2, "status": "started", "eval": {"task": "t"}, "samples": []}'


def names(root: Path) -> dict[str, str]:
    return {entry.name: entry.engine or entry.kind for entry in Folder(root).listing().entries.values()}


def test_listed_files_are_recognized_by_name_or_content(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / ".hidden").mkdir()
    for name in (
        "x.tasklog.json",
        "a/x.tasklog.json.gz",
        "a/b/x.tasklog.jsonl.zst",
        ".hidden/x.tasklog.json",
        "a/.x.tasklog.json",
    ):
        (tmp_path / name).touch()
    (tmp_path / "a" / "evaluation.json").write_text("{}")
    (tmp_path / "a" / "log.json").write_bytes(LOG)
    (tmp_path / "a" / "results_2026-01-01T00-00-00.json").write_text('{"config_general": {}}')
    (tmp_path / "a" / "x.loss.json").write_text('{"kept": {}}')
    (tmp_path / "a" / "rows.jsonl").write_text("{}")
    os.mkfifo(tmp_path / "pipe.tasklog.json")

    assert names(tmp_path) == {
        "x.tasklog.json": "result",
        "a/x.tasklog.json.gz": "result",
        "a/b/x.tasklog.jsonl.zst": "result",
        "a/evaluation.json": "evaluation",
        "a/log.json": "inspect",
        "a/results_2026-01-01T00-00-00.json": "lighteval",
    }


def test_symlinks_are_only_followed_within_the_folder(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    (inside / "a").mkdir(parents=True)
    outside.mkdir()
    (outside / "x.tasklog.json").touch()
    (inside / "a" / "x.tasklog.json").touch()
    (inside / "a" / "up").symlink_to(inside)
    (inside / "b").symlink_to(inside / "a")
    (inside / "c").symlink_to(outside)
    (inside / "d.tasklog.json").symlink_to(outside / "x.tasklog.json")
    (inside / "e.tasklog.json").symlink_to("e.tasklog.json")

    listing = Folder(inside).listing()

    assert [entry.name for entry in listing.entries.values()] == ["a/x.tasklog.json"]
    assert listing.links == ("c", "d.tasklog.json")


def test_file_names_may_contain_any_bytes_and_are_not_patterns(tmp_path: Path) -> None:
    (tmp_path / "[ab].json").write_bytes(LOG)
    (tmp_path / "a.json").write_text("{}")
    strange = os.fsdecode(b"\xff\n<b>.tasklog.json")
    (tmp_path / strange).touch()
    assert names(tmp_path) == {"[ab].json": "inspect", strange: "result"}


def test_listing_of_a_huge_folder_is_truncated_and_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        (tmp_path / f"{number}.tasklog.json").touch()
    monkeypatch.setattr(module, "MOST_ENTRIES", 3)
    listing = Folder(tmp_path).listing()
    assert (len(listing.entries), listing.cut) == (3, True)


def test_run_in_progress_has_the_state_of_its_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = RunState("1", alive=True)
    monkeypatch.setattr(module, "_run_state", lambda engine, path: state if engine == "inspect" else None)
    (tmp_path / "a.json").write_bytes(LOG)
    (entry,) = Folder(tmp_path).listing().entries.values()
    assert entry.run == state


def test_result_written_by_aigo_bridge_has_a_summary_in_the_listing(tmp_path: Path) -> None:
    content = result([question(0, "a", "a")], [metric({"accuracy": 0.1 + 0.2})], title="Quiz")
    write_result(tmp_path / "foreign.tasklog.json", content)
    log = TaskResultLog.model_validate(content)
    assert log.evidence is not None
    samples, log.evidence.samples = log.evidence.samples or [], []
    write_log(tmp_path / "own.tasklog.json", samples, finish=lambda: log)
    folder = Folder(tmp_path)
    heads = {entry.name: folder.head(entry) for entry in folder.listing().entries.values()}
    assert heads["foreign.tasklog.json"] == {}
    assert heads["own.tasklog.json"]["title"] == "Quiz"
    assert heads["own.tasklog.json"]["metrics"] == [["exact", "accuracy", "0.30000000000000004"]]


def test_stamp_changes_when_the_file_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "a"
    assert stamp_at(file) is None
    file.write_text("a")
    first = stamp_at(file)
    (tmp_path / "b").write_text("a")
    os.utime(tmp_path / "b", ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    (tmp_path / "b").replace(file)
    assert stamp_at(file) not in (None, first)
