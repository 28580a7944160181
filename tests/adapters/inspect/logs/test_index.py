"""A log that lost samples or other members: readable data is imported, and all missing data is reported."""

import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

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

from aigo_inspect import export_log, import_log
from aigo_inspect.importing.importing import import_file
from aigo_inspect.logs.reader import open_log

KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"


# The directory of the archive


@pytest.mark.parametrize(
    "change",
    [
        lambda data: without_entry(data, name_of(1)),
        lambda data: renamed(data, name_of(1), "t" + name_of(1)[1:]),
        lambda data: renamed(data, name_of(1), name_of(2)),
        lambda data: renamed(data, name_of(2), name_of(1)),
        lambda data: renamed(data, name_of(1), "samples/q1_epoch_1.json"),
    ],
    ids=["removed", "no sample's", "a later one's", "an earlier one's", "nobody's"],
)
def test_a_sample_missing_in_the_directory_is_found_by_its_own_header(
    change: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    result = imported(change(zipped(log())), tmp_path)
    assert ids(result) == ["s0", "s1", "s2"]
    assert result.exit_code == 3
    assert "was found by its own header" in said(result)
    assert written(result)["status"] == "failure"


@pytest.mark.parametrize(
    ("field", "value"), [(8, b"\0\0\0\0"), (12, b"\0\0\0\0"), (16, b"\0\0\0\0"), (10, b"\x63\0")]
)
def test_a_corrupt_end_of_directory_record_loses_no_sample(field: int, value: bytes, tmp_path: Path) -> None:
    data = zipped(log())
    at = data.rindex(b"PK\x05\x06") + field
    result = imported(data[:at] + value + data[at + len(value) :], tmp_path)
    assert ids(result) == ["s0", "s1", "s2"]
    assert result.exit_code == 3


def test_a_false_end_record_after_the_end_is_skipped(tmp_path: Path) -> None:
    result = imported(zipped(log()) + b"PK\x05\x06" + bytes(30), tmp_path)
    assert (result.exit_code, ids(result)) == (0, ["s0", "s1", "s2"])


def test_invalid_64_bit_numbers_lose_no_sample(tmp_path: Path) -> None:
    data = zipped(log())
    at = data.rindex(b"PK\x05\x06")
    end = struct.pack("<4sQHHLLQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, *[2**60] * 2, *[2**62] * 2)
    result = imported(data[:at] + end + struct.pack("<4sLQL", b"PK\x06\x07", 0, at, 1) + data[at:], tmp_path)
    assert (result.exit_code, ids(result)) == (3, ["s0", "s1", "s2"])


def test_an_offset_beyond_the_file_loses_no_sample(tmp_path: Path) -> None:
    data = bytearray(zipped(log()))
    begin, end = entry(bytes(data), name_of(1))
    extra = struct.pack("<HHQ", 1, 8, 2**64 - 1)
    data[begin + 42 : begin + 46] = b"\xff" * 4
    struct.pack_into("<H", data, begin + 30, len(extra))
    data[end:end] = extra
    at = data.rindex(b"PK\x05\x06") + 12
    struct.pack_into("<L", data, at, struct.unpack_from("<L", data, at)[0] + len(extra))
    result = imported(bytes(data), tmp_path)
    assert (result.exit_code, ids(result)) == (3, ["s0", "s1", "s2"])
    assert "it was read using its own header" in said(result)


# Sample list of the log


def without(name: str, **changes: bytes) -> dict[str, bytes]:
    return {key: data for key, data in {**log(), **changes}.items() if key != name}


@pytest.mark.parametrize(
    "parts",
    [
        without(name_of(1)),
        without(name_of(1), **{"summaries.json": b"[]"}),
        without(name_of(1), **{"header.json": header(status="error")}),
        {
            **without(name_of(1), **{"_journal/summaries/1.json": log()["summaries.json"]}),
            "summaries.json": b"[NaN",
        }
        | {"header.json": header(status="cancelled")},
    ],
    ids=["both say so", "the dataset says so", "the summaries of a failed log say so", "another summary"],
)
def test_a_missing_sample_is_reported(parts: dict[str, bytes], tmp_path: Path) -> None:
    result = imported(zipped(parts), tmp_path)
    assert (result.exit_code, ids(result)) == (3, ["s0", "s2"])
    if parts["summaries.json"] != b"[NaN":
        assert "sample 's1', epoch 1: listed as finished, but not in the log" in said(result)
    else:
        assert "summaries.json" in said(result)
    assert written(result)["status"] == "failure"


def test_a_log_with_only_a_sample_count_is_checked_against_it(tmp_path: Path) -> None:
    parts = {"header.json": header(None), name_of(0): sample("s0"), name_of(2): sample("s2")}
    assert "the log contains 2 of 3 samples listed as finished" in said(imported(zipped(parts), tmp_path))


def test_a_json_log_without_a_sample_is_reported(tmp_path: Path) -> None:
    whole = {**json.loads(header()), "samples": [json.loads(sample("s0")), json.loads(sample("s2"))]}
    for indent in (None, 2):
        result = imported(json.dumps(whole, indent=indent).encode(), tmp_path)
        assert (result.exit_code, ids(result)) == (3, ["s0", "s2"])
        assert "sample 's1', epoch 1" in said(result)


EVAL = {"task": "t", "dataset": {"sample_ids": ["s0", "s1", "s2"]}, "config": {}}
STOPPED = {"early_stopping": {"manager": "m", "early_stops": [{"id": "s1", "epoch": 1}], "metadata": {}}}


@pytest.mark.parametrize(
    "head",
    [
        header(eval={**EVAL, "config": {"log_samples": False}}),
        header(results={"total_samples": 3, "completed_samples": 2, **STOPPED}),
        header(results={"total_samples": 3, "completed_samples": 2, "logged_samples": 2}),
        header(status="error"),
        header(["s0", "s1", "s2"], total=2),
        header(5),
    ],
    ids=["no samples wanted", "stopped early", "drained", "failed", "did not all run", "no list of ids"],
)
def test_an_unfinished_sample_is_not_reported_as_missing(head: bytes, tmp_path: Path) -> None:
    parts = {"header.json": head, name_of(0): sample("s0"), name_of(2): sample("s2")}
    if b'"sample_ids": 5' in head:
        parts[name_of(1)] = sample("s1")
    result = imported(zipped(parts), tmp_path)
    assert (result.exit_code, said(result)) == (0, "")


def test_lost_samples_are_reported_in_log_order(tmp_path: Path) -> None:
    found = imported(
        zipped({**log(1), "header.json": header([f"s{n}" for n in range(60)], total=60)}), tmp_path
    )
    assert [item.reason.split("'")[1] for item in found.damage] == [f"s{n}" for n in range(1, 60)]


def test_thousands_of_lost_samples_are_reported_in_a_hundred_lines(tmp_path: Path) -> None:
    lost = [f"s{number}" for number in range(5_000)]
    result = imported(zipped({"header.json": header(lost, total=5_000), name_of(0): sample("s0")}), tmp_path)
    assert len(result.damage) == 101
    assert "4,899 more samples" in said(result)


@pytest.mark.parametrize("name", ["summaries.json", "reductions.json"])
@pytest.mark.parametrize("epochs", [1, 2])
@pytest.mark.parametrize("content", [b"[{", b"{}", b""])
def test_a_corrupt_member_other_than_a_sample_is_reported(
    name: str, epochs: int, content: bytes, tmp_path: Path
) -> None:
    parts = {**log(), name: content}
    parts |= {f"samples/s{n}_epoch_{epochs}.json": sample(f"s{n}", epochs) for n in range(3)}
    result = imported(zipped(parts), tmp_path)
    assert (result.exit_code, ids(result)) == (3, ["s0", "s1", "s2"])
    assert [item.member for item in result.damage] == [name]


# Headers


@pytest.mark.parametrize("content", [b"{}", b'{"eval": 5}', b"[]", b"{", b'{"status": null, "eval": null}'])
def test_without_a_valid_header_the_specification_comes_from_the_journal(
    content: bytes, tmp_path: Path
) -> None:
    result = imported(zipped({**log(), "header.json": content}), tmp_path)
    found = written(result)
    assert (result.exit_code, result.trials) == (3, 3)
    assert found["specification"]["config"]["inspect"]["eval"]["run_id"] == "r"
    assert [item.member for item in result.damage] == ["header.json"]
    # The log was closed, so it is not reported as unfinished.
    assert [error["error_type"] for error in found["errors"]] == ["DamagedLog"]


def test_other_fields_of_a_header_without_eval_are_kept(tmp_path: Path) -> None:
    head = json.dumps({"status": "success", "results": {"total_samples": 3}}).encode()
    result = imported(zipped({**log(), "header.json": head}), tmp_path)
    assert (result.exit_code, result.status) == (3, "success")
    assert written(result)["specification"]["config"]["inspect"]["results"] == {"total_samples": 3}
    assert written(result)["status"] == "failure"


def bomb(name: str, parts: dict[str, bytes], megabytes: int = 50, times: int = 1) -> bytes:
    """Return an archive with members that contain only zeros."""
    packed, crc = deflated(bytes(1 << 20), megabytes), 0
    for _ in range(megabytes):
        crc = zlib.crc32(bytes(1 << 20), crc)
    members = [(key, zlib.crc32(data), deflated(data), len(data)) for key, data in parts.items()]
    members += [(name.format(n), crc, packed, megabytes << 20) for n in range(times)]
    body, directory = b"", b""
    for key, found, data, size in members:
        sizes = struct.pack("<3L2H", found, len(data), size, len(key), 0)
        directory += struct.pack("<4s6H", b"PK\x01\x02", 20, 20, 0, 8, 0, 0) + sizes
        directory += struct.pack("<3H2L", 0, 0, 0, 0, len(body)) + key.encode()
        body += struct.pack("<4s5H", b"PK\x03\x04", 20, 0, 8, 0, 0) + sizes + key.encode() + data
    end = struct.pack(
        "<4s4H2LH", b"PK\x05\x06", 0, 0, len(members), len(members), len(directory), len(body), 0
    )
    return body + directory + end


@pytest.mark.parametrize("name", ["header.json", "_journal/start.json", "reductions.json", "summaries.json"])
def test_a_zip_bomb_outside_samples_loses_no_sample(name: str, tmp_path: Path) -> None:
    parts = without(name)
    if name == "_journal/start.json":
        del parts["header.json"]
    result = imported(bomb(name, parts), tmp_path)
    assert (result.exit_code, ids(result)) == (3, ["s0", "s1", "s2"])
    assert name in [item.member for item in result.damage]
    assert "bomb" in said(result)


def test_many_small_zip_bombs_are_refused_together(tmp_path: Path) -> None:
    """No single member exceeds the bound, but all together would take minutes."""
    result = imported(bomb("samples/z{}_epoch_1.json", log(), megabytes=31, times=300), tmp_path)
    assert (result.exit_code, ids(result)) == (3, ["s0", "s1", "s2"])
    assert len(result.damage) == 300
    assert "bomb" in said(result)


def test_overlapping_members_are_refused(tmp_path: Path) -> None:
    """Bytes shared by many entries are unpacked many times, each within its bound."""
    data = bytearray()
    count = 400
    inner = deflated(bytes(1 << 20))
    names = [f"samples/z{n:03}_epoch_1.json".encode() for n in range(count)]
    headers = []
    length = len(inner)
    for name in reversed(names):
        # Each is a stored block that contains the header of the next one.
        headers.append((name, length))
        length += 30 + len(name)
    offset = 0
    central = b""
    for name, packed in reversed(headers):
        sizes = struct.pack("<3L2H", 0, packed, 150 * packed, len(name), 0)
        central += struct.pack("<4s6H", b"PK\x01\x02", 20, 20, 0, 8, 0, 0) + sizes
        central += struct.pack("<3H2L", 0, 0, 0, 0, offset) + name
        data += struct.pack("<4s5H", b"PK\x03\x04", 20, 0, 8, 0, 0) + sizes + name
        offset += 30 + len(name)
    data += inner
    data += central + struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, count, count, len(central), len(data), 0)
    result = imported(bytes(data), tmp_path)
    assert result.exit_code == 3
    assert "overlaps another member" in said(result)


# Secrets


@pytest.mark.parametrize("content", [b"{{{", b"[1]", sample(None), sample("other")])
def test_a_secret_in_a_member_name_is_redacted(content: bytes, tmp_path: Path) -> None:
    result = imported(zipped({**log(), f"samples/{KEY}_epoch_1.json": content}), tmp_path)
    assert KEY not in said(result) + result.reason
    assert result.output is not None
    assert result.loss_file is not None
    for text in (result.output.read_text(), result.loss_file.read_text(), str(result.lines)):
        assert KEY not in text
        assert "abcdefghijklmnop" not in text
    assert result.trials + len(result.damage) == 4


def test_a_secret_in_the_log_name_is_redacted(tmp_path: Path) -> None:
    path = tmp_path / f"{KEY}.eval"
    path.write_bytes(zipped({"_journal/start.json": b"{"}))
    result = import_file(path, tmp_path / "out")
    assert KEY not in str(result)


# Embedded evidence


@pytest.fixture
def exported(tmp_path: Path) -> dict[str, bytes]:
    result = imported(zipped(log()), tmp_path)
    assert result.output is not None
    with open_log(export_log(result.output, tmp_path / "exported.eval")) as found:
        return {name: found.read_raw(name) or b"" for name in found.members()}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("_aigo/samples/1.json", b"{", "_aigo/samples/1.json is not valid JSON"),
        ("_aigo/frame.json", b"{", "_aigo/frame.json is not valid JSON"),
        ("_aigo/index.json", b"{", ""),
        ("_aigo/samples/2.json", None, "the evidence in the log contradicts the log"),
        (name_of(1), None, "sample 's1', epoch 1"),
    ],
)
def test_damaged_embedded_evidence_is_rebuilt_from_the_log(
    exported: dict[str, bytes], name: str, content: bytes | None, message: str, tmp_path: Path
) -> None:
    parts = {key: data for key, data in exported.items() if key != name}
    data = zipped(parts if content is None else {**parts, name: content})
    result = imported(data, tmp_path)
    assert message in said(result)
    assert (result.exit_code == 3) == bool(message)
    assert ids(result) == [f"s{n}" for n in range(3) if f"s{n}_" not in name]
    typed = import_log(tmp_path / "log.eval")
    assert typed.evidence is not None
    assert len(typed.evidence.samples or ()) == result.samples
    assert (typed.status == "success") == (not message)
