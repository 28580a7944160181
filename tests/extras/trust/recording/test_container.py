"""Cassette files after a kill, on a full disk and with hostile content."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.errors import EvidenceError, Issue, UsageError
from aigo_trust.recording import container
from aigo_trust.recording.container import CassetteWriter, cassette_lines
from aigo_trust.recording.tail import tail_of

HEAD = {"cassette": 1}


def written(path: Path, count: int, size: int = 0) -> Path:
    writer = CassetteWriter(path, HEAD)
    for number in range(count):
        writer.write(orjson.dumps({"call": number, "text": "x" * size}))
    writer.close(b'{"end":{}}')
    return path


def lines_of(path: Path) -> tuple[list[Any], list[Issue]]:
    issues: list[Issue] = []
    return [line for line, _ in cassette_lines(path, issues.append)], issues


def test_cassette_lines_are_read_in_order(tmp_path: Path) -> None:
    lines, issues = lines_of(written(tmp_path / "c", 3))
    assert lines == [HEAD, *({"call": number, "text": ""} for number in range(3)), {"end": {}}]
    assert issues == []


def test_cassette_has_several_frames_and_is_standard_zstd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "FRAME_BYTES", 1000)
    monkeypatch.setattr(container, "BATCH_BYTES", 300)
    path = written(tmp_path / "c", 20, 200)
    assert path.read_bytes().count(b"\x28\xb5\x2f\xfd") > 3
    monkeypatch.undo()
    assert len(lines_of(path)[0]) == 22
    text = zstandard.ZstdDecompressor().stream_reader(path.read_bytes(), read_across_frames=True).read()
    assert text.count(b"\n") == 22


def test_uncompressed_cassette_is_read(tmp_path: Path) -> None:
    packed = written(tmp_path / "c", 3)
    plain = tmp_path / "plain"
    reader = zstandard.ZstdDecompressor().stream_reader(packed.read_bytes(), read_across_frames=True)
    plain.write_bytes(reader.read())
    assert lines_of(plain) == lines_of(packed)


WRITE = """
    import os, signal, sys
    from pathlib import Path
    import orjson
    from aigo_trust.recording.container import CassetteWriter
    writer = CassetteWriter(Path(sys.argv[1]), {"cassette": 1})
    for number in range(500):
        writer.write(orjson.dumps({"call": number, "text": f"answer {number * number}"}))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_kill_9_loses_no_lines_and_the_cassette_can_be_appended(tmp_path: Path) -> None:
    path = tmp_path / "c"
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(WRITE), str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    lines, issues = lines_of(path)
    assert [line["call"] for line in lines[1:]] == list(range(500))
    assert issues == []

    writer = CassetteWriter(path, HEAD, append=True)
    writer.write(b'{"call":500}')
    writer.close(b'{"end":{}}')
    lines, issues = lines_of(path)
    assert [line.get("call") for line in lines] == [None, *range(501), None]
    assert issues == []
    assert [file.name for file in tmp_path.iterdir()] == ["c"]


@given(cut=st.integers(1, 400))
def test_truncation_loses_only_the_affected_lines(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = written(tmp_path_factory.mktemp("c") / "c", 30, 7)
    path.write_bytes(path.read_bytes()[:-cut])
    try:
        lines, _ = lines_of(path)
    except EvidenceError as error:
        assert "not a cassette" in str(error)  # noqa: PT017  # not even its first line is left
        return
    assert (
        lines
        == [HEAD, *({"call": number, "text": "x" * 7} for number in range(30)), {"end": {}}][: len(lines)]
    )


@given(place=st.integers(min_value=0), byte=st.integers(0, 255))
def test_altered_byte_never_results_in_a_valid_line(
    tmp_path_factory: pytest.TempPathFactory, place: int, byte: int
) -> None:
    path = written(tmp_path_factory.mktemp("c") / "c", 5, 9)
    data = bytearray(path.read_bytes())
    changed = data[place % len(data)] != byte
    data[place % len(data)] = byte
    path.write_bytes(data)
    known = [HEAD, *({"call": number, "text": "x" * 9} for number in range(5)), {"end": {}}]
    try:
        lines, issues = lines_of(path)
    except EvidenceError:
        assert changed
        return
    assert all(line in known for line in lines)
    # If the last frame is truncated, the final line of the recording is missing.
    assert issues or lines == known or known[-1] not in lines


def test_an_altered_line_is_reported_by_number(tmp_path: Path) -> None:
    good = b'{"cassette":1}'
    bad = b'{"call":1}'
    path = tmp_path / "c"
    path.write_bytes(b"%08x %s\n%08x %s\nnonsense\n" % (zlib.crc32(good), good, zlib.crc32(bad) ^ 1, bad))
    lines, issues = lines_of(path)
    assert lines == [HEAD]
    assert [(issue.line, issue.severity) for issue in issues] == [(2, "warning"), (3, "warning")]
    assert "modified" in issues[0].message


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "the file is empty"),
        (b'{"evidence": 1}\n', "not a cassette"),
        (b'%08x {"cassette":2}\n' % zlib.crc32(b'{"cassette":2}'), "format 2, expected 1"),
        (zstandard.compress(b"\0" * 1000), "not a cassette"),
    ],
)
def test_other_files_are_rejected_with_their_kind(tmp_path: Path, content: bytes, problem: str) -> None:
    (tmp_path / "c").write_bytes(content)
    with pytest.raises(EvidenceError, match=problem):
        lines_of(tmp_path / "c")


def test_missing_file_and_pipe_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="the file does not exist"):
        lines_of(tmp_path / "c")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises((EvidenceError, UsageError)):
        lines_of(tmp_path / "pipe")


LINE = b"%08x %s\n" % (zlib.crc32(b'{"cassette":1}'), b'{"cassette":1}')
DENSE = b'{"call":1,"x":[' + b"[]," * 8_000_000 + b"[]]}"


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (b"\n" * 50_000_000, "more than 10,000"),
        (b"x\n" * 12_000, "more than 10,000 lines in"),
        (LINE * 12_000, "more than 10,000 lines in"),
        (b"x" * 140_000_000, "larger than any possible recording"),
        (b"x" * 70_000_000 + b"\n" + b"y" * 70_000_000, "larger than any possible recording"),
        (b"%08x %s\n" % (zlib.crc32(DENSE), DENSE), "almost only brackets"),
    ],
    ids=["empty lines", "bad lines", "equal lines", "one line", "two lines", "brackets"],
)
def test_decompression_bomb_is_rejected(tmp_path: Path, lines: bytes, problem: str) -> None:
    (tmp_path / "c").write_bytes(zstandard.compress(LINE + lines))
    assert (tmp_path / "c").stat().st_size < 30_000
    del lines
    tracemalloc.start()
    start = time.process_time()
    try:
        with pytest.raises(EvidenceError, match=problem):
            lines_of(tmp_path / "c")
        assert tracemalloc.get_traced_memory()[1] < 300 << 20
    finally:
        tracemalloc.stop()
    assert time.process_time() - start < 5


@pytest.mark.parametrize("bad", [b"\n", b"x\n", b"00000000 {}\n"])
def test_bad_lines_are_listed_up_to_a_limit(tmp_path: Path, bad: bytes) -> None:
    path = tmp_path / "c"
    path.write_bytes(LINE + bad * 9_000)
    assert len(lines_of(path)[1]) == 9_000
    path.write_bytes(LINE + bad * 60_000)
    with pytest.raises(EvidenceError, match=r"more than 1\d,000 (of its )?lines"):
        lines_of(path)


def test_tail_with_too_many_empty_lines_is_rejected(tmp_path: Path) -> None:
    path = written(tmp_path / "c", 1)
    head = orjson.dumps({"tail": 2, "of": LINE[:8].decode()})
    tail_of(path).write_bytes(b"%08x %s\n" % (zlib.crc32(head), head) + b"\n" * 2_000_000)
    with pytest.raises(EvidenceError, match="more than 10,000 of its lines"):
        lines_of(path)


def test_cassette_with_many_short_calls_is_accepted(tmp_path: Path) -> None:
    assert len(lines_of(written(tmp_path / "c", 30_000))[0]) == 30_002


def test_large_zstd_window_is_rejected(tmp_path: Path) -> None:
    parameters = zstandard.ZstdCompressionParameters.from_level(1, window_log=27)
    packed = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    (tmp_path / "c").write_bytes(packed.compress(b'{"cassette":1}\n') + packed.flush())
    with pytest.raises(EvidenceError, match="empty"):
        lines_of(tmp_path / "c")


def test_existing_cassette_is_not_overwritten(tmp_path: Path) -> None:
    path = written(tmp_path / "c", 1)
    before = path.read_bytes()
    with pytest.raises(UsageError, match="already exists"):
        CassetteWriter(path, HEAD)
    assert path.read_bytes() == before
    with pytest.raises(UsageError, match="cannot be written"):
        CassetteWriter(tmp_path / "no" / "c", HEAD)


def test_concurrent_writing_to_a_cassette_is_rejected(tmp_path: Path) -> None:
    writer = CassetteWriter(tmp_path / "c", HEAD)
    with pytest.raises(UsageError, match="being written by another run"):
        CassetteWriter(tmp_path / "c", HEAD, append=True)
    writer.close()


def test_file_that_is_not_a_cassette_is_not_appended_to(tmp_path: Path) -> None:
    (tmp_path / "c").write_text(json.dumps({"evidence": 1}))
    with pytest.raises(EvidenceError, match="not a cassette"):
        CassetteWriter(tmp_path / "c", HEAD, append=True)
    assert (tmp_path / "c").read_text() == '{"evidence": 1}'


def test_full_disk_is_reported_once_and_keeps_complete_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = CassetteWriter(tmp_path / "c", HEAD)
    writer.write(b'{"call":0}')
    write: Callable[[int, bytes], int] = os.write

    def full(file: int, data: bytes) -> int:
        write(file, data[:3])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    writer.write(b'{"call":1}')
    monkeypatch.undo()
    writer.write(b'{"call":2}')
    assert writer.problem == "No space left on device"
    writer.close()
    assert [line for line, _ in cassette_lines(tmp_path / "c", lambda issue: None)] == [HEAD, {"call": 0}]
