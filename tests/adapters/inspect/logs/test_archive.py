"""A wrong archive directory loses no data that is still in the file, and every correction is reported."""

import contextlib
import io
import json
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.inspect_logs.malformed import deflated, zipped
from tests.support.inspect_logs.small import (
    entry,
    header,
    ids,
    imported,
    log,
    name_of,
    renamed,
    said,
    sample,
    without_entry,
    written,
)

from aigo_bridge.errors import EvidenceError
from aigo_inspect.importing.importing import ImportOptions, import_file
from aigo_inspect.logs import archive as archive_module
from aigo_inspect.logs import zip_members
from aigo_inspect.logs.archive import Archive
from aigo_inspect.logs.sources import BytesSource

SCORES = [{"name": "s", "scorer": "s", "metrics": {"mean": {"name": "mean", "value": 0.5}}}]
SPEC = {"task": "t", "dataset": {"sample_ids": ["s0", "s1", "s2"]}, "config": {"epochs": 2}}


def whole() -> dict[str, bytes]:
    """Return a log with two epochs, a metric and scores reduced over the epochs."""
    reduced = [{"sample_id": f"s{n}", "value": 1} for n in range(3)]
    again = {f"samples/s{n}_epoch_2.json": sample(f"s{n}", 2) for n in range(3)}
    results = {"total_samples": 6, "completed_samples": 6, "scores": SCORES}
    summaries = [{"id": f"s{n}", "epoch": epoch} for n in range(3) for epoch in (1, 2)]
    return {
        **log(),
        **again,
        "summaries.json": json.dumps(summaries).encode(),
        "reductions.json": json.dumps([{"scorer": "s", "samples": reduced}]).encode(),
        "header.json": header(eval=SPEC, results=results),
    }


def found(result: Any) -> tuple[int, int, int]:
    """Return the trials, metrics and reduced scores in the evidence."""
    evidence = written(result)["evidence"]
    reduced = sum(len(item.get("scores") or ()) for item in evidence["samples"])
    return result.trials, len(evidence["metrics"] or ()), reduced


ALL = (6, 1, 3)


def overwritten(data: bytes, name: str, field: int, value: bytes) -> bytes:
    begin, _ = entry(data, name)
    return data[: begin + field] + value + data[begin + field + len(value) :]


@pytest.mark.parametrize("name", sorted(whole()))
@pytest.mark.parametrize("change", ["renamed", "of another kind", "removed"])
def test_a_member_is_found_by_its_own_header(name: str, change: str, tmp_path: Path) -> None:
    new = {"renamed": chr(ord(name[0]) ^ 1) + name[1:], "of another kind": name[:-1] + "~"}
    data = zipped(whole())
    data = without_entry(data, name) if change == "removed" else renamed(data, name, new[change])
    result = imported(data, tmp_path)
    assert (found(result), result.exit_code, result.status) == (ALL, 3, "success")
    assert [item.member for item in result.damage] == [name]
    assert "it was found by its own header" in said(result)
    assert written(result)["status"] == "failure"


@pytest.mark.parametrize("field", [28, 30, 32], ids=["name", "extra field", "comment"])
@pytest.mark.parametrize("length", [1, 60, 255, 4000, 65535])
def test_a_wrong_length_in_the_directory_loses_nothing(field: int, length: int, tmp_path: Path) -> None:
    data = overwritten(zipped(whole()), name_of(0), field, struct.pack("<H", length))
    result = imported(data, tmp_path)
    assert (found(result), result.exit_code) == (ALL, 3)


@pytest.mark.parametrize("name", ["header.json", "reductions.json", name_of(0), name_of(2)])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        (10, b"\x5d\0"),
        (16, b"\1\2\3\4"),
        (20, b"\1\0\0\0"),
        (20, b"\0\0\xff\0"),
        (24, b"\1\0\0\0"),
        (24, b"\0\0\0\x7f"),
        (42, b"\1\0\0\0"),
        (42, b"\0\0\0\x7f"),
        (8, b"\0\x08"),
    ],
    ids=[
        "method",
        "CRC",
        "short",
        "long",
        "small",
        "large",
        "offset",
        "offset beyond",
        "encoding of the name",
    ],
)
def test_a_valid_local_header_corrects_a_wrong_directory_entry(
    name: str, field: int, value: bytes, tmp_path: Path
) -> None:
    result = imported(overwritten(zipped(whole()), name, field, value), tmp_path)
    assert found(result) == ALL
    if field == 8:
        assert result.exit_code == 0
        return
    assert result.exit_code == 3
    assert [item.member for item in result.damage] == [name]
    assert "it was read using its own header" in said(result)


def test_a_member_is_repaired_once() -> None:
    data = overwritten(zipped(whole()), name_of(1), 24, b"\1\0\0\0")
    archive = Archive(BytesSource(data))
    assert archive.read(name_of(1)) == archive.read(name_of(1)) == whole()[name_of(1)]
    assert len(archive.damage) == 1


@pytest.mark.parametrize(
    ("field", "value"), [(0, b"Q"), (6, b"\1"), (26, b"\xff"), (28, b"\x07"), (30, b"\x01")]
)
def test_a_corrupt_local_header_loses_nothing(field: int, value: bytes, tmp_path: Path) -> None:
    data = zipped(whole())
    at = data.index(name_of(1).encode()) - 30 + field
    result = imported(data[:at] + value + data[at + 1 :], tmp_path)
    assert (found(result), result.exit_code) == (ALL, 3)


def test_the_sample_content_decides_between_two_member_names(tmp_path: Path) -> None:
    data = zipped(whole())
    at = data.index(name_of(1).encode())
    result = imported(data[:at] + b"samples/s7_epoch_1.json" + data[at + 23 :], tmp_path)
    assert (found(result), result.exit_code) == (ALL, 3)
    assert "its own header names it 'samples/s7_epoch_1.json'; it was read using" in said(result)


def test_a_sample_never_gets_the_name_of_another(tmp_path: Path) -> None:
    parts = {"header.json": json.dumps({"status": "error", "eval": {"task": "t"}}).encode()}
    data = zipped({**parts, name_of(0): sample("s0"), name_of(1): sample("s1")})
    result = imported(renamed(data, name_of(1), name_of(5)), tmp_path)
    assert (ids(result), result.exit_code) == (["s0"], 3)
    assert "its own header names it 'samples/s1_epoch_1.json'" in said(result)
    assert "its id and epoch differ from the zip directory" in said(result)


def test_a_corrupt_sample_is_lost_and_reported(tmp_path: Path) -> None:
    data = bytearray(zipped(whole()))
    data[data.index(name_of(1).encode()) + 60] ^= 255
    result = imported(bytes(data), tmp_path)
    assert (result.trials, result.exit_code, len(result.damage)) == (5, 3, 1)


def test_a_corrupt_member_is_not_replaced_by_an_older_version(tmp_path: Path) -> None:
    data = bytearray(in_place(zipped(whole()), header(status="error")))
    data[data.rindex(b"header.json", 0, data.rindex(b"header.json")) + 30] ^= 255
    result = imported(bytes(data), tmp_path)
    assert (result.trials, result.exit_code, result.status) == (6, 3, "unknown")


def spans(data: bytes) -> list[tuple[str, int, int]]:
    """Return the start and end of each member."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        begins = [(info.filename, info.header_offset) for info in archive.infolist()]
    ends = [*(begin for _, begin in begins[1:]), data.rindex(b"PK\x05\x06")]
    return [(name, begin, end) for (name, begin), end in zip(begins, ends, strict=True)]


def test_missing_bytes_lose_only_the_affected_samples(tmp_path: Path) -> None:
    data = zipped({**log(6), "header.json": header([f"s{n}" for n in range(6)], total=6)})
    places = [span for span in spans(data) if span[0].startswith("samples/")]
    choice = random.Random(7)
    first, last = places[0][1], places[-1][2]
    for _ in range(60):
        at, length = choice.randrange(first, last), choice.choice([1, 7, 40, 150])
        result = imported(data[:at] + data[at + length :], tmp_path)
        hit = {name for name, begin, end in places if begin < at + length and at < end}
        assert {f"samples/{found}_epoch_1.json" for found in ids(result)} >= {n for n, *_ in places} - hit
        assert result.exit_code == 3


@pytest.mark.parametrize("cut", [0, 1], ids=["directory cut off", "a length is wrong, too"])
def test_without_a_directory_a_wrong_length_does_not_lose_later_samples(cut: int, tmp_path: Path) -> None:
    data = bytearray(zipped(log()))
    if cut:
        struct.pack_into("<L", data, data.index(name_of(0).encode()) - 12, 300)
    result = imported(bytes(data[: data.rindex(b"PK\x01\x02")]), tmp_path)
    assert (ids(result), result.exit_code) == (["s0", "s1", "s2"], 3)


def test_a_streamed_log_is_checked_by_data_descriptors(tmp_path: Path) -> None:
    class Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self.data = bytearray()

        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            self.data += data
            return len(data)

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in log().items():
            archive.writestr(name, content)
    data = bytes(pipe.data)
    for whole_or_not in (data, data[: data.index(b"PK\x01\x02")]):
        assert ids(imported(whole_or_not, tmp_path)) == ["s0", "s1", "s2"]
    begin = data.index(name_of(1).encode())
    at = data.index(b"PK\x07\x08", begin) + 4
    spoiled = data[:at] + b"abcd" + data[at + 4 : data.index(b"PK\x01\x02")]
    assert "CRC does not match" in said(imported(spoiled, tmp_path))


def test_a_part_of_a_chunked_sample_is_found_by_its_own_header(tmp_path: Path) -> None:
    folder = "samples/s0_epoch_1"
    pieces = {
        f"{folder}/sample.json": json.dumps({"id": "s0", "epoch": 1, "input": "i", "target": "t"}).encode(),
        f"{folder}/messages/0.json": b'[{"role": "user", "content": "x"}]',
        f"{folder}/messages/1.json": b'[{"role": "user", "content": "y"}]',
        f"{folder}/events/0.json": b'[{"event": "info", "data": 1}]',
    }
    data = zipped({**pieces, "header.json": header(["s0"], total=1)})
    assert imported(data, tmp_path).exit_code == 0
    for name in pieces:
        for new in (name.replace("0.json", "7.json"), name.replace(".json", ".jsoo"), "x" + name[1:]):
            result = imported(renamed(data, name, new), tmp_path)
            assert (result.trials, result.exit_code) == (1, 0 if new == name else 3), new
            assert [item.member for item in result.damage] == ([] if new == name else [name])


# Unusual but valid logs


def in_place(data: bytes, head: bytes) -> bytes:
    """Return a log edited as by Inspect: the old header remains at its position."""
    buffer = io.BytesIO(data)
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.filelist = [info for info in archive.filelist if info.filename != "header.json"]
        archive.NameToInfo.pop("header.json")
        archive.writestr("header.json", head)
    return buffer.getvalue()


def appended(data: bytes) -> bytes:
    buffer = io.BytesIO(data)
    again = pytest.warns(UserWarning, match="Duplicate")
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as archive, again:
        archive.writestr(name_of(1), sample("s1", target="new"))
    return buffer.getvalue()


UNFINISHED = {
    "_journal/start.json": log()["_journal/start.json"],
    name_of(0): sample("s0"),
    "_journal/summaries/1.json": b'[{"id": "s0", "epoch": 1}]',
    "_journal/config_updates/1.json": b"{}",
}
SOUND: dict[str, Callable[[], bytes]] = {
    "as it is": lambda: zipped(log()),
    "header written anew": lambda: in_place(zipped(log()), log()["header.json"]),
    "sample written anew": lambda: appended(zipped(log())),
    "members of others": lambda: zipped(
        {
            **log(),
            "notes.txt": b"x" * 99,
            "samples/": b"",
            "__MACOSX/._header.json": b"",
            "_scan/a.json": b"{}",
        }
    ),
    "names of many bytes": lambda: zipped({**log(), f"samples/{'日' * 80}_epoch_1.json": sample("日" * 80)}),
    "no summaries": lambda: zipped({k: v for k, v in log().items() if k != "summaries.json"}),
    "no reductions": lambda: zipped({k: v for k, v in log().items() if k != "reductions.json"}),
    "no journal": lambda: zipped({k: v for k, v in log().items() if "_journal" not in k}),
    "unfinished": lambda: zipped(UNFINISHED),
    "something in front": lambda: b"#!/bin/sh\n" * 50 + zipped(log()),
}


@pytest.mark.parametrize("kind", SOUND)
def test_an_unusual_but_valid_log_has_no_damage(kind: str, tmp_path: Path) -> None:
    data = SOUND[kind]()
    if kind == "something in front":
        result_ids = list(Archive(BytesSource(data)).members)
        assert len(result_ids) == len(log())
        assert Archive(BytesSource(data)).damage == []
        return
    result = imported(data, tmp_path)
    assert (result.exit_code, said(result)) == (0, "")
    assert ids(result)[0] == "s0"


@pytest.mark.parametrize("kind", ["as it is", "no summaries", "unfinished", "names of many bytes"])
def test_a_complete_directory_needs_no_file_search(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def searched(*_: Any) -> Any:
        raise AssertionError("the file was searched")

    monkeypatch.setattr(archive_module, "walk_local_headers", searched)
    monkeypatch.setattr(zip_members, "walk_local_headers", searched)
    assert imported(SOUND[kind](), tmp_path).exit_code == 0


def test_a_log_that_was_closed_without_a_header_is_damaged(tmp_path: Path) -> None:
    result = imported(zipped({k: v for k, v in log().items() if k != "header.json"}), tmp_path)
    assert (result.exit_code, result.status, ids(result)) == (3, "unknown", ["s0", "s1", "s2"])
    assert "its header is missing" in said(result)


# Hostile logs


def test_local_headers_with_larger_sizes_are_bounded(tmp_path: Path) -> None:
    """Thousands of members share the same bytes, and their local headers give large sizes."""
    packed, count = deflated(bytes(1 << 20), 20), 300
    crc = 0
    for _ in range(20):
        crc = zlib.crc32(bytes(1 << 20), crc)
    body, directory = b"", b""
    for number in range(count):
        name = f"samples/z{number:03}_epoch_1.json".encode()
        sizes = struct.pack("<3L2H", crc, len(packed), 20 << 20, len(name), 0)
        small = struct.pack("<3L2H", crc, len(packed), 1, len(name), 0)
        directory += struct.pack("<4s6H", b"PK\x01\x02", 20, 20, 0, 8, 0, 0) + small
        directory += struct.pack("<3H2L", 0, 0, 0, 0, len(body)) + name
        body += struct.pack("<4s5H", b"PK\x03\x04", 20, 0, 8, 0, 0) + sizes + name + packed
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, count, count, len(directory), len(body), 0)
    archive = Archive(BytesSource(body + directory + end))
    read = 0
    for member in list(archive.members):
        with contextlib.suppress(EvidenceError):
            read += len(archive.read(member))
    assert 0 < read <= max(128 << 20, 200 * (len(body) + len(directory)))


def test_hundreds_of_thousands_of_lost_members_are_reported_in_a_hundred_lines(tmp_path: Path) -> None:
    parts = {f"samples/s{n}_epoch_1.json": sample(f"s{n}") for n in range(400)}
    data = zipped({"header.json": header([f"s{n}" for n in range(400)], total=400), **parts})
    at = data.index(b"PK\x01\x02")
    result = imported(data[: at + 32] + b"\xff\xff" + data[at + 34 :], tmp_path)
    assert (result.exit_code, result.trials) == (3, 400)
    assert len(result.damage) <= 102


def test_large_samples_are_repaired_one_at_a_time(tmp_path: Path) -> None:
    parts = {f"samples/s{n}_epoch_1.json": sample(f"s{n}", metadata={"x": "y" * 3_000_000}) for n in range(9)}
    data = zipped({**parts, "header.json": header([f"s{n}" for n in range(9)], total=9)})
    for number in (1, 4, 7):
        data = overwritten(data, name_of(number), 24, b"\1\0\0\0")
    (tmp_path / "log.eval").write_bytes(data)
    result = import_file(tmp_path / "log.eval", tmp_path / "out", ImportOptions())
    assert [item.member for item in result.damage] == [name_of(1), name_of(4), name_of(7)]
    assert (result.exit_code, result.trials) == (3, 9)


def test_zip_bombs_with_wrong_lengths_do_not_lose_later_members() -> None:
    """The search for a length by unpacking is bounded, and later members are still found."""
    packed = deflated(bytes(1 << 20), 30)
    body = b""
    for number in range(30):
        name = f"samples/z{number}_epoch_1.json".encode()
        sizes = struct.pack("<3L2H", 1, 7, 30 << 20, len(name), 0)
        body += struct.pack("<4s5H", b"PK\x03\x04", 20, 0, 8, 0, 0) + sizes + name + packed
    archive = Archive(BytesSource(body))
    assert len(archive.members) == 30
    with pytest.raises(EvidenceError):
        archive.read("samples/z29_epoch_1.json")
