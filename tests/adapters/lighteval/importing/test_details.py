"""Any input gives no traceback: valid data is imported and invalid data is reported, with little time and
memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # ships none
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships none
import pytest
from tests.adapters.lighteval.importing.results import (
    DATE,
    details_path,
    doc,
    imported,
    load,
    response,
    results_json,
    results_path,
    row,
    write_details,
    write_results,
    write_run,
)

Json = dict[str, Any]
ROWS = [row(n) for n in range(3)]


def replaced(**parts: Any) -> list[Json]:
    """Return three rows with other fields in the middle one; Arrow requires the same types in all."""
    return [{**r, **{name: value[n] for name, value in parts.items()}} for n, r in enumerate(ROWS)]


def as_bytes(rows: Any, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows), sink, **options)
    return bytes(sink.getvalue())


def spoiled(data: bytes, start: float, length: int = 64) -> bytes:
    at = int(len(data) * start)
    return data[:at] + os.urandom(length) + data[at + length :]


def invalid_utf8() -> pa.Table:
    texts = pa.Array.from_buffers(
        pa.string(),
        3,
        [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0\3\0\0\0\4\0\0\0"), pa.py_buffer(b"a\xff\xfeb")],
    )
    ids = pa.array(["0", "1", "2"])
    table = pa.Table.from_pylist([{k: v for k, v in r.items() if k != "doc"} for r in ROWS])
    return table.append_column("doc", pa.StructArray.from_arrays([texts, ids], ["query", "id"]))


GOOD = as_bytes(ROWS)
ONE = pa.Table.from_pylist(ROWS)

BAD_DETAILS: dict[str, bytes] = {
    "empty file": b"",
    "text": b"hello",
    "footer cut off": GOOD[:-20],
    "first half": GOOD[: len(GOOD) // 2],
    "only the magic": b"PAR1PAR1",
    "length of footer too large": GOOD[:-8] + b"\xff\xff\xff\x7fPAR1",
    "footer spoiled": spoiled(GOOD, 0.9),
    "a csv": b"doc,metric\n1,2\n",
    "no rows and no columns": as_bytes(pa.table({})),
    "another table": as_bytes([{"a": 1}]),
    "doc is text": as_bytes([{"doc": "x", "metric": {"em": 1.0}}]),
    "before 0.11": as_bytes(
        [{"example": "q", "full_prompt": "q", "predictions": ["a"], "gold": ["a"], "metrics": {"em": 1.0}}]
    ),
}
"""Details without a readable row."""

ODD_ROWS: dict[str, Any] = {
    "no metric": [{k: v for k, v in r.items() if k != "metric"} for r in ROWS],
    "no response": [{k: v for k, v in r.items() if k != "model_response"} for r in ROWS],
    "metric is a number": replaced(metric=[1.0, 2.0, 3.0]),
    "response is text": replaced(model_response=["a", "b", "c"]),
    "a response is missing": replaced(model_response=[response("a"), None, response("c")]),
    "a metric is missing": replaced(metric=[{"em": 1.0}, None, {"em": 1.0}]),
    "text is no list": replaced(model_response=[{"text": "a", "input": "q"} for _ in ROWS]),
    "text holds numbers": replaced(model_response=[{"text": [1, 2], "input": "q"} for _ in ROWS]),
    "input is a number": replaced(model_response=[{"text": ["a"], "input": 7} for _ in ROWS]),
    "messages without roles": replaced(
        model_response=[{"text": ["a"], "input": [{"content": "q"}]} for _ in ROWS]
    ),
    "messages are lists": replaced(model_response=[{"text": ["a"], "input": [["q"]]} for _ in ROWS]),
    "choices are text": replaced(doc=[doc(n, choices="ABCD", gold_index=2) for n in range(3)]),
    "choices are nested": replaced(doc=[doc(n, choices=[["a", "b"], ["c"]]) for n in range(3)]),
    "gold out of range": replaced(doc=[doc(n, gold_index=[7, -9]) for n in range(3)]),
    "no choices": replaced(doc=[doc(n, choices=[]) for n in range(3)]),
    "no ids": [{**r, "doc": {k: v for k, v in r["doc"].items() if k != "id"}} for r in ROWS],
    "ids are numbers": replaced(doc=[doc(n, id=n) for n in range(3)]),
    "ids are words": replaced(doc=[doc(n, id=f"Ω{n}/..") for n in range(3)]),
    "ids are null": replaced(doc=[doc(n, id=None) for n in range(3)]),
    "few-shots are text": replaced(
        doc=[doc(n, fewshot_samples=["a"]) for n in range(3)],
        model_response=[{"text": ["a"], "input": None} for _ in ROWS],
    ),
    "metric values are objects": replaced(metric=[{"em": {"golds": ["a"], "preds": []}} for _ in ROWS]),
    "metric values are texts": replaced(metric=[{"em": "x"} for _ in ROWS]),
    "metrics with odd names": replaced(metric=[{"": 1.0, "a b|c@k=1": 2.0, "é" * 300: 3.0} for _ in ROWS]),
    "likelihoods of another number": replaced(
        model_response=[response(logprobs=[-1.0, -2.0, -3.0]) for _ in ROWS]
    ),
    "likelihoods that are infinite": replaced(
        model_response=[response(logprobs=[float("-inf"), float("nan")]) for _ in ROWS]
    ),
    "control characters": replaced(doc=[doc(n, query="\x00\x1b[2J\u202e\ud7ff") for n in range(3)]),
    "deep data": replaced(doc=[doc(n, specific=json.loads('{"a":' * 60 + "1" + "}" * 60)) for n in range(3)]),
    "images": replaced(
        doc=[doc(n, images=[{"bytes": b"\x89PNG\r\n\x1a\n..", "path": None}]) for n in range(3)]
    ),
}
"""Details with all rows, in forms that lighteval rarely or never writes."""

BAD_RESULTS: dict[str, bytes] = {
    "empty": b"",
    "no JSON": b'{"results": ',
    "a list": b"[]",
    "no results": b"{}",
    "results are a list": b'{"config_general": {}, "results": []}',
    "not UTF-8": b'{"results": "\xff\xfe"}',
    "deep": b'{"results": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a number without end": b'{"results": {"a": ' + b"9" * 10_000 + b"}}",
}
"""Results files without usable data."""

ODD_RESULTS: dict[str, Json] = {
    "metrics are a number": results_json() | {"results": {"demo|0": 3}},
    "metrics are texts": results_json(metrics={"em": "high", "f1": None, "x": True}),
    "no configuration": {"results": {"demo|0": {"em": 1.0}}},
    "configurations of other kinds": results_json(
        config_general=[], config_tasks="x", summary_tasks=7, versions=None
    ),
    "metrics of the configuration are odd": results_json(
        config_tasks={"demo|0": {"name": 5, "metrics": [1, {"metric_name": [1, None]}, {}], "hf_repo": {}}}
    ),
    "numbers that are not finite": results_json(metrics={"em": float("nan"), "em_stderr": float("inf")}),
    "huge numbers": results_json(metrics={"f2": 10**400, "f1": 10**30}),
    "model's name is odd": results_json(config_general={"model_name": "../../x\x1b[2J", "model_config": 3}),
    "model's name is a list": results_json(config_general={"model_name": ["a"]}),
    "a run time without sense": results_json(
        config_general={"total_evaluation_time_secondes": "NaN", "max_samples": "all"}
    ),
}


@pytest.mark.parametrize("name", BAD_DETAILS)
def test_without_details_metrics_are_imported_and_the_loss_is_reported(name: str, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    details_path(run).write_bytes(BAD_DETAILS[name])
    code, (report,) = imported(run, tmp_path / "out")
    assert code == 3
    assert report.output is not None
    log = load(report.output)
    assert log.status == "failure"
    assert log.evidence is not None
    assert log.evidence.samples is None
    assert [metric.values["em"] for metric in log.evidence.metrics or []] == [1.0]
    assert len(log.errors) == len(report.summary["unreadable"]) == 1
    if name == "before 0.11":
        assert "before 0.11" in log.errors[0].message


@pytest.mark.parametrize("name", ODD_ROWS)
def test_every_document_of_unusual_rows_is_imported(name: str, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", ODD_ROWS[name])
    code, (report,) = imported(run, tmp_path / "out")
    assert report.output is not None
    log = load(report.output)
    assert log.evidence is not None
    assert len(log.evidence.samples or []) == 3
    assert len({sample.sample_id for sample in log.evidence.samples or []}) == 3
    columns = {"no metric", "no response", "metric is a number", "response is text"}
    assert code == (3 if name in columns else 0)
    assert (log.status == "success") == (code == 0)


@pytest.mark.parametrize("name", BAD_RESULTS)
def test_without_results_the_documents_are_imported(name: str, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    results_path(run).write_bytes(BAD_RESULTS[name])
    code, (report,) = imported(run, tmp_path / "out")
    assert code == 3
    assert report.output is not None
    log = load(report.output)
    assert log.evidence is not None
    assert log.evidence.metrics is None
    assert len(log.evidence.samples or []) == 3
    assert log.specification.evaluated_entity is not None
    assert log.specification.evaluated_entity.display_name == "org/model"


@pytest.mark.parametrize("name", ODD_RESULTS)
def test_unusual_results_give_a_valid_log(name: str, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", content=ODD_RESULTS[name])
    code, (report,) = imported(run, tmp_path / "out")
    assert code == 0, report.lines
    assert report.output is not None
    log = load(report.output)
    assert log.evidence is not None
    assert len(log.evidence.samples or []) == 3
    assert not any("\x1b" in line for line in report.lines)


def test_a_large_configuration_gives_a_small_log(tmp_path: Path) -> None:
    tasks = {f"task{n}|0": {"em": 1.0} for n in range(100)}
    content = results_json() | {"results": tasks, "padding": "x" * (1 << 20)}
    write_results(results_path(tmp_path / "run"), content)
    code, reports = imported(tmp_path / "run", tmp_path / "out", bounds={"growth": 1})
    assert (code, len(reports)) == (3, 100)
    assert sum(path.stat().st_size for path in (tmp_path / "out").iterdir()) < 1 << 20
    assert all("growth" in " ".join(report.lines) for report in reports)
    assert reports[0].output is not None
    assert load(reports[0].output).specification.evaluated_entity is not None


def test_a_task_without_a_name_has_a_valid_result(tmp_path: Path) -> None:
    write_results(results_path(tmp_path / "run"), results_json("", {"": 1.0}))
    _, (report,) = imported(tmp_path / "run", tmp_path / "out")
    assert report.output is not None
    assert load(report.output).specification.display_name == "(unnamed)"


def test_mixed_files_of_different_runs_are_reported(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", content=results_json(metrics={"em": 0.25}))
    code, (report,) = imported(run, tmp_path / "out")
    assert code == 3
    assert report.output is not None
    log = load(report.output)
    assert log.status == "failure"
    assert "metric 'em' is 0.25, the mean of its 3 documents is 1" in log.errors[0].message


def test_a_corrupt_row_is_skipped_and_reported(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    write_details(details_path(run), invalid_utf8())
    code, (report,) = imported(run, tmp_path / "out")
    assert code == 3
    assert report.output is not None
    log = load(report.output)
    assert log.evidence is not None
    assert [s.sample_id for s in log.evidence.samples or []] == ["0", "2"]
    assert "row 1" in log.errors[0].message


def spoil_chunk(path: Path, group: int, leaf: str) -> None:
    """Overwrite the pages of one column of one row group."""
    found = pq.read_metadata(path).row_group(group)
    column = next(
        c for c in (found.column(at) for at in range(found.num_columns)) if c.path_in_schema.startswith(leaf)
    )
    start = column.dictionary_page_offset or column.data_page_offset
    data = bytearray(path.read_bytes())
    data[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(bytes(data))


def test_a_corrupt_column_chunk_loses_only_that_column(tmp_path: Path) -> None:
    rows = [row(n, text=f"answer {n}") for n in range(6)]
    run = write_run(tmp_path / "run", rows, row_group_size=2)
    spoil_chunk(details_path(run), 1, "model_response.text.")
    code, (report,) = imported(run, tmp_path / "out")
    assert code == 3
    assert report.output is not None
    log = load(report.output)
    assert log.evidence is not None
    samples = log.evidence.samples or []
    assert [s.sample_id for s in samples] == ["0", "1", "2", "3", "4", "5"]
    assert all(s.trials[0].scores for s in samples)
    said = [
        s.trials[0].solver.output.trace.get_last_assistant_text() if s.trials[0].solver else None  # type: ignore[union-attr]
        for s in samples
    ]
    assert said == ["answer 0", "answer 1", None, None, "answer 4", "answer 5"]
    assert "row group 1" in log.errors[0].message
    assert "model_response.text" in log.errors[0].message


def test_a_corrupt_row_group_loses_only_its_rows(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [row(n) for n in range(6)], row_group_size=2)
    path = details_path(run)
    for leaf in [path.path_in_schema for path in _columns(path) if path.path_in_schema.startswith("doc.")]:
        spoil_chunk(path, 1, leaf)
    code, (report,) = imported(run, tmp_path / "out")
    assert code == 3
    assert report.output is not None
    log = load(report.output)
    assert log.evidence is not None
    assert [s.sample_id for s in log.evidence.samples or []] == ["0", "1", "4", "5"]
    assert "2 rows cannot be read" in log.errors[0].message


def _columns(path: Path) -> list[Any]:
    group = pq.read_metadata(path).row_group(1)
    return [group.column(at) for at in range(group.num_columns)]


def repeated_text() -> pa.Table:
    """Write one megabyte of text, stored once for 100,000 documents."""
    number = 100_000
    return _table(
        number, query=pa.DictionaryArray.from_arrays(pa.array([0] * number, pa.int32()), ["x" * (1 << 20)])
    )


def repeated_numbers() -> pa.Table:
    """Write a billion equal tokens."""
    number, each = 1000, 1_000_000
    values = pa.DictionaryArray.from_arrays(pa.array([0] * number * (each // 100), pa.int8()), pa.array([7]))
    tokens = pa.ListArray.from_arrays(
        pa.array(range(0, number * (each // 100) + 1, each // 100), pa.int32()), values
    )
    return _table(number, tokens=tokens)


def _table(number: int, query: Any = None, tokens: Any = None) -> pa.Table:
    ids = pa.array([str(n) for n in range(number)])
    fields = [ids] if query is None else [ids, query]
    documents = pa.StructArray.from_arrays(fields, ["id", "query"][: len(fields)])
    metric = pa.StructArray.from_arrays([pa.array([1.0] * number)], ["em"])
    columns = {"doc": documents, "metric": metric}
    if tokens is not None:
        columns["model_response"] = pa.StructArray.from_arrays([tokens], ["input_tokens"])
    return pa.table(columns)


BOMBS: dict[str, Callable[[], pa.Table]] = {"texts": repeated_text, "numbers": repeated_numbers}
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from pathlib import Path
from aigo_bridge.importing.log_import import ImportOptions
from aigo_lighteval.importing.importing import run_import
print(run_import([sys.argv[1]], Path(sys.argv[2]), ImportOptions(), lambda report: print(*report.lines, sep="\\n")))
"""


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_that_expands_to_gigabytes_is_refused(name: str, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    write_details(details_path(run), BOMBS[name](), compression="zstd")
    assert details_path(run).stat().st_size < 4 << 20
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(run), str(tmp_path / "out")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "3"
    assert "bound" in done.stdout


@pytest.mark.parametrize(
    ("bound", "value"), [("member_bytes", 100), ("seconds", 0), ("damaged", 0), ("growth", 0)]
)
def test_the_caller_can_set_every_bound(bound: str, value: float, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    if bound == "damaged":
        write_details(details_path(run), invalid_utf8())
    limits = {bound: value} | ({"growth_from": 0.0} if bound == "growth" else {})
    code, (report,) = imported(run, tmp_path / "out", bounds=limits)
    assert code == 3
    assert any(bound in line for line in report.lines)
    assert report.output is not None
    evidence = load(report.output).evidence
    assert evidence is not None
    assert len(evidence.samples or []) == report.summary["samples"] == (1 if bound == "damaged" else 0)


def test_named_pipes_are_ignored(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    os.mkfifo(run / f"results_{DATE}.json")
    os.mkfifo(run / f"details_x_{DATE}.parquet")
    code, reports = imported(run, tmp_path / "out")
    assert (code, len(reports)) == (0, 1)


def test_an_empty_run_is_reported(tmp_path: Path) -> None:
    write_results(results_path(tmp_path / "run"), results_json() | {"results": {}})
    code, (report,) = imported(tmp_path / "run", tmp_path / "out")
    assert (code, report.output) == (3, None)
    assert "do not contain a task" in " ".join(report.lines)


def test_a_model_named_like_a_path_does_not_escape_the_folder(tmp_path: Path) -> None:
    outside = write_details(details_path(tmp_path / "secret"), [row(9)])
    content = results_json(config_general={"model_name": f"../../../{outside.parent}"})
    write_results(results_path(tmp_path / "run"), content)
    code, (report,) = imported(tmp_path / "run", tmp_path / "out")
    assert code == 3
    assert report.summary["samples"] == 0
