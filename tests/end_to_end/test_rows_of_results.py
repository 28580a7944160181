"""Rows from earlier results and Inspect logs; ambiguous ids; options without effect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.commands import Run

TASK = """
key: quiz
display_name: Quiz
description: ""
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.n }}"}]}
  scorers:
    - {type: string_equals, ground_truth: "{{ sample.odd }}", metrics: [{type: mean, field: is_correct, name: Accuracy}]}
"""

TRACES = """
key: traces
display_name: Traces
description: ""
definition:
  dataset: DATASET
  solver: {type: pass_through_solver, trace_column: trace}
  scorers:
    - {type: string_equals, ground_truth: "TRUTH", metrics: [{type: mean, field: is_correct, name: Accuracy}]}
"""


@pytest.fixture
def ran(tmp_path: Path, aigo: Run) -> Path:
    """Folder with a task, its model, and a run in `out` with two of four right answers."""
    rows = [{"n": str(n), "odd": "yes" if n % 2 else "no"} for n in range(4)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "yes.jsonl").write_text('{"default": true, "reply": "yes"}\n')
    (tmp_path / "task.yaml").write_text(TASK)
    assert aigo("run", "task.yaml", "--model", "scripted/yes.jsonl", "--num-trials", 2).code == 0
    return tmp_path


def test_trials_of_an_earlier_result_are_used_as_rows(ran: Path, aigo: Run) -> None:
    text = TRACES.replace("DATASET", "{source: task_result, key: quiz}").replace("TRUTH", "{{ sample.odd }}")
    (ran / "traces.yaml").write_text(text)

    done = aigo("run", "traces.yaml", "--dataset", "quiz=out/quiz.tasklog.json", "--out", "o", "--json")

    assert done.code == 0, done.err
    assert done.json["samples"]["scored"] == 8
    assert done.json["metrics"][0]["value"] == 0.5
    missing = aigo("run", "traces.yaml", "--out", "o")
    assert missing.code == 2
    assert "task result 'quiz' was not found" in missing.err


def test_samples_of_inspect_logs_are_used_as_rows(ran: Path, aigo: Run) -> None:
    text = TRACES.replace("DATASET", "{key: logs}").replace("TRUTH", "{{ sample.metadata.odd }}")
    (ran / "traces.yaml").write_text(text)
    (ran / "logs.yaml").write_text(
        "key: logs\ndisplay_name: Logs\nsource: {type: inspect_ai, path: out, limit: 6}\n"
    )

    done = aigo("run", "traces.yaml", "--out", "o", "--json")

    assert done.code == 0, done.err
    assert done.json["samples"]["scored"] == 6
    (ran / "logs.yaml").write_text(
        "key: logs\ndisplay_name: Logs\nsource: {type: inspect_ai, path: ../elsewhere}\n"
    )
    assert "the path is outside" in aigo("run", "traces.yaml", "--out", "o").err


def test_ambiguous_ids_are_reported(ran: Path, aigo: Run) -> None:
    (ran / "rows.jsonl").write_text('{"n": "1", "odd": "yes", "sample_id": "a"}\n' * 2)

    done = aigo("run", "task.yaml", "--model", "scripted/yes.jsonl", "--out", "o")

    assert done.code == 0
    assert "1 row has the same 'sample_id' as an earlier row" in done.err


def test_resume_without_an_earlier_run_is_reported(ran: Path, aigo: Run) -> None:
    done = aigo("run", "task.yaml", "--model", "scripted/yes.jsonl", "--out", "elsewhere", "--resume")

    assert done.code == 0
    assert "nothing to resume in elsewhere for this task and model" in done.err


def test_an_unneeded_model_is_reported(ran: Path, aigo: Run) -> None:
    (ran / "system.yaml").write_text(
        "key: s\ndisplay_name: S\ndescription: ''\ndefinition:\n  type: system_task\n  compute_evidence_snippet: |\n"
        "    def compute_evidence():\n        return {'metrics': {'m': {'value': 1}}}\n"
    )

    options = ("--num-samples", 3, "--num-trials", 2)
    done = aigo("run", "system.yaml", "--model", "scripted/yes.jsonl", *options, "--out", "o")

    assert done.code == 0, done.err
    assert "--model is ignored" in done.err
    assert "--num-samples is ignored" in done.err
    assert "--num-trials is ignored" in done.err


CHAIN = """
tasks: [TASKS]
models: [{key: m, display_name: M, config: {connection_type: provider_connection, provider_id: openai, model_key: m}}]
evaluation:
  key: e
  display_name: E
  description: ""
  task_specifications: [SPECS]
"""

AGAIN = """
key: again
display_name: Again
description: ""
config_spec: [{type: task_result, key: result, display_name: Result, default_value: quiz}]
definition:
  dataset: {source: task_result, key: << config.result >>}
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages:
        - role: user
          content: "{{ sample.sample.n }} {{ sample.solver_output.messages[-1].content }} {{ sample.solver_output.output.choices[0].message.content }} {{ sample.errors | length }} {{ sample.scores.string_equals.is_correct }}"
  scorers:
    - {type: string_equals, ground_truth: "yes"}
"""


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    """Task, and a task on its results, which is listed first."""
    (tmp_path / "rows.jsonl").write_text('{"n": "1", "odd": "yes"}\n{"n": "2", "odd": "no"}\n')
    (tmp_path / "task.yaml").write_text(TASK)
    (tmp_path / "again.yaml").write_text(AGAIN)
    (tmp_path / "yes.jsonl").write_text('{"default": true, "reply": "yes"}\n')
    return tmp_path


def run_file(*specifications: str, tasks: str = "{$ref: again.yaml}, {$ref: task.yaml}") -> str:
    return CHAIN.replace("TASKS", tasks).replace("SPECS", ", ".join(specifications))


ASKED = "{task_key: again, model_key: m}"
FIRST = "{task_key: quiz, model_key: m}"


def asked(folder: Path, key: str = "again") -> list[str]:
    """Return the prompts by sample."""
    samples = json.loads((folder / "out" / f"{key}.tasklog.json").read_text())["evidence"]["samples"]
    outputs = [trial["solver"]["output"] for sample in samples for trial in sample["trials"]]
    return [output["trace"]["items"][0]["content"][0]["text"] for output in outputs]


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_a_task_on_the_result_of_its_sibling_runs_after_it(aigo: Run, chain: Path, engine: str) -> None:
    (chain / "run.yaml").write_text(run_file(ASKED, FIRST))
    options = ("run", "run.yaml", "--model-map", "m=scripted/yes.jsonl", "--engine", engine)

    done = aigo(*options)
    resumed = aigo(*options, "--resume")

    assert done.code == 0, done.out + done.err
    assert asked(chain) == ["1 yes yes 0 1.0", "2 yes yes 0 0.0"]
    assert "nothing to resume: all 2 are complete" in resumed.err


def test_sibling_result_is_selected_by_key_or_task(aigo: Run, chain: Path) -> None:
    """Over several steps, and by specification if several run the same task."""
    third = "{key: third, task_key: again, model_key: m, task_config: {result: second}}"
    second = "{key: second, task_key: again, model_key: m, task_config: {result: b}}"
    quizzes = "{key: a, task_key: quiz, model_key: m, num_samples: 1}, {key: b, task_key: quiz, model_key: m}"
    (chain / "run.yaml").write_text(run_file(third, second, quizzes))

    done = aigo("run", "run.yaml", "--model-map", "m=scripted/yes.jsonl")

    assert done.code == 0, done.out + done.err
    assert asked(chain, "second") == ["1 yes yes 0 1.0", "2 yes yes 0 0.0"]
    assert len(asked(chain, "third")) == 2


def test_rows_of_a_repeated_sibling_are_selected(aigo: Run, chain: Path) -> None:
    repeated = FIRST.replace("}", ", repeatability: {num_runs: 2}}")
    (chain / "run.yaml").write_text(run_file(ASKED, repeated))

    done = aigo("run", "run.yaml", "--model-map", "m=scripted/yes.jsonl")

    assert done.code == 0, done.out + done.err
    samples = json.loads((chain / "out" / "again.tasklog.json").read_text())["evidence"]["samples"]
    assert [sample["sample_id"] for sample in samples] == ["0/1", "1/1", "0/2", "1/2"]


@pytest.mark.parametrize(
    ("specifications", "message"),
    [
        (["{key: again, task_key: again, model_key: m, task_config: {result: again}}"], "(again → again)"),
        (
            [
                "{key: a, task_key: again, model_key: m, task_config: {result: b}}",
                "{key: b, task_key: again, model_key: m, task_config: {result: a}}",
            ],
            "(a → b → a)",
        ),
    ],
)
def test_circular_results_are_an_error(
    aigo: Run, chain: Path, specifications: list[str], message: str
) -> None:
    (chain / "run.yaml").write_text(run_file(*specifications))

    done = aigo("run", "run.yaml", "--model-map", "m=scripted/yes.jsonl")

    assert done.code == 2
    assert f"its rows come from its own result {message}, so it can never start" in done.err


def test_errors_in_rows_of_another_specification_are_reported_before_the_run(aigo: Run, chain: Path) -> None:
    (chain / "again.yaml").write_text(AGAIN.replace("sample.errors", "sample.eror"))
    (chain / "run.yaml").write_text(run_file(ASKED, FIRST))

    done = aigo("run", "run.yaml", "--model-map", "m=scripted/yes.jsonl")
    missing = aigo("run", "run.yaml")

    assert done.code == 2
    assert "`sample.eror` is not a column of the dataset" in done.err
    assert missing.code == 2
    assert not (chain / "out").exists()


def test_task_with_an_incomplete_sibling_is_not_run(aigo: Run, chain: Path) -> None:
    """Metrics of some rows would be wrong."""
    (chain / "run.yaml").write_text(run_file(ASKED, FIRST))
    (chain / "no.jsonl").write_text('{"default": true, "reply": {"error": "down"}}\n')

    done = aigo("run", "run.yaml", "--model-map", "m=scripted/no.jsonl", "--fail-on-error", 9)

    assert done.code == 1
    assert "not run, because the result of 'quiz' is incomplete and provides its rows [AB602]" in done.out
    result = json.loads((chain / "out" / "again.tasklog.json").read_text())
    assert result["status"] == "failure"
    assert "not run, because the result of" in result["errors"][0]["message"]


def test_stored_result_takes_precedence_over_a_sibling(aigo: Run, chain: Path) -> None:
    (chain / "run.yaml").write_text(run_file(ASKED, FIRST))
    assert aigo("run", "run.yaml", "--model-map", "m=scripted/yes.jsonl", "-n", 1, "--out", "old").code == 0

    done = aigo(
        "run",
        "run.yaml#again",
        "--model-map",
        "m=scripted/yes.jsonl",
        "--dataset",
        "quiz=old/quiz.tasklog.json",
    )

    assert done.code == 0, done.err
    assert asked(chain) == ["1 yes yes 0 1.0"]
