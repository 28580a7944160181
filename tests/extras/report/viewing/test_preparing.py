"""Page data for results and engine logs, read only from the folder and stored outside it."""

from __future__ import annotations

import gzip
import os
import zipfile
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.commands import REPOSITORY
from tests.support.results import metric, question, result, write_result

from aigo_report.page.packing import read_result
from aigo_report.viewing import preparing
from aigo_report.viewing.folder import Folder
from aigo_report.viewing.preparing import PageData, prepare

GOLDEN = REPOSITORY / "tests" / "golden"


def prepared(root: Path, name: str, private: Path) -> tuple[PageData, Any]:
    """Return the prepared content of an entry and its summary."""
    (entry,) = [entry for entry in Folder(root).listing().entries.values() if entry.name == name]
    made = prepare(entry, root, private)
    summary = private / preparing.SUMMARY
    return made, orjson.loads(gzip.decompress(summary.read_bytes())) if summary.exists() else None


def block(made: PageData, name: str) -> bytes:
    place, size = made.blocks[name]
    data = (made.folder / preparing.BLOCKS).read_bytes()[place : place + size]
    return gzip.decompress(data)


def snapshot(folder: Path) -> dict[str, int]:
    return {str(path): path.lstat().st_mtime_ns for path in folder.rglob("*")}


def test_inspect_log_is_imported_outside_the_viewed_folder(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "[logs]").mkdir(parents=True)
    (root / "[logs]" / "a.eval").write_bytes((GOLDEN / "inspect" / "0.3.50.eval").read_bytes())
    before = snapshot(root)

    made, summary = prepared(root, "[logs]/a.eval", tmp_path / "private")

    assert (made.problem, made.is_current, snapshot(root)) == (None, True, before)
    (shown,) = summary["results"]
    rows = [row for name in shown["rows"] for row in orjson.loads(block(made, name))]
    assert len({row["n"] for row in rows}) == shown["counts"]["samples"] > 0
    assert not (tmp_path / "private" / "log").exists()
    os.utime(root / "[logs]" / "a.eval")
    assert not made.is_current


def test_lighteval_details_are_only_read_within_the_folder(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with zipfile.ZipFile(GOLDEN / "lighteval" / "0.13.0.zip") as archive:
        archive.extractall(root)
    (results,) = root.rglob("results_*.json")

    made, summary = prepared(root, results.relative_to(root).as_posix(), tmp_path / "whole")
    assert made.problem is None
    assert sum(one["counts"]["samples"] for one in summary["results"]) > 0

    # In a narrower folder, the details of the same file are outside.
    narrow = results.parent
    made, summary = prepared(narrow, results.name, tmp_path / "narrow")
    assert sum(one["counts"]["samples"] for one in summary["results"]) == 0


def test_log_replaced_by_an_outside_symlink_is_not_read(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside.eval"
    root.mkdir()
    log = root / "a.eval"
    outside.write_bytes((GOLDEN / "inspect" / "0.3.50.eval").read_bytes())
    log.write_bytes(outside.read_bytes())
    (entry,) = Folder(root).listing().entries.values()
    log.unlink()
    log.symlink_to(outside)

    made = prepare(entry, root, tmp_path / "private")

    assert made.problem is not None
    assert "is outside the root folder" in made.problem
    assert not made.blocks


def test_unreadable_file_is_reported_with_the_reason(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.eval").write_bytes(b"PK\x03\x04 nothing")
    (root / "evaluation.json").write_text("[]")

    made, _ = prepared(root, "a.eval", tmp_path / "a")
    assert made.problem is not None
    assert "is not an .eval log" in made.problem
    assert str(tmp_path / "a") not in made.problem
    made, _ = prepared(root, "evaluation.json", tmp_path / "b")
    assert made.problem is not None
    assert "expected the summary of an evaluation" in made.problem


def test_constantly_changing_file_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write_result(
        tmp_path / "a.tasklog.json", result([question(0, "a", "a")], [metric({"accuracy": 1.0})])
    )
    texts = [log.read_text(), log.read_text() + " "]

    def slow(*arguments: Any) -> Any:
        shown = read_result(*arguments)
        texts.reverse()
        log.write_text(texts[0])
        return shown

    monkeypatch.setattr(preparing, "read_result", slow)
    made, _ = prepared(tmp_path, "a.tasklog.json", tmp_path / "private")
    assert made.problem == "the file changed while it was read"


def test_environment_secrets_are_not_in_page_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "sk-" + "q9" * 20
    monkeypatch.setenv("SOME_API_KEY", secret)
    log = result([question(0, f"it is {secret}", "a")], [], title=secret)
    write_result(tmp_path / "a.tasklog.json", log)

    made, summary = prepared(tmp_path, "a.tasklog.json", tmp_path / "private")

    assert all(secret.encode() not in block(made, name) for name in made.blocks)
    assert secret not in str(summary)
