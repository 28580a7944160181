"""Export to Every Eval Ever: valid files with the numbers of the result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.extras.formats.every_eval_ever.records import checked, results_of
from tests.extras.formats.lm_eval.results import RELEASES
from tests.support.commands import Run

from aigo_bridge.errors import EvidenceError, UsageError
from aigo_bridge.results.reading import read_log
from aigo_formats.every_eval_ever.exporting import export_result

Json = dict[str, Any]
MODEL = {
    "id": "m", "key": "m", "display_name": "M", "task": "chat_completion", "adapter_id": "inspect",
    "config": {"connection_type": "provider_connection", "provider_id": "openai", "model_key": "gpt-x"},
}  # fmt: skip


def message(role: str, text: str, kind: str = "") -> Json:
    part: Json = {"type": kind or ("output_text" if role == "assistant" else "input_text"), "text": text}
    if part["type"] == "output_text":
        part["annotations"] = []
    return {"type": "message", "id": "m", "status": "completed", "role": role, "content": [part]}


def trial(items: list[Json], scores: list[Json], index: int = 0, events: list[Json] | None = None) -> Json:
    output = {
        "trace": {"items": items, "metadata": {}, "events": events or []},
        "raw_outputs": [],
        "direct_ios": [],
    }
    sample = {"data": {"q": "What?", "target": "yes"}}
    return {
        "index": index,
        "sample_id": "s",
        "sample": sample,
        "solver": {"output": output},
        "scores": scores,
        "errors": [],
    }


def score(value: Any, key: str = "acc") -> Json:
    return {"scorer_key": key, "scorer_name": key, "values": {key: value}}


def result(path: Path, samples: list[Json], **frame: Any) -> Path:
    metric = {
        "values": {"acc": 0.5},
        "metric_key": "mean",
        "metric_type": "mean",
        "scorer_key": "acc",
        "scorer_name": "acc",
    }
    definition = {
        "type": "benchmark_task",
        "evaluated_entity_type": "model",
        "scorers": [{"key": "acc", "type": "acc", "metrics": []}],
    }
    task = {
        "id": "t", "key": "t", "display_name": "T", "description": "", "config_spec": [], "provider": "user",
        "tags": [], "definition": definition,
    }  # fmt: skip
    content = {
        "format_version": "v1",
        "app_version": "aigo-bridge 0.1.0",
        "status": "success",
        "evidence": {"metrics": [metric], "samples": samples, **frame.pop("evidence", {})},
        "specification": {
            "display_name": "T", "task": task, "config": {}, "run_config": {}, "evaluated_entity": MODEL,
            **frame.pop("specification", {}),
        },
        "execution": {"runtime": 1.0, "started_at": 5, "ended_at": 6},
        "errors": [],
        **frame,
    }  # fmt: skip
    path.write_text(json.dumps(content))
    return path


def sample(trials: list[Json], scores: list[Json] | None = None) -> Json:
    return {
        "sample_id": "s",
        "sample": None,
        "solver": None,
        "scores": scores,
        "errors": [],
        "trials": trials,
    }


def exported(tmp_path: Path, samples: list[Json], **frame: Any) -> tuple[Json, list[Json], Json]:
    """Return the aggregate file, the instances and the loss report."""
    written = export_result(
        result(tmp_path / "r.tasklog.json", samples, **frame), tmp_path / "out", force=True
    )
    ((aggregate, lines),) = checked(tmp_path / "out")
    return aggregate, lines, json.loads(written.loss_file.read_text())


@pytest.mark.parametrize("release", RELEASES)
def test_exported_results_are_valid_and_keep_their_numbers(release: str, tmp_path: Path) -> None:
    paths = results_of(release, tmp_path)
    for number, path in enumerate(paths):
        export_result(path, tmp_path / "out" / str(number), force=False)
        ((aggregate, lines),) = checked(tmp_path / "out" / str(number))
        log = read_log(path).load()
        assert log.evidence is not None
        numbers = {
            entry["score_details"]["details"]["aigo_value"]: entry["score_details"]["score"]
            for entry in aggregate["evaluation_results"]
        }
        stored = {
            k: v for m in log.evidence.metrics or [] for k, v in m.values.items() if not k.endswith("_stderr")
        }
        assert numbers == stored
        expected = [
            (str(part.sample_id), name, float(value))
            for part in log.evidence.samples or []
            for scored in [*(part.trials[0].scores or []), *(part.scores or [])]
            for name, value in scored.values.items()
            if isinstance(value, (int, float))
        ]
        told = [(line["sample_id"], line["metadata"]["score"], line["evaluation"]["score"]) for line in lines]
        assert sorted(told) == sorted(expected)


def test_single_turn_sample_is_exported_as_an_instance(tmp_path: Path) -> None:
    usage = {"num_prompt_tokens": 7, "num_completion_tokens": 2}
    event = {
        "type": "model_call_event",
        "id": "e",
        "model": "m",
        "input_context": [],
        "output_items": [],
        "usage": usage,
    }
    thought = message("assistant", "hm", "reasoning_text")
    items = [message("user", "Really?"), thought, message("assistant", "yes")]
    aggregate, (line,), loss = exported(tmp_path, [sample([trial(items, [score(1.0)], events=[event])])])
    assert aggregate["model_info"]["id"] == "openai/gpt-x"
    assert aggregate["model_info"]["additional_details"]["deployment_type"] == "externally_managed"
    assert (line["interaction_type"], line["input"]["raw"], line["input"]["reference"]) == (
        "single_turn",
        "Really?",
        ["yes"],
    )
    assert line["output"] == {"raw": ["yes"], "reasoning_trace": ["hm"]}
    assert line["evaluation"] == {"score": 1.0, "is_correct": True}
    assert line["token_usage"] == {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9}
    assert line["evaluation_result_id"] == aggregate["evaluation_results"][0]["evaluation_result_id"]
    assert loss["kept"] == {"metric": 1, "sample": 1, "score": 1}
    assert list(loss["dropped"]) == ["definition of the task"]


def test_tool_calls_and_turns_are_exported(tmp_path: Path) -> None:
    call = {
        "type": "function_call",
        "id": "f",
        "call_id": "c",
        "name": "add",
        "arguments": '{"a": 1, "b": [2]}',
    }
    answer = {"type": "function_call_output", "id": "o", "call_id": "c", "output": "3"}
    agent = [
        message("system", "Use tools."),
        message("user", "1+2?"),
        call,
        answer,
        message("assistant", "3"),
    ]
    talk = [message("user", "a"), message("assistant", "b"), message("user", "c"), message("assistant", "d")]
    samples = [sample([trial(agent, [score(True)])]), sample([trial(talk, [score(0.25)])])]
    _, (first, second), loss = exported(tmp_path, samples)
    assert first["interaction_type"] == "agentic"
    assert [turn["role"] for turn in first["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert first["messages"][2]["tool_calls"] == [
        {"id": "c", "name": "add", "arguments": {"a": "1", "b": "[2]"}}
    ]
    assert first["messages"][3]["tool_call_id"] == ["c"]
    assert first["evaluation"] == {"score": 1.0, "is_correct": True, "num_turns": 2, "tool_calls_count": 1}
    assert (second["interaction_type"], second["evaluation"]["is_correct"]) == ("multi_turn", False)
    assert loss["changed"]["score between correct and wrong: is_correct is false"] == 1


def test_unscored_samples_are_not_exported_as_zero(tmp_path: Path) -> None:
    failed = trial([message("user", "?")], [])
    failed["errors"] = [{"error_type": "TimeoutError", "message": "too slow"}]
    odd = trial([message("user", "?"), message("assistant", "!")], [score(None), score("A", "grade")])
    aggregate, lines, loss = exported(tmp_path, [sample([failed]), sample([odd])])
    assert lines == []
    assert "detailed_evaluation_results" not in aggregate
    assert loss["dropped"]["sample without a numeric score: an instance needs one"] == 2
    assert loss["dropped"]["score that is not a finite number: an instance needs one"] == 2


def test_exported_trials_are_distinguished_by_index(tmp_path: Path) -> None:
    items = [message("user", "?"), message("assistant", "!")]
    trials = [trial(items, [score(float(number))], number) for number in range(2)]
    _, lines, _ = exported(tmp_path, [sample(trials, [score(0.5)])])
    assert [(line["metadata"]["trial"], line["evaluation"]["score"]) for line in lines] == [
        ("0", 0),
        ("1", 1),
        ("all", 0.5),
    ]
    assert lines[2]["output"]["raw"] == ["!", "!"]


def test_the_direction_of_a_metric_is_exported_or_marked_as_assumed(tmp_path: Path) -> None:
    metric = {"metric_key": "mean", "scorer_key": "perplexity", "values": {"perplexity": 3.0}}
    aggregate, _, loss = exported(tmp_path, [], evidence={"metrics": [metric]})
    config = aggregate["evaluation_results"][0]["metric_config"]
    assert (config["lower_is_better"], config["additional_details"]) == (
        True,
        {"lower_is_better": "from the metric name"},
    )
    assert sum(loss["changed"].values()) == 1


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ({"specification": {"evaluated_entity": None}}, "does not evaluate a model"),
        ({"evidence": {"metrics": []}}, "does not contain a metric"),
        ({"evidence": {"runs": [{"index": 0, "metrics": [], "samples": []}]}}, "several runs"),
    ],
)
def test_unsupported_results_are_not_exported(frame: Json, expected: str, tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match=expected):
        exported(tmp_path, [], **frame)
    assert not (tmp_path / "out").exists()


def test_exported_files_stay_in_the_output_folder(tmp_path: Path) -> None:
    config = {
        "connection_type": "custom_connection",
        "adapter_id": "x",
        "url": "x://y",
        "model_key": "../../CON/..\\data",
    }
    entity = {**MODEL, "config": config}
    (tmp_path / "deep").mkdir()
    exported(tmp_path / "deep", [], specification={"evaluated_entity": entity})
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]


def test_export_command_writes_files_and_reports_losses(aigo: Run, tmp_path: Path) -> None:
    path = result(tmp_path / "r.tasklog.json", [sample([trial([message("user", "?")], [score(0.5)])])])
    done = aigo("export", path, "--to", "every-eval-ever", "--out", tmp_path / "out")
    assert done.code == 0, done.err
    assert "changed: 1 x score between correct and wrong" in done.out
    before = {file: file.read_bytes() for file in (tmp_path / "out").rglob("*.json*")}
    done = aigo("export", path, "--to", "every-eval-ever", "--out", tmp_path / "out")
    assert (done.code, "already exists" in done.err) == (2, True)
    done = aigo("export", path, "--to", "every-eval-ever", "--out", tmp_path / "out", "--force", "--json")
    assert json.loads(done.out)["file"].endswith(".json")
    assert before == {file: file.read_bytes() for file in (tmp_path / "out").rglob("*.json*")}
    with pytest.raises(UsageError):
        export_result(path, tmp_path / "out", force=False)


def test_inspect_grades_are_exported_as_numbers(tmp_path: Path) -> None:
    items = [message("user", "?"), message("assistant", "it is 7")]
    graded = [{**score(grade), "metadata": {"answer": "7"}} for grade in ("C", "P", "I", "?")]
    samples = [sample([trial(items, [one])]) for one in graded]
    _, lines, loss = exported(tmp_path, samples, specification={"config": {"inspect": {}}})
    assert [line["evaluation"]["score"] for line in lines] == [1.0, 0.5, 0.0]
    assert lines[0]["answer_attribution"][0]["extracted_value"] == "7"
    assert loss["dropped"]["score that is not a finite number: an instance needs one"] == 1
    (tmp_path / "other").mkdir()
    _, lines, _ = exported(tmp_path / "other", samples)
    assert lines == []
