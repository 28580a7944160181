"""Results as texts: equal samples from every file format, and a complete frame."""

from __future__ import annotations

import gzip
from pathlib import Path

import orjson
import pytest
from tests.support.results import result, sample, score, trial

from aigo_bridge.errors import EvidenceError
from aigo_bridge.results.reading import read_log
from aigo_bridge.results.writing import write_log
from aigo_trust.provenance.texts import read_texts

SAMPLES = [
    sample(trial(f"é{number}", None, scores=[score("s", {"v": number / 3})], data={"n": number}))
    for number in range(5)
]


@pytest.mark.parametrize(
    "name", ["r.tasklog.json", "r.tasklog.json.zst", "r.tasklog.jsonl", "r.tasklog.jsonl.gz"]
)
def test_all_file_formats_contain_the_same_sample_texts(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(orjson.dumps(result(SAMPLES), option=orjson.OPT_INDENT_2))
    log = read_log(path)
    write_log(tmp_path / name, log, finish=log.frame())
    texts = read_texts(tmp_path / name)
    assert [orjson.loads(bytes(item.text))["sample_id"] for item in texts.samples] == [
        f"é{n}" for n in range(5)
    ]
    assert texts.frame["specification"]["task"]["key"] == log.frame().specification.task.key
    assert "samples" not in texts.frame["evidence"]


def test_samples_of_indented_documents_and_runs_are_read(tmp_path: Path) -> None:
    document = result(SAMPLES)
    document["evidence"]["runs"] = [{"index": 0, "samples": SAMPLES[:2], "metrics": []}]
    path = tmp_path / "r.json"
    path.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))
    texts = read_texts(path)
    assert [(item.run, item.position) for item in texts.samples[4:]] == [(None, 4), (0, 0), (0, 1)]
    assert texts.samples[-1].path == ("evidence", "runs", 0, "samples", 1)
    assert texts.frame["evidence"]["runs"] == [{"index": 0, "metrics": []}]


def test_unpaired_surrogate_in_a_written_log_is_read(tmp_path: Path) -> None:
    path = tmp_path / "r.tasklog.json"
    path.write_bytes(orjson.dumps(result(SAMPLES)))
    log = read_log(path)
    write_log(path, log, finish=log.frame())
    path.write_bytes(path.read_bytes().replace("é3".encode(), b"\\ud800"))
    texts = read_texts(path)
    assert len(texts.samples) == 5
    assert b"\\ud800" in bytes(texts.samples[3].text)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"evidence":{"samples":[{}', b'{"evidence":{"samples":{}}}', b"\xff"]
)
@pytest.mark.parametrize("name", ["r.json", "r.jsonl"])
def test_a_file_that_is_not_a_result_is_reported(content: bytes, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(EvidenceError):
        read_texts(path)


def test_damaged_compression_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "r.json.gz"
    path.write_bytes(gzip.compress(b"{}" * 1000)[:-9])
    with pytest.raises(EvidenceError, match="decompress"):
        read_texts(path)
