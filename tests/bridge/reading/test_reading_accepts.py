"""Every field of every kind of file is accepted and becomes part of the specification."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from tests.bridge.reading.reading_examples import (
    CONNECTIONS,
    DATASET,
    EXAMPLES,
    GENERATOR,
    GENERATOR_SOURCES,
    MODEL,
    RUN_FILES,
    SOURCES,
    issues_of,
    write,
)

from aigo_bridge.reading import read
from aigo_bridge.reading.kinds import KINDS
from aigo_bridge.spec.base import SpecModel
from aigo_bridge.spec.evaluations import RunSpec
from aigo_bridge.spec.task import TaskSpec


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_every_kind_is_valid(name: str, tmp_path: Path) -> None:
    assert issues_of(EXAMPLES[name], tmp_path) == []


@pytest.mark.parametrize("source", SOURCES)
def test_every_dataset_source_is_valid(source: str, tmp_path: Path) -> None:
    text = DATASET[: DATASET.index("source:")] + f"source: {SOURCES[source]}\n"
    assert issues_of(text, tmp_path) == []


@pytest.mark.parametrize("source", GENERATOR_SOURCES)
def test_every_generator_source_is_valid(source: str, tmp_path: Path) -> None:
    start = GENERATOR.index("  dataset: {")
    end = GENERATOR.index("\n", start)
    text = GENERATOR[:start] + f"  dataset: {GENERATOR_SOURCES[source]}" + GENERATOR[end:]
    assert issues_of(text, tmp_path) == []


@pytest.mark.parametrize("connection", CONNECTIONS)
def test_every_model_connection_is_valid(connection: str, tmp_path: Path) -> None:
    text = MODEL[: MODEL.index("config:")] + f"config: {CONNECTIONS[connection]}\n"
    assert issues_of(text, tmp_path) == []


def test_run_file_can_contain_every_kind_of_entity(tmp_path: Path) -> None:
    run = read(RunSpec, write(tmp_path, RUN_FILES) / "run.yaml", env={})
    assert [task.key for task in run.spec.tasks] == ["capital-quiz", "other-task"]
    assert len(run.spec.models) == 2
    assert run.spec.policies[0].key == "gate"
    assert all(issue.severity == "warning" for issue in run.issues)


def test_the_examples_use_every_field_of_every_model(tmp_path: Path) -> None:
    """Every field is covered by an accepting test, because an unused field could be broken unnoticed."""
    used: set[tuple[str, str]] = set()
    texts = [
        *EXAMPLES.values(),
        *(DATASET[: DATASET.index("source:")] + f"source: {source}\n" for source in SOURCES.values()),
        *(MODEL[: MODEL.index("config:")] + f"config: {config}\n" for config in CONNECTIONS.values()),
    ]
    start = GENERATOR.index("  dataset: {")
    end = GENERATOR.index("\n", start)
    texts += [
        GENERATOR[:start] + f"  dataset: {source}" + GENERATOR[end:] for source in GENERATOR_SOURCES.values()
    ]
    for index, text in enumerate(texts):
        path = tmp_path / f"{index}.yaml"
        path.write_text(text, encoding="utf-8")
        used |= set(_fields_set(read(BaseModel, path, env={}).spec))
    used |= set(_fields_set(read(RunSpec, write(tmp_path, RUN_FILES) / "run.yaml", env={}).spec))
    fields = {
        (model.__name__, name)
        for model in _models()
        for name in model.__annotations__
        if name in model.model_fields
    }
    older = {
        ("BenchmarkDefinition", "evaluated_entity_type"),
        ("AssessmentPlanSpec", "evaluations"),
        ("AppSpec", "key_info"),
        ("EvaluationSpec", "num_samples"),
        ("EvaluationSpec", "subsampling"),
        ("EvaluationSpec", "cache_policy"),
    }
    assert fields - used - older == set()


def _models() -> Iterator[type[SpecModel]]:
    waiting = list(SpecModel.__subclasses__())
    while waiting:
        model = waiting.pop()
        waiting += model.__subclasses__()
        if model.__module__.startswith("aigo_bridge.spec"):
            yield model


def _fields_set(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, BaseModel):
        for name in value.model_fields_set:
            yield next(kind.__name__ for kind in type(value).__mro__ if name in kind.__annotations__), name
            yield from _fields_set(getattr(value, name))
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _fields_set(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _fields_set(item)


@pytest.mark.parametrize(
    "name", ["single_turn", "multi_turn", "pass_through", "python_solver", "grouped", "agent", "system"]
)
def test_written_specification_is_read_back_unchanged(name: str, tmp_path: Path) -> None:
    path = tmp_path / "task.yaml"
    path.write_text(EXAMPLES[name], encoding="utf-8")
    spec = read(TaskSpec, path, env={}).spec
    again = tmp_path / "again.json"
    again.write_text(spec.model_dump_json(exclude_unset=True), encoding="utf-8")
    assert read(TaskSpec, again, env={}).spec == spec
    full = tmp_path / "full.json"
    full.write_text(spec.model_dump_json(), encoding="utf-8")
    assert read(TaskSpec, full, env={}).spec == spec


def test_document_data_validates_to_its_specification(tmp_path: Path) -> None:
    path = tmp_path / "task.yaml"
    path.write_text(EXAMPLES["single_turn"], encoding="utf-8")
    document = read(TaskSpec, path, env={})
    assert TaskSpec.model_validate(document.data) == document.spec
    assert isinstance(document.spec, TaskSpec)
    assert KINDS["task"].spec is TaskSpec
