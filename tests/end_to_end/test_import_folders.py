"""`import` of folders: file content decides whether a file is a log, and skipped files are reported."""

from __future__ import annotations

import json
import os
import socket
import zipfile
from pathlib import Path

import pytest
from tests.support.commands import REPOSITORY, Run

from aigo_bridge.access.file_kinds import HEAD, head_of, other_file

GOLDEN = REPOSITORY / "tests" / "golden"
LOG = (GOLDEN / "inspect" / "0.3.50.json").read_bytes()
ARCHIVE = (GOLDEN / "inspect" / "0.3.50.eval").read_bytes()
TASKLOG = b'{"evidence":{"samples":[\n{}\n],"metrics":[]},"format_version":"v1"}'


@pytest.fixture
def results() -> bytes:
    with zipfile.ZipFile(GOLDEN / "lighteval" / "0.13.0.zip") as archive:
        (name,) = [name for name in archive.namelist() if "results_" in name]
        return archive.read(name)


def written(folder: Path) -> list[str]:
    return sorted(path.name.removesuffix(".tasklog.json") for path in folder.glob("*.tasklog.json"))


def test_logs_with_any_name_are_imported_and_other_files_reported(
    aigo: Run, tmp_path: Path, results: bytes
) -> None:
    logs = tmp_path / "logs" / "deep"
    logs.mkdir(parents=True)
    (logs / "mine.json").write_bytes(LOG)
    (logs / "2026-01-01T00-00-00_other.json").write_bytes(LOG)
    (logs / "with-mark.json").write_bytes(b"\xef\xbb\xbf" + LOG)
    (logs / "archive.json").write_bytes(ARCHIVE)
    (logs / "table.eval").write_bytes(b"a;b\n1;2\n")  # named like a log, so its error is reported
    (logs / "lighteval.json").write_bytes(results)
    (logs / "2026-01-01T00-00-00_rows.json").write_text('[{"id": 1}]')
    (logs / "a.tasklog.json").write_bytes(TASKLOG)
    (logs / "b.tasklog.json").write_bytes(TASKLOG)
    (logs / "evaluation.json").write_text('{"evaluation": {}, "results": [], "policies": []}')
    (logs / "mine.loss.json").write_text('{"log": "x", "kept": {}, "changed": {}, "dropped": {}}')
    (logs / "settings.json").write_text('{"eval_model": "m", "results": 3}')
    (logs / "nothing.json").write_text("")

    done = aigo("import", "logs", "--out", "evidence")

    assert done.code == 3
    assert "is not an .eval log" in done.out
    found = written(tmp_path / "evidence")
    assert {"2026-01-01T00-00-00_other", "mine", "archive", "with-mark"} <= set(found)
    assert any(name.startswith("demo") for name in found), found
    lines = done.err.splitlines()
    assert (
        "skipped: 2 files, each already an AI GO result log (only its tables can be imported"
        " (--format parquet); use it with `aigo-bridge validate`, `score` or `export --to inspect-log`):"
        " logs/deep/a.tasklog.json, logs/deep/b.tasklog.json"
    ) in lines
    assert sum("JSON without the parts of a log" in line for line in lines) == 1
    skipped = "\n".join(lines)
    for name in (
        "evaluation.json: the summary of an evaluation",
        "mine.loss.json: the loss report",
        "settings.json",
    ):
        assert name in skipped
    assert "nothing.json: empty" in skipped
    # A pattern names files one by one: the same are logs, the same are said.
    again = aigo("import", "logs/deep/*", "--out", "again")
    assert (again.code, written(tmp_path / "again")) == (3, found)
    assert (
        "skipped: 'logs/deep/a.tasklog.json' is not an engine log: it is already an AI GO result log"
        in again.err
    )
    assert "skipped: 'logs/deep/nothing.json' is not an engine log: it is empty" in again.err


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.tasklog.json", TASKLOG, "it is already an AI GO result log"),
        ("result.json", TASKLOG, "it is already an AI GO result log"),
        ("x.tasklog.json.zst", b"\x28\xb5\x2f\xfd1234", "it is already an AI GO result log"),
        ("evaluation.json", b'{"evaluation":{},"results":[],"policies":[]}', "the summary of an evaluation"),
        ("task.yaml", b"key: x\n", "it is YAML (`aigo-bridge run` takes tasks"),
        ("tasks.jsonl", b'{"id": "x"}\n', "it is rows of data, or task records"),
        ("rows.csv", b"a,b\n1,2\n", "it is rows of data"),
        ("empty.json", b"", "it is empty"),
        ("list.json", b"[1]", "it is JSON without the parts of a log"),
        ("photo.bin", bytes(range(256)), "it is neither an archive nor JSON"),
        ("notes.txt", b"hello", "it is neither an archive nor JSON"),
    ],
)
@pytest.mark.parametrize("engine", [(), ("--engine", "inspect"), ("--engine", "lighteval")], ids=str)
def test_a_file_that_is_not_a_log_is_an_error_with_a_hint(
    aigo: Run, tmp_path: Path, name: str, content: bytes, said: str, engine: tuple[str, ...]
) -> None:
    (tmp_path / name).write_bytes(content)
    done = aigo("import", name, *engine)
    assert (done.code, done.out) == (2, "")
    assert f"error: '{name}' is not an engine log" in done.err
    assert said in done.err
    assert "(" in done.err
    assert not (tmp_path / "out").exists()


def test_folders_without_logs_are_reported(aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("x")
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "a.tasklog.json").write_bytes(TASKLOG)
    for folder, said in (
        ("empty", "no logs at 'empty': the folder is empty"),
        ("texts", "no logs at 'texts': the folder contains only other files"),
        ("ours", "skipped: ours/a.tasklog.json: already an AI GO result log"),
    ):
        done = aigo("import", folder)
        assert done.code == 2
        assert said in done.err
        assert "expected logs of Inspect (*.eval, *.json) or lighteval results" in done.err


def test_pipes_and_sockets_do_not_block_the_import(aigo: Run, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "good.json").write_bytes(LOG)
    os.mkfifo(logs / "pipe.json")
    os.mkfifo(logs / "results_2026-01-01T00-00-00.json")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(logs / "socket.eval"))
        done = aigo("import", "logs")
        assert (done.code, written(tmp_path / "out")) == (0, ["good"])
        assert "3 files, each no regular file" in done.err
        for name in ("pipe.json", "socket.eval"):
            alone = aigo("import", f"logs/{name}")
            assert (alone.code, "it is no regular file" in alone.err) == (2, True)


def test_only_the_beginning_of_a_large_file_is_read(aigo: Run, tmp_path: Path) -> None:
    """A sparse file of ten gigabytes, too large to be read completely."""
    with (tmp_path / "big.json").open("wb") as file:
        file.write(b'{"features": [{"type": "x"},')
        file.truncate(10 << 30)
    with (tmp_path / "big.eval").open("wb") as file:
        file.write(b"[" + b"1," * HEAD)
        file.truncate(10 << 30)
    head = head_of(tmp_path / "big.json")
    assert head is not None
    assert (len(head.data), head.whole) == (HEAD, False)
    done = aigo("import", tmp_path)
    assert done.code == 2
    assert "2 files, each JSON without the parts of a log" in done.err
    assert aigo("import", "big.json").code == 2


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ('{"a": 1, "b": {"eval": 2}, "c": [{"eval": 3}], "d"  : "x"}', ["a", "b", "c", "d"]),
        ('{"a": "eval", "b": "\\"eval\\": {", "c": "cut \\"eval\\": 1', ["a", "b", "c"]),
        ('{"a": "}", "eval": 1}, {"b": 1}', ["a", "eval"]),
        ("{}", []),
        ("[1]", None),
        ("", None),
        ("key: x", None),
    ],
)
def test_only_top_level_members_are_listed(text: str, members: list[str] | None, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    head = head_of(tmp_path / "x.json")
    assert head is not None
    assert head.members == members


def test_truncated_logs_are_recognized_as_logs(tmp_path: Path) -> None:
    """Every prefix of a log may be a log if its first member is visible or nothing is."""
    for size in (*range(1, 60), 1_000, 4_000, len(LOG)):
        (tmp_path / "cut.json").write_bytes(LOG[:size])
        head = head_of(tmp_path / "cut.json")
        assert head is not None
        assert other_file(head, "cut.json") is None, size


def test_samples_of_a_complete_log_are_skipped(tmp_path: Path) -> None:
    document = json.loads(LOG)
    samples = document.pop("samples")
    (tmp_path / "x.json").write_text(json.dumps({"samples": samples * 100, **document}))
    head = head_of(tmp_path / "x.json")
    assert head is not None
    assert (head.members, other_file(head, "x.json")) == (["samples"], None)
