"""Valid files of every kind that together use every field, and a function that breaks one at a marked position."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from pydantic import BaseModel

from aigo_bridge.errors import Issue, SpecError
from aigo_bridge.reading import Dialect, read

HERE = "⟦"
"""In a broken text: where the issue must point to."""

SINGLE_TURN = dedent(
    """\
    key: capital-quiz
    display_name: Capital quiz
    description: Asks for capitals.
    long_description: "# Capitals"
    tasks: [chat_completion]
    tags: [geography, quiz]
    needs: network
    config_spec:
      - {type: dataset, key: dataset_key, display_name: Data, default_value: capitals}
      - {type: model, key: judge, display_name: Judge, default_value: null, usage: judge_model, description: Who judges}
      - {type: float, key: low, display_name: Low, min: 0, max: 10, default_value: 0.5, nullable: false}
      - {type: int, key: high, display_name: High, min: 1, max: 10, default_value: 5}
      - {type: boolean, key: flag, display_name: Flag, default_value: yes}
      - type: string
        key: style
        display_name: Style
        string_kind: jinja
        default_value: "{{ sample.style }}"
        default_file_content: ""
        examples:
          - {value: short, display_name: Short}
      - {type: dataset_column, key: column, display_name: Column, default_value: answer}
      - {type: task_result, key: earlier, display_name: Earlier, default_value: null, nullable: true}
      - {type: list, key: labels, display_name: Labels, dtype: string, default_value: [a, b]}
      - {type: dict, key: weights, display_name: Weights, value_dtype: float, default_value: {a: 1.5}}
      - type: categorical
        key: tone
        display_name: Tone
        allowed_values: [dry, warm]
        multiple: false
        values_mapping: {dry: 0, warm: 1.5}
        default_value: dry
    definition:
      type: benchmark_task
      dataset:
        source: dataset
        key: << config.dataset_key >>
      solver:
        type: single_turn_solver
        message_format: open_responses
        input_builder:
          type: chat_completion
          input_messages:
            - role: system
              content: "Answer << config.tone >> and << config.style >>, << config.flag >>, << config.earlier >>."
            - role: user
              content: Capital of France?
            - role: assistant
              content: Paris
              choices: [Paris, Lyon]
            - role: user
              content: "Capital of {{ sample.country }}?"
          unconditioned_query: "Capital?"
          original_query: "{{ sample.country }}"
          fewshot_sorting_class: "{{ sample.country }}"
        postprocessor:
          type: python
          postprocess_snippet: |
            def postprocess(sample, solver_output):
                return [(sample, solver_output)]
      scorers:
        - type: string_equals
          key: exact
          display_name: Exact
          purpose: score
          ground_truth: "{{ sample.<< config.column >> }}"
          value: "{{ solver_output.output }}"
          metrics:
            - {type: mean, key: mean, field: is_correct, name: Accuracy}
            - {type: min, field: is_correct}
            - {type: max, field: is_correct}
            - {type: std_dev, field: is_correct}
            - {type: frequency, field: is_correct}
        - type: string_equals_mcqa
          ground_truth_choice: "{{ sample.letter }}"
          choices: '["A", "B"]'
          metrics: []
        - type: string_equals_mcqa
          key: by_likelihood
          method: loglikelihood
          ground_truth_choice: "{{ sample.letter }}"
          choices: '["first", "second"]'
          continuations: "{{ sample.endings }}"
          length_normalisation: tokens
        - type: bleu
          ground_truth: "{{ sample.answer }}"
          value: "{{ solver_output.output }}"
        - type: model_as_a_judge_classifier
          model_key: openai$gpt-4-1-nano
          system_prompt: You judge.
          user_prompt: "{{ model_output }} {{ messages }} {{ trace }}"
          correct_labels: [right]
          incorrect_labels: [wrong]
          use_structured_outputs: true
        - type: model_as_a_judge_scorer
          model_key: << config.judge >>
          system_prompt: You rate.
          user_prompt: "{{ input_prompt }}"
          score_min: << config.low >>
          score_max: << config.high >>
        - type: labeler_via_model
          model_key: << config.judge >>
          system_prompt: You label.
          user_prompt: "{{ sample.answer }}"
          valid_labels: << config.labels >>
          metrics:
            - {type: weighted_average, field: label, weights: {a: 1, b: 0.5}, name: w}
            - {type: weighted_average, field: label, weights: << config.weights >>, key: other}
        - type: python
          compute_scores_snippet: |
            def compute_scores(sample, solver_output):
                return {"tp": 1, "fp": 0, "fn": 0}
          metrics:
            - {type: precision, num_true_positives_field: tp, num_false_positives_field: fp, name: p}
            - {type: recall, num_true_positives_field: tp, num_false_negatives_field: fn}
            - type: f1_score
              num_true_positives_field: tp
              num_false_positives_field: fp
              num_false_negatives_field: fn
            - {type: binary-classification, field_gt: gt, field_pred: pred, positive_answer: "yes", negative_answer: "no"}
            - {type: multiclass-classification, field_gt: gt, field_pred: pred}
            - type: python
              compute_metrics_snippet: |
                async def compute_metrics(scores):
                    return {}
        - type: python_all_samples
          purpose: qa
          compute_scores_snippet: |
            def compute_scores(samples):
                return [{} for sample in samples]
        - type: rag_checker
          judge_model_key: judge
          query_column: query
          target_column: target
          scores_to_compute: [recall, faithfulness]
          mode: required_only
          target_claims_column: tc
          response_claims_column: rc
          claim_extraction_instructions: Split.
          target_labels_column: tl
          response_labels_column: rl
          claim_labeling_instructions: Label.
        - type: function_call_coverage
          function_calls: [search, {name: book, arguments: {day: 1}}]
          mode: in_order
        - type: code_exec
          tests: tests
          code: "{{ solver_output.output.choices[0].message.content }}"
          post_process: extract_code_block
          when: "{{ sample.language == 'python' }}"
      trials:
        num_trials: 5
        score_aggregators:
          - score_name: is_correct
            aggregator: {function: pass@k, k: 3, score_name: any of 3}
          - score_name: is_correct
            aggregator: {function: "pass^k", k: 3}
          - score_name: is_correct
            aggregator: {function: mean}
          - score_name: is_correct
            aggregator: {function: min}
          - score_name: is_correct
            aggregator: {function: max}
      actions:
        - key: drop-other
          action: exclude_from_metrics
          filter: {op: equals, expression: "{{ scores.exact.is_correct }}", value: 1}
        - key: drop-some
          action: exclude_from_metrics
          filter: {op: in, expression: "{{ sample.sample_id }}", values: ["3", 6, true, 1.5]}
        - key: drop-held
          action: exclude_from_metrics
          filter: {op: is_true, expression: "{{ sample.is_holdout }}"}
    """
)

MULTI_TURN = dedent(
    """\
    key: menu
    display_name: Menu
    description: ""
    definition:
      dataset:
        keys: [first, second]
      solver:
        type: multi_turn_solver
        message_format: latticeflow
        message_builders:
          - {type: load_trace, trace_column: history}
          - {type: chat_message, role: user, content: "Menu for {{ sample.guests }}?"}
          - {type: generate, terminate_if: {includes: <done>, keep_iteration: false}}
          - type: loop
            max_iterations: 3
            on_max_iterations: continue
            message_builders:
              - type: generate_message
                model_key: openai$guest
                include_conversation: false
                output_role: user
                extra_input_messages:
                  - {type: chat_message, role: system, content: You are a guest., terminate_if: null}
                terminate_if: {includes: thanks}
              - {type: loop, message_builders: [{type: generate}], on_max_iterations: continue}
      scorers: []
    """
)

PASS_THROUGH = dedent(
    """\
    key: recorded
    display_name: Recorded
    description: ""
    definition:
      dataset: {source: task_result, key: earlier}
      solver: {type: pass_through_solver, trace_column: trace, message_format: open_responses}
    """
)

PYTHON_SOLVER = dedent(
    """\
    key: coded
    display_name: Coded
    description: ""
    definition:
      dataset: {key: rows}
      solver:
        type: python
        run_solver_snippet: |
          async def run_solver(sample, model, trace):
              return trace
    """
)

GROUPED = dedent(
    """\
    key: grouped
    display_name: Grouped
    description: ""
    definition:
      dataset: {key: rows}
      solver:
        type: grouped_single_turn_solver
        input_builder: {type: generic, template: "{{ sample.prompts | tojson }}"}
    """
)

AGENT = dedent(
    """\
    key: repair
    display_name: Repair
    description: ""
    definition:
      dataset: {key: rows}
      solver:
        type: agent_solver
        name: engineer
        input_builder:
          type: chat_completion
          input_messages: [{role: user, content: "{{ sample.issue }}"}]
        tools: [bash, python, text_editor]
        agents:
          - name: reviewer
            description: Reads code.
            prompt: Look at the code and say what is wrong.
            tools: [bash]
        files: files
        output_files: [module.py]
        message_limit: 20
    """
)

SYSTEM = dedent(
    """\
    key: https
    display_name: HTTPS
    description: ""
    config_spec: [{type: string, key: url, display_name: URL}]
    definition:
      type: system_task
      compute_evidence_snippet: |
        def compute_evidence():
            return {"metrics": {"url": {"value": len("<< config.url >>")}}}
    """
)

DATASET = dedent(
    """\
    key: capitals
    display_name: Capitals
    description: Countries and capitals.
    long_description: ""
    tags: [geography]
    source:
      type: local
      file_path: ./capitals.csv
      filters:
        - {op: not_in, expression: "{{ sample.country }}", values: [Wales]}
        - {op: exists, expression: "{{ capital }}"}
        - {op: greater_or_equal, expression: "{{ sample.size }}", value: 10}
    """
)

SOURCES = {
    "url": "{type: url, url: 'https://example.org/x.csv', filters: []}",
    "folder": "{type: folder, directory_path: ./docs, extension: md, filters: []}",
    "huggingface": "{type: huggingface, path: a/b, split: test, load_dataset_kwargs: {revision: main}, filters: [], num_rows: 2,"
    f" digest: {'ab' * 32}}}",
    "inspect_ai": "{type: inspect_ai, path: ./logs, limit: 10}",
    "claude_code": "{type: claude_code, path: ./s, session_id: x, from_time: 2024-01-01, to_time: '2024-02-01T00:00:00', limit: 5}",
    "langsmith": "{type: langsmith, project: p, dataset: d, api_key: k, api_url: u, filter: f, from_time: 1700000000, to_time: null, limit: 1, tags: [a], path: r.jsonl}",
    "phoenix": "{type: phoenix, project: p, trace_id: [a, b], session_id: s, from_time: null, to_time: null, limit: 1, tags: [a], metadata: {a: b}, api_key: k, base_url: u, path: s.json}",
    "opentelemetry": "{type: opentelemetry, path: t.json, trace_id: [a], session_id: s, from_time: 2024-01-01, to_time: null, limit: 1}",
}

GENERATED = dedent(
    """\
    key: made
    display_name: Made
    generator_specification:
      dataset_generator_key: bias
      num_samples: 10
      dataset_generator_config: {topic: tax}
      debug: {enabled: true, include_io: false}
    """
)

GENERATOR = dedent(
    """\
    key: bias
    display_name: Bias
    description: ""
    long_description: null
    secrets: {TOKEN: x}
    config_spec: [{type: string, key: topic, display_name: Topic}]
    definition:
      type: declarative_dataset_generator
      dataset: {type: inline_samples, samples: [{a: 1}, {a: "{{ not a template"}]}
      synthesizers:
        - {type: empty}
        - type: llm
          model_key: writer
          sample_properties: {question: {type: string}}
          user_prompt_template: "About << config.topic >>: {{ source.a }}"
          system_prompt: Write.
          format_instructions: JSON.
          use_structured_outputs: true
        - {type: template, template: ["{{ source.a }} {b}"], fields: {b: [1, 2]}}
        - type: python
          synthesize_snippet: |
            def synthesize(source):
                return [source]
        - {type: drop_columns, columns: [a]}
        - {type: claim_extraction, model_key: m, output_field: c, instructions: x, columns: {question: q, answer: a}}
        - {type: claim_labeling, model_key: m, output_field: l, columns: {question: q, answer: a, claims: c}}
        - {type: link_claim_quotes, model_key: m, output_field: q, columns: {question: q, answer: a, claims: c}}
        - {type: llm, model_key: m, sample_properties: {}, file_ids_field: ids}
        - {type: question_answering, model_key: m, qa_type: open_ended, content_column: t, title_column: t, summary_column: s, system_prompt: s, user_prompt: u, additional_instructions: none}
    """
)

GENERATOR_SOURCES = {
    "empty": "{type: empty, num_samples: 3}",
    "dataset_samples": "{type: dataset_samples, key: rows, random_seed: 1}",
    "dataset_sample_combinations": "{type: dataset_sample_combinations, keys: [a, b], random_seed: null}",
    "task_result": "{type: task_result, ai_app_key: app, key: result}",
}

MODEL = dedent(
    """\
    key: local$llm
    display_name: Local
    description: null
    rate_limit: 60
    max_concurrent_requests: 4
    task: chat_completion
    secrets: {KEY: x}
    config:
      connection_type: custom_connection
      url: https://example.org/v1
      adapter: {key: latticeflow$openai_chat_completion}
      api_key: << secrets.KEY >>
      model_key: llm
      tls_context: {validation_context: {trusted_ca: abc, trust_chain_verification: accept_untrusted}}
      custom_headers: {a: b, n: 1, t: true, s: {name: KEY}}
    """
)

CONNECTIONS = {
    "default": "{url: 'https://example.org'}",
    "custom_inference": "{connection_type: custom_inference, run_inference_snippet: 'def run_inference(body, environment): return body', environment: {A: 1}, timeout: 10.5, adapter: {key: a}}",
    "provider_connection": "{connection_type: provider_connection, provider_id: openai, model_key: gpt-4o}",
    "langsmith": "{connection_type: langsmith, deploy_url: u, assistant_id: a, api_key: {name: KEY}}",
    "azure_foundry": "{connection_type: azure_foundry, project_endpoint: e, agent_name: n, tenant_id: t, client_id: c, client_secret: s}",
    "aws_bedrock": "{connection_type: aws_bedrock, region: r, harness_arn: h, access_key_id: a, secret_access_key: s, session_token: t}",
    "claude_managed_agents": "{connection_type: claude_managed_agents, agent_id: a, environment_id: e, vault_id: v, api_key: k}",
    "dify": "{connection_type: dify, url: u, api_key: k}",
    "placeholder": "{connection_type: placeholder}",
}

ADAPTER = dedent(
    """\
    key: my-adapter
    display_name: Mine
    description: null
    long_description: null
    provider: user
    process_input: {language: jinja, source_code: "{{ input.messages | tojson }}"}
    process_output: {language: jinja, source_code: "{% set _ = [].append(1) %}{{ body }}"}
    """
)

RUN = dedent(
    """\
    config: {subject: openai$gpt-4o}
    run_config: {num_samples: 10, subsampling: random, cache_policy: no-cache, trials_config: {num_trials: 2}}
    secrets: {KEY: x}
    model_adapters:
      - $ref: adapter.yaml
    models:
      - $provider: "openai/gpt-4o"
      - $ref: model.yaml
    dataset_generators:
      - $ref: generator.yaml
    datasets:
      - $ref: dataset.yaml
    tasks:
      - $ref: task.yaml
      - $ref: other.yaml
    evaluation:
      key: eval
      display_name: Evaluation
      description: ""
      long_description: null
      tags: [a]
      use_cases: any
      domains: [law]
      providers: []
      config_spec: [{type: model, key: subject, display_name: Subject}]
      task_specifications:
        - type: standard
          key: quiz
          display_name: Quiz
          task_key: capital-quiz
          task_config: {judge: judge-model}
          model_key: << config.subject >>
          num_samples: 5
          subsampling: head
          repeatability: {num_runs: 2}
          trials: {num_trials: 1}
          task_result_log_path: ./log.json
        - {task_key: other-task, dataset_key: rows}
        - type: repeatability
          key: again
          display_name: Again
          repeatability_config: {num_runs: 3}
          num_samples: 5
          subsampling: random
          inputs: [{evaluation_key: other, task_specification_key: quiz}]
    policies:
      - $ref: policy.yaml
    """
)

PLAN = dedent(
    """\
    key: plan
    display_name: Plan
    evaluation_specifications:
      - {key: first, evaluation_key: eval, evaluation_config: {a: 1}, evaluation_run_config: {num_samples: 1}}
    """
)

APP = dedent(
    """\
    key: app
    display_name: App
    description: null
    long_description: null
    risk_profile:
      deployment_reach: external_public
      autonomy: human_in_the_loop
      data_sensitivity: public_data_only
      action_capability: read_only_tool_access
      untrusted_content_exposure: direct_user_input_only
      domain_criticality: safety_critical
      audience_vulnerability: general_public
    tags: []
    model_under_test_key: m
    judge_model_key: j
    risk_scorers: [r]
    """
)

POLICY = dedent(
    """\
    key: gate
    display_name: Gate
    description: null
    rules:
      - key: accurate
        display_name: Accurate
        description: null
        methodology: Measured.
        definition: {type: threshold, metric: Accuracy, operator: ">=", threshold: 0.9}
        scope: all_latest
      - key: there
        display_name: There
        definition: {type: exists, metric: Accuracy}
        scope: {evaluation_keys: [eval], task_specification_keys: [quiz], scorer_keys: null, metric_keys: []}
    """
)

RISK_SCORER = dedent(
    """\
    key: risk
    display_name: Risk
    description: d
    domain: law
    risk_scoring_methodology_key: method
    scope: all_latest
    config: {a: 1}
    aggregation: mean
    metric: Accuracy
    tags: []
    """
)

METHODOLOGY = dedent(
    """\
    key: method
    display_name: Method
    description: null
    function: 1 - metric
    metric_key: metric
    config_spec: [{type: float, key: a, display_name: A}]
    """
)

ACTION_RULE = dedent(
    """\
    key: drop
    action: exclude_from_metrics
    filter: {op: not_exists, expression: "{{ sample.a }}"}
    """
)

EXAMPLES = {
    "single_turn": SINGLE_TURN,
    "multi_turn": MULTI_TURN,
    "pass_through": PASS_THROUGH,
    "python_solver": PYTHON_SOLVER,
    "grouped": GROUPED,
    "agent": AGENT,
    "system": SYSTEM,
    "dataset": DATASET,
    "generated": GENERATED,
    "generator": GENERATOR,
    "model": MODEL,
    "adapter": ADAPTER,
    "plan": PLAN,
    "app": APP,
    "policy": POLICY,
    "risk_scorer": RISK_SCORER,
    "methodology": METHODOLOGY,
    "action_rule": ACTION_RULE,
}

RUN_FILES = {
    "adapter.yaml": ADAPTER,
    "model.yaml": MODEL,
    "generator.yaml": GENERATOR,
    "dataset.yaml": DATASET,
    "task.yaml": SINGLE_TURN,
    "policy.yaml": POLICY,
    "other.yaml": 'key: other-task\ndisplay_name: Other\ndescription: ""\ndefinition: {scorers: []}\n',
    "run.yaml": RUN,
}


def write(folder: Path, files: dict[str, str]) -> Path:
    """Write files into a folder and return the folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def issues_of(
    text: str, folder: Path, *, dialect: Dialect = "default", name: str = "file.yaml"
) -> list[Issue]:
    """Return all issues of a file with this text, errors and warnings."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    try:
        return list(read(BaseModel, path, dialect=dialect, env={}).issues)
    except SpecError as error:
        return list(error.issues)


def errors_of(text: str, folder: Path, *, dialect: Dialect = "default") -> list[Issue]:
    """Return the errors among the issues of a file with this text."""
    return [issue for issue in issues_of(text, folder, dialect=dialect) if issue.severity == "error"]


def broken(example: str, old: str, new: str) -> tuple[str, int, int]:
    """Return an example with `old` replaced by `new`, and line and column of the mark in `new`."""
    assert example.count(old) >= 1, f"{old!r} is not in the example"
    text = example.replace(old, new, 1)
    at = text.index(HERE)
    return text.replace(HERE, ""), text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
