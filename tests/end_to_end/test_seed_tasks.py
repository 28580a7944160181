"""The three tasks of the seed page, run offline: expected metrics are counted by hand from the files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import TASKS, Run, called

from aigo_bridge.dtypes import TaskResultLog

Load = Callable[[Path], dict[str, Any]]

JUDGE = "openai$gpt-4-1-nano"


def scripted(path: Path) -> str:
    return f"scripted/{path}"


def trials(result: dict[str, Any]) -> list[dict[str, Any]]:
    return [sample["trials"][0] for sample in result["evidence"]["samples"]]


def texts(items: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(item["role"], "".join(part["text"] for part in item["content"])) for item in items]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Output folder of the judged task."""
    out, folder = tmp_path_factory.mktemp("trivia") / "out", TASKS / "hp-trivia"
    done = called(
        "run", folder, "--model", scripted(folder / "answers.jsonl"),
        "--model-map", f"{JUDGE}={scripted(folder / 'judge.jsonl')}", "--out", out,
    )  # fmt: skip
    assert done.code == 0, done.err
    return out


@pytest.fixture
def trivia(out: Path, result_of: Load) -> dict[str, Any]:
    return result_of(out / "hp-trivia.tasklog.json")


def test_generic_input_scores_exact_answers(aigo: Run, tasks: Path, tmp_path: Path, result_of: Load) -> None:
    """22 questions, 4 answers with a different word or full stop: 18 of 22."""
    folder = tasks / "singleturn-generic-input"
    done = aigo("run", folder, "--model", scripted(folder / "answers.jsonl"), "--out", tmp_path / "out")

    assert done.code == 0, done.err
    assert "81.82 %" in done.out
    assert "22 of 22 samples scored" in done.out
    result = result_of(tmp_path / "out" / "singleturn-generic-input.tasklog.json")
    assert result["status"] == "success"
    assert result["evidence"]["metrics"] == [
        {
            "metric_key": "mean",
            "metric_type": "mean",
            "scorer_key": "string_equals",
            "scorer_purpose": "score",
            "values": {"accuracy": 18 / 22},
        }
    ]
    wrong = [
        trial["sample"]["data"]["question"]
        for trial in trials(result)
        if trial["scores"][0]["values"]["is_correct"] == 0.0
    ]
    assert wrong == [
        "How many sides does a hexagon have?",
        "Which gas do plants take in?",
        "Which river flows through Cairo?",
        "Which bird is a symbol of peace?",
    ]


def test_trace_contains_the_messages_that_were_sent(
    aigo: Run, tasks: Path, tmp_path: Path, result_of: Load
) -> None:
    """The items are the conversation; the model call event has the same context and output."""
    folder = tasks / "singleturn-generic-input"
    aigo("run", folder, "--model", scripted(folder / "answers.jsonl"), "--out", tmp_path / "out", "-n", 3)

    result = result_of(tmp_path / "out" / "singleturn-generic-input.tasklog.json")
    first = trials(result)[0]
    trace = first["solver"]["output"]["trace"]
    said = [
        ("system", "You are a helpful assistant. Answer with no punctuation."),
        ("user", "What is the capital of Norway?"),
        ("assistant", "Oslo"),
    ]
    assert texts(trace["items"]) == said
    (call,) = [event for event in trace["events"] if event["type"] == "model_call_event"]
    assert texts([*call["input_context"], *call["output_items"]]) == said
    # The scripted model counts words: 9 of the system message and 6 of the question, 1 of the answer.
    assert call["usage"] == {"num_prompt_tokens": 15, "num_completion_tokens": 1}
    assert first["solver"]["output"]["raw_outputs"][0]["choices"][0]["message"]["content"] == "Oslo"
    assert first["scores"][0]["metadata"] == {"answer_gt": "Oslo", "answer_pred": "Oslo"}
    assert len(result["evidence"]["samples"]) == 3
    assert result["specification"]["run_config"] == {
        "num_samples": 3,
        "subsampling": "head",
        "cache_policy": "update",
    }


def test_trivia_is_judged(trivia: dict[str, Any]) -> None:
    """21 questions, 4 judged incorrect: 17 of 21."""
    values = [trial["scores"][0]["values"]["is_correct"] for trial in trials(trivia)]

    assert [number for number, value in enumerate(values) if value == 0.0] == [7, 8, 15, 18]
    assert trivia["evidence"]["metrics"][0]["values"] == {"accuracy": 17 / 21}
    assert trivia["evidence"]["failures"] == {"num_errors": 0, "num_total": 21}


def test_judge_calls_and_reasons_are_kept(trivia: dict[str, Any], tasks: Path) -> None:
    """The score metadata has the verdict, reason and call."""
    patronus = trials(trivia)[7]["scores"][0]["metadata"]

    assert patronus["prediction"] == "incorrect"
    assert patronus["reasoning"] == "The candidate does not say An otter."
    assert patronus["confidence"] == 0.95
    assert patronus["model_key"] == JUDGE
    (call,) = patronus["judge_calls"]
    assert call["model"] == scripted(tasks / "hp-trivia" / "judge.jsonl")
    assert call["messages"][1] == {
        "role": "user",
        "content": "Ground Truth Answer: An otter\nCandidate Answer: A stag",
    }
    assert "Respond only with 'correct' or 'incorrect'" in call["messages"][0]["content"]
    assert json.loads(call["reply"])["prediction"] == "incorrect"


def test_judge_calls_are_not_part_of_the_conversation(trivia: dict[str, Any]) -> None:
    """The judge call is an event of the scorer; the items contain only the evaluated model's conversation."""
    trace = trials(trivia)[0]["solver"]["output"]["trace"]

    assert [role for role, _ in texts(trace["items"])] == ["system", "user", "assistant"]
    models = {event["model"] for event in trace["events"] if event["type"] == "model_call_event"}
    assert len(models) == 2


def test_uniqueness_sees_all_samples(aigo: Run, tasks: Path, tmp_path: Path, result_of: Load) -> None:
    """20 contacts; two addresses occur twice, so 16 are unique."""
    contacts = tasks / "uniqueness-task" / "contacts.csv"
    done = aigo(
        "run", "aigo_tasks/uniqueness-task", "--dataset", f"contacts={contacts}", "--config", "field=email",
        "--out", tmp_path / "out",
    )  # fmt: skip

    assert done.code == 0, done.err
    result = result_of(tmp_path / "out" / "uniqueness-task.tasklog.json")
    assert result["evidence"]["metrics"][0]["values"] == {"Uniqueness Rate": 0.8}
    repeated = [
        trial["sample"]["data"]["email"]
        for trial in trials(result)
        if not trial["scores"][0]["values"]["is_unique"]
    ]
    assert sorted(repeated) == ["ada@example.org"] * 2 + ["chiara@example.org"] * 2
    assert result["specification"]["evaluated_entity"]["key"] == "contacts"
    assert result["specification"]["config"] == {"field": "email"}
    assert (
        "<< config.field >>"
        in result["specification"]["task"]["definition"]["scorers"][0]["compute_scores_snippet"]
    )


def test_config_changes_the_counts(aigo: Run, tasks: Path, tmp_path: Path) -> None:
    """By city: 13 distinct cities, of which Bern, Oslo, Napoli, Zagreb and Lyon occur twice: 10 of 20."""
    contacts = tasks / "uniqueness-task" / "contacts.csv"
    done = aigo(
        "run", "aigo_tasks/uniqueness-task", "--dataset", f"contacts={contacts}", "--config", "field=city", "--json",
    )  # fmt: skip

    assert [(row["name"], row["value"]) for row in done.json["metrics"]] == [("Uniqueness Rate", 0.5)]


def test_result_is_a_task_result_log(out: Path) -> None:
    """The file can be loaded as AI GO's type and describes the run completely."""
    log = TaskResultLog.model_validate_json((out / "hp-trivia.tasklog.json").read_text())

    assert log.format_version == "v1"
    assert log.specification.task.key == "hp-trivia"
    assert log.execution.ended_at >= log.execution.started_at > 1_700_000_000
    assert log.execution.model_usage is not None
    assert log.execution.model_usage.num_samples == 21
    assert log.errors == []


def test_folder_contains_only_log_evidence_and_provenance(out: Path) -> None:
    """No temporary or incomplete files."""
    names = sorted(path.name for path in out.iterdir())

    assert names[0].endswith(".eval")
    assert names[1:] == ["hp-trivia.provenance.json", "hp-trivia.tasklog.json"]


def test_evidence_is_rebuilt_from_the_log_alone(out: Path, tmp_path: Path) -> None:
    """Reading the native log writes the evidence of `run` byte for byte."""
    from aigo_bridge.engine.registry import load_engine
    from aigo_bridge.evaluation.writing import write_result

    (log,) = out.glob("*.eval")
    again = tmp_path / "again.tasklog.json"
    write_result(load_engine("inspect").read(log), again, engine="inspect")

    assert again.read_bytes() == (out / "hp-trivia.tasklog.json").read_bytes()
