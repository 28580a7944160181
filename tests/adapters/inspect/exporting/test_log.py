"""Results exported as Inspect logs: Inspect reads them, and importing them gives the original results."""

import gzip
import json
import math
import tempfile
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st
from inspect_ai import Epochs, Task
from inspect_ai.dataset import Sample
from inspect_ai.event import ModelEvent, ToolEvent
from inspect_ai.log import (
    EvalLog,
    edit_score,
    list_eval_logs,
    read_eval_log,
    read_eval_log_sample_summaries,
    read_eval_log_samples,
    write_eval_log,
)
from inspect_ai.scorer import Score, ScoreEdit, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState
from tests.support.inspect_logs import scripted as scripted_logs

from aigo_bridge.dtypes import Message, SampleEvidence, TaskResultLog, Trace
from aigo_bridge.results.reading import read_log
from aigo_inspect.exporting.log import export_log
from aigo_inspect.importing.api import import_log, iter_samples
from aigo_inspect.importing.importing import ImportOptions, import_file


def exported(log: Path, tmp_path: Path, **settings: object) -> tuple[Path, Path]:
    result = import_file(log, tmp_path / "first", ImportOptions(**settings))  # type: ignore[arg-type]
    assert result.output is not None
    return result.output, export_log(result.output, tmp_path / "logs")


@pytest.mark.parametrize("name", scripted_logs.TASKS)
def test_an_imported_exported_log_equals_the_original_result(
    logs: dict[str, Path], tmp_path: Path, name: str
) -> None:
    result, log = exported(logs[name], tmp_path)
    again = import_file(log, tmp_path / "again")
    assert again.output is not None
    assert again.exit_code == 0
    first, second = json.loads(result.read_bytes()), json.loads(again.output.read_bytes())
    assert (
        TaskResultLog.model_validate(first).model_dump() == TaskResultLog.model_validate(second).model_dump()
    )
    assert import_log(log).model_dump() == import_log(logs[name]).model_dump()
    assert [s.sample_id for s in iter_samples(log)] == [s.sample_id for s in iter_samples(logs[name])]


@pytest.mark.parametrize("name", scripted_logs.TASKS)
def test_inspect_reads_an_exported_log(logs: dict[str, Path], tmp_path: Path, name: str) -> None:
    _, path = exported(logs[name], tmp_path)
    (info,) = list_eval_logs(str(path.parent))
    assert info.name.endswith(path.name)
    log = read_eval_log(str(path))
    native = read_eval_log(str(logs[name]))
    assert log.status == "success"
    assert log.samples is not None
    assert native.samples is not None
    by_key = {(sample.id, sample.epoch): sample for sample in native.samples}
    assert {(sample.id, sample.epoch) for sample in log.samples} == by_key.keys()
    for sample in log.samples:
        other = by_key[sample.id, sample.epoch]
        for kind in (ModelEvent, ToolEvent):
            assert [e.uuid for e in sample.events if isinstance(e, kind)] != [] or not [
                e for e in other.events if isinstance(e, kind)
            ]
        assert set(sample.scores or {}) == set(other.scores or {})
        assert (sample.error is None) == (other.error is None)
    assert len(list(read_eval_log_samples(str(path)))) == len(log.samples)
    expected = {name for score in (native.results.scores if native.results else []) for name in score.metrics}
    assert {n for score in (log.results.scores if log.results else []) for n in score.metrics} >= (
        expected if name != "scores" else set()
    )


def test_a_log_edited_in_inspect_is_imported_with_its_edits(logs: dict[str, Path], tmp_path: Path) -> None:
    _, path = exported(logs["plain"], tmp_path)
    log = read_eval_log(str(path))
    assert log.samples
    edit_score(log, log.samples[0].id, "includes", ScoreEdit(value="edited"))
    write_eval_log(log, str(path))
    (sample,) = iter_samples(path)
    assert [score.values for score in sample.trials[0].scores or []] == [{"includes": "edited"}]


def test_shortened_contexts_are_restored_in_the_log(logs: dict[str, Path], tmp_path: Path) -> None:
    _, path = exported(logs["agents"], tmp_path, context="delta")
    log = read_eval_log(str(path))
    assert log.samples is not None
    calls = [event for event in log.samples[0].events if isinstance(event, ModelEvent)]
    assert max(len(call.input) for call in calls) > 8


def test_a_trace_from_another_source_is_exported(logs: dict[str, Path], tmp_path: Path) -> None:
    result = import_log(logs["plain"])
    assert result.evidence is not None
    parts: list[tuple[str, str, str, dict[str, list[str]]]] = [
        ("developer", "input_text", "be brief", {}),
        ("user", "input_text", "2+2?", {}),
        ("assistant", "output_text", "4", {"annotations": []}),
    ]
    said = [
        {
            "type": "message",
            "id": "",
            "status": "completed",
            "role": role,
            "content": [{"type": part, "text": text, **more}],
        }
        for role, part, text, more in parts
    ]
    trace = Trace.from_items([Message.model_validate(item) for item in said])
    solver = {"output": {"trace": trace.model_dump(mode="json"), "raw_outputs": []}}
    result.evidence.samples = [
        SampleEvidence.model_validate(
            {
                "sample_id": "x/y",
                "sample": None,
                "solver": None,
                "scores": None,
                "errors": [],
                "trials": [
                    {
                        "index": 0,
                        "sample_id": "x/y",
                        "sample": {"data": {"q": "2+2", "t": [1]}},
                        "solver": solver,
                        "scores": [{"scorer_key": "s", "values": {"a": 1.0, "b": [1]}}],
                        "errors": [],
                    }
                ],
            }
        )
    ]
    file = tmp_path / "own.tasklog.json"
    file.write_text(result.model_dump_json())
    log = read_eval_log(str(export_log(file, tmp_path / "x.eval")))
    assert log.samples is not None
    (sample,) = log.samples
    assert [message.role for message in sample.messages] == ["system", "user", "assistant"]
    assert sample.input == "2+2?"
    assert sample.output.completion == "4"
    assert sample.metadata == {"q": "2+2", "t": [1]}
    assert [event.event for event in sample.events] == ["model"]
    assert import_log(tmp_path / "x.eval").model_dump() == result.model_dump()


def test_results_of_one_task_with_equal_start_times_get_distinct_names(
    logs: dict[str, Path], tmp_path: Path
) -> None:
    """The name consists of the time in seconds, the task and the content."""
    first, log = exported(logs["plain"], tmp_path)
    other = json.loads(first.read_bytes())
    other["evidence"]["samples"] = other["evidence"]["samples"][:1]
    second = tmp_path / "second.tasklog.json"
    second.write_text(json.dumps(other))
    assert export_log(first, log.parent) == log
    assert export_log(second, log.parent) != log
    assert len(list(log.parent.glob("*.eval"))) == 2


TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)


def _message(role: str, text: str) -> dict[str, Any]:
    answer = role == "assistant"
    part = (
        {"type": "output_text", "text": text, "annotations": []}
        if answer
        else {"type": "input_text", "text": text}
    )
    return {"type": "message", "id": "m", "status": "completed", "role": role, "content": [part]}


ITEMS = st.lists(
    st.builds(_message, st.sampled_from(["user", "assistant", "system", "developer"]), TEXT)
    | st.builds(lambda n, a: {"type": "function_call", "id": "f", "call_id": n, "name": n, "arguments": a, "status": "completed"}, TEXT, TEXT)
    | st.builds(lambda n, o: {"type": "function_call_output", "id": "o", "call_id": n, "output": o, "status": "completed"}, TEXT, TEXT)
    | st.builds(lambda content: {"type": "custom_task_input_message", "content": content}, PLAIN),
    max_size=6,
)  # fmt: skip
EVENTS = st.lists(
    st.builds(lambda name, data: {"type": "custom", "id": "e", "name": name, "data": {"x": data}}, TEXT, PLAIN)
    | st.builds(lambda items, said: {"type": "model_call_event", "id": "e", "model": "m", "input_context": items, "output_items": said}, ITEMS, ITEMS)
    | st.builds(lambda text: {"type": "error", "id": "e", "message": text}, TEXT)
    | st.builds(lambda text: {"type": "function_call_event", "id": "e", "call_id": text, "function": text, "arguments": text, "result": text, "status": "completed"}, TEXT),
    max_size=4,
)  # fmt: skip
SCORES = st.none() | st.lists(
    st.builds(
        lambda key, values: {"scorer_key": key, "values": values},
        st.sampled_from(["a", "b"]),
        st.dictionaries(TEXT, st.none() | st.booleans() | st.integers(-9, 9) | TEXT, max_size=3),
    ),
    max_size=2,
    unique_by=lambda score: score["scorer_key"],
)
ERRORS = st.lists(
    st.builds(lambda text: {"error_type": "E", "message": text, "stage": "solver"}, TEXT), max_size=1
)
TRIALS = st.lists(st.tuples(PLAIN, ITEMS, st.none() | EVENTS, SCORES, ERRORS), min_size=1, max_size=2)


def _sample(sample_id: str | int, trials: list[Any]) -> dict[str, Any]:
    found = []
    for index, (data, items, events, scores, errors) in enumerate(trials):
        trace = {"items": items} if events is None else {"items": items, "events": events}
        solver = {"output": {"trace": trace, "raw_outputs": []}}
        found.append({"index": index, "sample_id": sample_id, "sample": {"data": {"row": data}}, "solver": solver, "scores": scores, "errors": errors})  # fmt: skip
    return {
        "sample_id": sample_id,
        "sample": None,
        "solver": None,
        "scores": None,
        "errors": [],
        "trials": found,
    }


@settings(max_examples=40, deadline=None)
@example(
    trials={"\0": [(None, [], None, None, [])] * 2, "\0\0": [(1, [], None, None, [])]}, suffix=".tasklog.json"
)
@example(trials={"x" * 70_000: [(None, [], None, None, [])]}, suffix=".tasklog.json")
@given(
    trials=st.dictionaries(st.integers(-3, 99) | TEXT.filter(lambda text: text.strip()), TRIALS, max_size=3),
    suffix=st.sampled_from([".tasklog.json", ".tasklog.jsonl", ".tasklog.json.gz", ".tasklog.json.zst"]),
)
def test_any_result_is_unchanged_after_export_and_import(
    logs: dict[str, Path], trials: dict[str | int, Any], suffix: str
) -> None:
    frame = import_log(logs["plain"])
    assert frame.evidence is not None
    frame.evidence.samples = []
    plain = frame.model_dump(mode="json")
    # Ids must be unique as text, as in Inspect.
    samples = [_sample(name, of) for name, of in {str(key): (key, of) for key, of in trials.items()}.values()]
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / f"result{suffix}"
        if suffix.endswith("jsonl"):
            text = "".join(json.dumps(value) + "\n" for value in [*samples, plain])
        else:
            plain["evidence"]["samples"] = samples
            text = json.dumps(plain)
        data = text.encode()
        if suffix.endswith("gz"):
            data = gzip.compress(data)
        elif suffix.endswith("zst"):
            data = zstandard.compress(data)
        result.write_bytes(data)
        expected = read_log(result).load()

        path = export_log(result, Path(folder) / "logs")
        assert import_log(path).model_dump() == expected.model_dump()

        log = read_eval_log(str(path))
        assert log.status == "success"
        count = sum(len(of) for _, of in {str(key): (key, of) for key, of in trials.items()}.values())
        assert len(log.samples or []) == len(read_eval_log_sample_summaries(str(path))) == count
        assert read_eval_log(str(path), header_only=True).results is not None


NAN, INF = math.nan, math.inf
VALUES: tuple[Any, ...] = (
    1,
    0.5,
    True,
    "C",
    [1, 2, 3],
    [1.5, "x"],
    NAN,
    INF,
    -INF,
    [1.0, NAN],
    {"a": 1, "b": NAN},
    "",
)


@scorer(metrics=[mean()])
def any_value() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=VALUES[int(state.sample_id) - 1], answer="a", explanation="e", metadata={"k": [1]})

    return score


@scorer(metrics={"a": [mean()], "zz b": [mean(), stderr()]})
def by_name() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value={"a": state.epoch, "zz b": 2.5})

    return score


def written_back(tmp_path: Path, task: Task) -> tuple[EvalLog, EvalLog]:
    """Return a log of Inspect, and the same log after import and export."""
    log = scripted_logs.run_scenario((lambda: task, scripted_logs.counting_script, {}), tmp_path)
    _, path = exported(Path(log.location), tmp_path)
    return read_eval_log(log.location), read_eval_log(str(path))


def plain(values: Any) -> str:
    # NaN is not equal to itself, but its text is.
    return json.dumps([value.model_dump(mode="json") for value in values or []])


def test_imported_scores_are_exported_with_their_original_values(tmp_path: Path) -> None:
    samples = [Sample(input="q", id=number + 1) for number in range(len(VALUES))]
    native, again = written_back(tmp_path, Task(name="values", dataset=samples, scorer=any_value()))
    by_id = {sample.id: sample for sample in again.samples or []}
    for sample in native.samples or []:
        assert plain((sample.scores or {}).values()) == plain((by_id[sample.id].scores or {}).values())


def test_every_reducer_keeps_its_metrics_and_scores(tmp_path: Path) -> None:
    epochs = Epochs(2, ["mean", "max", "at_least_2"])
    samples = [Sample(input="q", id="x"), Sample(input="q", id=2)]
    native, again = written_back(
        tmp_path, Task(name="reduced", dataset=samples, scorer=by_name(), epochs=epochs)
    )
    assert native.results is not None
    assert again.results is not None
    assert len(native.results.scores) == 6
    assert plain(again.results.scores) == plain(native.results.scores)
    assert sorted(map(str, again.reductions or [])) == sorted(map(str, native.reductions or []))


def test_changed_metrics_in_the_evidence_are_exported(tmp_path: Path, logs: dict[str, Path]) -> None:
    result, _ = exported(logs["plain"], tmp_path)
    document = json.loads(result.read_bytes())
    metric = document["evidence"]["metrics"][0]
    document["evidence"]["metrics"] = [
        {**metric, "metric_key": key, "values": {"accuracy": value}} for key, value in (("max_accuracy", 0.25), ("m", 0.5), ("m", 0.75))
    ]  # fmt: skip
    result.write_text(json.dumps(document))
    again = read_eval_log(str(export_log(result, tmp_path / "changed")))
    assert again.results is not None
    (score,) = again.results.scores
    assert {name: metric.value for name, metric in score.metrics.items()} == {
        "accuracy": 0.25,
        "m": 0.5,
        "m-2": 0.75,
    }
