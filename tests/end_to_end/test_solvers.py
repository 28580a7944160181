"""Every solver of the format on the real engine, through the command line, with results counted by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run

Load = Callable[[Path], dict[str, Any]]
Rows = list[dict[str, Any]]

CAPITALS: Rows = [
    {"q": "France", "a": "Paris"},
    {"q": "Norway", "a": "Oslo"},
    {"q": "Atlantis", "a": "none"},
]
ANSWERS: Rows = [
    {"match": {"contains": "France"}, "reply": "Paris"},
    {"match": {"contains": "Norway"}, "reply": "Bergen"},
    {"match": {"contains": "Atlantis"}, "reply": {"error": "no such place"}},
]


def write(folder: Path, definition: str, rows: Rows, rules: Rows | None = None) -> None:
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    head = "key: t\ndisplay_name: T\ndescription: ''\ndefinition:\n  dataset: {key: d}\n"
    (folder / "t.yaml").write_text(head + definition)
    (folder / "m.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules or ANSWERS))


def samples_of(result: dict[str, Any]) -> dict[Any, dict[str, Any]]:
    """Return the only trial by sample id."""
    return {sample["sample_id"]: sample["trials"][0] for sample in result["evidence"]["samples"]}


def said(output: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (item["role"], "".join(part.get("text", "") for part in item["content"]))
        for item in output["trace"]["items"]
    ]


def values(result: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value for metric in result["evidence"]["metrics"] for name, value in metric["values"].items()
    }


def shown(folder: Path) -> dict[str, Any]:
    """Return the metric values of Inspect's own log."""
    from aigo_inspect.logs.reader import open_log

    (log,) = folder.glob("*.eval")
    with open_log(log) as reader:
        return {
            name: metric["value"]
            for score in reader.header["results"]["scores"]
            for name, metric in score["metrics"].items()
        }


def test_conversation_with_several_turns_is_scored(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    """Fixed messages, model answers, an interviewer that ends the loop, and a score for the last answer."""
    write(
        tmp_path,
        """
  solver:
    type: multi_turn_solver
    message_builders:
      - {type: chat_message, role: system, content: "Be brief about {{ sample.q }}."}
      - {type: chat_message, role: user, content: "What is the capital?"}
      - {type: generate}
      - type: loop
        max_iterations: 3
        on_max_iterations: continue
        message_builders:
          - type: generate_message
            model_key: interviewer
            output_role: user
            extra_input_messages: [{type: chat_message, role: user, content: "Ask again, or say DONE."}]
            terminate_if: {includes: DONE, keep_iteration: false}
          - {type: generate}
  scorers:
    - {type: string_equals, ground_truth: "{{ sample.a }}"}
""",
        [{"q": "France", "a": "Paris"}, {"q": "Norway", "a": "sure"}],
        [
            {"match": {"contains": "What is the capital?"}, "reply": "Paris"},
            {"match": {"contains": "Really?"}, "reply": "sure"},
        ],
    )
    (tmp_path / "i.jsonl").write_text(
        json.dumps({"match": {"contains": "about France", "on": "all"}, "reply": "DONE"})
        + "\n"
        + json.dumps({"match": {"contains": "Really?", "on": "all"}, "reply": "DONE now"})
        + "\n"
        + json.dumps({"default": True, "reply": "Really?"})
        + "\n"
    )

    done = aigo(
        "run",
        "t.yaml",
        "--model",
        "scripted/m.jsonl",
        "--model-map",
        "interviewer=scripted/i.jsonl",
        "-o",
        "out",
    )

    assert done.code == 0, done.err
    result = result_of(tmp_path / "out" / "t.tasklog.json")
    assert values(result) == {"accuracy": 1.0}
    trials = samples_of(result)
    assert said(trials[0]["solver"]["output"]) == [
        ("system", "Be brief about France."),
        ("user", "What is the capital?"),
        ("assistant", "Paris"),
    ]
    assert said(trials[1]["solver"]["output"])[2:] == [
        ("assistant", "Paris"),
        ("user", "Really?"),
        ("assistant", "sure"),
    ]
    calls = [
        event
        for event in trials[1]["solver"]["output"]["trace"]["events"]
        if event["type"] == "model_call_event"
    ]
    # Both models' calls are events: answer, question, answer, and the end of the interview.
    assert len(calls) == 4


def test_recorded_traces_need_no_model(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    text = {"type": "output_text", "text": "Oslo", "annotations": []}
    done_so = {"status": "completed"}
    question = {"type": "input_text", "text": "Capital of Norway?"}
    asked = {"type": "message", "id": "u", "role": "user", "content": [question], **done_so}
    item = {"type": "message", "id": "m", "role": "assistant", "content": [text], **done_so}
    call = {
        "type": "function_call",
        "id": "f",
        "call_id": "c",
        "name": "look_up",
        "arguments": "{}",
        **done_so,
    }
    write(
        tmp_path,
        """
  solver: {type: pass_through_solver, trace_column: trace}
  scorers:
    - {type: string_equals, ground_truth: Oslo}
    - {type: function_call_coverage, function_calls: [{name: look_up}]}
""",
        [
            {"trace": {"items": [asked, call, item]}},
            {"trace": json.dumps([item])},
            {"trace": "not a trace"},
        ],
    )

    done = aigo("run", "t.yaml", "-o", "out")

    assert done.code == 1
    assert "2 of 3 samples scored" in done.out
    assert "sample 2: solver:" in done.out
    result = result_of(tmp_path / "out" / "t.tasklog.json")
    found = values(result)
    assert found["accuracy"] == 1.0
    assert found["required_calls_coverage_mean"] == 0.5
    (error,) = samples_of(result)[2]["errors"]
    assert (error["stage"], error["error_type"]) == ("solver", "InvalidTrace")


def test_python_solver_calls_the_model(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    """`model.predict` calls the model through Inspect: the log has the call, and its failure fails the sample."""
    write(
        tmp_path,
        """
  solver:
    type: python
    run_solver_snippet: |
      async def run_solver(sample, model, trace):
          trace.append_user_message("Capital of " + sample["q"])
          trace.add_model_response(await model.predict(trace.items))
          trace.append_user_message("Sure? " + sample["q"])
          trace.add_model_response(await model.predict(trace.items, temperature=0.0))
          return trace
  scorers:
    - {type: string_equals, ground_truth: "{{ sample.a }}"}
""",
        CAPITALS,
    )

    done = aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "-o", "out")

    assert done.code == 1
    result = result_of(tmp_path / "out" / "t.tasklog.json")
    assert values(result) == {"accuracy": 0.5}
    trials = samples_of(result)
    assert said(trials[1]["solver"]["output"]) == [
        ("user", "Capital of Norway"),
        ("assistant", "Bergen"),
        ("user", "Sure? Norway"),
        ("assistant", "Bergen"),
    ]
    assert len(trials[1]["solver"]["output"]["raw_outputs"]) == 2
    assert len(trials[1]["solver"]["output"]["direct_ios"]) == 2
    assert trials[2]["errors"][0]["message"] == "no such place"


GROUP = """
  solver:
    type: grouped_single_turn_solver
    input_builder:
      type: generic
      template: >-
        {"first": {"messages": [{"role": "user", "content": {{ sample.q | tojson }} }]},
         "again": {"messages": [{"role": "user", "content": {{ ("Again: " ~ sample.q) | tojson }} }]}}
"""


def test_solver_group_outputs_are_scored(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    write(
        tmp_path,
        GROUP
        + """
  scorers:
    - type: string_equals
      value: "{{ solver_output.solver_outputs.again.output.choices[0].message.content }}"
      ground_truth: "{{ sample.a }}"
    - type: python
      key: alike
      metrics: [{type: mean, field: same}]
      compute_scores_snippet: |
        def compute_scores(sample, solver_output):
            texts = {each.trace.get_last_assistant_text() for each in solver_output.solver_outputs.values()}
            return {"same": len(texts) == 1}
""",
        CAPITALS[:2],
    )

    done = aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "-o", "out")

    assert done.code == 0, done.err
    result = result_of(tmp_path / "out" / "t.tasklog.json")
    assert values(result) == {"accuracy": 0.5, "same_mean": 1.0}
    group = samples_of(result)[0]["solver"]["output"]["solver_outputs"]
    assert list(group) == ["first", "again"]
    assert said(group["again"]) == [("user", "Again: France"), ("assistant", "Paris")]
    # The events of the run are stored once.
    assert ["events" in each["trace"] for each in group.values()] == [True, False]


ROWS = """
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
    postprocessor:
      type: python
      postprocess_snippet: |
        def postprocess(sample, solver_output):
            text = solver_output.output.choices[0].message.content
            return [({"word": word, "a": sample["a"]}, solver_output) for word in text.split()]
"""
WORDS: Rows = [
    {"match": {"contains": "two"}, "reply": "yes no"},
    {"match": {"contains": "nothing"}, "reply": " "},
    {"match": {"contains": "three"}, "reply": "yes yes yes"},
    {"default": True, "reply": {"error": "down"}},
]


def test_post_processor_rows_are_scored_separately(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    """Five rows of two samples: three of three and one of two are right, so 4 / 5; one exclusion gives 3 / 4."""
    write(
        tmp_path,
        ROWS
        + """
  scorers:
    - {type: string_equals, key: equal, value: "{{ sample.word }}", ground_truth: "{{ sample.a }}"}
""",
        [{"q": "two", "a": "yes"}, {"q": "nothing", "a": "yes"}, {"q": "three", "a": "yes"}],
        WORDS,
    )

    done = aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "-o", "out")

    assert done.code == 0, done.out + done.err
    assert "2 of 3 samples scored, 1 not scored" in done.out
    result = result_of(tmp_path / "out" / "t.tasklog.json")
    assert values(result) == {"accuracy": 0.8}
    assert shown(tmp_path / "out") == pytest.approx({"accuracy": 0.8, "stderr": 0.2})
    trials = samples_of(result)
    assert list(trials) == ["0#0", "0#1", 1, "2#0", "2#1", "2#2"]
    assert trials["0#1"]["sample"]["data"] == {"word": "no", "a": "yes"}
    assert trials["0#1"]["scores"][0]["values"] == {"is_correct": 0.0}
    # Of a sample without rows the run itself is kept, unscored.
    assert trials[1]["scores"] == []
    assert trials[1]["solver"]["output"]["trace"]["events"]
    assert ["events" in trials[row]["solver"]["output"]["trace"] for row in ("2#0", "2#1")] == [
        True,
        False,
    ]
    assert result["evidence"]["failures"] == {"num_errors": 0, "num_total": 6}


def test_post_processor_rows_have_trials_rules_and_failures(
    aigo: Run, tmp_path: Path, result_of: Load
) -> None:
    """An action rule excludes single rows; a failed sample has none; Inspect's view is equal."""
    write(
        tmp_path,
        "  trials: {num_trials: 2}\n"
        + ROWS
        + """
  scorers:
    - {type: string_equals, key: equal, value: "{{ sample.word }}", ground_truth: "{{ sample.a }}"}
  actions:
    - key: noes
      action: exclude_from_metrics
      filter: {op: equals, expression: "{{ sample.word }}", value: "no"}
""",
        [{"q": "two", "a": "no"}, {"q": "three", "a": "yes"}, {"q": "fails", "a": "yes"}],
        WORDS,
    )

    done = aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "-o", "out")

    assert done.code == 1
    result = result_of(tmp_path / "out" / "t.tasklog.json")
    # `two` answers "yes no" against "no": its first row is wrong, its second is right and excluded.
    assert values(result) == {"accuracy": 0.75}
    assert shown(tmp_path / "out") == {"accuracy": 0.75, "stderr": 0.25}
    by_id = {sample["sample_id"]: sample for sample in result["evidence"]["samples"]}
    assert [trial["index"] for trial in by_id["0#1"]["trials"]] == [0, 1]
    assert by_id["0#1"]["action_records"] == [{"action": "exclude_from_metrics", "rule_key": "noes"}]
    assert by_id["0#1"]["scores"][0]["values"] == {"is_correct": 1.0}
    assert [error["message"] for trial in by_id[2]["trials"] for error in trial["errors"]] == ["down", "down"]


def test_rows_with_equal_ids_are_kept_separate(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    write(
        tmp_path,
        ROWS.replace('{"word": word, "a": sample["a"]}', '{"sample_id": word + "!", "word": word}').replace(
            "text.split()", "sorted(set(text.split()))"
        ),
        [{"q": "two", "a": ""}, {"q": "three", "a": ""}],
        WORDS,
    )

    done = aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "-o", "out")

    assert done.code == 0, done.err
    assert list(samples_of(result_of(tmp_path / "out" / "t.tasklog.json"))) == ["no!", "yes!", "1#yes!"]


@pytest.mark.parametrize(
    ("snippet", "message"),
    [
        ("def postprocess(sample, solver_output): return 3", "a int, expected a list"),
        ("def postprocess(sample, solver_output): raise ValueError('no rows')", "no rows"),
    ],
)
def test_a_failed_post_processor_fails_the_sample(
    aigo: Run, tmp_path: Path, result_of: Load, snippet: str, message: str
) -> None:
    solver = (
        ROWS[: ROWS.index("      postprocess_snippet")]
        + f"      postprocess_snippet: {json.dumps(snippet)}\n"
    )
    write(tmp_path, solver, [{"q": "two"}], WORDS)

    done = aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "-o", "out")

    assert done.code == 1
    (trial,) = samples_of(result_of(tmp_path / "out" / "t.tasklog.json")).values()
    assert message in trial["errors"][0]["message"]
    assert trial["errors"][0]["stage"] == "solver"


def test_solver_and_judge_calls_are_recorded_separately(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    """Raw requests and responses are stored with the solver output or the judge's score."""
    write(
        tmp_path,
        """
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers:
    - {type: model_as_a_judge_scorer, key: judge, model_key: judge, score_min: 0, score_max: 10,
       system_prompt: Judge., user_prompt: "{{ model_output.choices[0].message.content }}"}
""",
        CAPITALS[:1],
    )
    (tmp_path / "j.jsonl").write_text('{"default": true, "reply": "{\\"score\\": 5}"}\n')

    done = aigo(
        "run", "t.yaml", "--model", "scripted/m.jsonl", "--model-map", "judge=scripted/j.jsonl", "-o", "out"
    )

    assert done.code == 0, done.out + done.err
    (trial,) = samples_of(result_of(tmp_path / "out" / "t.tasklog.json")).values()
    (asked,) = trial["solver"]["output"]["direct_ios"]
    assert json.loads(asked["direct_input"]["body"])["messages"] == [{"role": "user", "content": "France"}]
    (judged,) = trial["scores"][0]["direct_ios"]
    assert json.loads(judged["direct_output"]["body"])["text"] == '{"score": 5}'
    assert trial["scores"][0]["values"] == {"score": 0.5}


def test_explain_shows_the_known_parts_of_a_conversation(aigo: Run, tmp_path: Path) -> None:
    """`explain` renders recorded traces and groups, and marks parts that depend on task code."""
    text = {"type": "input_text", "text": "Capital of Norway?"}
    item = {"type": "message", "id": "m", "role": "user", "content": [text], "status": "completed"}
    write(
        tmp_path,
        "  solver: {type: pass_through_solver, trace_column: trace}\n"
        "  scorers: [{type: string_equals, value: '{{ solver_output.messages[0].content }}', ground_truth: x}]\n",
        [{"trace": [item]}],
    )
    recorded = aigo("explain", "t.yaml")
    assert (recorded.code, recorded.err) == (0, "")
    assert "[user]\n    Capital of Norway?" in recorded.out
    assert "value: 'Capital of Norway?'" in recorded.out

    write(
        tmp_path,
        GROUP
        + "  scorers:\n    - type: string_equals\n      ground_truth: x\n"
        + "      value: '{{ solver_output.solver_outputs.again.messages[0].content }}'\n",
        CAPITALS,
    )
    group = aigo("explain", "t.yaml")
    assert group.code == 0
    assert "input 'again' of the group" in group.out
    assert "value: 'Again: France'" in group.out

    write(
        tmp_path,
        ROWS + "  scorers: [{type: string_equals, value: '{{ sample.word }}', ground_truth: x}]\n",
        CAPITALS,
    )
    rows = aigo("explain", "t.yaml")
    assert rows.code == 0
    assert "the `postprocess` code of the task creates the scored rows" in rows.out
    assert "value: '{{ sample.word }}'" in rows.out
    assert "will fail" not in rows.out


@pytest.mark.engine
@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
@pytest.mark.parametrize("called", [1, 0])
def test_model_usage_counts_samples_that_called_the_evaluated_model(
    engine: str, called: int, aigo: Run, tmp_path: Path, result_of: Load
) -> None:
    asks = "answer = await model.predict(trace.items) if sample['q'] == 'ask' else None"
    code = f"async def run_solver(sample, model, trace):\n    {asks}\n    return trace\n"
    judge: dict[str, Any] = {
        "type": "model_as_a_judge_classifier",
        "model_key": "judge",
        "user_prompt": "{{ sample.q }}",
    }
    judge |= {"correct_labels": ["right"], "incorrect_labels": ["wrong"]}
    definition: dict[str, Any] = {"dataset": {"key": "d"}, "trials": {"num_trials": 2}, "scorers": [judge]}
    definition["solver"] = {"type": "python", "run_solver_snippet": code}
    task = {"key": "t", "display_name": "T", "description": "", "definition": definition}
    (tmp_path / "t.yaml").write_text(json.dumps(task))
    rows = [{"q": "ask" if called else "nothing"}, {"q": "other"}]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "m.jsonl").write_text(json.dumps({"default": True, "reply": "one two"}))
    (tmp_path / "judge.jsonl").write_text(json.dumps({"default": True, "reply": "right"}))
    models = ("--model", "scripted/m.jsonl", "--model-map", "judge=scripted/judge.jsonl")
    assert aigo("run", "t.yaml", "--engine", engine, *models, "-o", "out").code == 0
    usage = result_of(tmp_path / "out" / "t.tasklog.json")["execution"]["model_usage"]
    assert (usage["num_samples"], usage["num_completion_tokens"]) == ((1, 4) if called else (0, 0))
