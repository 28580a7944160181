"""The specification models by themselves: frozen, closed, with defaults and a JSON Schema."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent
from typing import Any

import jsonschema
import pytest
import yaml
from pydantic import BaseModel, ValidationError

from aigo_bridge.spec.base import has_marker, is_whole_marker
from aigo_bridge.spec.datasets import DatasetSpec
from aigo_bridge.spec.evaluations import AppSpec, EvaluationSpec, PolicySpec, RunSpec
from aigo_bridge.spec.models import ModelSpec
from aigo_bridge.spec.schema import json_schema, unwrapped
from aigo_bridge.spec.scorers import ModelAsAJudgeScorer
from aigo_bridge.spec.task import TaskSpec

TASK: dict[str, Any] = {
    "key": "t",
    "display_name": "T",
    "description": "",
    "definition": {
        "dataset": {"key": "d"},
        "solver": {
            "type": "multi_turn_solver",
            "message_builders": [{"type": "loop", "message_builders": [{"type": "generate"}]}],
        },
        "scorers": [{"type": "model_as_a_judge_scorer", "model_key": "m", "user_prompt": "p"}],
    },
}


def test_defaults_match_the_format() -> None:
    task = TaskSpec.model_validate(TASK)
    definition: Any = task.definition
    assert (definition.type, definition.evaluates, definition.actions, definition.trials) == (
        "benchmark_task",
        "model",
        None,
        None,
    )
    assert definition.dataset.source == "dataset"
    assert definition.solver.message_format == "open_responses"
    loop = definition.solver.message_builders[0]
    assert (loop.max_iterations, loop.on_max_iterations) == (10, "error")
    scorer = definition.scorers[0]
    assert isinstance(scorer, ModelAsAJudgeScorer)
    assert (scorer.score_min, scorer.score_max, scorer.purpose, scorer.metrics) == (0.0, 1.0, "score", None)
    assert (task.tags, task.tasks, task.config_spec) == ((), (), ())


def test_task_without_solver_evaluates_a_dataset() -> None:
    definition: Any = TaskSpec.model_validate({**TASK, "definition": {"scorers": []}}).definition
    assert definition.evaluates == "dataset"


def test_specifications_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        TaskSpec.model_validate(TASK).key = "other"  # type: ignore[misc]  # that is the point


def test_placeholder_field_gets_its_type_after_binding() -> None:
    text = yaml.safe_dump(TASK).replace(
        "user_prompt: p", "user_prompt: p\n    score_max: '<< config.high >>'"
    )
    before: Any = TaskSpec.model_validate(yaml.safe_load(text)).definition
    assert before.scorers[0].score_max == "<< config.high >>"
    after: Any = TaskSpec.model_validate(yaml.safe_load(text.replace("<< config.high >>", "5"))).definition
    assert after.scorers[0].score_max == 5.0
    assert isinstance(after.scorers[0].score_max, float)


@pytest.mark.parametrize(
    ("text", "marked", "whole"),
    [
        ("<< config.a >>", True, True),
        (" <<config.a.b>>\n", True, True),
        ("<< config.a-b >>", True, True),
        ("x << config.a >>", True, False),
        ("<< secrets.a >>", True, False),
        ("<< config >>", False, False),
        ("<< Config.a >>", False, False),
        ("1 << 3 >> 2", False, False),
        ("{{ config.a }}", False, False),
        ("", False, False),
    ],
)
def test_placeholders_are_recognized(text: str, marked: bool, whole: bool) -> None:
    assert (has_marker(text), is_whole_marker(text)) == (marked, whole)


@pytest.mark.parametrize("value", [None, 1, [], {}, True])
def test_other_values_are_not_placeholders(value: object) -> None:
    assert not has_marker(value)
    assert not is_whole_marker(value)


KINDS = [
    TaskSpec,
    RunSpec,
    DatasetSpec,
    ModelSpec,
    EvaluationSpec,
    PolicySpec,
    AppSpec,
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_schema_field_has_a_description(kind: type[BaseModel]) -> None:
    schema = json_schema(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    for name, definition in {kind.__name__: schema, **schema["$defs"]}.items():
        for field, description in definition.get("properties", {}).items():
            known = (
                "description" in description or "const" in description or field in {"type", "connection_type"}
            )
            assert known, f"{name}.{field} has no description"


def test_docstring_paragraphs_become_one_line_in_the_schema() -> None:
    text = """
    A paragraph
    in two lines.

    - an item
      that goes on
    - another:
    ```
    one
    two
    ```
    The end
    of it.
    """
    assert unwrapped(text) == (
        "A paragraph in two lines.\n\n- an item\n  that goes on\n- another:\n```\none\ntwo\n```\nThe end of it."
    )
    definitions = json_schema(TaskSpec)["$defs"]
    description = definitions["StringEqualsMCQAScorer"]["description"]
    assert [len(line) > 100 for line in description.split("\n")] == [False, False, True]


def test_schema_accepts_valid_tasks_and_rejects_unknown_keys() -> None:
    validator = jsonschema.Draft202012Validator(json_schema(TaskSpec))
    validator.validate(TASK)
    assert not validator.is_valid({**TASK, "keyx": 1})
    assert not validator.is_valid(
        {**TASK, "definition": {**TASK["definition"], "scorers": [{"type": "blue"}]}}
    )


def test_schema_accepts_references_to_other_files() -> None:
    validator = jsonschema.Draft202012Validator(json_schema(TaskSpec))
    validator.validate({**TASK, "definition": {**TASK["definition"], "scorers": [{"$ref": "s.yaml"}]}})


def test_all_field_types_are_known_before_a_task_is_read() -> None:
    """Hints for misspelt keys read annotations, but models are built on first use."""
    code = """
        from aigo_bridge.reading import messages
        from aigo_bridge.spec.base import SpecModel

        models = [SpecModel]
        for model in models:
            models += model.__subclasses__()
            for name, field in model.model_fields.items():
                assert "ForwardRef" not in repr(field.annotation), f"{model.__name__}.{name}"
    """
    subprocess.run([sys.executable, "-c", dedent(code)], check=True)
