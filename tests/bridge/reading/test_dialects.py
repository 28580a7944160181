"""The dialect `aigo-3.17` accepts and rejects the same files as that release; the default accepts both."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bridge.reading.reading_examples import (
    APP,
    DATASET,
    GENERATOR,
    MODEL,
    MULTI_TURN,
    PASS_THROUGH,
    PLAN,
    POLICY,
    RUN_FILES,
    SYSTEM,
    errors_of,
    issues_of,
    write,
)

from aigo_bridge.errors import SpecError
from aigo_bridge.reading import read
from aigo_bridge.spec.evaluations import RunSpec

BASE = (
    'key: t\ndisplay_name: T\ndescription: ""\nconfig_spec: [{type: dataset, key: d, display_name: D}, {type: model, key: m, display_name: M}]\n'
    "definition:\n  dataset: {key: << config.d >>}\n  solver: {type: pass_through_solver, trace_column: t}\n  scorers:\n"
    "    - {type: model_as_a_judge_scorer, model_key: << config.m >>, user_prompt: x}\n"
)


def scorer(text: str) -> str:
    return BASE + f"    - {text}\n"


EVALUATION = "key: e\ndisplay_name: E\ndescription: ''\n"
REPEATED = "{type: repeatability, repeatability_config: {num_runs: 2}, inputs: [{evaluation_key: other}]}"
CLAIMS = """key: g
display_name: G
description: ''
config_spec: [{type: model, key: m, display_name: M}]
definition:
  type: declarative_dataset_generator
  data_source: {type: inline_samples, samples: [{question: q, expected_answer: a}]}
  synthesizers: [{type: SYNTHESIZER, model_key: << config.m >>, columns: null}]
"""
ACCEPTED_BY_BOTH = {
    **{
        f"an evaluation with {name}": f"{EVALUATION}{name}: any\n"
        for name in ("use_cases", "domains", "providers")
    },
    "an input without a specification": f"{EVALUATION}task_specifications:\n  - {REPEATED}\n",
    **{
        f"null columns of {kind}": CLAIMS.replace("SYNTHESIZER", kind)
        for kind in ("claim_extraction", "claim_labeling", "link_claim_quotes")
    },
    "base": BASE,
    "system": SYSTEM,
    "pass through": PASS_THROUGH.replace("key: earlier}", "key: << config.e >>}").replace(
        "definition:", "config_spec: [{type: task_result, key: e, display_name: E}]\ndefinition:"
    ),
    "no type, no source": BASE,
    "evaluated_entity_type": BASE.replace("definition:\n", "definition:\n  evaluated_entity_type: dataset\n"),
    "latticeflow format": BASE.replace("trace_column: t}", "trace_column: t, message_format: latticeflow}"),
    "python with metrics": scorer(
        "{type: python, metrics: [], compute_scores_snippet: 'def compute_scores(s, o): return {}'}"
    ),
    "templates in a list of labels": scorer(
        "{type: labeler_via_model, model_key: << config.m >>, user_prompt: x, valid_labels: [<< config.m >>]}"
    ),
    "two trials": BASE.replace("  scorers:\n", "  trials: {num_trials: 2}\n  scorers:\n"),
    "trials as a template": BASE.replace(
        "  scorers:\n", "  trials: {num_trials: << config.m >>}\n  scorers:\n"
    ),
    "empty labels": scorer(
        "{type: model_as_a_judge_classifier, model_key: << config.m >>, user_prompt: x, correct_labels: [], incorrect_labels: []}"
    ),
    "dataset": DATASET,
    "model": MODEL,
    "policy": POLICY,
    "plan": PLAN,
    "app": APP,
    "evaluation without a description": "key: e\ndisplay_name: E\ntask_specifications: []\n",
    "evaluation without anything": "key: e\ndisplay_name: E\ndescription: null\nuse_cases: any\ntask_specifications: []\n",
    "policy without a name": POLICY.replace("display_name: Gate", "display_name: ''"),
    "old generator names": "key: g\ndisplay_name: G\ndescription: ''\nconfig_spec: [{type: dataset, key: d, display_name: D}]\ndefinition:\n  data_source: {type: dataset_samples, dataset_key: << config.d >>}\n  synthesizers: [{type: empty}]\n",
    "adapter with a task": "key: a\ndisplay_name: A\ntask: custom\nprocess_input: {language: jinja, source_code: ''}\nprocess_output: {language: jinja, source_code: ''}\n",
}

WIDE_ONLY = {
    "literal dataset key": BASE.replace("{key: << config.d >>}", "{key: rows}"),
    "half a template": BASE.replace("{key: << config.d >>}", "{key: x-<< config.d >>}"),
    "literal keys": BASE.replace("{key: << config.d >>}", "{keys: [<< config.d >>, rows]}"),
    "literal judge": BASE.replace("model_key: << config.m >>", "model_key: openai$gpt"),
    "literal rag judge": scorer("{type: rag_checker, judge_model_key: m}"),
    "python without metrics": scorer(
        "{type: python, compute_scores_snippet: 'def compute_scores(s, o): return {}'}"
    ),
    "all samples without metrics": scorer(
        "{type: python_all_samples, compute_scores_snippet: 'def compute_scores(s): return []'}"
    ),
    "list of choices": scorer("{type: string_equals_mcqa, ground_truth_choice: A, choices: [A, B]}"),
    "code in a sandbox": scorer("{type: code_exec, tests: t}"),
    "an agent": BASE.replace(
        "{type: pass_through_solver, trace_column: t}",
        "{type: agent_solver, tools: [bash], input_builder: {type: chat_completion, input_messages: [{role: user, content: a}]}}",
    ),
    "choices of an example": BASE.replace(
        "{type: pass_through_solver, trace_column: t}",
        "{type: single_turn_solver, input_builder: {type: chat_completion, input_messages: [{role: assistant, content: a, choices: [a, b]}]}}",
    ),
    "unconditioned query": BASE.replace(
        "{type: pass_through_solver, trace_column: t}",
        "{type: single_turn_solver, input_builder: {type: chat_completion, input_messages: [{role: user, content: a}], unconditioned_query: b}}",
    ),
    **{
        name: BASE.replace(
            "{type: pass_through_solver, trace_column: t}",
            f"{{type: single_turn_solver, input_builder: {{type: chat_completion, input_messages: [{{role: user, content: a}}], {name}: b}}}}",
        )
        for name in ("original_query", "fewshot_sorting_class")
    },
    "list of calls": scorer("{type: function_call_coverage, function_calls: [a]}"),
    "labels as a template": scorer(
        "{type: labeler_via_model, model_key: << config.m >>, user_prompt: x, valid_labels: << config.m >>}"
    ),
    "one trial": BASE.replace("  scorers:\n", "  trials: {num_trials: 1}\n  scorers:\n"),
    "one trial as text": BASE.replace("  scorers:\n", "  trials: {num_trials: '1'}\n  scorers:\n"),
    "top-level entity type": BASE.replace("definition:\n", "evaluated_entity_type: model\ndefinition:\n"),
    "declarative task": BASE.replace("definition:\n", "definition:\n  type: declarative_task\n"),
    "kind": BASE.replace("definition:\n", "definition:\n  kind: benchmark_task\n"),
    "solver key": BASE.replace("{type: pass_through_solver", "{key: pass_through_solver"),
    "source id": BASE.replace("{key: << config.d >>}", "{source: {id: rows}}"),
    "fast subset": BASE.replace("{key: << config.d >>}", "{key: << config.d >>, fast_subset_size: 1}"),
    "several defaults": BASE.replace(
        "config_spec: [",
        "config_spec: [{type: categorical, key: c, display_name: C, allowed_values: [a], multiple: true, default_value: [a]}, ",
    ),
    "template in max_iterations": BASE.replace(
        "{type: pass_through_solver, trace_column: t}",
        "{type: multi_turn_solver, message_builders: [{type: loop, max_iterations: << config.m >>, message_builders: [{type: generate, terminate_if: {includes: x}}]}]}",
    ),
    "score_min in a text": scorer(
        "{type: model_as_a_judge_scorer, model_key: << config.m >>, user_prompt: x, score_min: '0<< config.m >>'}"
    ),
    "literal key of another model": MULTI_TURN,
    "file_path": "key: d\ndisplay_name: D\nfile_path: x.csv\n",
    "key_info": "key: a\ndisplay_name: A\nkey_info: {}\n",
    "samples in the evaluation": "key: e\ndisplay_name: E\ndescription: ''\nnum_samples: 3\ntask_specifications: []\n",
    "mode": "key: e\ndisplay_name: E\ndescription: ''\nmode: debug\ntask_specifications: []\n",
    "literal model of a specification": "key: e\ndisplay_name: E\ndescription: ''\ntask_specifications: [{task_key: t, model_key: m}]\n",
    "literal dataset of a specification": "key: e\ndisplay_name: E\ndescription: ''\ntask_specifications: [{task_key: t, dataset_key: m}]\n",
    "literal subsampling of a specification": "key: e\ndisplay_name: E\ndescription: ''\ntask_specifications: [{task_key: t, subsampling: head}]\n",
    "config of a repeatability": "key: e\ndisplay_name: E\ndescription: ''\ntask_specifications: [{type: repeatability, config: {num_runs: 2}, inputs: [{evaluation_key: a, task_specification_key: b}]}]\n",
    "run files in a plan": "key: p\ndisplay_name: P\nevaluations: [{}]\n",
    "inference without a limit": "key: m\ndisplay_name: M\nconfig: {connection_type: custom_inference, run_inference_snippet: 'def run_inference(b, e): return b'}\n",
    "generator with literal keys": GENERATOR,
    "any in a list": "key: e\ndisplay_name: E\ndescription: ''\ntask_specifications: []\nuse_cases: [any]\n",
    "any among others": "key: e\ndisplay_name: E\ndescription: ''\ntask_specifications: []\nproviders: [openai, any]\n",
    "example without a name": BASE.replace(
        "config_spec: [",
        "config_spec: [{type: string, key: c, display_name: C, examples: [{value: a, display_name: ''}]}, ",
    ).replace("user_prompt: x", "user_prompt: << config.c >>"),
}

UNCHECKED_BY_THE_LOADER = {
    "template syntax": scorer("{type: string_equals, ground_truth: '{{ sample.', value: x}"),
    "python syntax": scorer("{type: python, metrics: [], compute_scores_snippet: 'def ('}"),
    "unknown parameter": scorer("{type: string_equals, ground_truth: << config.x >>}"),
    "two scorers of one key": scorer("{type: string_equals, key: a, ground_truth: x}")
    + "    - {type: bleu, key: a, ground_truth: x}\n",
    "range": BASE.replace(
        "config_spec: [", "config_spec: [{type: int, key: c, display_name: C, min: 3, max: 1}, "
    ),
    "default": BASE.replace(
        "config_spec: [",
        "config_spec: [{type: categorical, key: c, display_name: C, allowed_values: [a], default_value: b}, ",
    ),
    "score range": scorer(
        "{type: model_as_a_judge_scorer, model_key: << config.m >>, user_prompt: x, score_min: 2, score_max: 1}"
    ),
    "overlapping labels": scorer(
        "{type: model_as_a_judge_classifier, model_key: << config.m >>, user_prompt: x, correct_labels: [a], incorrect_labels: [a]}"
    ),
    "field that no score has": scorer(
        "{type: bleu, ground_truth: x, metrics: [{type: mean, field: is_correct}]}"
    ),
    "dataset without rows": "key: d\ndisplay_name: D\nsource: null\n",
}


@pytest.mark.parametrize("name", ACCEPTED_BY_BOTH)
def test_task_is_accepted_by_both_dialects(name: str, tmp_path: Path) -> None:
    assert errors_of(ACCEPTED_BY_BOTH[name], tmp_path, dialect="aigo-3.17") == []
    problems = [
        issue for issue in errors_of(ACCEPTED_BY_BOTH[name], tmp_path) if "parameter 'e'" not in issue.message
    ]
    assert problems == []


@pytest.mark.parametrize("name", WIDE_ONLY)
def test_task_is_accepted_by_default_and_rejected_by_release_3_17(name: str, tmp_path: Path) -> None:
    assert errors_of(WIDE_ONLY[name], tmp_path) == []
    refused = errors_of(WIDE_ONLY[name], tmp_path, dialect="aigo-3.17")
    assert refused
    assert all(issue.line is not None for issue in refused)


@pytest.mark.parametrize("name", UNCHECKED_BY_THE_LOADER)
def test_problems_that_the_platform_does_not_check_are_warnings(name: str, tmp_path: Path) -> None:
    assert errors_of(UNCHECKED_BY_THE_LOADER[name], tmp_path)
    issues = issues_of(UNCHECKED_BY_THE_LOADER[name], tmp_path, dialect="aigo-3.17")
    assert issues
    assert {issue.severity for issue in issues} == {"warning"}


def test_deprecated_forms_warn_in_release_3_17(tmp_path: Path) -> None:
    text = ACCEPTED_BY_BOTH["latticeflow format"]
    messages = [issue.message for issue in issues_of(text, tmp_path, dialect="aigo-3.17")]
    assert "'message_format: latticeflow' is deprecated" in messages


def test_run_file_errors_are_reported_for_each_included_file(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        read(RunSpec, write(tmp_path, RUN_FILES) / "run.yaml", dialect="aigo-3.17", env={})
    files = {Path(issue.file or "").name for issue in caught.value.issues if issue.severity == "error"}
    assert {"task.yaml", "run.yaml", "generator.yaml"} <= files
