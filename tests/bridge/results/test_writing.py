"""Result logs written in parts."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

from aigo_bridge.results.log_files import open_for_replacing
from aigo_bridge.results.writing import DocumentWriter

UNPACKED: dict[str, Any] = {
    "json": bytes,
    "json.gz": gzip.decompress,
    "json.zst": lambda data: zstandard.ZstdDecompressor().stream_reader(data).read(),
}


@pytest.mark.parametrize("suffix", UNPACKED)
def test_samples_written_in_small_and_large_pieces_are_complete(tmp_path: Path, suffix: str) -> None:
    texts = [["a" * (n % 3) for n in range(5000)], ["x" * (3 << 20), "", "end"], ["é" * 300_000]]
    path = tmp_path / f"log.{suffix}"
    with open_for_replacing(path, clean=False) as file:
        writer = DocumentWriter(file)
        for parts in texts:
            writer.sample(b'"')
            writer.extend(memoryview(bytearray(part.encode())) for part in parts)
            writer.extend([b'"'])
        writer.finish(b'{"metrics":[]}', b'{"status":"success"}')

    document = UNPACKED[suffix](path.read_bytes())
    assert json.loads(document) == {
        "evidence": {"samples": ["".join(parts) for parts in texts], "metrics": []},
        "status": "success",
    }
    lines = document.split(b"\n")
    assert lines[0] == b'{"evidence":{"samples":['
    assert lines[-2] == b'],"metrics":[]},"status":"success"}'
    assert len(lines) == 3 + len(texts)


@pytest.mark.parametrize(
    ("samples", "evidence", "document"),
    [
        ([b"1"], b"{}", b'{"evidence":{"samples":[\n1\n]},"a":1}\n'),
        ([b"1"], b'{"m":2}', b'{"evidence":{"samples":[\n1\n],"m":2},"a":1}\n'),
        ([], b'{"samples":null}', b'{"evidence":{"samples":null},"a":1}\n'),
    ],
)
def test_parts_after_the_samples_are_written(
    tmp_path: Path, samples: list[bytes], evidence: bytes, document: bytes
) -> None:
    with open_for_replacing(tmp_path / "log.json") as file:
        writer = DocumentWriter(file)
        for sample in samples:
            writer.sample(sample)
        writer.finish(evidence, b'{"a":1}')
    assert (tmp_path / "log.json").read_bytes() == document
