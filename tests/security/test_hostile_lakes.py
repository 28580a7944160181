"""Hostile lakes: no command reads, copies or deletes a file outside the lake or ends with a traceback."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # ships none
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships none
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.support.commands import Run
from tests.support.lakes import imported, make_log, rows

from aigo_scale.lake import compacting, files
from aigo_scale.lake.files import is_plain
from aigo_scale.lake.tables import arrow_schema

SECRET = "the text of another lake"
COMMANDS = (
    ("lake", "verify", "lake"),
    ("lake", "compact", "lake"),
    ("sql", "SELECT * FROM scores", "lake", "--json"),
    ("import", "logs/new.eval", "--lake", "lake"),
)
FURTHER = (
    ("lake", "list", "lake"),
    ("lake", "list", "lake", "--files", "scores"),
    ("lake", "show", "lake"),
    ("report", "lake", "--out", "report.html"),
    ("table", "lake", "--table", "scores", "--out", "scores.csv"),
)
"""Commands that read lakes in the same ways."""
OUTSIDE = (
    "../../keepme.parquet",
    "x/../../../keepme.parquet",
    "%2e%2e/%2e%2e/keepme.parquet",
    "%2E%2E%2F..%2Fkeepme.parquet",
    "%252e%252e/%252e%252e/keepme.parquet",
    "{base}/keepme.parquet",
    "file://{base}/keepme.parquet",
    "file:{base}/keepme.parquet",
    "%2F{base}/keepme.parquet",
    "..\\..\\keepme.parquet",
    "/etc/passwd",
    "../../other/scores/a.parquet",
)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lake with two logs, unrelated files next to it, and a log to import."""
    folder = tmp_path_factory.mktemp("original")
    imported(folder / "lake", make_log(folder / "logs" / "a.eval", run="a"))
    imported(folder / "lake", make_log(folder / "logs" / "b.eval", run="b"))
    make_log(folder / "logs" / "new.eval", run="new")
    scores = arrow_schema("scores")
    row = dict.fromkeys(scores.names) | {
        "text": SECRET,
        "log": "x",
        "task": "sums",
        "model": "m/one",
    }
    (folder / "other" / "scores").mkdir(parents=True)
    for place in ("keepme.parquet", "other/scores/a.parquet", "logs/keepme.parquet"):
        pq.write_table(pa.Table.from_pylist([row], schema=scores), folder / place)
    return folder


@pytest.fixture
def lake(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    return tmp_path / "lake"


def append(lake: Path, table: str, *actions: dict[str, Any]) -> None:
    """Add a commit to the log of a table."""
    log = lake / table / "_delta_log"
    version = max(int(path.stem) for path in log.glob("*.json")) + 1
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (log / f"{version:020d}.json").write_text(text)


def added(path: str, size: int = 100) -> dict[str, Any]:
    return {
        "add": {
            "path": path,
            "partitionValues": {"by_task": "sums", "by_model": "m%2Fone"},
            "size": size,
            "modificationTime": 1,
            "dataChange": True,
        }
    }


def outside(lake: Path) -> dict[Path, bytes]:
    """Return all files outside the lake."""
    return {
        path: path.read_bytes()
        for path in lake.parent.rglob("*")
        if path.is_file() and lake not in path.parents and path.name not in ("report.html", "scores.csv")
    }


def check(
    lake: Path,
    aigo: Run,
    monkeypatch: pytest.MonkeyPatch,
    *,
    fails: bool = True,
    commands: tuple[tuple[str, ...], ...] = COMMANDS,
) -> None:
    """Run commands that read or write lakes; files may be deleted at once."""
    monkeypatch.setattr(compacting, "KEEP_HOURS", 0)
    before = outside(lake)
    for words in commands:
        done = aigo(*words)
        assert "Traceback" not in done.err
        assert not fails or done.code != 0, words
        assert SECRET not in done.out + done.err, words
        assert not any(sign in done.out + done.err for sign in "\x1b\x00\x07"), words
    assert outside(lake) == before
    copied = b"".join(path.read_bytes() for path in lake.rglob("*.parquet") if not path.is_symlink())
    assert SECRET.encode() not in copied


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_data_file_outside_the_lake_is_not_read(
    name: str, lake: Path, aigo: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = name.format(base=lake.parent)
    append(lake, "scores", added(path, (lake.parent / "keepme.parquet").stat().st_size))
    # Names are decoded once: one that is encoded twice is a missing file inside the lake.
    check(lake, aigo, monkeypatch, fails=not path.startswith("%252e"))


def test_no_command_reads_a_file_outside_the_lake(
    lake: Path, aigo: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(lake, "scores", added(OUTSIDE[0], (lake.parent / "keepme.parquet").stat().st_size))
    check(lake, aigo, monkeypatch, commands=FURTHER)


def test_files_outside_the_lake_are_not_deleted(
    lake: Path, aigo: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [name.format(base=lake.parent) for name in OUTSIDE]
    removed = [{"path": name, "deletionTimestamp": 1, "dataChange": True, "size": 1} for name in names]
    append(lake, "scores", *({"remove": one} for one in removed))
    check(lake, aigo, monkeypatch, fails=False, commands=(*COMMANDS, *FURTHER))


@pytest.mark.parametrize(
    "change",
    [
        {"key": "x/../../../keepme"},
        {"key": "' OR '1'='1"},
        {"digest": "x/../../../keepme"},
        {"suffix": "/../../../keepme.json"},
        {"file": "../../keepme.parquet"},
        {"file": "/etc/passwd"},
        {"table": "../.."},
        {"parts": [1 << 60]},
        {"parts": [-1]},
        {"run_id": "\x1b[31m../../x"},
        {"results": "[" * 100_000},
        {"results": "{}"},
        {"results": None},
        {"digest": None},
    ],
)
def test_hostile_rows_of_logs_are_refused(
    change: dict[str, Any], lake: Path, aigo: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = DeltaTable(str(lake / "logs"))
    row = logs.to_pyarrow_table().to_pylist()[0]
    (result,) = json.loads(row["results"])
    for name in ("key", "suffix", "parts", "run_id"):
        result[name] = change.get(name, result[name])
    result["files"][0]["name"] = change.get("file", result["files"][0]["name"])
    result["files"][0]["table"] = change.get("table", result["files"][0]["table"])
    row |= {"results": json.dumps([result])}
    row |= {name: change[name] for name in ("digest", "results") if name in change}
    write_deltalake(logs, pa.Table.from_pylist([row], schema=arrow_schema("logs")), mode="overwrite")
    check(lake, aigo, monkeypatch, fails="run_id" not in change and change.get("parts") != [1 << 60])


@pytest.mark.parametrize("what", ["file", "folder", "table", "log", "commit", "pipe"])
def test_links_and_pipes_are_not_followed(
    what: str, lake: Path, aigo: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = lake.parent / "keepme.parquet"
    match what:
        case "file":
            path = min((lake / "scores").glob("*.parquet"))
            path.unlink()
            path.symlink_to(keep)
        case "folder":
            (lake / "scores" / "link").symlink_to(lake.parent / "other" / "scores")
        case "table":
            shutil.move(lake / "scores", lake.parent / "moved")
            (lake / "scores").symlink_to(lake.parent / "moved")
        case "log":
            shutil.move(lake / "scores" / "_delta_log", lake.parent / "moved")
            (lake / "scores" / "_delta_log").symlink_to(lake.parent / "moved")
        case "commit":
            (lake / "scores" / "_delta_log" / f"{9:020d}.json").symlink_to("/etc/passwd")
        case _:
            os.mkfifo(lake / "scores" / "_delta_log" / f"{9:020d}.json")
    check(lake, aigo, monkeypatch, fails=what != "folder")
    assert (lake.parent / "other" / "scores" / "a.parquet").exists()


DEEP = '{"commitInfo": {"x": ' + "[" * 200_000


@pytest.mark.parametrize(
    "text",
    [
        DEEP,
        "\x1b[31mhello\n",
        "",
        "\0" * 1000,
        json.dumps({"protocol": {"minReaderVersion": 99, "minWriterVersion": 99}}),
        json.dumps({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["\x1b[31m"], "writerFeatures": ["\x1b[31m"]}}),
        json.dumps(added("\x1b[31mx\n.parquet")),
        json.dumps(added("x\0.parquet")),
        json.dumps(added("x.parquet", -5)),
        json.dumps(added("x.parquet", 10**30)),
        json.dumps({"metaData": {"id": "x", "format": {"provider": "\x1b[31m", "options": {}}, "schemaString": "[" * 100_000, "partitionColumns": [], "configuration": {}}}),
    ],
    ids=range(11),
)  # fmt: skip
@pytest.mark.parametrize("table", ["scores", "logs"])
def test_a_damaged_table_log_is_an_error(
    table: str, text: str, lake: Path, aigo: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (lake / table / "_delta_log" / f"{3:020d}.json").write_text(text)
    # A file that does not exist concerns only those who read it.
    check(lake, aigo, monkeypatch, fails=bool(text) and '"size": -5' not in text)


def test_a_huge_table_log_is_an_error(lake: Path, aigo: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_LOG_BYTES", 20_000)
    append(lake, "scores", {"commitInfo": {"x": "y" * 30_000}})
    check(lake, aigo, monkeypatch)
    assert "bytes, expected at most 20,000" in aigo("lake", "show", "lake").err


def _nothing(lake: Path) -> None:
    """Leave a lake unchanged."""


def _checkpoint(lake: Path) -> None:
    (lake / "scores" / "_delta_log" / "_last_checkpoint").write_text('{"version": 7, "size": 1}')


def _garbage(lake: Path) -> None:
    log = lake / "scores" / "_delta_log"
    (log / f"{1:020d}.checkpoint.parquet").write_bytes(b"PAR1xxxxPAR1")
    (log / "_last_checkpoint").write_text('{"version": 1, "size": 1}')


def _gap(lake: Path) -> None:
    (lake / "scores" / "_delta_log" / f"{7:020d}.json").write_text("{}")


def _no_table(lake: Path) -> None:
    shutil.rmtree(lake / "scores")


@pytest.mark.parametrize("damage", [_checkpoint, _garbage, _gap, _no_table])
def test_incomplete_table_log_is_an_error(
    damage: Callable[[Path], None], lake: Path, aigo: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(lake)
    check(lake, aigo, monkeypatch)


def test_files_of_the_user_in_a_table_folder_are_kept(lake: Path, aigo: Run) -> None:
    note = lake / "scores" / "notes.txt"
    note.write_text("mine")
    os.utime(note, (1, 1))
    assert aigo("lake", "compact", "lake").code == 0
    assert note.read_text() == "mine"
    assert len(rows(lake, "scores")) == 4


@pytest.mark.parametrize("name", ["a.parquet", "by_task=x%252F/part-0.parquet", "a b/c", "né.parquet"])
def test_plain_table_names_are_allowed(name: str) -> None:
    assert is_plain(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/a",
        "a/",
        "a//b",
        ".",
        "..",
        "a/..",
        "../a",
        "%2e%2e/a",
        "a%2F..%2Fb",
        "C:/a",
        "file:a",
        "s3://a/b",
        "a\\b",
        "a%5Cb",
        "a\n",
        "a%00",
        "\x1b[31m",
    ],
)
def test_unsafe_table_names_are_refused(name: str) -> None:
    assert not is_plain(name)
