"""Span tables: Parquet files of Phoenix data frames and LangSmith's bulk export."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aigo_bridge.errors import EvidenceError
from aigo_bridge.redaction.rules import NO_REDACTION
from aigo_formats.traces.documents import ReadContext
from aigo_formats.traces.sources import read_traces

GOLDEN = Path(__file__).parents[3] / "golden" / "traces"


def rows_of(source: str, case: str) -> list[dict[str, Any]]:
    (file,) = (GOLDEN / source / case / "files").iterdir()
    text = file.read_text()
    rows = [json.loads(line) for line in text.splitlines()] if file.suffix == ".jsonl" else json.loads(text)
    assert isinstance(rows, list)
    return rows


def read(location: Path, source: str) -> dict[str, Any]:
    notes = ReadContext(redaction=NO_REDACTION)
    (trace,) = read_traces(location, source, notes)
    assert not notes.damage
    return trace


@pytest.mark.parametrize(
    ("source", "case"), [("phoenix", "data-frame-records"), ("langsmith", "bulk-export-rows")]
)
def test_parquet_and_json_rows_result_in_equal_traces(source: str, case: str, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    names = dict.fromkeys(name for row in rows_of(source, case) for name in row)
    # Parquet has no type for columns with only empty values.
    rows = [
        {name: row.get(name) for name in names if row.get(name) not in ([], {})}
        for row in rows_of(source, case)
    ]
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "traces.parquet")

    table, text = read(tmp_path, source), read(GOLDEN / source / case / "files", source)
    assert table["items"] == text["items"]
    kinds = ("type", "span_id", "timestamp", "usage", "call_id", "result", "name")
    assert [[event.get(kind) for kind in kinds] for event in table["events"]] == [
        [event.get(kind) for kind in kinds] for event in text["events"]
    ]


def test_damaged_parquet_file_is_rejected(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "traces.parquet").write_bytes(b"PAR1" + b"x" * 50 + b"PAR1")
    with pytest.raises(EvidenceError):
        list(read_traces(tmp_path, "phoenix", ReadContext(redaction=NO_REDACTION)))


def test_spans_of_one_trace_are_joined_across_files(tmp_path: Path) -> None:
    (file,) = (GOLDEN / "opentelemetry" / "collector-lines" / "files").iterdir()
    for number, line in enumerate(reversed(file.read_text().splitlines())):
        (tmp_path / f"{number}.json").write_text(line)
    apart, together = read(tmp_path, "opentelemetry"), read(file, "opentelemetry")
    assert apart["items"] == together["items"]
    assert apart["events"] == together["events"]
