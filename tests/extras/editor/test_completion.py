"""Completion suggestions from the specifications and the project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.commands import REPOSITORY
from tests.support.editor import CURSOR

from aigo_bridge.spec.datasets import DatasetSpec
from aigo_bridge.spec.evaluations import RunSpec
from aigo_bridge.spec.task import TaskSpec
from aigo_editor.completion import Knowledge, Suggestion, complete
from aigo_editor.context import context_at
from aigo_editor.parameters import Parameter
from aigo_editor.positions import TextRange

PARAMETER = Parameter("lang", Path("task.yaml"), TextRange(0, 0), {"type": "string", "default_value": "en"})


def offered(marked: str, root: Any = TaskSpec, **known: Any) -> dict[str, Suggestion]:
    context = context_at(marked.replace(CURSOR, ""), marked.index(CURSOR))
    return {each.label: each for each in complete(context, Knowledge(root, **known))}


def test_completion_offers_only_missing_keys() -> None:
    labels = list(offered("key: a\nd█\ndescription: b"))
    assert labels[:2] == ["display_name", "long_description"]
    assert "definition" in labels
    assert not {"key", "description"} & set(labels)


def test_key_completion_includes_reference_text_and_colon() -> None:
    suggestion = offered("definition:\n  scorers:\n    - type: string_equals\n      gr█")["ground_truth"]
    assert suggestion.text == "ground_truth: "
    assert suggestion.is_urgent
    assert suggestion.notes.startswith("**ground_truth** of `string_equals`: text; required\n\n")


def test_completion_offers_keys_of_the_declared_type() -> None:
    judge = offered("definition:\n  scorers:\n    - type: model_as_a_judge_scorer\n      █")
    bleu = offered("definition:\n  scorers:\n    - type: bleu\n      █")
    assert "user_prompt" in judge
    assert "user_prompt" not in bleu


@pytest.mark.parametrize("marked", ["definition:\n  scorers:\n    - █", "definition: {scorers: [{█}]}"])
def test_completion_offers_types_first_if_type_is_missing(marked: str) -> None:
    first = next(iter(offered(marked).values()))
    assert first.text == "type: string_equals"
    assert "is_correct" in first.notes


def test_completion_offers_enumerated_values() -> None:
    assert set(offered("definition:\n  solver:\n    type: █")) >= {"single_turn_solver", "agent_solver"}
    roles = "definition:\n  solver:\n    type: multi_turn_solver\n    message_builders:\n      - type: chat_message\n        role: █"
    assert set(offered(roles)) == {"user", "system", "assistant"}
    assert set(offered("config_spec:\n  - type: int\n    nullable: █")) == {"true", "false"}


def test_completion_offers_parameters_in_markers_and_as_values() -> None:
    parameters = (PARAMETER,)
    assert offered("definition:\n  a: << config.█", parameters=parameters)["lang"].text == "lang"
    assert offered("definition:\n  a: << █", parameters=parameters)["config.lang"].text == "config.lang"
    whole = offered("definition:\n  dataset:\n    key: █", parameters=parameters)
    assert whole["<< config.lang >>"].detail == "string"
    assert "default `en`" in whole["<< config.lang >>"].notes


def test_column_completion_includes_an_example_value() -> None:
    text = 'definition:\n  scorers:\n    - type: bleu\n      ground_truth: "{{ sample.█ }}"'
    assert offered(text, columns={"answer": "Oslo\nor  Bergen"})["answer"].detail == "Oslo or Bergen"
    assert set(offered(text, nested={"left": {"a": "1"}, "right": {}})) == {"left", "right"}
    passed = "definition:\n  solver:\n    type: pass_through_solver\n    trace_column: █"
    assert set(offered(passed, columns={"trace": ""})) >= {"trace"}


def test_completion_offers_keys_of_models_datasets_and_tasks() -> None:
    models, datasets, tasks = (("judge", "The judge"),), (("rows", ""),), (("quiz", "Quiz"),)
    judge = "definition:\n  scorers:\n    - type: model_as_a_judge_scorer\n      model_key: █"
    assert offered(judge, models=models)["judge"].detail == "The judge"
    assert set(offered("definition:\n  dataset:\n    key: █", datasets=datasets)) == {"rows"}
    specified = "evaluation:\n  task_specifications:\n    - task_key: █"
    assert "quiz" in offered(specified, RunSpec, tasks=tasks)


def test_template_completion_offers_variables_in_scope() -> None:
    head = "definition:\n  solver: {type: single_turn_solver}\n  "
    asked = head.replace("}", ', input_builder: {type: generic, template: "{{ █ }}"}}')
    scored = head + 'scorers:\n    - type: bleu\n      ground_truth: "{{ █ }}"'
    assert set(offered(asked)) == {"sample"}
    assert set(offered(scored)) == {
        "sample",
        "solver_output",
        "trace",
        "messages",
        "model_output",
        "input_prompt",
    }
    assert "sample" in offered(scored)
    assert "tojson" in offered(scored.replace("█", "sample.a | █"))


def test_completion_offers_score_names_of_declared_scorers() -> None:
    text = "definition:\n  scorers:\n    - {type: string_equals, key: eq, metrics: [{type: mean, field: █}]}"
    assert set(offered(text)) == {"is_correct"}
    rule = (
        text.replace("█", "is_correct")
        + '\n  actions:\n    - filter: {op: is_true, expression: "{{ scores.█ }}"}'
    )
    assert set(offered(rule)) == {"eq"}
    assert set(offered(rule.replace("scores.", "scores.eq."))) == {"is_correct"}


def test_completion_offers_project_files_only(tmp_path: Path) -> None:
    task = tmp_path / "project" / "task"
    task.mkdir(parents=True)
    for name in (
        "project/task/code.py",
        "project/task/prompt.md",
        "project/shared.md",
        "secret.md",
        "project/task/.env",
    ):
        (tmp_path / name).touch()
    known: dict[str, Any] = {"folder": task, "project": tmp_path / "project"}
    assert set(offered("description: !include █", **known)) == {"code.py", "prompt.md"}
    assert set(offered("description: !include ../█", **known)) == {"shared.md", "task/"}
    assert offered("description: !include ../../█", **known) == {}
    snippet = "definition:\n  scorers:\n    - type: python\n      compute_scores_snippet: !include █"
    assert set(offered(snippet, **known)) == {"code.py"}


def test_completion_offers_dataset_source_types() -> None:
    assert "local" in offered("key: a\nsource:\n  type: █", DatasetSpec)
    assert "file_path" in offered("source:\n  type: local\n  █", DatasetSpec)


@pytest.mark.parametrize("marked", ["a: b # █", "█: [", "x: !include", "definition:\n  solver: [█"])
def test_completion_at_unusual_positions_does_not_fail(marked: str) -> None:
    for suggestion in offered(marked if CURSOR in marked else marked + CURSOR).values():
        assert suggestion.label


TASKS = [
    path.read_text("utf-8") for path in sorted((REPOSITORY / "tasks" / "aigo_tasks").glob("*/task.yaml"))
]


@given(st.data())
def test_completions_in_an_incomplete_task_replace_text_at_the_cursor(
    data: st.DataObject,
) -> None:
    text = data.draw(st.sampled_from(TASKS))
    start = data.draw(st.integers(0, len(text)))
    text = text[:start] + text[start + data.draw(st.integers(0, 200)) :]
    offset = data.draw(st.integers(max(start - 30, 0), min(start + 30, len(text))))
    context = context_at(text, offset)
    assert text[context.replaced.start : context.replaced.end].endswith(context.prefix)
    for suggestion in complete(context, Knowledge(TaskSpec, (PARAMETER,), columns={"a": "b"})):
        assert context.replaced.start <= suggestion.replaced.start <= suggestion.replaced.end == offset


def test_long_lines_and_unclosed_expressions_are_parsed_in_linear_time() -> None:
    for text in (
        "a" + " " * 300_000,
        "a: " + "{{" * 150_000,
        "{" + "a " * 150_000,
        "- " * 150_000,
        "'" * 300_000,
    ):
        assert context_at(text, len(text)) is not None


def test_completion_offers_task_parameters_in_a_task_specification() -> None:
    text = "evaluation:\n  task_specifications:\n    - task_key: quiz\n      task_config: {other: 1, █}"
    known: dict[str, Any] = {"task_parameters": {"quiz": (PARAMETER,)}}
    assert offered(text, RunSpec, **known)["lang"].text == "lang: "
    assert offered(text.replace("quiz", "another"), RunSpec, **known) == {}
    assert offered(text.replace("other: 1", "lang: en"), RunSpec, **known) == {}
