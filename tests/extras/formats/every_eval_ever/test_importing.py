"""Import of Every Eval Ever: round trips, records of other tools and hostile files."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.extras.formats.every_eval_ever.records import results_of
from tests.extras.formats.every_eval_ever.test_exporting import message, result, sample, trial
from tests.extras.formats.lm_eval.results import RELEASES
from tests.support.commands import Run

from aigo_bridge.access.bounds import DEFAULT_BOUNDS
from aigo_bridge.dtypes import TaskResultLog
from aigo_bridge.engine.registry import logs_at, native_files
from aigo_bridge.errors import UsageError
from aigo_bridge.importing.log_import import ImportOptions, ImportReport
from aigo_bridge.results.reading import read_log
from aigo_bridge.results.validating import validate_log
from aigo_formats.every_eval_ever.exporting import export_result
from aigo_formats.every_eval_ever.importing import EveryEvalEver

Json = dict[str, Any]


def imported(location: Path, out: Path, **options: Any) -> tuple[int, list[ImportReport]]:
    reports: list[ImportReport] = []
    code = EveryEvalEver().import_logs([str(location)], out, ImportOptions(**options), reports.append)
    for report in reports:
        assert report.output is None or validate_log(report.output) == []
    return code, reports


def load(report: ImportReport) -> TaskResultLog:
    assert report.output is not None
    return read_log(report.output).load()


def numbers(log: TaskResultLog) -> list[tuple[Any, ...]]:
    """Return the metrics and scores of a result that a record can contain."""
    assert log.evidence is not None
    metrics = [
        ("metric", metric.scorer_key, metric.metric_key, metric.metric_type, name, value)
        for metric in log.evidence.metrics or []
        for name, value in metric.values.items()
    ]
    scores = [
        ("score", str(part.sample_id), index, score.scorer_key, name, float(value))
        for part in log.evidence.samples or []
        for index, own in [(None, part.scores), *((trial.index, trial.scores) for trial in part.trials)]
        for score in own or []
        for name, value in score.values.items()
        if isinstance(value, (int, float)) and math.isfinite(value)
    ]
    return sorted(metrics + scores, key=repr)


@pytest.mark.parametrize("release", RELEASES)
def test_exported_results_are_imported_with_equal_numbers(release: str, tmp_path: Path) -> None:
    for number, path in enumerate(results_of(release, tmp_path)):
        out = tmp_path / str(number)
        written = export_result(path, out, force=False)
        code, (report,) = imported(written.path, out / "again")
        assert code == 0, report.lines
        before, after = read_log(path).load(), load(report)
        assert numbers(after) == numbers(before)
        assert after.specification.task.key == before.specification.task.key
        assert (after.execution.started_at, after.execution.ended_at) == (
            before.execution.started_at,
            before.execution.ended_at,
        )


texts = st.text(st.characters(codec="utf-8"), max_size=8)
keys = st.sampled_from(["acc", "f1", "odd,name"])
points = (
    st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.sampled_from([None, "text", 0, 1])
)
conversations = st.lists(
    st.tuples(st.sampled_from(["system", "user", "assistant"]), texts), min_size=1, max_size=4
).map(lambda turns: [message(role, text) for role, text in turns])
scored = st.dictionaries(keys, points, max_size=2).map(
    lambda values: [
        {"scorer_key": key.replace(",", "-"), "values": {key: value}} for key, value in values.items()
    ]
)


@settings(max_examples=40, deadline=None)
@given(
    trials=st.lists(
        st.lists(st.tuples(conversations, scored), min_size=1, max_size=3), min_size=1, max_size=3
    ),
    values=st.dictionaries(keys, st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=3),
)
def test_numbers_survive_an_export_and_import_round_trip(
    trials: list[list[tuple[list[Json], list[Json]]]],
    values: dict[str, float],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("there-and-back")
    samples = [
        {
            **sample([trial(items, scores, index) for index, (items, scores) in enumerate(own)]),
            "sample_id": f"s{number}",
        }
        for number, own in enumerate(trials)
    ]
    metric = {
        "values": values,
        "metric_key": "k",
        "metric_type": "mean",
        "scorer_key": "acc",
        "scorer_name": "acc",
    }
    path = result(folder / "r.tasklog.json", samples, evidence={"metrics": [metric]})
    written = export_result(path, folder / "out", force=False)
    code, (report,) = imported(written.path, folder / "again")
    assert code == 0, report.lines
    before, after = numbers(read_log(path).load()), numbers(load(report))
    # A single trial has no index.
    assert [number for number in after if number[0] == "metric"] == [n for n in before if n[0] == "metric"]
    told = sorted(((n[1], n[3], n[4], n[5]) for n in after if n[0] == "score"), key=repr)
    assert told == sorted(((n[1], n[3], n[4], n[5]) for n in before if n[0] == "score"), key=repr)


def test_conversations_survive_an_export_and_import_round_trip(tmp_path: Path) -> None:
    call = {
        "type": "function_call",
        "id": "f",
        "call_id": "c",
        "name": "add",
        "arguments": '{"a":"1"}',
        "status": "completed",
    }
    answer = {"type": "function_call_output", "id": "o", "call_id": "c", "output": "3", "status": "completed"}
    items = [
        message("system", "Use tools."),
        message("user", "1+2?"),
        call,
        answer,
        message("assistant", "3"),
    ]
    scores = [{"scorer_key": "acc", "values": {"acc": 1.0}}]
    path = result(tmp_path / "r.tasklog.json", [sample([trial(items, scores)])])
    _, (report,) = imported(export_result(path, tmp_path / "out", force=False).path, tmp_path / "again")
    evidence = load(report).evidence
    assert evidence is not None
    (part,) = evidence.samples or []
    assert part.trials[0].solver is not None
    trace = part.trials[0].solver.output.trace  # type: ignore[union-attr]
    kinds = [getattr(item, "type", "") for item in trace.items]
    assert [str(getattr(kind, "value", kind)) for kind in kinds] == [
        "message", "message", "function_call", "function_call_output", "message",
    ]  # fmt: skip
    assert (trace.get_last_user_text(), trace.get_last_assistant_text()) == ("1+2?", "3")
    assert trace.get_function_calls_by_name("add")[0].arguments == '{"a":"1"}'


def foreign(folder: Path, instances: list[Any] | bytes | None = None, **fields: Any) -> Path:
    """Write a record as other tools do, without fields of aigo-bridge."""
    entry = {
        "evaluation_result_id": "b#acc",
        "evaluation_name": "bench",
        "source_data": {"dataset_name": "bench", "source_type": "hf_dataset", "hf_repo": "org/bench"},
        "metric_config": {"metric_id": "accuracy", "lower_is_better": False},
        "score_details": {"score": 0.5, "uncertainty": {"standard_error": {"value": 0.1}}},
    }
    record = {
        "schema_version": "0.3.0",
        "evaluation_id": "bench/m/1700000000",
        "retrieved_timestamp": "1700000000",
        "source_metadata": {"source_type": "documentation"},
        "eval_library": {"name": "helm", "version": "1"},
        "model_info": {"name": "M", "id": "org/m", "additional_details": {}},
        "evaluation_results": [entry],
        **fields,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "r.json").write_text(json.dumps(record))
    if instances is not None:
        data = (
            instances
            if isinstance(instances, bytes)
            else b"".join(json.dumps(i).encode() + b"\n" for i in instances)
        )
        (folder / "r_samples.jsonl").write_bytes(data)
    return folder


def instance(number: int, score: float = 1.0, **fields: Any) -> Json:
    return {
        "schema_version": "0.3.0", "evaluation_id": "bench/m/1700000000", "model_id": "org/m", "evaluation_name": "bench",
        "evaluation_result_id": "b#acc", "sample_id": str(number), "interaction_type": "single_turn",
        "input": {"raw": f"q{number}", "reference": ["a"]}, "output": {"raw": ["a"]}, "answer_attribution": [],
        "evaluation": {"score": score, "is_correct": score == 1}, **fields,
    }  # fmt: skip


def test_record_of_another_tool_is_imported(tmp_path: Path) -> None:
    code, (report,) = imported(foreign(tmp_path / "in", [instance(0), instance(1, 0.0)]), tmp_path / "out")
    assert (code, report.samples) == (0, 2)
    log = load(report)
    assert log.evidence is not None
    (metric,) = log.evidence.metrics or []
    assert metric.values == {"accuracy": 0.5, "accuracy_stderr": 0.1}
    (first, second) = log.evidence.samples or []
    values = [score.values for part in (first, second) for score in part.trials[0].scores or []]
    assert values == [{"accuracy": 1.0}, {"accuracy": 0.0}]
    assert first.trials[0].sample is not None
    assert first.trials[0].sample.data == {"input": "q0", "reference": ["a"]}
    about = (log.specification.config or {})["every_eval_ever"]
    assert about["eval_library"] == {"name": "helm", "version": "1"}
    assert log.execution.ended_at == 1700000000


def test_record_and_instances_are_matched_within_their_folder(tmp_path: Path) -> None:
    (tmp_path / "secret_samples.jsonl").write_text(json.dumps(instance(7)) + "\n")
    companion = {"format": "jsonl", "file_path": "data/../../secret_samples.jsonl"}
    folder = foreign(tmp_path / "in", None, detailed_evaluation_results=companion)
    code, (report,) = imported(folder, tmp_path / "out")
    assert (code, report.samples) == (3, 0)
    assert report.damage[0].reason == "the file of instances is not next to the record"
    foreign(folder, [instance(0)])
    for asked in ("", "r.json", "r_samples.jsonl"):
        assert set(logs_at(str(folder / asked))) == {"every-eval-ever"}
        assert imported(folder / asked, tmp_path / "out")[1][0].samples == 1
    assert len(native_files("every-eval-ever", folder / "r.json")) == 2
    with pytest.raises(UsageError, match="no records"):
        imported(tmp_path / "out", tmp_path / "again")


def test_instances_of_another_record_are_reported(tmp_path: Path) -> None:
    companion = {"format": "jsonl", "file_path": "x", "checksum": "0" * 64, "total_rows": 3}
    folder = foreign(tmp_path / "in", [instance(0)], detailed_evaluation_results=companion)
    code, (report,) = imported(folder, tmp_path / "out")
    assert code == 3
    assert [damage.reason for damage in report.damage] == [
        "the record lists 3 instances, the file has 1",
        "the instances do not match the record: their checksum differs",
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"sample_id": "1", "evalu', "no JSON"),
        (json.dumps(instance(1)).encode()[:-1] + b', "sample_id": "2"}', "'sample_id' occurs twice"),
        (b"[" * 100_000, "no JSON"),
        (b"[1]", "found list, expected an object"),
        (
            json.dumps(instance(1, metadata={"x": None})).replace("null", "[" * 300 + "]" * 300).encode(),
            "too deeply",
        ),
        (b'{"evaluation_id": "x"}', "lacks 'sample_id'"),
        (b"\xff\xfe{\x00", "no JSON"),
        (json.dumps(instance(1, messages=["x"], output=None)).encode(), "message 0 is str"),
    ],
)
def test_invalid_instance_is_skipped_and_reported(line: bytes, expected: str, tmp_path: Path) -> None:
    data = json.dumps(instance(0)).encode() + b"\n" + line + b"\n" + json.dumps(instance(2)).encode() + b"\n"
    code, (report,) = imported(foreign(tmp_path / "in", data), tmp_path / "out")
    assert (code, report.samples) == (3, 2)
    (damage,) = report.damage
    assert expected in damage.reason


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"schema_version": "1", "evaluation_id": "a", "model_info": {}, "schema_version": "2"}', "occurs twice"),
        (b'{"schema_version": "1", "evaluation_id": "a", "model_info": {}, "evaluation_results": 5}', "found no list 'evaluation_results'"),
        (b'{"schema_version": "1", "evaluation_id": "a", "model_info": {}, "evaluation_results": [', "no JSON"),
        (
            b'{"schema_version": "1", "evaluation_id": "a", "model_info": {}, "evaluation_results": ['
            + b"[" * 400 + b"]" * 400 + b"]}",
            "levels deep",
        ),
    ],
)  # fmt: skip
def test_instances_of_an_invalid_record_are_imported(data: bytes, expected: str, tmp_path: Path) -> None:
    folder = foreign(tmp_path / "in", [instance(0)])
    (folder / "r.json").write_bytes(data)
    code, (report,) = imported(folder, tmp_path / "out")
    assert (code, report.samples) == (3, 1)
    assert expected in report.damage[0].reason


def test_secrets_and_non_finite_numbers_are_handled_within_bounds(tmp_path: Path) -> None:
    key = "sk-" + "aB3" * 10
    lines = [instance(0, float("nan"), output={"raw": [f"key {key}"]}), instance(1)]
    folder = foreign(tmp_path / "in", lines)
    code, (report,) = imported(folder, tmp_path / "out")
    log = load(report)
    assert code == 0
    assert report.output is not None
    assert key not in report.output.read_text()
    (score,) = (log.evidence.samples or [])[0].trials[0].scores or []  # type: ignore[union-attr]
    assert (score.values, (score.metadata or {})["unscored"]) == ({"accuracy": None}, True)
    code, (report,) = imported(folder, tmp_path / "out", bounds=DEFAULT_BOUNDS.changed({"string_bytes": 100}))
    assert code == 3
    assert "'string_bytes'" in str(report.damage[-1])


def test_import_command_imports_an_every_eval_ever_folder(aigo: Run, tmp_path: Path) -> None:
    folder = foreign(tmp_path / "in", [instance(0)])
    done = aigo("import", folder, "--out", tmp_path / "out", "--provenance")
    assert done.code == 0, done.err
    assert "1 sample in 1 trial" in done.out
    assert aigo("import", folder, "--out", tmp_path / "out", "--format", "parquet").code == 2


def test_records_with_corrupted_bytes_are_handled(tmp_path: Path) -> None:
    folder = foreign(tmp_path / "in", [instance(0), instance(1, 0.0)])
    rng = random.Random(3)
    codes = set()
    for name in ["r.json", "r_samples.jsonl"]:
        whole = (folder / name).read_bytes()
        for _ in range(60):
            data = bytearray(whole)
            for _ in range(rng.choice((1, 2, 20))):
                data[rng.randrange(len(data))] = rng.randrange(256)
            (folder / name).write_bytes(bytes(data))
            try:
                code, reports = imported(folder, tmp_path / "out")
            except UsageError:
                continue
            codes.add(code)
            for report in reports:
                if report.output is not None:
                    assert (load(report).status == "success") == (not report.damage)
        (folder / name).write_bytes(whole)
    assert 3 in codes
