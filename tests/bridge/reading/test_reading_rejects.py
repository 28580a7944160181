"""Invalid files with one error each: position, message and hint of the issue.

`⟦` in the replacement marks the expected position.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bridge.reading.reading_examples import (
    ACTION_RULE,
    ADAPTER,
    APP,
    CONNECTIONS,
    DATASET,
    GENERATED,
    GENERATOR,
    GROUPED,
    METHODOLOGY,
    MODEL,
    MULTI_TURN,
    PASS_THROUGH,
    PLAN,
    POLICY,
    PYTHON_SOLVER,
    RISK_SCORER,
    SINGLE_TURN,
    SYSTEM,
    broken,
    errors_of,
)

Row = tuple[str, str, str, str, str | None]
"""Example, what is replaced, by what, message, hint (`None`: not looked at)."""

QUOTES = "put it in quotes to make it text"
LETTERS = "expected letters, digits, '_' and '-' only"

TASK: list[Row] = [
    (SINGLE_TURN, "key: capital-quiz", "⟦tags2: []", "unknown key 'tags2'", None),
    (
        SINGLE_TURN,
        "key: capital-quiz",
        "key: ⟦capital quiz",
        f"'key': found 'capital quiz', {LETTERS}",
        "for example 'capital-quiz'",
    ),
    (SINGLE_TURN, "key: capital-quiz", "key: ⟦é", f"'key': found 'é', {LETTERS}", None),
    (
        SINGLE_TURN,
        "key: capital-quiz",
        'key: ⟦""',
        "'key': found an empty text",
        "expected at least one character",
    ),
    (
        SINGLE_TURN,
        "key: capital-quiz",
        "key: ⟦" + "k" * 251,
        "'key': found a text of 251 characters, expected at most 250",
        None,
    ),
    (SINGLE_TURN, "key: capital-quiz", "key: ⟦12", "'key': found the number 12, expected text", QUOTES),
    (SINGLE_TURN, "key: capital-quiz", "key: ⟦null", "'key': found null, expected text", None),
    (SINGLE_TURN, "key: capital-quiz", "key: ⟦[a]", "'key': found a list, expected text", None),
    (
        SINGLE_TURN,
        "key: capital-quiz",
        "key: a\n⟦key: b",
        "key 'key' is given twice; the first is in line 1",
        None,
    ),
    (
        SINGLE_TURN,
        "display_name: Capital quiz",
        "display_name: ⟦yes",
        "'display_name': found true, expected text",
        QUOTES,
    ),
    (
        SINGLE_TURN,
        "display_name: Capital quiz",
        "display_name: ⟦2024-01-01",
        "'display_name': found the date 2024-01-01, expected text",
        QUOTES,
    ),
    (
        SINGLE_TURN,
        "display_name: Capital quiz",
        "display_name: ⟦1.5",
        "'display_name': found the number 1.5, expected text",
        QUOTES,
    ),
    (
        SINGLE_TURN,
        "display_name: Capital quiz",
        "display_name: ⟦''",
        "'display_name': found an empty text",
        None,
    ),
    (
        SINGLE_TURN,
        "display_name: Capital quiz",
        "⟦displayname: x",
        "unknown key 'displayname'",
        "did you mean 'display_name'?",
    ),
    (
        SINGLE_TURN,
        "display_name: Capital quiz",
        "⟦title: x",
        "unknown key 'title'",
        "did you mean 'display_name'?",
    ),
    (
        SINGLE_TURN,
        "description: Asks for capitals.",
        "description: ⟦{a: b}",
        "'description': found a mapping, expected text",
        None,
    ),
    (
        SINGLE_TURN,
        'long_description: "# Capitals"',
        "long_description: ⟦[]",
        "'long_description': found a list, expected text",
        None,
    ),
    (
        SINGLE_TURN,
        "tasks: [chat_completion]",
        "tasks: [⟦chat]",
        "'tasks[0]': found 'chat', expected one of 'chat_completion', 'embeddings', 'custom'",
        None,
    ),
    (
        SINGLE_TURN,
        "tasks: [chat_completion]",
        "tasks: ⟦chat_completion",
        "'tasks': found 'chat_completion', expected a list",
        "write one list item per line, each after '- '",
    ),
    (
        SINGLE_TURN,
        "tags: [geography, quiz]",
        "tags: [a, ⟦1]",
        "'tags[1]': found the number 1, expected text",
        QUOTES,
    ),
    (
        SINGLE_TURN,
        "tags: [geography, quiz]",
        "tags: ⟦{a: b}",
        "'tags': found a mapping, expected a list",
        None,
    ),
    (SINGLE_TURN, "tags: [geography, quiz]", "⟦modality: x", "unknown key 'modality'", None),
]

PARAMETERS: list[Row] = [
    (
        SINGLE_TURN,
        "{type: float, key: low",
        "{type: ⟦number, key: low",
        "'type': found 'number', expected one of 'float', 'int', 'boolean', 'string', 'model', 'dataset', 'dataset_column', 'task_result', 'list', 'dict', 'categorical'",
        "did you mean 'float'?",
    ),
    (
        SINGLE_TURN,
        "{type: float, key: low",
        "⟦{key: low",
        "'type' is missing",
        "one of float, int, boolean, string, model, dataset, dataset_column, task_result, list, dict, categorical",
    ),
    (
        SINGLE_TURN,
        "min: 0, max: 10, default_value: 0.5",
        "min: ⟦lowest, max: 10",
        "'min': found 'lowest', expected a number",
        None,
    ),
    (
        SINGLE_TURN,
        "min: 0, max: 10, default_value: 0.5",
        "min: ⟦11, max: 10",
        "'min' is 11 and 'max' is 10, so no value is allowed",
        None,
    ),
    (
        SINGLE_TURN,
        "min: 0, max: 10, default_value: 0.5",
        "min: 0, max: 10, default_value: ⟦11",
        "'default_value': found 11, expected a number from 0 up to 10",
        None,
    ),
    (
        SINGLE_TURN,
        "min: 0, max: 10, default_value: 0.5",
        "min: ⟦.nan, max: 10",
        "'min': found nan, expected a finite number",
        None,
    ),
    (
        SINGLE_TURN,
        "min: 1, max: 10, default_value: 5",
        "min: 1, max: 10, default_value: ⟦5.5",
        "'default_value': found the number 5.5, expected an integer",
        None,
    ),
    (
        SINGLE_TURN,
        "min: 1, max: 10, default_value: 5",
        "min: 1, max: 10, default_value: ⟦0",
        "'default_value': found 0, expected a number from 1 up to 10",
        None,
    ),
    (
        SINGLE_TURN,
        "default_value: yes",
        "default_value: ⟦perhaps",
        "'default_value': found 'perhaps', expected true or false",
        None,
    ),
    (
        SINGLE_TURN,
        "default_value: yes",
        "default_value: ⟦2",
        "'default_value': found the number 2, expected true or false",
        None,
    ),
    (
        SINGLE_TURN,
        "string_kind: jinja",
        "string_kind: ⟦jnja",
        "'string_kind': found 'jnja', expected one of 'freeform', 'python', 'jinja'",
        "did you mean 'jinja'?",
    ),
    (
        SINGLE_TURN,
        'default_value: "{{ sample.style }}"',
        'default_value: "⟦{{ sample.style"',
        "unexpected end of template, expected 'end of print statement'",
        None,
    ),
    (
        SINGLE_TURN,
        "- {value: short, display_name: Short}",
        "- ⟦{value: short}",
        "'display_name' is missing",
        None,
    ),
    (
        SINGLE_TURN,
        "usage: judge_model",
        "usage: ⟦judge",
        "'usage': found 'judge', expected one of 'judge_model', 'productivity_assistant', 'synthesizer_model', 'model_under_test'",
        None,
    ),
    (
        SINGLE_TURN,
        "dtype: string",
        "dtype: ⟦str",
        "'dtype': found 'str', expected one of 'string', 'integer', 'float', 'boolean'",
        "did you mean 'string'?",
    ),
    (
        SINGLE_TURN,
        "dtype: string, default_value: [a, b]",
        "dtype: integer, default_value: [1, ⟦b]",
        "'default_value' [1]: found 'b', expected integer as 'dtype' says",
        None,
    ),
    (
        SINGLE_TURN,
        "default_value: {a: 1.5}",
        "default_value: {a: ⟦yes}",
        "'default_value' [a]: found true, expected float as 'value_dtype' says",
        None,
    ),
    (
        SINGLE_TURN,
        "default_value: {a: 1.5}",
        "default_value: ⟦[1]",
        "'default_value': found a list, expected a mapping",
        None,
    ),
    (
        SINGLE_TURN,
        "allowed_values: [dry, warm]",
        "allowed_values: [dry, warm, ⟦no]",
        "'allowed_values[2]': found false, expected text",
        QUOTES,
    ),
    (
        SINGLE_TURN,
        "values_mapping: {dry: 0, warm: 1.5}",
        "values_mapping: {dry: 0, warn: ⟦1.5}",
        "'values_mapping' has 'warn', which is not an allowed value",
        "did you mean 'warm'?",
    ),
    (
        SINGLE_TURN,
        "default_value: dry",
        "default_value: ⟦drie",
        "'default_value': found 'drie', expected one of 'dry', 'warm'",
        None,
    ),
    (
        SINGLE_TURN,
        "default_value: dry",
        "default_value: ⟦[dry]",
        "'default_value': found a list, expected one of the allowed values",
        "write 'multiple: true' if several may be chosen",
    ),
    (
        SINGLE_TURN,
        "type: int, key: high",
        "type: int, key: ⟦low",
        "parameter 'low' is declared twice; the other is [2]",
        None,
    ),
    (
        SINGLE_TURN,
        "key: low, display_name: Low",
        "key: low, display_name: ⟦''",
        "'display_name': found an empty text",
        None,
    ),
    (
        SINGLE_TURN,
        "nullable: false",
        "nullable: ⟦maybe",
        "'nullable': found 'maybe', expected true or false",
        None,
    ),
]

SOLVER: list[Row] = [
    (
        SINGLE_TURN,
        "source: dataset",
        "source: ⟦data",
        "'source': found 'data', expected one of 'dataset', 'task_result'",
        None,
    ),
    (
        SINGLE_TURN,
        "key: << config.dataset_key >>",
        "key: ⟦a b",
        f"'key': found 'a b', {LETTERS}",
        "for example 'a-b'",
    ),
    (
        SINGLE_TURN,
        "key: << config.dataset_key >>",
        "key: ⟦<< config.dataset >>",
        "unknown parameter 'dataset'",
        "did you mean '<< config.dataset_key >>'?",
    ),
    (
        SINGLE_TURN,
        "type: single_turn_solver",
        "type: ⟦single_turn",
        "'type': found 'single_turn', expected one of 'single_turn_solver', 'grouped_single_turn_solver', 'multi_turn_solver', 'pass_through_solver', 'python'",
        "did you mean 'single_turn_solver'?",
    ),
    (
        SINGLE_TURN,
        "type: single_turn_solver",
        "⟦typ: single_turn_solver",
        "unknown key 'typ'",
        "did you mean 'type'?",
    ),
    (
        SINGLE_TURN,
        "message_format: open_responses",
        "message_format: ⟦openai",
        "'message_format': found 'openai', expected one of 'latticeflow', 'open_responses'",
        None,
    ),
    (
        SINGLE_TURN,
        "type: chat_completion\n",
        "type: ⟦chat\n",
        "'type': found 'chat', expected one of 'chat_completion', 'generic'",
        None,
    ),
    (
        SINGLE_TURN,
        "- role: system",
        "- role: ⟦sytem",
        "'role': found 'sytem', expected one of 'user', 'system', 'assistant'",
        "did you mean 'system'?",
    ),
    (
        SINGLE_TURN,
        "- role: system",
        "- role: ⟦developer",
        "'role': found 'developer', expected one of 'user', 'system', 'assistant'",
        "did you mean 'system'?",
    ),
    (SINGLE_TURN, "- role: system", "- ⟦name: x\n          role: system", "unknown key 'name'", None),
    (
        SINGLE_TURN,
        "{{ sample.country }}?",
        "{{ ⟦smaple.country }}?",
        "unknown name 'smaple' in a template",
        "did you mean 'sample'?",
    ),
    (
        SINGLE_TURN,
        "{{ sample.country }}?",
        "{{ ⟦country }}?",
        "unknown name 'country' in a template",
        "available names: sample; write columns as {{ sample.country }}",
    ),
    (
        SINGLE_TURN,
        "{{ sample.country }}?",
        "{{ ⟦solver_output.output }}?",
        "unknown name 'solver_output' in a template",
        "no solver output is available here, only 'sample'",
    ),
    (
        SINGLE_TURN,
        "{{ sample.country }}?",
        "{{ ⟦model_input.messages }}?",
        "unknown name 'model_input' in a template",
        "deprecated: write 'messages', or columns of 'sample'",
    ),
    (
        SINGLE_TURN,
        "<< config.tone >>",
        "⟦<< config.ton >>",
        "unknown parameter 'ton'",
        "did you mean '<< config.tone >>'?",
    ),
    (
        SINGLE_TURN,
        "type: chat_completion\n",
        "type: chat_completion\n      ⟦response_format: {type: text}\n",
        "unknown key 'response_format'",
        None,
    ),
    (
        SINGLE_TURN,
        "  postprocessor:\n      type: python",
        "  postprocessor:\n      type: ⟦pyhton",
        "'type': found 'pyhton', expected 'python'",
        "did you mean 'python'?",
    ),
    (
        SINGLE_TURN,
        "def postprocess(sample, solver_output):\n",
        "def postprocess(sample, solver_output)⟦\n",
        "not Python: expected ':'",
        None,
    ),
    (
        SINGLE_TURN,
        "postprocess_snippet: |\n        def postprocess(",
        "postprocess_snippet: ⟦|\n        def post_process(",
        "the snippet does not define 'postprocess'",
        "'post_process' has a similar name",
    ),
    (
        MULTI_TURN,
        "keys: [first, second]",
        "keys: ⟦[]",
        "'keys': found an empty list, expected at least one entry",
        None,
    ),
    (
        MULTI_TURN,
        "keys: [first, second]",
        "⟦key: first\n    keys: [second]",
        "expected one of 'key' and 'keys', found both",
        None,
    ),
    (
        MULTI_TURN,
        "keys: [first, second]",
        "⟦source: dataset",
        "expected one of 'key' and 'keys', found neither",
        None,
    ),
    (
        MULTI_TURN,
        "type: load_trace",
        "type: ⟦load",
        "'type': found 'load', expected one of 'chat_message', 'generate', 'generate_message', 'load_trace', 'loop'",
        None,
    ),
    (
        MULTI_TURN,
        "trace_column: history",
        "⟦column: history",
        "unknown key 'column'",
        "did you mean 'trace_column'?",
    ),
    (
        MULTI_TURN,
        "{includes: <done>, keep_iteration: false}",
        "⟦{keep_iteration: false}",
        "'includes' is missing",
        None,
    ),
    (
        MULTI_TURN,
        "{includes: <done>, keep_iteration: false}",
        "{⟦equals: <done>, includes: x}",
        "unknown key 'equals'",
        None,
    ),
    (
        MULTI_TURN,
        "keep_iteration: false",
        "keep_iteration: ⟦sometimes",
        "'keep_iteration': found 'sometimes', expected true or false",
        None,
    ),
    (
        MULTI_TURN,
        "max_iterations: 3",
        "max_iterations: ⟦-1",
        "'max_iterations': found the number -1, expected 0 or more",
        None,
    ),
    (
        MULTI_TURN,
        "max_iterations: 3",
        "max_iterations: ⟦many",
        "'max_iterations': found 'many', expected an integer",
        None,
    ),
    (
        MULTI_TURN,
        "on_max_iterations: continue",
        "on_max_iterations: ⟦stop",
        "'on_max_iterations': found 'stop', expected one of 'error', 'continue'",
        None,
    ),
    (
        MULTI_TURN,
        "type: generate_message",
        "type: ⟦load_trace",
        "'type': found 'load_trace', expected one of 'chat_message', 'generate', 'generate_message', 'loop'",
        None,
    ),
    (
        MULTI_TURN,
        "model_key: openai$guest",
        "model_key: ⟦openai/guest",
        "'model_key': found 'openai/guest', expected letters, digits, '_', '-' and '$' only",
        "for example 'openai-guest'; choose the model when you run the task: --model-map 'KEY=PROVIDER/MODEL'",
    ),
    (
        MULTI_TURN,
        "include_conversation: false",
        "include_conversation: ⟦partly",
        "'include_conversation': found 'partly', expected true or false",
        None,
    ),
    (
        MULTI_TURN,
        "output_role: user",
        "output_role: ⟦tool",
        "'output_role': found 'tool', expected one of 'user', 'system', 'assistant'",
        None,
    ),
    (
        MULTI_TURN,
        "{type: chat_message, role: system, content: You are a guest., terminate_if: null}",
        "⟦{role: system, content: x}",
        "'type' is missing",
        None,
    ),
    (
        MULTI_TURN,
        "message_builders: [{type: generate}]",
        "message_builders: [{type: generate, ⟦model_key: x}]",
        "unknown key 'model_key'",
        None,
    ),
    (
        PASS_THROUGH,
        "trace_column: trace",
        "trace_column: ⟦[trace]",
        "'trace_column': found a list, expected text",
        None,
    ),
    (
        PASS_THROUGH,
        "{source: task_result, key: earlier}",
        "⟦{source: task_result}",
        "a 'task_result' needs 'key'",
        None,
    ),
    (
        PASS_THROUGH,
        "{source: task_result, key: earlier}",
        "⟦{source: task_result, key: a, keys: [b]}",
        "a 'task_result' accepts only 'key'",
        None,
    ),
    (
        PYTHON_SOLVER,
        "    run_solver_snippet: |",
        "    ⟦run_solver: |",
        "unknown key 'run_solver'",
        "did you mean 'run_solver_snippet'?",
    ),
    (
        PYTHON_SOLVER,
        "type: python\n",
        "type: python\n    ⟦message_format: latticeflow\n",
        "unknown key 'message_format'",
        None,
    ),
    (
        PYTHON_SOLVER,
        "async def run_solver(sample, model, trace):",
        "async def run_solver⟦(sample, model, trace:",
        "not Python: '(' was never closed",
        None,
    ),
    (
        GROUPED,
        "{type: generic, template:",
        "{type: ⟦chat_completion, template:",
        "'type': found 'chat_completion', expected 'generic'",
        None,
    ),
    (
        GROUPED,
        'template: "{{ sample.prompts | tojson }}"',
        "template: ⟦{messages: []}",
        "'template': found a mapping, expected text",
        None,
    ),
    (
        SYSTEM,
        "compute_evidence_snippet: |",
        "⟦evidence_snippet: |",
        "unknown key 'evidence_snippet'",
        "did you mean 'compute_evidence_snippet'?",
    ),
    (SYSTEM, "type: system_task\n", "type: system_task\n  ⟦scorers: []\n", "unknown key 'scorers'", None),
]

SCORERS: list[Row] = [
    (
        SINGLE_TURN,
        "- type: bleu\n",
        "- type: ⟦blue\n",
        "'type': found 'blue', expected one of 'string_equals', 'string_equals_mcqa', 'bleu', 'model_as_a_judge_classifier', 'model_as_a_judge_scorer', 'labeler_via_model', 'python', 'python_all_samples', 'rag_checker', 'function_call_coverage', 'code_exec'",
        "did you mean 'bleu'?",
    ),
    (
        SINGLE_TURN,
        "key: exact",
        "key: ⟦exact match",
        f"'key': found 'exact match', {LETTERS}",
        "for example 'exact-match'",
    ),
    (
        SINGLE_TURN,
        "- type: bleu\n",
        "- type: bleu\n      key: ⟦exact\n",
        "scorer 'exact' is declared twice; the other is [0]",
        None,
    ),
    (
        SINGLE_TURN,
        "purpose: score",
        "purpose: ⟦null",
        "'purpose': found null, expected one of 'score', 'qa'",
        None,
    ),
    (
        SINGLE_TURN,
        "purpose: qa",
        "purpose: ⟦quality",
        "'purpose': found 'quality', expected one of 'score', 'qa'",
        None,
    ),
    (
        SINGLE_TURN,
        'choices: \'["A", "B"]\'',
        "choices: [A, ⟦BB]",
        "choice 'BB' can never match: answers are compared by their first character",
        None,
    ),
    (
        SINGLE_TURN,
        'choices: \'["A", "B"]\'',
        "choices: ⟦AB",
        "'choices': found 'AB', expected a list of single letters",
        None,
    ),
    (
        SINGLE_TURN,
        "choices: [Paris, Lyon]",
        "choices: ⟦[Lyon, Nice]",
        "'choices': found ['Lyon', 'Nice'], expected 'Paris' to be one of them",
        None,
    ),
    (
        SINGLE_TURN,
        "content: Capital of France?",
        'content: Capital of France?\n          choices: ⟦["Capital of France?"]',
        "'choices' are only allowed for answers, but the role of this message is user",
        None,
    ),
    (
        SINGLE_TURN,
        'choices: \'["A", "B"]\'',
        "choices: ⟦4",
        "'choices': found the number 4, expected text or a list",
        QUOTES,
    ),
    (
        SINGLE_TURN,
        'choices: \'["A", "B"]\'',
        "choices: [A, ⟦2]",
        "'choices[1]': found the number 2, expected text",
        QUOTES,
    ),
    (
        SINGLE_TURN,
        "model_key: openai$gpt-4-1-nano",
        "model_key: ⟦gpt 4",
        "'model_key': found 'gpt 4', expected letters, digits, '_', '-' and '$' only",
        "for example 'gpt-4'",
    ),
    (
        SINGLE_TURN,
        "system_prompt: You judge.",
        "system_prompt: ⟦null",
        "'system_prompt': found null, expected text",
        None,
    ),
    (
        SINGLE_TURN,
        "correct_labels: [right]",
        "correct_labels: ⟦right",
        "'correct_labels': found 'right', expected a list",
        "write one list item per line, each after '- '",
    ),
    (
        SINGLE_TURN,
        "incorrect_labels: [wrong]",
        "incorrect_labels: [wrong, ⟦right]",
        "label 'right' is in both 'correct_labels' and 'incorrect_labels'",
        None,
    ),
    (
        SINGLE_TURN,
        "correct_labels: [right]",
        "correct_labels: [right, ⟦no]",
        "'correct_labels[1]': found false, expected text",
        QUOTES,
    ),
    (
        SINGLE_TURN,
        "use_structured_outputs: true",
        "use_structured_outputs: ⟦2",
        "'use_structured_outputs': found the number 2, expected true or false",
        None,
    ),
    (
        SINGLE_TURN,
        "score_min: << config.low >>",
        "score_min: ⟦low",
        "'score_min': found 'low', expected a number",
        None,
    ),
    (
        SINGLE_TURN,
        "score_min: << config.low >>\n      score_max: << config.high >>",
        "score_min: ⟦5\n      score_max: 1",
        "'score_min' is 5, expected less than 'score_max' (1)",
        None,
    ),
    (
        SINGLE_TURN,
        "score_max: << config.high >>",
        "score_max: ⟦.inf",
        "'score_max': found inf, expected a finite number",
        None,
    ),
    (
        SINGLE_TURN,
        "valid_labels: << config.labels >>",
        "valid_labels: ⟦null",
        "'valid_labels': found null, expected a list",
        None,
    ),
    (
        SINGLE_TURN,
        "{{ model_output }} {{ messages }}",
        "{{ model_output }} {{ ⟦message }}",
        "unknown name 'message' in a template",
        "did you mean 'messages'?",
    ),
    (
        SINGLE_TURN,
        "{{ model_output }} {{ messages }}",
        "⟦{% if %}",
        "expected an expression, got 'end of statement block'",
        None,
    ),
    (
        SINGLE_TURN,
        "scores_to_compute: [recall, faithfulness]",
        "scores_to_compute: [recall, ⟦faithfullness]",
        "'scores_to_compute[1]': found 'faithfullness', expected one of 'recall', 'precision', 'f1_score', 'claim_recall', 'context_precision', 'context_utilization', 'noise_sensitivity_in_relevant', 'noise_sensitivity_in_irrelevant', 'hallucination', 'self_knowledge', 'faithfulness'",
        "did you mean 'faithfulness'?",
    ),
    (
        SINGLE_TURN,
        "mode: required_only",
        "mode: ⟦required",
        "'mode': found 'required', expected one of 'all_claims', 'required_only', 'required_and_optional'",
        "did you mean 'required_only'?",
    ),
    (
        SINGLE_TURN,
        "judge_model_key: judge",
        "⟦model_key: judge",
        "unknown key 'model_key'",
        "did you mean 'judge_model_key'?",
    ),
    (
        SINGLE_TURN,
        "mode: in_order",
        "mode: ⟦ordered",
        "'mode': found 'ordered', expected one of 'any_order', 'in_order'",
        None,
    ),
    (SINGLE_TURN, "{name: book, arguments: {day: 1}}", "⟦{arguments: {day: 1}}", "'name' is missing", None),
    (
        SINGLE_TURN,
        "compute_scores_snippet: |\n        def compute_scores(samples):",
        "compute_scores_snippet: ⟦|\n        def compute(samples):",
        "the snippet does not define 'compute_scores'",
        None,
    ),
    (
        SINGLE_TURN,
        '            return {"tp": 1, "fp": 0, "fn": 0}',
        '            return ⟦{"tp": 1, "fp": 0, "fn": 0',
        "not Python: '{' was never closed",
        None,
    ),
]

METRICS: list[Row] = [
    (
        SINGLE_TURN,
        "{type: mean, key: mean, field: is_correct, name: Accuracy}",
        "{type: ⟦accuracy, field: is_correct}",
        "'type': found 'accuracy', expected one of 'mean', 'min', 'max', 'std_dev', 'frequency', 'weighted_average', 'precision', 'recall', 'f1_score', 'binary-classification', 'multiclass-classification', 'python'",
        "did you mean 'mean'?",
    ),
    (
        SINGLE_TURN,
        "{type: mean, key: mean, field: is_correct, name: Accuracy}",
        "{type: mean, field: ⟦is_corect}",
        "'field': the scorer does not return score 'is_corect'",
        "did you mean 'is_correct'?",
    ),
    (
        SINGLE_TURN,
        "{type: mean, key: mean, field: is_correct, name: Accuracy}",
        "⟦{type: mean, name: Accuracy}",
        "'field' is missing",
        None,
    ),
    (
        SINGLE_TURN,
        "{type: mean, key: mean, field: is_correct, name: Accuracy}",
        "{type: mean, field: is_correct, name: ⟦5}",
        "'name': found the number 5, expected text",
        QUOTES,
    ),
    (
        SINGLE_TURN,
        "{type: min, field: is_correct}",
        "{type: min, key: ⟦mean, field: is_correct}",
        "metric 'mean' is declared twice; the other is [0]",
        None,
    ),
    (
        SINGLE_TURN,
        "{type: frequency, field: is_correct}",
        "{type: frequency, field: is_correct, ⟦name: x}",
        "unknown key 'name'",
        None,
    ),
    (
        SINGLE_TURN,
        "{type: std_dev, field: is_correct}",
        "{type: ⟦stddev, field: is_correct}",
        "'type': found 'stddev', expected one of 'mean', 'min', 'max', 'std_dev', 'frequency', 'weighted_average', 'precision', 'recall', 'f1_score', 'binary-classification', 'multiclass-classification', 'python'",
        "did you mean 'std_dev'?",
    ),
    (
        SINGLE_TURN,
        "weights: {a: 1, b: 0.5}",
        "weights: ⟦{}",
        "'weights': found an empty mapping, expected at least one entry",
        None,
    ),
    (
        SINGLE_TURN,
        "weights: {a: 1, b: 0.5}",
        "weights: {a: ⟦one}",
        "'a': found 'one', expected a number",
        None,
    ),
    (
        SINGLE_TURN,
        "weights: {a: 1, b: 0.5}",
        "weights: {a: ⟦.nan}",
        "'a': found nan, expected a finite number",
        None,
    ),
    (
        SINGLE_TURN,
        "weights: {a: 1, b: 0.5}",
        "weights: {⟦1: 0.5}",
        "found the number 1 as a key, expected text",
        "put it in quotes",
    ),
    (
        SINGLE_TURN,
        "weights: {a: 1, b: 0.5}",
        "weights: {⟦yes: 0.5}",
        "found true as a key, expected text",
        "put it in quotes",
    ),
    (
        SINGLE_TURN,
        "num_true_positives_field: tp, num_false_positives_field: fp, name: p",
        "num_true_positives_field: tp, ⟦num_false_positive_field: fp",
        "unknown key 'num_false_positive_field'",
        "did you mean 'num_false_positives_field'?",
    ),
    (
        SINGLE_TURN,
        "{type: recall, num_true_positives_field: tp, num_false_negatives_field: fn}",
        "⟦{type: recall, num_true_positives_field: tp}",
        "'num_false_negatives_field' is missing",
        None,
    ),
    (
        SINGLE_TURN,
        "{type: binary-classification,",
        "{type: ⟦binary_classification,",
        "'type': found 'binary_classification', expected one of 'mean', 'min', 'max', 'std_dev', 'frequency', 'weighted_average', 'precision', 'recall', 'f1_score', 'binary-classification', 'multiclass-classification', 'python'",
        "did you mean 'binary-classification'?",
    ),
    (
        SINGLE_TURN,
        'negative_answer: "no"',
        "negative_answer: ⟦no",
        "'negative_answer': found false, expected text",
        QUOTES,
    ),
    (
        SINGLE_TURN,
        'negative_answer: "no"',
        'negative_answer: ⟦"yes"',
        "'positive_answer' and 'negative_answer' are the same",
        None,
    ),
    (
        SINGLE_TURN,
        "compute_metrics_snippet: |\n            async def compute_metrics(",
        "compute_metrics_snippet: ⟦|\n            async def compute_metric(",
        "the snippet does not define 'compute_metrics'",
        "'compute_metric' has a similar name",
    ),
    (SINGLE_TURN, "metrics: []", "metrics: ⟦mean", "'metrics': found 'mean', expected a list", None),
]

TRIALS: list[Row] = [
    (
        SINGLE_TURN,
        "num_trials: 5",
        "num_trials: ⟦0",
        "'num_trials': found the number 0, expected 1 or more",
        None,
    ),
    (
        SINGLE_TURN,
        "num_trials: 5",
        "num_trials: ⟦few",
        "'num_trials': found 'few', expected an integer",
        None,
    ),
    (
        SINGLE_TURN,
        "num_trials: 5",
        "num_trials: ⟦2.5",
        "'num_trials': found the number 2.5, expected an integer",
        None,
    ),
    (
        SINGLE_TURN,
        "function: mean}",
        "function: ⟦median}",
        "'function': found 'median', expected one of 'mean', 'min', 'max', 'pass@k', 'pass^k'",
        "did you mean 'mean'?",
    ),
    (
        SINGLE_TURN,
        "{function: pass@k, k: 3, score_name: any of 3}",
        "⟦{function: pass@k}",
        "'k' is missing",
        None,
    ),
    (
        SINGLE_TURN,
        "{function: pass@k, k: 3, score_name: any of 3}",
        "{function: pass@k, k: ⟦0}",
        "'k': found the number 0, expected 1 or more",
        None,
    ),
    (SINGLE_TURN, "{function: mean}", "{function: mean, ⟦k: 3}", "unknown key 'k'", None),
    (
        SINGLE_TURN,
        "action: exclude_from_metrics",
        "action: ⟦exclude",
        "'action': found 'exclude', expected 'exclude_from_metrics'",
        "did you mean 'exclude_from_metrics'?",
    ),
    (
        SINGLE_TURN,
        "op: equals",
        "op: ⟦equal",
        "'op': found 'equal', expected one of 'exists', 'not_exists', 'is_true', 'is_false', 'equals', 'not_equals', 'greater_than', 'less_than', 'greater_or_equal', 'less_or_equal', 'in', 'not_in'",
        "did you mean 'equals'?",
    ),
    (
        SINGLE_TURN,
        'is_correct }}", value: 1',
        'is_correct }}", value: ⟦null',
        "'value': found null, expected true or false or an integer or a number or text",
        None,
    ),
    (
        SINGLE_TURN,
        'is_correct }}", value: 1',
        'is_correct }}", ⟦values: [1]',
        "unknown key 'values'",
        "did you mean 'value'?",
    ),
    (
        SINGLE_TURN,
        'values: ["3", 6, true, 1.5]',
        "values: [1, ⟦null]",
        "'values[1]': found null, expected true or false or an integer or a number or text",
        None,
    ),
    (
        SINGLE_TURN,
        'values: ["3", 6, true, 1.5]',
        "values: ⟦3",
        "'values': found the number 3, expected a list",
        None,
    ),
    (
        SINGLE_TURN,
        "{op: is_true, expression:",
        "{op: is_true, ⟦value: 1, expression:",
        "unknown key 'value'",
        None,
    ),
    (
        SINGLE_TURN,
        "{{ sample.is_holdout }}",
        "{{ ⟦score.exact.is_correct }}",
        "unknown name 'score' in a template",
        "did you mean 'scores'?",
    ),
    (
        SINGLE_TURN,
        "key: drop-some",
        "key: ⟦drop-other",
        "action rule 'drop-other' is declared twice; the other is [0]",
        None,
    ),
]

ENTITIES: list[Row] = [
    (
        DATASET,
        "type: local",
        "type: ⟦file",
        "'type': found 'file', expected one of 'local', 'url', 'folder', 'huggingface', 'inspect_ai', 'claude_code', 'langsmith', 'phoenix', 'opentelemetry'",
        "did you mean 'local'?",
    ),
    (
        DATASET,
        "file_path: ./capitals.csv",
        "⟦path: ./capitals.csv",
        "unknown key 'path'",
        "did you mean 'file_path'?",
    ),
    (
        DATASET,
        "op: not_in",
        "op: ⟦notin",
        "'op': found 'notin', expected one of 'exists', 'not_exists', 'is_true', 'is_false', 'equals', 'not_equals', 'greater_than', 'less_than', 'greater_or_equal', 'less_or_equal', 'in', 'not_in'",
        "did you mean 'not_in'?",
    ),
    (
        DATASET,
        "{{ capital }}",
        "⟦{{ capital",
        "unexpected end of template, expected 'end of print statement'",
        None,
    ),
    (DATASET, "value: 10", "value: ⟦.inf", "'value': found inf, expected a finite number", None),
    (DATASET, "tags: [geography]", "⟦tag: geography", "unknown key 'tag'", "did you mean 'tags'?"),
    (
        GENERATED,
        "num_samples: 10",
        "num_samples: ⟦0",
        "'num_samples': found the number 0, expected 1 or more",
        None,
    ),
    (
        GENERATED,
        "dataset_generator_config: {topic: tax}",
        "dataset_generator_config: ⟦null",
        "'dataset_generator_config': found null, expected a mapping",
        None,
    ),
    (GENERATED, "{enabled: true, include_io: false}", "⟦{enabled: true}", "'include_io' is missing", None),
    (
        GENERATED,
        "  num_samples: 10\n",
        "  num_samples: ⟦ten\n",
        "'num_samples': found 'ten', expected an integer",
        None,
    ),
    (
        GENERATOR,
        "type: inline_samples",
        "type: ⟦inline",
        "'type': found 'inline', expected one of 'empty', 'dataset_samples', 'dataset_sample_combinations', 'inline_samples', 'task_result'",
        "did you mean 'inline_samples'?",
    ),
    (
        GENERATOR,
        "{type: drop_columns, columns: [a]}",
        "{type: drop_columns, columns: ⟦a}",
        "'columns': found 'a', expected a list",
        None,
    ),
    (
        GENERATOR,
        "{{ source.a }} {b}",
        "⟦{{ source.a {b}",
        "expected token 'end of print statement', got '{'",
        None,
    ),
    (
        GENERATOR,
        "<< config.topic >>",
        "⟦<< config.topc >>",
        "unknown parameter 'topc'",
        "did you mean '<< config.topic >>'?",
    ),
    (
        GENERATOR,
        "qa_type: open_ended",
        "qa_type: ⟦open",
        "'qa_type': found 'open', expected one of 'multiple_choice', 'open_ended'",
        None,
    ),
    (
        GENERATOR,
        "synthesize_snippet: |\n        def synthesize(",
        "synthesize_snippet: ⟦|\n        def synthesise(",
        "the snippet does not define 'synthesize'",
        "'synthesise' has a similar name",
    ),
    (GENERATOR, "fields: {b: [1, 2]}", "fields: {b: ⟦1}", "'b': found the number 1, expected a list", None),
    (
        MODEL,
        "key: local$llm",
        "key: ⟦local/llm",
        "'key': found 'local/llm', expected letters, digits, '_', '-' and '$' only",
        "for example 'local-llm'",
    ),
    (
        MODEL,
        "max_concurrent_requests: 4",
        "max_concurrent_requests: ⟦0",
        "'max_concurrent_requests': found the number 0, expected 1 or more",
        None,
    ),
    (
        MODEL,
        "rate_limit: 60",
        "rate_limit: ⟦0",
        "'rate_limit': found 0, expected 1 request per minute or more",
        None,
    ),
    (
        MODEL,
        "task: chat_completion",
        "task: ⟦chat",
        "'task': found 'chat', expected one of 'chat_completion', 'embeddings', 'custom'",
        None,
    ),
    (
        MODEL,
        "connection_type: custom_connection",
        "connection_type: ⟦custom",
        "'connection_type': found 'custom', expected one of 'custom_connection', 'custom_inference', 'provider_connection', 'langsmith', 'azure_foundry', 'aws_bedrock', 'claude_managed_agents', 'dify', 'placeholder'",
        None,
    ),
    (
        MODEL,
        "adapter: {key: latticeflow$openai_chat_completion}",
        "adapter: ⟦latticeflow$openai",
        "'adapter': found 'latticeflow$openai', expected a mapping",
        None,
    ),
    (
        MODEL,
        "api_key: << secrets.KEY >>",
        "api_key: ⟦<< secrets.KYE >>",
        "unknown secret 'KYE'",
        "did you mean '<< secrets.KEY >>'?",
    ),
    (
        MODEL,
        "api_key: << secrets.KEY >>",
        "api_key: ⟦{name: KEY}",
        "'api_key': found a mapping, expected text",
        None,
    ),
    (
        MODEL,
        "accept_untrusted",
        "⟦accept",
        "'trust_chain_verification': found 'accept', expected one of 'verify_trust_chain', 'accept_untrusted'",
        None,
    ),
    (
        ADAPTER,
        '{language: jinja, source_code: "{{ input',
        '{language: ⟦python, source_code: "{{ input',
        "'language': found 'python', expected 'jinja'",
        None,
    ),
    (
        ADAPTER,
        "{{ body }}",
        "⟦{{ body",
        "unexpected end of template, expected 'end of print statement'",
        None,
    ),
    (
        ADAPTER,
        "provider: user",
        "provider: ⟦me",
        "'provider': found 'me', expected one of 'latticeflow', 'user'",
        None,
    ),
    (
        PLAN,
        "evaluation_key: eval",
        "⟦evaluation: eval",
        "unknown key 'evaluation'",
        "did you mean 'evaluation_key'?",
    ),
    (
        PLAN,
        "{num_samples: 1}",
        "{num_samples: ⟦0}",
        "'num_samples': found the number 0, expected 1 or more",
        None,
    ),
    (
        APP,
        "autonomy: human_in_the_loop",
        "autonomy: ⟦human",
        "'autonomy': found 'human', expected one of 'human_in_the_loop', 'human_on_the_loop', 'fully_autonomous'",
        None,
    ),
    (
        POLICY,
        'operator: ">="',
        'operator: ⟦"=="',
        "'operator': found '==', expected one of '>', '>=', '=', '<', '<='",
        "did you mean '='?",
    ),
    (POLICY, "threshold: 0.9", "threshold: ⟦high", "'threshold': found 'high', expected a number", None),
    (
        POLICY,
        "scope: all_latest",
        "scope: ⟦latest",
        "'scope': found 'latest', expected 'all_latest' or a mapping",
        None,
    ),
    (
        POLICY,
        "evaluation_keys: [eval]",
        "⟦evaluations: [eval]",
        "unknown key 'evaluations'",
        "did you mean 'evaluation_keys'?",
    ),
    (
        RISK_SCORER,
        "aggregation: mean",
        "aggregation: ⟦median",
        "'aggregation': found 'median', expected one of 'mean', 'max', 'min'",
        "did you mean 'mean'?",
    ),
    (
        METHODOLOGY,
        "{type: float, key: a",
        "{type: ⟦string, key: a",
        "'type': found 'string', expected one of 'float', 'int', 'categorical'",
        None,
    ),
    (
        ACTION_RULE,
        "op: not_exists",
        "op: ⟦absent",
        "'op': found 'absent', expected one of 'exists', 'not_exists', 'is_true', 'is_false', 'equals', 'not_equals', 'greater_than', 'less_than', 'greater_or_equal', 'less_or_equal', 'in', 'not_in'",
        None,
    ),
]

YAML: list[Row] = [
    (
        SINGLE_TURN,
        "description: Asks for capitals.",
        "description: Asks⟦: for capitals.",
        "not YAML: mapping values are not allowed in this context",
        "a text with ': ' in it needs quotes",
    ),
    (
        SINGLE_TURN,
        "description: Asks for capitals.",
        "description: ⟦@home",
        "not YAML: found character that cannot start any token, while scanning for the next token",
        None,
    ),
    (
        SINGLE_TURN,
        "description: Asks for capitals.",
        "description: ⟦*home",
        "not YAML: found undefined alias",
        "a value that starts with '*' needs quotes",
    ),
    (SINGLE_TURN, "description: Asks for capitals.", "description: ⟦!home x", "unknown tag '!home'", None),
    (
        SINGLE_TURN,
        "description: Asks for capitals.",
        "description: ⟦!!python/name:os.system x",
        "unknown tag '!!python/name:os.system'",
        None,
    ),
    (
        SINGLE_TURN,
        "description: Asks for capitals.",
        "description: {⟦{ sample.x }}",
        "a mapping or list cannot be a key",
        'put templates in quotes: "{{ … }}"',
    ),
    (SINGLE_TURN, "description: Asks for capitals.", "description: ⟦!!int x", "'x' is not a int", None),
    (
        SINGLE_TURN,
        "tags: [geography, quiz]",
        "tags:\n⟦\t- geography",
        "not YAML: found character that cannot start any token, while scanning for the next token",
        None,
    ),
    (
        SINGLE_TURN,
        "tags: [geography, quiz]",
        "<<: ⟦5",
        "'<<' takes a mapping (an alias) or a list of them",
        None,
    ),
    (
        SINGLE_TURN,
        "description: Asks for capitals.",
        "description: ⟦!include missing.md",
        "!include: 'missing.md' does not exist",
        None,
    ),
    (
        SINGLE_TURN,
        "description: Asks for capitals.",
        "description: ⟦!include [a]",
        "'!include' takes the path of one text file",
        None,
    ),
    (
        SINGLE_TURN,
        "description: Asks for capitals.",
        "description: ⟦!include ../x.md",
        "!include: '../x.md' is outside the root folder",
        None,
    ),
    (
        SINGLE_TURN,
        "- {type: dataset, key: dataset_key, display_name: Data, default_value: capitals}",
        "- $ref: ⟦missing.yaml",
        "$ref: 'missing.yaml' does not exist",
        None,
    ),
    (
        SINGLE_TURN,
        "- {type: dataset, key: dataset_key, display_name: Data, default_value: capitals}",
        "- $ref: ⟦[a]",
        "'$ref' takes the path of one YAML file",
        None,
    ),
    (
        SINGLE_TURN,
        "- {type: dataset, key: dataset_key, display_name: Data, default_value: capitals}",
        "- $ref: ⟦https://example.org/x.yaml",
        "'$ref' takes the path of a file, found 'https://example.org/x.yaml'",
        "URLs and fragments are not supported",
    ),
    (
        SINGLE_TURN,
        "- {type: dataset, key: dataset_key, display_name: Data, default_value: capitals}",
        "- $ref: ⟦'#/x'",
        "'$ref' takes the path of a file, found '#/x'",
        None,
    ),
    (
        SINGLE_TURN,
        "- {type: dataset, key: dataset_key, display_name: Data, default_value: capitals}",
        "- $ref: ⟦file.yaml",
        "files refer to each other in a circle: file.yaml → file.yaml",
        None,
    ),
]

ROWS = [row for rows in (TASK, PARAMETERS, SOLVER, SCORERS, METRICS, TRIALS, ENTITIES, YAML) for row in rows]


def test_error_table_has_enough_rows() -> None:
    assert len(ROWS) >= 150


@pytest.mark.parametrize(
    ("example", "old", "new", "message", "hint"),
    ROWS,
    ids=[f"{index}-{row[3][:40]}" for index, row in enumerate(ROWS)],
)
def test_error_is_reported_at_its_position(
    example: str, old: str, new: str, message: str, hint: str | None, tmp_path: Path
) -> None:
    text, line, column = broken(example, old, new)
    issues = errors_of(text, tmp_path)
    said = [(issue.message, issue.line, issue.column) for issue in issues]
    found = [
        issue
        for issue in issues
        if (issue.line, issue.column) == (line, column) and _same(issue.message, message)
    ]
    assert found, said
    if hint is not None:
        assert found[0].hint == hint
    assert found[0].source_line == text.split("\n")[line - 1]


def _same(found: str, expected: str) -> bool:
    # Folders differ between runs; the text after them is the same.
    return (
        found == expected
        or found.startswith(expected)
        or found.replace(str(Path(found).parent), "") == expected
    )


def test_solver_without_dataset_is_reported_at_the_definition(tmp_path: Path) -> None:
    text = SINGLE_TURN.replace("  dataset:\n    source: dataset\n    key: << config.dataset_key >>\n", "")
    (issue,) = [issue for issue in errors_of(text, tmp_path) if "dataset" in issue.message]
    assert issue.message == "a task with a solver needs 'dataset', found none"
    assert issue.path == ("definition",)


def test_missing_dataset_is_reported_together_with_other_errors(tmp_path: Path) -> None:
    text = SINGLE_TURN.replace("  dataset:\n    source: dataset\n    key: << config.dataset_key >>\n", "")
    text = text.replace("purpose: qa", "purpose: quality")
    messages = [issue.message for issue in errors_of(text, tmp_path)]
    assert "a task with a solver needs 'dataset', found none" in messages
    assert "'purpose': found 'quality', expected one of 'score', 'qa'" in messages


def test_a_system_task_without_type_is_checked_as_a_benchmark_task(tmp_path: Path) -> None:
    (issue,) = errors_of(SYSTEM.replace("  type: system_task\n", ""), tmp_path)
    assert issue.message == "unknown key 'compute_evidence_snippet'"


@pytest.mark.parametrize("connection", CONNECTIONS)
def test_a_connection_without_its_last_field_is_refused(connection: str, tmp_path: Path) -> None:
    last = CONNECTIONS[connection].rstrip("}").rsplit(", ", 1)
    if connection in {"default", "placeholder", "custom_inference", "aws_bedrock"}:
        return  # their last field is the only one, or is optional
    text = MODEL[: MODEL.index("config:")] + f"config: {last[0]}}}\n"
    name = last[1].split(":")[0]
    assert [issue.message for issue in errors_of(text, tmp_path)] == [f"{name!r} is missing"]


def test_all_errors_are_reported_together_in_line_order(tmp_path: Path) -> None:
    text = SINGLE_TURN
    for old, new in (
        ("purpose: qa", "purpose: q"),
        ("key: exact", "key: e x"),
        ("num_trials: 5", "num_trials: x"),
    ):
        text = text.replace(old, new, 1)
    issues = errors_of(text, tmp_path)
    assert len(issues) == 3
    assert [issue.line for issue in issues] == sorted(issue.line or 0 for issue in issues)


def test_misspelt_required_key_is_one_issue(tmp_path: Path) -> None:
    """A misspelt required key is not also reported as missing."""
    (issue,) = errors_of(SINGLE_TURN.replace("ground_truth_choice:", "ground_truth_choise:", 1), tmp_path)
    assert (issue.message, issue.hint) == (
        "unknown key 'ground_truth_choise'",
        "did you mean 'ground_truth_choice'?",
    )
