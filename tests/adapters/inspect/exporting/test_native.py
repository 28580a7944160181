"""A task gives the same values sample by sample when run directly, from its hosted file and from its native
file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .conftest import Direct, Export, Make, calls_of, evaluate, numbers_of_hosted, numbers_of_log

ROWS = [
    {"w": "x", "n": 1.5, "o": {"k": [1, None]}},
    {"w": "ü “q”\n", "big": 123456789012345678901234567890},
    {"w": "no answer", "n": -0.0},
    {"w": "broken"},
    {"w": "  x"},
]
ANSWERS = {
    "Say x": "x",
    "Say ü": "ü “q”\n",
    "Say broken": {"error": "out of order"},
    "Say   x": "x",
    "x again": "xx and so on",
}


def single(**solver: Any) -> dict[str, Any]:
    messages = [{"role": "system", "content": "Brief."}, {"role": "user", "content": "Say {{ sample.w }}"}]
    return {
        "type": "single_turn_solver",
        "input_builder": {"type": "chat_completion", "input_messages": messages},
        **solver,
    }


GENERIC = {
    "type": "single_turn_solver",
    "input_builder": {
        "type": "generic",
        "template": (
            '{"messages": [{"role": "user", "content": {{ ("Say " ~ sample.w) | tojson }}}], "temperature": {{ 0.5 if sample.w == "x" else 0 }},'
            ' "stop": ["END"], "response_format": {"type": "json_schema", "json_schema":'
            ' {"name": "a", "strict": true, "schema": {"type": "object", "properties": {"a": {"type": "string"}}}}}}'
        ),
    },
}
TURNS = {
    "type": "multi_turn_solver",
    "message_builders": [
        {"type": "chat_message", "role": "system", "content": "Be brief."},
        {"type": "chat_message", "role": "user", "content": "Say {{ sample.w }}"},
        {"type": "generate"},
        {
            "type": "loop", "max_iterations": 2, "on_max_iterations": "continue",
            "message_builders": [
                {"type": "chat_message", "role": "user", "content": "{{ sample.w }} again"},
                {"type": "generate"},
            ],
        },
        {"type": "chat_message", "role": "user", "content": "Thanks"},
    ],
}  # fmt: skip
EQUALS = {"type": "string_equals", "ground_truth": "{{ sample.w }}"}
ALL_METRICS = [
    {"type": "mean", "field": "is_correct", "name": "A / b"},
    {"type": "min", "field": "is_correct"},
    {"type": "max", "field": "is_correct"},
    {"type": "std_dev", "field": "is_correct"},
    {"type": "frequency", "field": "is_correct"},
]
TRIALS = {
    "num_trials": 3,
    "score_aggregators": [
        {"score_name": "is_correct", "aggregator": {"function": "pass@k", "k": 5}},
        {"score_name": "is_correct", "aggregator": {"function": "pass^k", "k": 2, "score_name": "all"}},
        {"score_name": "is_correct", "aggregator": {"function": "min", "score_name": "worst"}},
        {"score_name": "bleu_score", "aggregator": {"function": "max"}},
    ],
}
TRIAL_METRICS = [
    {"type": "mean", "field": name} for name in ("is_correct", "is_correct.pass@5", "all", "worst")
]

NATIVE: dict[str, dict[str, Any]] = {
    "every metric": {"solver": single(), "scorers": [{**EQUALS, "metrics": ALL_METRICS}]},
    "generation options": {"solver": GENERIC, "scorers": [EQUALS]},
    "several scorers": {
        "solver": single(),
        "scorers": [
            EQUALS,
            {"type": "string_equals", "key": "x-only", "ground_truth": "x", "metrics": []},
            {"type": "string_equals", "key": "mine", "ground_truth": "x", "value": "{{ sample.w | trim }}"},
            {"type": "string_equals_mcqa", "ground_truth_choice": "{{ sample.w[0] }}", "choices": "{{ ['x', 'y'] }}"},
            {"type": "bleu", "ground_truth": "{{ sample.w }} and so on", "metrics": [{"type": "std_dev", "field": "bleu_score"}]},
        ],
    },
    "values of the answer": {
        "solver": single(),
        "scorers": [
            {**EQUALS, "key": f"v{number}", "value": value}
            for number, value in enumerate((
                "{{ solver_output.output }}",
                "{{ solver_output.output | upper | trim }}\n",
                "{{- solver_output.output.choices[0].message.content | trim | upper | lower -}}",
                "{{ solver_output['output']['choices'][0].message['content'] | upper }}",
                "{{ solver_output.output|lower }}",
            ))
        ],
    },
    "action rules": {
        "solver": single(),
        "scorers": [{**EQUALS, "metrics": TRIAL_METRICS[:1] + ALL_METRICS[3:]}],
        "trials": {"num_trials": 2},
        "actions": [
            {"key": "a", "action": "exclude_from_metrics", "filter": {"op": "equals", "expression": "{{ sample.w }}", "value": "x"}},
            {"key": "b", "action": "exclude_from_metrics", "filter": {"op": "in", "expression": "{{ sample.w | trim }}", "values": ["nothing", "no answer"]}},
        ],
    },
    "conversation": {"solver": TURNS, "scorers": [{"type": "bleu", "ground_truth": "xx and so on, yes"}]},
    "trials": {
        "solver": single(),
        "scorers": [
            {**EQUALS, "metrics": TRIAL_METRICS},
            {"type": "bleu", "ground_truth": "x", "metrics": [{"type": "mean", "field": "bleu_score.max"}]},
        ],
        "trials": TRIALS,
    },
    "no scorer": {"solver": single(), "scorers": []},
}  # fmt: skip


@pytest.mark.parametrize("name", NATIVE)
def test_direct_hosted_and_native_runs_are_equal(
    name: str, case: Make, direct: Direct, export: Export, tmp_path: Path
) -> None:
    made = case({"key": "t", "definition": {"dataset": {"key": "rows"}, **NATIVE[name]}}, ROWS, ANSWERS)
    expected = direct(made, "--model", made.model)
    hosted = evaluate(export(made), made.model)
    native = evaluate(export(made, "--native", out=tmp_path / "native"), made.model)

    assert expected.failed == {3}
    assert numbers_of_hosted(hosted, tmp_path) == expected
    assert numbers_of_log(hosted) == expected
    assert numbers_of_log(native) == expected
    assert calls_of(native) == calls_of(hosted)
    assert len(calls_of(native)) == 5 * {"trials": 3, "action rules": 2}.get(name, 1)


@pytest.mark.parametrize("solver", [single(), TURNS], ids=["single", "turns"])
def test_samples_stopped_by_a_limit_are_not_scored(
    solver: dict[str, Any], case: Make, direct: Direct, export: Export, tmp_path: Path
) -> None:
    """This includes a limit in the middle of a conversation, after an answer, and in one of several trials."""
    definition = {
        "dataset": {"key": "rows"},
        "solver": solver,
        "scorers": [{**EQUALS, "metrics": TRIAL_METRICS}, {"type": "bleu", "ground_truth": "x"}],
        "trials": TRIALS,
    }
    long = {"text": "x and so on", "usage": {"input_tokens": 5, "output_tokens": 500}}
    made = case({"key": "t", "definition": definition}, ROWS, {**ANSWERS, "Say ü": long, "x again": long})
    expected = direct(made, "--model", made.model, "--token-limit", 300)

    hosted = evaluate(export(made), made.model, token_limit=300)
    native = evaluate(export(made, "--native", out=tmp_path / "native"), made.model, token_limit=300)

    assert len(expected.failed) in (2, 4)
    assert numbers_of_hosted(hosted, tmp_path) == expected
    assert numbers_of_log(hosted) == expected
    assert numbers_of_log(native) == expected


def test_recorded_answers_are_scored_without_a_model(
    case: Make, direct: Direct, export: Export, tmp_path: Path
) -> None:
    def trace(text: str) -> list[dict[str, Any]]:
        said = [{"type": "output_text", "text": text, "annotations": []}]
        return [{"type": "message", "id": "", "status": "completed", "role": "assistant", "content": said}]

    rows = [{"w": "x", "trace": trace("x")}, {"w": "y", "trace": trace("x")}]
    solver = {"type": "pass_through_solver", "trace_column": "trace"}
    made = case(
        {"key": "t", "definition": {"dataset": {"key": "rows"}, "solver": solver, "scorers": [EQUALS]}}, rows
    )
    expected = direct(made)

    hosted = evaluate(export(made), "none")
    native = evaluate(export(made, "--native", out=tmp_path / "native"), "none")

    assert expected.metrics == {"string_equals": {"accuracy": 0.5}}
    assert numbers_of_hosted(hosted, tmp_path) == expected
    assert numbers_of_log(native) == expected


def test_dataset_tasks_run_without_a_model(
    case: Make, direct: Direct, export: Export, tmp_path: Path
) -> None:
    scorers = [{"type": "string_equals", "ground_truth": "{{ sample.a }}", "value": "{{ sample.b }}"}]
    made = case(
        {"key": "t", "definition": {"evaluated_entity_type": "dataset", "scorers": scorers}},
        [{"a": "1", "b": "1"}, {"a": "1", "b": "01"}, {"a": "", "b": ""}],
    )
    rows = ("--dataset", f"mine={made.folder / 'rows.jsonl'}")
    expected = direct(made, *rows)

    hosted = evaluate(export(made, *rows), "none")
    native = evaluate(export(made, "--native", *rows, out=tmp_path / "native"), "none")

    assert expected.metrics == {"string_equals": {"accuracy": 2 / 3}}
    assert numbers_of_hosted(hosted, tmp_path) == expected
    assert numbers_of_log(native) == expected


SAY = {"type": "chat_message", "role": "user", "content": "Say {{ sample.w }}"}
SIMULATED_USER = {
    "type": "generate_message",
    "model_key": "user-sim$a",
    "extra_input_messages": [{"type": "chat_message", "role": "system", "content": "You are a user who wants {{ sample.w }}."}],
    "output_role": "user",
    "terminate_if": {"includes": "<done>", "keep_iteration": False},
}  # fmt: skip
DYNAMIC: dict[str, list[dict[str, Any]]] = {
    "a simulated user": [
        SAY,
        {"type": "loop", "max_iterations": 3, "on_max_iterations": "continue", "message_builders": [{"type": "generate"}, SIMULATED_USER]},
        {"type": "generate"},
    ],
    "its own words": [
        SAY,
        {"type": "generate", "terminate_if": {"includes": "x"}},
        {**SIMULATED_USER, "include_conversation": False, "terminate_if": None, "output_role": None},
        {"type": "generate", "terminate_if": {"includes": "?", "keep_iteration": False}},
        {"type": "generate"},
    ],
    "loops that must end": [
        SAY,
        {"type": "loop", "max_iterations": 2, "message_builders": [
            {"type": "loop", "max_iterations": 2, "on_max_iterations": "continue", "message_builders": [
                {"type": "chat_message", "role": "user", "content": "again", "terminate_if": {"includes": "never"}},
                {"type": "generate", "terminate_if": {"includes": "ü", "keep_iteration": False}},
            ]},
            {"type": "generate", "terminate_if": {"includes": "x"}},
        ]},
    ],
    "answers taken back": [SAY, {"type": "generate", "terminate_if": {"includes": "x", "keep_iteration": False}}],
    "stopped by the script": [
        SAY, {"type": "generate"},
        {"type": "chat_message", "role": "user", "content": "{{ sample.w }} said", "terminate_if": {"includes": "ü", "keep_iteration": False}},
        {"type": "generate"},
    ],
}  # fmt: skip
REPLIES: dict[str, Any] = {
    "wants x": "<done>",
    "wants ü": "more",
    "wants no answer": "",
    "more": "and more x",
    "again": "ü again",
    "x said": "x!",
    **ANSWERS,
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_conversations_that_depend_on_answers_are_equal_in_every_form(
    name: str, case: Make, direct: Direct, export: Export, tmp_path: Path
) -> None:
    """All forms have the same calls of both models, stops, reverted iterations and failures."""
    builders = [{k: v for k, v in builder.items() if v is not None} for builder in DYNAMIC[name]]
    definition = {
        "dataset": {"key": "rows"},
        "solver": {"type": "multi_turn_solver", "message_builders": builders},
        "scorers": [EQUALS, {"type": "bleu", "ground_truth": "and more x"}],
    }
    made = case({"key": "t", "definition": definition}, ROWS, REPLIES, judge=REPLIES)
    asks = any("user-sim" in str(builder) for builder in builders)
    mapped = ["--model-map", f"user-sim$a={made.judge}"] if asks else []
    roles = {"user_sim$a": made.judge} if asks else {}
    expected = direct(made, "--model", made.model, *mapped)

    hosted = evaluate(export(made), made.model, model_roles=roles)
    native = evaluate(export(made, "--native", out=tmp_path / "native"), made.model, model_roles=roles)

    assert numbers_of_hosted(hosted, tmp_path) == expected
    assert numbers_of_log(native) == expected
    assert calls_of(native) == calls_of(hosted)


# Features that only the hosted form supports

IN_PROCESS = ("--snippets", "in-process")
"""Option of a direct run that also applies to the hosted run after it."""
PYTHON_SCORES = """
def compute_scores(sample, solver_output):
    text = solver_output.trace.get_last_assistant_text()
    return {"length": len(text), "label": text[:1]}
"""
ALL_SAMPLES = """
def compute_scores(samples):
    words = [sample["w"] for sample in samples]
    return [{"position": number, "unique": words.count(word) == 1} for number, word in enumerate(words)]
"""
RUN_SOLVER = """
async def run_solver(sample, model, trace):
    trace.append_user_message("Say " + sample["w"])
    trace.add_model_response(await model.predict(trace.items))
    return trace
"""
POSTPROCESS = """
def postprocess(sample, solver_output):
    return [({**sample, "part": part, "w": sample["w"]}, solver_output) for part in (1, 2)]
"""
JUDGED = {
    "type": "model_as_a_judge_classifier", "model_key": "openai$gpt-4.1".replace(".", "-"), "user_prompt": "{{ solver_output.output }}",
    "correct_labels": ["yes"], "incorrect_labels": ["no", "?"],
}  # fmt: skip
HOSTED: dict[str, dict[str, Any]] = {
    "python scorer": {
        "solver": single(),
        "scorers": [{
            "type": "python", "compute_scores_snippet": PYTHON_SCORES,
            "metrics": [{"type": "mean", "field": "length"}, {"type": "frequency", "field": "label"}],
        }],
    },
    "all samples": {
        "solver": single(), "scorers": [{"type": "python_all_samples", "compute_scores_snippet": ALL_SAMPLES}],
    },
    "python solver": {"solver": {"type": "python", "run_solver_snippet": RUN_SOLVER}, "scorers": [EQUALS]},
    "post-processor": {
        "solver": single(postprocessor={"type": "python", "postprocess_snippet": POSTPROCESS}), "scorers": [EQUALS],
    },
    "actions": {
        "solver": single(),
        "scorers": [EQUALS],
        "actions": [{
            "key": "drop", "action": "exclude_from_metrics",
            "filter": {"op": "equals", "expression": "{{ scores.string_equals.is_correct }}", "value": "1.0"},
        }],
    },
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTED)
def test_the_hosted_form_runs_every_solver(
    name: str, case: Make, direct: Direct, export: Export, tmp_path: Path
) -> None:
    made = case({"key": "t", "definition": {"dataset": {"key": "rows"}, **HOSTED[name]}}, ROWS, ANSWERS)
    expected = direct(made, "--model", made.model, *(() if name == "post-processor" else IN_PROCESS))

    hosted = evaluate(export(made), made.model)

    assert expected.scores
    assert numbers_of_hosted(hosted, tmp_path) == expected


def test_judges_are_passed_as_model_roles(case: Make, direct: Direct, export: Export, tmp_path: Path) -> None:
    key = JUDGED["model_key"]
    definition = {"dataset": {"key": "rows"}, "solver": single(), "scorers": [JUDGED]}
    made = case({"key": "t", "definition": definition}, ROWS, ANSWERS, judge={"x": "yes", "ü": "no"})
    expected = direct(made, "--model", made.model, "--model-map", f"{key}={made.judge}")

    hosted = evaluate(export(made), made.model, model_roles={key: made.judge})

    assert expected.metrics == {"model_as_a_judge_classifier": {"accuracy": 0.5}}
    assert numbers_of_hosted(hosted, tmp_path) == expected


def test_a_missing_judge_fails_samples_before_model_calls(case: Make, export: Export) -> None:
    definition = {"dataset": {"key": "rows"}, "solver": single(), "scorers": [JUDGED]}
    made = case({"key": "t", "definition": definition}, ROWS, ANSWERS)

    log = evaluate(export(made), made.model)

    assert calls_of(log) == {}
    assert len(numbers_of_log(log, scored=False).failed) == 5


def test_system_tasks_run(case: Make, direct: Direct, export: Export, tmp_path: Path) -> None:
    snippet = 'def compute_evidence():\n    return {"metrics": {"m": {"value": 3, "reason": "r"}}}\n'
    definition = {"type": "system_task", "compute_evidence_snippet": snippet}
    made = case({"key": "t", "definition": definition})
    expected = direct(made, *IN_PROCESS)

    hosted = evaluate(export(made), "none")

    assert numbers_of_hosted(hosted, tmp_path).metrics == expected.metrics != {}


def test_a_random_row_selection_keeps_ids_and_evidence(
    case: Make, direct: Direct, export: Export, tmp_path: Path
) -> None:
    """This includes scorers that read all samples, and rows with numeric ids."""
    scorers = [EQUALS, {"type": "python_all_samples", "compute_scores_snippet": ALL_SAMPLES}]
    definition = {"dataset": {"key": "rows"}, "solver": single(), "scorers": scorers}
    made = case(
        {"key": "t", "definition": definition}, [{"w": f"w{n % 20}"} for n in range(40)], {"Say w1": "w1"}
    )
    choice = ("-n", 7, "--subsampling", "random")
    expected = direct(made, "--model", made.model, *choice, *IN_PROCESS)

    hosted = evaluate(export(made, *choice), made.model)

    assert {sample_id for sample_id, _, _ in expected.scores} != set(range(7))
    assert numbers_of_hosted(hosted, tmp_path) == expected
