"""Valid files of every kind that together use every field, and a function that breaks one at a marked position."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

from aigo_bridge.errors import Issue, SpecError
from aigo_bridge.reading import Dialect, read

HERE = "⟦"
"""In a broken text: where the issue must point to."""

EXAMPLES = {
    path.stem: path.read_text("utf-8") for path in sorted(Path(__file__).with_name("examples").glob("*.yaml"))
}
RUN = EXAMPLES.pop("run")
"""A run file, which refers to others (`RUN_FILES`)."""

SINGLE_TURN = EXAMPLES["single_turn"]
MULTI_TURN = EXAMPLES["multi_turn"]
PASS_THROUGH = EXAMPLES["pass_through"]
SYSTEM = EXAMPLES["system"]
DATASET = EXAMPLES["dataset"]
GENERATOR = EXAMPLES["generator"]
MODEL = EXAMPLES["model"]
ADAPTER = EXAMPLES["adapter"]
PLAN = EXAMPLES["plan"]
APP = EXAMPLES["app"]
POLICY = EXAMPLES["policy"]
RISK_SCORER = EXAMPLES["risk_scorer"]

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

GENERATOR_SOURCES = {
    "empty": "{type: empty, num_samples: 3}",
    "dataset_samples": "{type: dataset_samples, key: rows, random_seed: 1}",
    "dataset_sample_combinations": "{type: dataset_sample_combinations, keys: [a, b], random_seed: null}",
    "task_result": "{type: task_result, ai_app_key: app, key: result}",
}

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
