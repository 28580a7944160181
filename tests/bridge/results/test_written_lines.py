"""Logs of aigo-bridge are read line by line with the same outcome as any other reader, even if damaged."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.results import metric, question, result

from aigo_bridge.dtypes import TaskResultLog
from aigo_bridge.errors import EvidenceError
from aigo_bridge.results import reading
from aigo_bridge.results.reading import LogReader
from aigo_bridge.results.writing import write_log
from aigo_bridge.results.written_lines import OtherFormError, written_lines


@pytest.fixture
def log(tmp_path: Path) -> Path:
    content = TaskResultLog.model_validate(
        result([question(number, "a\u2028\n", "a") for number in range(3)], [metric({"accuracy": 0.1})])
    )
    assert content.evidence is not None
    samples, content.evidence.samples = content.evidence.samples or [], []
    write_log(tmp_path / "a.tasklog.json", samples, finish=lambda: content)
    return tmp_path / "a.tasklog.json"


def outcome(path: Path) -> tuple[list[str], str | None]:
    """Return all parts as JSON, and the error after them."""
    parts: list[str] = []
    try:
        for part in LogReader(path).parts():
            parts.append(json.dumps(part, sort_keys=True))  # noqa: PERF401  # those before the fault count
    except EvidenceError as error:
        return parts, str(error)
    return parts, None


def another_way(path: Path) -> tuple[list[str], str | None]:
    """Return the same outcome from a memory-mapped file."""

    def none(*arguments: Any) -> Iterator[Any]:
        raise OtherFormError("asked for")
        yield

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "written_lines", none)
        return outcome(path)


def test_every_sample_is_one_line_and_the_last_line_is_the_frame(log: Path) -> None:
    lines = list(written_lines(log))
    assert [is_frame for _, is_frame in lines] == [False, False, False, True]
    assert outcome(log) == another_way(log)
    assert outcome(log)[1] is None


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_damaged_log_is_read_the_same_by_lines_and_by_parser(log: Path, tmp_path: Path, suffix: str) -> None:
    data = log.read_bytes()
    ends = [position for position, byte in enumerate(data) if byte == ord("\n")]
    damaged = [
        *(data[:end] for end in (0, 10, 25, ends[1], ends[1] + 1, ends[1] + 40, ends[-2] + 2, ends[-2] + 20)),
        data[: ends[1] - 1] + data[ends[1] :],
        data[: ends[1]] + data[ends[1] + 1 :],
        data[: ends[1] + 1] + b"\n" + data[ends[1] + 1 :],
        data[: ends[1] + 1] + b"1,\n" + data[ends[1] + 1 :],
        data[: ends[-2]] + b",\n" + data[ends[-2] + 1 :],
        data + b"{}",
        data + b" \n\n",
        data.replace(b'"Question 1?"', b"NaN"),
        data.replace(b"Question 1?", b"Question \xff"),
        data.replace(b'],"metrics"', b'], "metrics"'),
    ]
    path = tmp_path / f"b.tasklog.json{suffix}"
    for text in damaged:
        path.write_bytes(gzip.compress(text) if suffix else text)
        assert outcome(path) == another_way(path), text
    if suffix:
        whole = gzip.compress(data)
        for end in range(20, len(whole), 37):
            path.write_bytes(whole[:end])
            parts, problem = another_way(path)
            lines, line_problem = outcome(path)
            # Reading by lines may recover more of the last block.
            assert (lines[: len(parts)], line_problem) == (parts, problem), end
            assert problem is not None


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (b'"metrics"', b'"metrics":null,"samples":[],"metrics"'),
        (b'"format_version"', b'"evidence":null,"format_version"'),
        (b'"format_version"', b'"evidence":{"samples":[]},"format_version"'),
    ],
)
def test_duplicate_samples_or_evidence_fields_are_rejected(log: Path, place: bytes, text: bytes) -> None:
    log.write_bytes(log.read_bytes().replace(place, text))
    parts, problem = outcome(log)
    assert len(parts) == 3
    assert problem is not None
    assert "found samples, or evidence, twice" in problem


def test_field_named_samples_is_not_mistaken_for_samples(log: Path) -> None:
    log.write_bytes(log.read_bytes().replace(b'"description"', b'"samples":"evidence","description"'))
    assert outcome(log) == another_way(log)


def test_memory_is_released_while_a_large_log_is_read(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log.write_bytes(b" " + log.read_bytes().replace(b"Question 1?", b"x" * 200_000))
    plain = outcome(log)
    released: list[int] = []
    release = reading._release

    def noted(document: Any, start: int, end: int) -> int:
        released.append(end)
        return release(document, start, end)

    monkeypatch.setattr(reading, "_RELEASED", 1)
    monkeypatch.setattr(reading, "_release", noted)
    assert outcome(log) == plain
    assert len(released) > 1
