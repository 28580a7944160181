"""Tasks whose template returns the complete model input: custom models and embeddings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run
from tests.support.endpoint import Endpoint

Load = Callable[[Path], dict[str, Any]]

TASK = """key: opaque
display_name: Opaque
description: ""
tasks: [custom, embeddings]
definition:
  dataset: {{key: rows}}
  solver:
    type: {solver}
    input_builder: {{type: generic, template: '{template}'}}
  scorers:
    - type: python
      compute_scores_snippet: |
        def compute_scores(sample, solver_output):
            return {{"found": {score}}}
      metrics: [{{type: mean, field: found, name: Found}}]
"""


@pytest.fixture
def write(tmp_path: Path, endpoint: Endpoint) -> Callable[..., None]:
    (tmp_path / "rows.jsonl").write_text('{"word": "\\"é\\""}\n')

    def files(template: str, score: str, task: str, adapter: str, solver: str = "single_turn_solver") -> None:
        (tmp_path / "task.yaml").write_text(TASK.format(solver=solver, template=template, score=score))
        (tmp_path / "model.yaml").write_text(
            f"key: m\ndisplay_name: M\ntask: {task}\n"
            f"config: {{url: '{endpoint.url}', model_key: m-1, adapter: {{key: {adapter}}}}}\n"
        )

    return files


def test_a_custom_model_receives_the_template_output(
    aigo: Run, write: Callable[..., None], endpoint: Endpoint, tmp_path: Path, result_of: Load
) -> None:
    write(
        '{"model": "x", "messages": [], "q": {{ sample.word | tojson }}}',
        'len(solver_output.raw_outputs[0]["said"])',
        "custom",
        "latticeflow$identity_custom",
    )
    endpoint.answer = lambda body: (200, {"said": body["q"]})
    done = aigo("run", "task.yaml", "--model", "model.yaml", "--out", "out", "--json")
    assert done.code == 0, done.err
    assert endpoint.requests == [{"model": "x", "messages": [], "q": '"é"'}]
    assert done.json["metrics"][0]["value"] == 3.0
    result = result_of(tmp_path / "out" / "opaque.tasklog.json")
    items = result["evidence"]["samples"][0]["trials"][0]["solver"]["output"]["trace"]["items"]
    assert [item["type"] for item in items] == ["custom_task_input_message", "custom_task_output_message"]
    assert items[0]["content"]["q"] == '"é"'


def test_texts_from_the_template_are_embedded(
    aigo: Run, write: Callable[..., None], endpoint: Endpoint
) -> None:
    write(
        '[{{ sample.word | tojson }}, "b"]',
        "solver_output.raw_outputs[0].embeddings[1][0]",
        "embeddings",
        "latticeflow$openai",
    )
    endpoint.answer = lambda body: (
        200,
        {"data": [{"index": n, "embedding": [n]} for n, _ in enumerate(body["input"])]},
    )
    done = aigo("run", "task.yaml", "--model", "model.yaml", "--out", "out", "--json")
    assert done.code == 0, done.err
    assert endpoint.requests == [{"model": "m-1", "input": ['"é"', "b"]}]
    assert done.json["metrics"][0]["value"] == 1.0


def test_grouped_inputs_are_sent_one_by_one(
    aigo: Run, write: Callable[..., None], endpoint: Endpoint
) -> None:
    write(
        "[1, [], {{ sample.word | tojson }}]",
        "len(solver_output.solver_outputs)",
        "custom",
        "latticeflow$identity_custom",
        "grouped_single_turn_solver",
    )
    endpoint.answer = lambda body: (200, {"said": body})
    done = aigo("run", "task.yaml", "--model", "model.yaml", "--out", "out", "--json")
    assert done.code == 0, done.err
    assert endpoint.requests == [1, [], '"é"']
    assert json.loads(done.out)["metrics"][0]["value"] == 3.0
