"""What is offered, by the specifications and by what is around."""

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


def test_keys_of_a_file_are_offered_but_for_those_that_are_there() -> None:
    labels = list(offered("key: a\nd█\ndescription: b"))
    assert labels[:2] == ["display_name", "long_description"]
    assert "definition" in labels
    assert not {"key", "description"} & set(labels)


def test_a_key_says_what_the_reference_says_and_brings_its_colon() -> None:
    suggestion = offered("definition:\n  scorers:\n    - type: string_equals\n      gr█")["ground_truth"]
    assert suggestion.text == "ground_truth: "
    assert suggestion.is_urgent
    assert suggestion.notes.startswith("**ground_truth** of `string_equals`: text; required\n\n")


def test_the_type_decides_which_keys_there_are() -> None:
    judge = offered("definition:\n  scorers:\n    - type: model_as_a_judge_scorer\n      █")
    bleu = offered("definition:\n  scorers:\n    - type: bleu\n      █")
    assert "user_prompt" in judge
    assert "user_prompt" not in bleu


@pytest.mark.parametrize("marked", ["definition:\n  scorers:\n    - █", "definition: {scorers: [{█}]}"])
def test_where_no_type_is_chosen_types_come_first(marked: str) -> None:
    first = next(iter(offered(marked).values()))
    assert first.text == "type: string_equals"
    assert "is_correct" in first.notes


def test_values_of_a_closed_list_are_offered() -> None:
    assert set(offered("definition:\n  solver:\n    type: █")) >= {"single_turn_solver", "agent_solver"}
    roles = "definition:\n  solver:\n    type: multi_turn_solver\n    message_builders:\n      - type: chat_message\n        role: █"
    assert set(offered(roles)) == {"user", "system", "assistant"}
    assert set(offered("config_spec:\n  - type: int\n    nullable: █")) == {"true", "false"}


def test_parameters_are_offered_in_markers_and_in_place_of_values() -> None:
    parameters = (PARAMETER,)
    assert offered("definition:\n  a: << config.█", parameters=parameters)["lang"].text == "lang"
    assert offered("definition:\n  a: << █", parameters=parameters)["config.lang"].text == "config.lang"
    whole = offered("definition:\n  dataset:\n    key: █", parameters=parameters)
    assert whole["<< config.lang >>"].detail == "string"
    assert "default `en`" in whole["<< config.lang >>"].notes


def test_columns_have_an_example_of_the_rows() -> None:
    text = 'definition:\n  scorers:\n    - type: bleu\n      ground_truth: "{{ sample.█ }}"'
    assert offered(text, columns={"answer": "Oslo\nor  Bergen"})["answer"].detail == "Oslo or Bergen"
    assert set(offered(text, nested={"left": {"a": "1"}, "right": {}})) == {"left", "right"}
    passed = "definition:\n  solver:\n    type: pass_through_solver\n    trace_column: █"
    assert set(offered(passed, columns={"trace": ""})) >= {"trace"}


def test_keys_of_models_data_sets_and_tasks_are_offered_where_they_are_named() -> None:
    models, datasets, tasks = (("judge", "The judge"),), (("rows", ""),), (("quiz", "Quiz"),)
    judge = "definition:\n  scorers:\n    - type: model_as_a_judge_scorer\n      model_key: █"
    assert offered(judge, models=models)["judge"].detail == "The judge"
    assert set(offered("definition:\n  dataset:\n    key: █", datasets=datasets)) == {"rows"}
    specified = "evaluation:\n  task_specifications:\n    - task_key: █"
    assert "quiz" in offered(specified, RunSpec, tasks=tasks)


def test_names_of_a_template_are_those_that_there_are_at_its_place() -> None:
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


def test_scores_are_those_of_the_scorers() -> None:
    text = "definition:\n  scorers:\n    - {type: string_equals, key: eq, metrics: [{type: mean, field: █}]}"
    assert set(offered(text)) == {"is_correct"}
    rule = (
        text.replace("█", "is_correct")
        + '\n  actions:\n    - filter: {op: is_true, expression: "{{ scores.█ }}"}'
    )
    assert set(offered(rule)) == {"eq"}
    assert set(offered(rule.replace("scores.", "scores.eq."))) == {"is_correct"}


def test_files_of_the_project_are_offered_and_no_others(tmp_path: Path) -> None:
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


def test_sources_of_rows_are_offered_in_data_sets() -> None:
    assert "local" in offered("key: a\nsource:\n  type: █", DatasetSpec)
    assert "file_path" in offered("source:\n  type: local\n  █", DatasetSpec)


@pytest.mark.parametrize("marked", ["a: b # █", "█: [", "x: !include", "definition:\n  solver: [█"])
def test_odd_places_offer_nothing_wrong(marked: str) -> None:
    for suggestion in offered(marked if CURSOR in marked else marked + CURSOR).values():
        assert suggestion.label


TASKS = [
    path.read_text("utf-8") for path in sorted((REPOSITORY / "tasks" / "aigo_tasks").glob("*/task.yaml"))
]


@given(st.data())
def test_an_incomplete_task_gets_completions_that_fit_the_text(
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


def test_long_lines_and_open_expressions_take_no_time_that_grows_with_their_square() -> None:
    for text in (
        "a" + " " * 300_000,
        "a: " + "{{" * 150_000,
        "{" + "a " * 150_000,
        "- " * 150_000,
        "'" * 300_000,
    ):
        assert context_at(text, len(text)) is not None


def test_a_specification_is_offered_the_parameters_of_its_task() -> None:
    text = "evaluation:\n  task_specifications:\n    - task_key: quiz\n      task_config: {other: 1, █}"
    known: dict[str, Any] = {"task_parameters": {"quiz": (PARAMETER,)}}
    assert offered(text, RunSpec, **known)["lang"].text == "lang: "
    assert offered(text.replace("quiz", "another"), RunSpec, **known) == {}
    assert offered(text.replace("other: 1", "lang: en"), RunSpec, **known) == {}
