"""Truncated, corrupt and hostile logs: valid data is imported, and invalid data is reported."""

import io
import json
import struct
import time
import zipfile
import zlib
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard

from aigo_bridge.access.bounds import Bounds, LogTooLargeError
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError
from aigo_inspect.importing.api import import_log
from aigo_inspect.importing.importing import ImportOptions, import_file
from aigo_inspect.logs.archive import Archive
from aigo_inspect.logs.reader import InspectLogReader, open_log
from aigo_inspect.logs.sources import BytesSource

pytestmark = pytest.mark.usefixtures("own_heap")


def members(path: Path) -> dict[str, bytes]:
    with open_log(path) as log:
        assert log._archive is not None
        return {name: log._archive.read(name) for name in log.members()}


def zipped(parts: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def read(data: bytes, **bounds: Any) -> InspectLogReader:
    return InspectLogReader(BytesSource(data), bounds=Bounds(**bounds))


def sample_keys(log: InspectLogReader) -> list[tuple[Any, int]]:
    return [(sample.id, sample.epoch) for sample in log.samples()]


def test_samples_are_read_by_epoch_in_dataset_order(logs: dict[str, Path]) -> None:
    for name in ("agents", "agents.json"):
        with open_log(logs[name]) as log:
            assert sample_keys(log) == [("a/b", 1), (7, 1), ("a/b", 2), (7, 2)]
            assert [(s.id, s.epoch) for s in log.samples("sample")] == [
                ("a/b", 1),
                ("a/b", 2),
                (7, 1),
                (7, 2),
            ]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_older_compression_methods_give_the_same_samples(logs: dict[str, Path], method: int) -> None:
    log = read(zipped(members(logs["agents"]), method))
    assert len(sample_keys(log)) == 4
    assert log.damage == []


def test_several_zstd_frames_in_one_member_are_joined() -> None:
    parts = [b'{"id": 1, "epoch": 1, "messages": []', b', "scores": {}}']
    packed = b"".join(zstandard.compress(part) for part in parts)
    name, whole = b"samples/1_epoch_1.json", b"".join(parts)
    local = struct.pack(
        "<4s5H3L2H", b"PK\x03\x04", 63, 0, 93, 0, 0, zlib.crc32(whole), len(packed), len(whole), len(name), 0
    )
    central = struct.pack(
        "<4s6H3L5H2L", b"PK\x01\x02", 63, 63, 0, 93, 0, 0, zlib.crc32(whole), len(packed), len(whole), len(name), 0, 0, 0, 0, 0, 0
    )  # fmt: skip
    body = local + name + packed
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, len(central) + len(name), len(body), 0)
    log = read(body + central + name + end)
    assert sample_keys(log) == [(1, 1)]


def test_the_last_member_with_a_name_is_used(logs: dict[str, Path]) -> None:
    parts = members(logs["plain"])
    (name,) = [name for name in parts if name.startswith("samples/")]
    later = orjson.loads(parts[name])
    later["scores"]["includes"]["value"] = "later"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, data in parts.items():
            archive.writestr(key, data)
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr(name, orjson.dumps(later))
    (sample,) = read(buffer.getvalue()).samples()
    assert sample.data["scores"]["includes"]["value"] == "later"


def test_a_truncated_log_gives_its_complete_samples(logs: dict[str, Path]) -> None:
    data = zipped(members(logs["agents"]))
    names = [name for name in members(logs["agents"]) if name.startswith("samples/")]
    cut = data.index(names[-1].encode()) + 60
    log = read(data[:cut])
    assert len(sample_keys(log)) == len(names) - 1
    assert any("directory is missing" in str(item) for item in log.damage)
    assert any(item.member == names[-1] for item in log.damage)
    assert log.header["status"] == "started"
    assert log.header["eval"]["task"] == "agents"


@pytest.mark.parametrize("name", ["agents", "agents.json", "plain", "scores"])
def test_a_log_truncated_anywhere_gives_samples_or_an_error(logs: dict[str, Path], name: str) -> None:
    data = logs[name].read_bytes()
    refused = 0
    for cut in range(0, len(data), max(1, len(data) // 40)):
        try:
            log = read(data[:cut])
        except EvidenceError:
            refused += 1
            continue
        with log:
            assert len(sample_keys(log)) <= 5
            assert log.damage
    assert refused > 0


def test_an_invalid_sample_does_not_affect_others(logs: dict[str, Path], tmp_path: Path) -> None:
    parts = members(logs["agents"])
    names = [name for name in parts if name.startswith("samples/")]
    parts[names[0]] = b'{"id": "a/b", "epoch": 1, "events": [{"event":'
    parts[names[1]] = b"[1, 2]"
    path = tmp_path / "bad.eval"
    path.write_bytes(zipped(parts))
    log = import_log(path)
    assert log.status == "failure"
    assert log.evidence is not None
    assert sum(len(sample.trials) for sample in log.evidence.samples or []) == 2
    assert [error.error_type for error in log.errors] == ["DamagedLog", "DamagedLog"]
    assert any("not valid JSON at byte" in error.message for error in log.errors)
    result = import_file(path, tmp_path / "out")
    assert (result.exit_code, result.trials, len(result.damage)) == (3, 2, 2)
    report = json.loads((tmp_path / "out.loss.json").read_text())
    assert [entry["member"] for entry in report["damage"]] == sorted(names[:2]) or len(report["damage"]) == 2


def test_a_flipped_byte_is_detected(logs: dict[str, Path]) -> None:
    parts = members(logs["plain"])
    data = bytearray(zipped(parts, zipfile.ZIP_STORED))
    at = data.index(b'"role":"assistant"') + 3
    data[at] ^= 1
    log = read(bytes(data))
    assert list(log.samples()) == []
    assert "CRC" in str(log.damage[0])


def test_a_log_without_header_is_read_from_its_journal(logs: dict[str, Path]) -> None:
    parts = members(logs["plain"])
    del parts["header.json"], parts["summaries.json"], parts["reductions.json"]
    log = read(zipped(parts))
    assert log.header["status"] == "started"
    assert log.damage == []
    assert not log.finished
    assert len(sample_keys(log)) == 1


def test_a_log_with_only_samples_is_read(logs: dict[str, Path]) -> None:
    parts = {name: data for name, data in members(logs["agents"]).items() if name.startswith("samples/")}
    log = read(zipped(parts))
    assert len(sample_keys(log)) == 4
    assert "the log lacks a header" in str(log.damage[0])


@pytest.mark.parametrize(
    "data",
    [b"", b"x", b"PK\x05\x06" + bytes(18), b"{}", b"[]", b'{"a": 1}', b"\x00" * 4096, b"{" * 100_000, b'{"eval":', zipped({"a.txt": b"hi"})],
    ids=range(10),
)  # fmt: skip
def test_a_file_that_is_not_a_log_is_refused_with_a_reason(data: bytes) -> None:
    with pytest.raises(EvidenceError):
        read(data)


def test_a_zip_bomb_is_refused_without_unpacking_it() -> None:
    bomb = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = b"".join(bomb.compress(bytes(1 << 20)) for _ in range(300)) + bomb.flush()
    name, size = b"samples/1_epoch_1.json", 300 << 20
    local = struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 0, 8, 0, 0, 0, len(packed), size, len(name), 0)
    data = local + name + packed
    start = time.process_time()
    archive = Archive(BytesSource(data))
    with pytest.raises(LogTooLargeError, match="zip bomb"):
        archive.read(name.decode())
    assert time.process_time() - start < 1


def test_a_member_with_a_wrong_size_is_refused() -> None:
    whole = b"[" + b"0," * 200_000 + b"0]"
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(whole) + packer.flush()
    name = b"header.json"
    local = struct.pack(
        "<4s5H3L2H", b"PK\x03\x04", 20, 0, 8, 0, 0, zlib.crc32(whole), len(packed), 100, len(name), 0
    )
    with pytest.raises(EvidenceError, match="more than the 100 bytes"):
        Archive(BytesSource(local + name + packed)).read("header.json")


def test_exceeded_bounds_are_named_in_the_error(logs: dict[str, Path]) -> None:
    data = logs["agents"].read_bytes()
    with pytest.raises(LogTooLargeError, match="members") as caught:
        read(data, members=2)
    assert caught.value.code == Code.LOG_TOO_LARGE
    log = read(data, events=3)
    assert list(log.samples()) == []
    assert "the bound 'events' is 3" in str(log.damage[0])
    assert list(read(data, seconds=-1.0).samples()) == []


def test_deeply_nested_values_are_written_as_text(logs: dict[str, Path], tmp_path: Path) -> None:
    parts = members(logs["plain"])
    (name,) = [name for name in parts if name.startswith("samples/")]
    sample = orjson.loads(parts[name])
    deep: Any = "core"
    for _ in range(400):
        deep = [deep]
    sample["metadata"] = {"deep": deep}
    parts[name] = json.dumps(sample).encode()
    path = tmp_path / "deep.eval"
    path.write_bytes(zipped(parts))
    result = import_file(path, tmp_path / "deep")
    assert result.exit_code == 0
    assert result.output is not None
    assert "core" in result.output.read_text()


def test_nan_big_integers_and_lone_surrogates_are_kept(logs: dict[str, Path], tmp_path: Path) -> None:
    parts = members(logs["plain"])
    (name,) = [name for name in parts if name.startswith("samples/")]
    text = parts[name].decode()
    big = 2**70 + 1
    odd = text.replace('"row":1', f'"row":{big},"nan":NaN,"inf":-Infinity,"half":"\\ud800"')
    assert odd != text
    parts[name] = odd.encode()
    path = tmp_path / "odd.eval"
    path.write_bytes(zipped(parts))
    result = import_file(path, tmp_path / "odd", ImportOptions(redact=False))
    assert result.exit_code == 0
    assert result.output is not None
    written = json.loads(result.output.read_text())
    metadata = written["evidence"]["samples"][0]["trials"][0]["sample"]["data"]["metadata"]
    assert metadata == {"row": big, "nan": "NaN", "inf": "-Infinity", "half": "\\ud800"}
    assert sum(result.loss.changed.values()) >= 3


def test_an_unknown_event_is_kept_completely(logs: dict[str, Path]) -> None:
    parts = members(logs["plain"])
    (name,) = [name for name in parts if name.startswith("samples/")]
    sample = orjson.loads(parts[name])
    sample["events"].append(
        {"event": "telepathy", "uuid": "u", "timestamp": "2031-01-01T00:00:00+02:00", "mind": [1]}
    )
    sample["events"].append("not even an object")
    parts[name] = orjson.dumps(sample)
    from aigo_inspect.mapping.traces import trace_of

    (raw,) = read(zipped(parts)).samples()
    events = trace_of(raw).events
    assert events is not None
    found = {event.name: event for event in events if event.type == "custom"}
    assert found["telepathy"].data == {"mind": [1]}
    assert found["telepathy"].id == "u"
    assert found["unknown"].data == {"value": "not even an object"}


@pytest.mark.parametrize(
    "data",
    [
        b"PK\x03\x04" * 500_000,
        struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 8, 8, 0, 0, 0, 0, 0, 3, 0) * 40_000,
        struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 8, 93, 0, 0, 0, 0, 0, 1, 0) * 40_000
        + b"\x28\xb5\x2f\xfd",
    ],
    ids=["signatures", "deflate headers", "zstd headers"],
)
def test_a_file_full_of_headers_is_read_quickly(data: bytes) -> None:
    start = time.process_time()
    with pytest.raises(EvidenceError):
        read(data)
    assert time.process_time() - start < 5


@pytest.mark.parametrize("indent", [None, 2, 4])
def test_a_json_log_gives_the_same_data_in_any_layout(logs: dict[str, Path], indent: int | None) -> None:
    document = json.loads(logs["agents.json"].read_bytes())
    document["samples"][0]["scores"]["includes"]["value"] = float("nan")
    log = read(json.dumps(document, indent=indent).encode())
    samples = list(log.samples())
    assert [(sample.id, sample.epoch) for sample in samples] == [("a/b", 1), (7, 1), ("a/b", 2), (7, 2)]
    values = [sample.data["scores"]["includes"]["value"] for sample in samples]
    assert sum(value != value for value in values) == 1  # NaN, and not null
    assert log.damage == []
