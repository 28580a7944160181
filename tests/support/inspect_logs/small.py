"""Smallest complete log, and its remaining content after changes to the bytes of its directory."""

import json
import struct
from pathlib import Path
from typing import Any

from aigo_bridge.importing.log_import import ImportReport
from aigo_inspect.importing.importing import ImportOptions, import_file


def sample(sample_id: Any, epoch: Any = 1, **fields: Any) -> bytes:
    messages = [{"role": "user", "content": f"{sample_id} {epoch}"}]
    whole = {"id": sample_id, "epoch": epoch, "input": "i", "target": "t", "messages": messages, **fields}
    return json.dumps(whole).encode()


def header(ids: Any = ("s0", "s1", "s2"), *, status: str = "success", total: int = 3, **parts: Any) -> bytes:
    given = {
        "version": 2,
        "status": status,
        "eval": {"task": "t", "dataset": {"sample_ids": ids}, "config": {"epochs": 1}},
        "results": {"total_samples": total, "completed_samples": total},
    }
    return json.dumps({**given, **parts}).encode()


def name_of(number: int) -> str:
    return f"samples/s{number}_epoch_1.json"


def log(count: int = 3) -> dict[str, bytes]:
    summaries = [{"id": f"s{number}", "epoch": 1, "input": "i", "target": "t"} for number in range(count)]
    return {
        "_journal/start.json": json.dumps({"version": 2, "eval": {"task": "t", "run_id": "r"}}).encode(),
        **{name_of(number): sample(f"s{number}") for number in range(count)},
        "summaries.json": json.dumps(summaries).encode(),
        "reductions.json": b"[]",
        "header.json": header(),
    }


def imported(data: bytes, folder: Path, **settings: Any) -> ImportReport:
    (folder / "log.eval").write_bytes(data)
    return import_file(folder / "log.eval", folder / "out", ImportOptions(**settings))


def said(result: ImportReport) -> str:
    return "\n".join(str(item) for item in result.damage)


def written(result: ImportReport) -> dict[str, Any]:
    assert result.output is not None
    found: dict[str, Any] = json.loads(result.output.read_text())
    return found


def ids(result: ImportReport) -> list[Any]:
    return [found["sample_id"] for found in written(result)["evidence"]["samples"]]


def indices(result: ImportReport) -> list[tuple[Any, int]]:
    return [
        (found["sample_id"], trial["index"])
        for found in written(result)["evidence"]["samples"]
        for trial in found["trials"]
    ]


def entry(data: bytes, name: str) -> tuple[int, int]:
    """Return the start and end of a member's directory entry."""
    at = data.rindex(name.encode()) - 46
    assert data[at : at + 4] == b"PK\x01\x02"
    return at, at + 46 + len(name)


def without_entry(data: bytes, name: str) -> bytes:
    begin, end = entry(data, name)
    changed = bytearray(data[:begin] + data[end:])
    at = changed.rindex(b"PK\x05\x06")
    entries, _, length = struct.unpack_from("<HHL", changed, at + 8)
    struct.pack_into("<HHL", changed, at + 8, entries - 1, entries - 1, length - (end - begin))
    return bytes(changed)


def renamed(data: bytes, name: str, new: str) -> bytes:
    begin, end = entry(data, name)
    return data[: begin + 46] + new.encode() + data[end:]
