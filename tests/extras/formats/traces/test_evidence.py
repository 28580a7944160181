"""Trace import: valid AI GO result logs and loss reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aigo_bridge.dtypes import TaskResultLog
from aigo_bridge.errors import UsageError
from aigo_bridge.importing.log_import import ImportOptions, ImportReport
from aigo_bridge.results.validating import validate_log
from aigo_formats.traces.evidence import import_traces
from aigo_formats.traces.sources import SOURCES

GOLDEN = Path(__file__).parents[3] / "golden" / "traces"


def imported(location: Path, source: str, out: Path, **options: Any) -> tuple[int, list[ImportReport]]:
    reports: list[ImportReport] = []
    code = import_traces([str(location)], source, out, ImportOptions(**options), reports.append)
    return code, reports


@pytest.mark.parametrize("source", SOURCES)
def test_imported_results_are_valid_and_contain_the_traces(source: str, tmp_path: Path) -> None:
    for case in (
        "secrets",
        "ids-twice",
        "two-traces" if source in ("opentelemetry", "langsmith") else "ids-twice",
    ):
        files = GOLDEN / source / case / "files"
        expected = json.loads((files.parent / "expected.json").read_text())
        code, (report,) = imported(files, source, tmp_path / case)
        assert code == 0
        assert report.output is not None
        assert validate_log(report.output) == []
        text = report.output.read_text()
        TaskResultLog.model_validate_json(text)
        trials = [sample["trials"][0] for sample in json.loads(text)["evidence"]["samples"]]
        metadata = [trial["solver"]["output"]["trace"]["metadata"] for trial in trials]
        assert [about["trace_id"] for about in metadata] == [
            trace["metadata"]["trace_id"] for trace in expected["traces"]
        ]
        assert all(trial["scores"] == [] for trial in trials)
        assert report.loss_file is not None
        loss = json.loads(report.loss_file.read_text())
        assert {name: loss[name] for name in ("kept", "changed", "dropped")} == expected["loss"]
        assert loss["redacted"] == expected["redacted"]


def test_failed_trace_is_imported_as_a_failed_sample(tmp_path: Path) -> None:
    code, (report,) = imported(GOLDEN / "langsmith/errors/files", "langsmith", tmp_path)
    assert (code, report.samples, report.failed) == (0, 1, 1)
    assert report.output is not None
    (sample,) = json.loads(report.output.read_text())["evidence"]["samples"]
    assert sample["trials"][0]["errors"][0]["error_type"] == "FailedTrace"


def test_damaged_lines_are_reported_and_the_others_are_imported(tmp_path: Path) -> None:
    code, (report,) = imported(GOLDEN / "claude_code/damaged-lines/files", "claude_code", tmp_path)
    assert (code, report.samples, len(report.damage), report.status) == (3, 1, 5, "failure")
    assert report.output is not None
    assert len(json.loads(report.output.read_text())["errors"]) == 5


def test_no_result_is_written_for_files_without_traces(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for location in (empty, tmp_path / "gone", GOLDEN / "phoenix/cut-off/files"):
        code, (report,) = imported(location, "phoenix", tmp_path / "out")
        assert (code, report.output) == (3, None)
    assert list((tmp_path / "out").iterdir()) == []


def test_wrong_source_is_reported_with_the_detected_one(tmp_path: Path) -> None:
    code, (report,) = imported(GOLDEN / "opentelemetry/chat/files/traces.json", "langsmith", tmp_path)
    assert code == 3
    assert "--from opentelemetry" in report.reason


def test_content_excluded_by_options_is_counted_as_loss(tmp_path: Path) -> None:
    files = GOLDEN / "opentelemetry/agent-with-tool/files"
    _, (none,) = imported(files, "opentelemetry", tmp_path / "none", context="none")
    _, (minimal,) = imported(files, "opentelemetry", tmp_path / "minimal", events="minimal")
    code, (limited,) = imported(files, "opentelemetry", tmp_path / "limited", events="minimal", max_loss=1)
    assert none.loss.dropped == {"input of a model call: left out by --context none": 2}
    assert minimal.loss.dropped == {"event: left out by --events minimal": 5}
    assert (code, limited.exit_code) == (1, 1)
    assert minimal.output is not None
    (sample,) = json.loads(minimal.output.read_text())["evidence"]["samples"]
    assert "events" not in sample["trials"][0]["solver"]["output"]["trace"]


def test_events_all_keeps_repeated_events(tmp_path: Path) -> None:
    files = GOLDEN / "claude_code/queued-prompt/files"
    _, (default,) = imported(files, "claude_code", tmp_path / "default")
    _, (everything,) = imported(files, "claude_code", tmp_path / "all", events="all")
    assert (default.loss.lost, everything.loss.lost) == (1, 0)


def test_traces_with_equal_ids_are_distinguished(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    original = next((GOLDEN / "claude_code/question/files").glob("*.jsonl"))
    for name in ("a.jsonl", "b.jsonl"):
        (files / name).write_bytes(original.read_bytes())
    code, (report,) = imported(files, "claude_code", tmp_path / "out")
    assert code == 0
    assert report.output is not None
    first, second = (s["sample_id"] for s in json.loads(report.output.read_text())["evidence"]["samples"])
    assert second == f"{first}#2"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"output_format": "parquet"}, "expected json"),
        ({"context": "delta"}, "expected full or none"),
        ({"provenance": True}, "not supported for traces"),
    ],
)
def test_unsupported_options_are_rejected_for_traces(
    options: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=problem):
        imported(GOLDEN / "phoenix/question/files", "phoenix", tmp_path, **options)
    with pytest.raises(UsageError, match="expected one of claude_code"):
        imported(GOLDEN / "phoenix/question/files", "arize", tmp_path)
