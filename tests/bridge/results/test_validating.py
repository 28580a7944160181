"""Validation errors of result logs, and the JSON Schema."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import zstandard
from tests.bridge.results.logs import frame, sample, whole

from aigo_bridge.errors import Issue
from aigo_bridge.results.validating import schema_for_log, validate_log
from aigo_bridge.results.writing import write_log


def faults(tmp_path: Path, log: Any) -> list[Issue]:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(log))
    issues = validate_log(path)
    assert all(issue.file == str(path) for issue in issues)
    return issues


@pytest.mark.parametrize("suffix", [".json", ".json.gz", ".json.zst", ".jsonl", ".jsonl.gz", ".jsonl.zst"])
def test_valid_log_has_no_issues(tmp_path: Path, suffix: str) -> None:
    write_log(tmp_path / f"a{suffix}", [sample(1), sample(2)], finish=frame())
    assert validate_log(tmp_path / f"a{suffix}") == []


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_all_errors_in_samples_and_frame_are_reported(tmp_path: Path, suffix: str) -> None:
    bad = sample(1)
    bad["trials"][0]["index"] = "first"
    del bad["errors"]
    log = whole(samples=[sample(0), bad], metrics=[{"metric_key": "m", "values": {"a": None}}])
    log["status"] = "done"
    del log["execution"]["runtime"]
    data = json.dumps(log).encode()
    path = tmp_path / f"a.json{suffix}"
    path.write_bytes({"": data, ".gz": gzip.compress(data), ".zst": zstandard.compress(data)}[suffix])

    issues = validate_log(path)

    assert {issue.path for issue in issues} == {
        ("evidence", "samples", 1, "trials", 0, "index"),
        ("evidence", "samples", 1, "errors"),
        ("evidence", "metrics", 0, "values", "a"),
        ("status",),
        ("execution", "runtime"),
    }
    assert all(issue.severity == "error" for issue in issues)


def test_ignored_unknown_field_is_a_warning(tmp_path: Path) -> None:
    one = {**sample(1), "surprise": 1}
    log = whole(samples=[one])
    log["specification"]["task"]["definition"]["surprise"] = 2

    issues = faults(tmp_path, log)

    assert [(issue.path[-1], issue.severity, issue.message) for issue in issues] == [
        ("surprise", "warning", "found an unknown field")
    ] * 2
    assert {issue.path for issue in issues} == {
        ("evidence", "samples", 0, "surprise"),
        ("specification", "task", "definition", "surprise"),
    }


def test_an_unknown_field_inside_a_union_is_an_error(tmp_path: Path) -> None:
    one = sample(1)
    event = {"type": "custom", "name": "n", "data": {}, "surprise": 1}
    one["trials"][0]["solver"]["output"]["trace"]["events"] = [event]

    (issue,) = faults(tmp_path, whole(samples=[one]))

    assert issue.severity == "error"
    path = ("evidence", "samples", 0, "trials", 0, "solver", "output", "trace", "events", 0, "surprise")
    assert issue.path == path


def test_error_in_a_union_is_reported_for_the_matching_type_only(tmp_path: Path) -> None:
    one = sample(1)
    one["trials"][0]["solver"]["output"]["trace"]["items"][0]["role"] = "robot"

    (issue,) = faults(tmp_path, whole(samples=[one]))

    assert issue.path[-3:] == ("items", 0, "role")
    assert issue.message.startswith(
        "found 'robot': input should be 'user', 'assistant', 'system' or 'developer'"
    )
    assert issue.hint == "use one of the values listed"


def test_model_that_would_be_read_as_a_dataset_is_an_error(tmp_path: Path) -> None:
    log = whole()
    log["specification"]["evaluated_entity"]["surprise"] = 1

    (issue,) = faults(tmp_path, log)

    assert issue.severity == "error"
    assert issue.path == ("specification", "evaluated_entity", "surprise")


def test_error_in_a_legacy_sample_is_reported(tmp_path: Path) -> None:
    legacy = {"sample_id": "1", "scores": [{"scorer_key": "s", "values": {}, "x": 1}]}
    issues = faults(tmp_path, whole(samples=[legacy]))
    assert [issue.path[:3] for issue in issues] == [("evidence", "samples", 0)]


def test_truncated_log_is_reported_with_its_position(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    text = json.dumps(whole(samples=[sample(1), sample(2)]))
    path.write_text(text[:-700])

    (issue,) = validate_log(path)

    assert issue.message == f"the document is cut off at byte {len(text) - 700}" or "cut off" in issue.message
    assert issue.hint is not None


def test_missing_log_is_reported(tmp_path: Path) -> None:
    (issue,) = validate_log(tmp_path / "none.json")
    assert issue.message == "the file does not exist"


def test_every_field_error_has_a_hint(tmp_path: Path) -> None:
    log = whole()
    log["status"], log["x"] = "done", 1
    del log["errors"]
    assert all(issue.hint for issue in faults(tmp_path, log))


class TestSchema:
    def test_log_schema_is_valid_json_schema(self) -> None:
        schema = schema_for_log()
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        jsonschema.Draft202012Validator.check_schema(schema)

    def test_schema_accepts_a_valid_log_and_rejects_a_damaged_one(self) -> None:
        validator = jsonschema.Draft202012Validator(schema_for_log())
        log = whole(samples=[sample(1)])

        assert list(validator.iter_errors(log)) == []
        assert list(validator.iter_errors({**log, "status": "done"}))
        assert list(validator.iter_errors({**log, "evidence": {}}))

    def test_schema_fields_have_descriptions(self) -> None:
        schema = schema_for_log()
        assert "seconds" in schema["$defs"]["TaskExecution"]["properties"]["runtime"]["description"].lower()
        assert schema["properties"]["evidence"]["description"]
