"""Cassettes compared with the provenance: altered, added, removed and moved calls are reported."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import orjson
import pytest

from aigo_trust.recording.digests import LineDigests
from aigo_trust.verification.recordings import NO_DIGEST, check_cassette

CALLS: list[dict[str, Any]] = [
    {"call": {"task": "t", "sample": number, "by": "solver"}, "request": {"q": f"{number}?"}}
    for number in range(6)
]
HEAD: dict[str, Any] = {"cassette": 1}


def provenance() -> dict[str, Any]:
    digests = LineDigests()
    for line in CALLS:
        digests.add("t", orjson.dumps(line))
    return {"cassette": {"use": "recorded", "tasks": digests.to_json(["t"])}}


def told(folder: Path, lines: list[dict[str, Any]]) -> list[str]:
    file = folder / "c"
    texts = [orjson.dumps(line) for line in [HEAD, *lines]]
    file.write_bytes(b"".join(b"%08x %s\n" % (zlib.crc32(text), text) for text in texts))
    return [str(finding) for finding in check_cassette(file, provenance()).findings]


def test_cassette_of_the_run_is_recognized(tmp_path: Path) -> None:
    assert told(tmp_path, CALLS) == []
    other = {"call": {"task": "other", "sample": 1, "by": "solver"}}
    assert told(tmp_path, [other, *CALLS, other]) == []
    assert check_cassette(tmp_path / "c", provenance()).unchecked is None


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            [CALLS[0], {**CALLS[1], "request": {"q": "2?"}}, *CALLS[2:]],
            ["sample 1, field 'solver': was altered"],
        ),
        (
            CALLS[:2] + CALLS[4:],
            ["sample 1, field 'solver': after this line, 2 of 6 lines were removed (number 3)"],
        ),
        (CALLS[1:], ["after this line, 1 of 6 lines were removed (number 1)"]),
        (CALLS[:-1], ["sample 4, field 'solver': after this line, 1 of 6 lines were removed (number 6)"]),
        (
            [*CALLS, {"call": {"task": "t", "sample": "new", "by": "s/new"}}],
            ["sample \"new\", scorer 's': was added"],
        ),
        (
            [*CALLS, CALLS[2]],
            ["sample 2, field 'solver': is in another position (it was number 3)"],
        ),
        ([], ["after this line, 6 of 6 lines were removed (number 1)"]),
    ],
    ids=["altered", "removed", "the first", "the last", "added", "twice", "all"],
)
def test_cassette_differences_are_reported_with_their_position(
    tmp_path: Path, lines: list[dict[str, Any]], expected: list[str]
) -> None:
    assert told(tmp_path, lines) == [
        f"c, {line}" if line.startswith("sample") else f"c: {line}" for line in expected
    ]


def test_swapped_calls_are_reported(tmp_path: Path) -> None:
    (finding,) = told(tmp_path, [CALLS[1], CALLS[0], *CALLS[2:]])
    assert "is in another position" in finding


def test_a_damaged_line_is_reported_by_number(tmp_path: Path) -> None:
    told(tmp_path, CALLS)
    file = tmp_path / "c"
    file.write_bytes(file.read_bytes().replace(b"3?", b"4?"))
    findings = [str(finding) for finding in check_cassette(file, None).findings]
    assert findings == ["c: line 5: this line was modified: the checksum does not match; it is skipped"]


def test_cassette_is_unchecked_if_the_provenance_has_none(tmp_path: Path) -> None:
    told(tmp_path, CALLS)
    assert check_cassette(tmp_path / "c", {"cassette": None}).unchecked == NO_DIGEST
    (tmp_path / "c").write_bytes(b"no cassette")
    assert check_cassette(tmp_path / "c", {"cassette": None}).findings
