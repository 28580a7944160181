"""Cassette tail: a kill between two write steps neither loses nor repeats lines."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from aigo_bridge.errors import Issue, UsageError
from aigo_trust.recording import container, tail
from aigo_trust.recording.container import CassetteWriter, cassette_lines
from aigo_trust.recording.tail import tail_of

HEAD = {"cassette": 1}
BATCH = 400


class Killed(BaseException):
    """Simulated end of the process."""


def call(number: int) -> bytes:
    return orjson.dumps({"call": number, "text": f"answer {number * number}"})


def calls_of(path: Path) -> tuple[list[Any], list[Issue]]:
    issues: list[Issue] = []
    return [line["call"] for line, _ in cassette_lines(path, issues.append) if "call" in line], issues


def steps_of(monkeypatch: pytest.MonkeyPatch, before: Callable[[int], None]) -> list[str]:
    """Run a function before each disk step and return the step names in order."""
    steps: list[str] = []
    write, cut = os.write, os.ftruncate

    def writing(file: int, data: bytes) -> int:
        steps.append("write")
        before(len(steps))
        return write(file, data)

    def cutting(file: int, size: int) -> None:
        steps.append("cut")
        before(len(steps))
        cut(file, size)

    monkeypatch.setattr(os, "write", writing)
    monkeypatch.setattr(os, "ftruncate", cutting)
    return steps


def record(path: Path, count: int) -> list[int]:
    """Record calls up to the kill and return the calls on disk."""
    done: list[int] = []
    writer = CassetteWriter(path, HEAD)
    try:
        for number in range(count):
            if writer.write(call(number)):
                done.append(number)  # noqa: PERF401  # what comes before the kill counts
        writer.close()
    except Killed:
        # Close the files as the system does when a process ends.
        os.close(writer._file)
        os.close(writer._tail._file)
    return done


def test_a_kill_before_any_step_neither_loses_nor_repeats_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "BATCH_BYTES", BATCH)
    num_steps = 0
    with monkeypatch.context() as patch:
        steps = steps_of(patch, lambda _: None)
        record(tmp_path / "whole", 30)
        num_steps = len(steps)
        assert {"cut", "write"} == set(steps)
    assert calls_of(tmp_path / "whole") == (list(range(30)), [])
    assert [file.name for file in tmp_path.iterdir()] == ["whole"]
    for last in range(4, num_steps + 1):
        path = tmp_path / f"{last}"

        def kill(step: int, last: int = last) -> None:
            if step >= last:
                raise Killed

        with monkeypatch.context() as patch:
            steps_of(patch, kill)
            done = record(path, 30)
        lines, issues = calls_of(path)
        # The line being written may also be there.
        assert lines in (done, list(range(len(done) + 1))), last
        assert issues == []
        with CassetteGoneOn(path) as writer:
            writer.write(call(99))
        assert calls_of(path) == ([*lines, 99], []), last
        assert not tail_of(path).exists()


class CassetteGoneOn:
    """Cassette that is appended to, as with `--resume --record`."""

    def __init__(self, path: Path):
        self._writer = CassetteWriter(path, {**HEAD, "begun": "again"}, append=True)

    def __enter__(self) -> CassetteWriter:
        return self._writer

    def __exit__(self, *_: object) -> None:
        self._writer.close()


def test_truncated_batch_is_read_from_the_tail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tail contains the whole batch, wherever the write to the cassette is interrupted."""
    monkeypatch.setattr(container, "BATCH_BYTES", BATCH)
    path = tmp_path / "c"
    writer = CassetteWriter(path, HEAD)
    number = 0
    while tail_of(path).stat().st_size + 60 < BATCH:
        writer.write(call(number))
        number += 1
    lines, before = tail_of(path).read_bytes(), path.stat().st_size
    writer.write(call(number))
    writer.write(call(number + 1))
    expected = list(range(number))
    packed = path.read_bytes()
    assert len(packed) > before
    for size in range(before, len(packed) + 1, 3):
        copy = tmp_path / f"cut-{size}"
        copy.write_bytes(packed[:size])
        tail_of(copy).write_bytes(lines)
        numbers, issues = calls_of(copy)
        assert (numbers[: len(expected)], issues) == (expected, []), size
    writer.close()


def test_kill_while_appending_keeps_all_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c"
    writer = CassetteWriter(path, HEAD)
    for number in range(5):
        writer.write(call(number))
    # Only release the lock, as after a kill.
    os.close(writer._file)
    file, lines = path.read_bytes(), tail_of(path).read_bytes()
    with CassetteGoneOn(path) as more:
        # Restore the old tail next to the new file, as after a kill between both steps.
        now = tail_of(path).read_bytes()
        tail_of(path).write_bytes(lines)
        assert calls_of(path) == (list(range(5)), [])
        tail_of(path).write_bytes(now)
        more.write(call(5))
    assert calls_of(path) == (list(range(6)), [])
    assert path.read_bytes() != file


def test_a_tail_of_another_cassette_is_ignored(tmp_path: Path) -> None:
    writer = CassetteWriter(tmp_path / "a", {**HEAD, "name": "a"})
    writer.write(call(7))
    foreign = tail_of(tmp_path / "a").read_bytes()
    writer.close()
    for content in (foreign, foreign[:20], foreign[:9], foreign[:3], b""):
        record(tmp_path / "b", 2)
        tail_of(tmp_path / "b").write_bytes(content)
        assert calls_of(tmp_path / "b") == ([0, 1], [])
        # A new cassette can be created next to it.
        (tmp_path / "b").unlink()
    for content in (b"\0" * 100, b"00000000 {}\n", b'{"tail": 1}\n'):
        record(tmp_path / "b", 2)
        tail_of(tmp_path / "b").write_bytes(content)
        assert calls_of(tmp_path / "b") == ([0, 1], [])
        tail_of(tmp_path / "b").unlink()
        (tmp_path / "b").unlink()


def test_altered_tail_line_is_reported_with_its_file(tmp_path: Path) -> None:
    writer = CassetteWriter(tmp_path / "c", HEAD)
    for number in range(3):
        writer.write(call(number))
    content = tail_of(tmp_path / "c").read_bytes()
    tail_of(tmp_path / "c").write_bytes(content.replace(b"answer 1", b"answer 7")[:-2])
    numbers, issues = calls_of(tmp_path / "c")
    writer.close()
    assert numbers == [0]
    assert [(Path(issue.file or "").name, issue.line) for issue in issues] == [("c.tail", 3), ("c.tail", 4)]
    assert ["modified" in issue.message for issue in issues] == [True, False]


def test_file_that_is_not_a_tail_is_not_overwritten(tmp_path: Path) -> None:
    tail_of(tmp_path / "c").write_text("a letter to my aunt")
    with pytest.raises(UsageError, match="is not a cassette"):
        CassetteWriter(tmp_path / "c", HEAD)
    assert tail_of(tmp_path / "c").read_text() == "a letter to my aunt"
    assert not (tmp_path / "c").exists()


def test_full_disk_during_packing_keeps_lines_in_the_tail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "BATCH_BYTES", BATCH)
    path = tmp_path / "c"
    writer = CassetteWriter(path, HEAD)
    write = tail.written

    def full(file: int, data: bytes, size: int) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(container, "written", full)
    done = [number for number in range(30) if writer.write(call(number))]
    assert writer.problem == "No space left on device"
    assert 0 < len(done) < 30
    assert calls_of(path) == (done, [])
    writer.close()
    assert calls_of(path) == (done, [])
    assert tail_of(path).exists()
    monkeypatch.setattr(container, "written", write)
    with CassetteGoneOn(path) as more:
        more.write(call(99))
    assert calls_of(path) == ([*done, 99], [])
    assert [file.name for file in tmp_path.iterdir()] == ["c"]
