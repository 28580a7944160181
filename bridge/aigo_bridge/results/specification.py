"""The specification part of a result log: what was evaluated, and how, from a plan."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import TypeAdapter

from aigo_bridge.dtypes import (
    CachePolicy,
    EvaluationConfig,
    RepeatabilityConfig,
    StoredDataset,
    StoredModel,
    StoredTag,
    StoredTask,
    TaskResultSpecification,
    TrialsConfig,
)
from aigo_bridge.dtypes.other_releases import LATER_PARAMETER_FIELDS
from aigo_bridge.plan import TaskPlan, document_of
from aigo_bridge.results.entities import slug, stored_dataset, stored_model
from aigo_bridge.spec.datasets import SAMPLE_NOTE, SAMPLE_TAG

_ENTITY: TypeAdapter[StoredModel | StoredDataset] = TypeAdapter(StoredModel | StoredDataset)

KEY = r"[a-zA-Z0-9_\-]{1,250}"
"""Keys of data sets in AI GO."""

TAG_COLOR = "#808080"
"""Tags need a colour in AI GO; files give none."""


def specification_of(plan: TaskPlan, *, model: str | None, engine: str) -> TaskResultSpecification:
    """The specification of a run.

    Args:
        plan: what ran.
        model: the engine's name of the evaluated model; `None` when the task evaluates none.
        engine: the engine that ran it.
    """
    run_config: dict[str, Any] = {}
    if plan.num_samples is not None:
        run_config |= {"num_samples": plan.num_samples, "subsampling": plan.subsampling}
    if plan.num_trials > 1:
        run_config["trials_config"] = TrialsConfig(num_trials=plan.num_trials)
    own = plan.specification
    if plan.cache != "reuse":
        run_config["cache_policy"] = CachePolicy(plan.cache)
    repeated: dict[str, Any] = {}
    if own is not None and own.num_runs > 1:
        repeated["repeatability_config"] = RepeatabilityConfig(num_runs=own.num_runs)
    return TaskResultSpecification(
        display_name=plan.display_name,
        task=_stored_task(plan),
        config=dict(plan.config),
        evaluated_entity=_entity(plan, model, engine),
        run_config=EvaluationConfig(**run_config),
        **repeated,
    )


def _entity(plan: TaskPlan, model: str | None, engine: str) -> StoredModel | StoredDataset | None:
    if plan.stored_entity is not None:
        return _ENTITY.validate_python(plan.stored_entity)
    if plan.entity == "model":
        declared = {} if plan.specification is None else dict(plan.specification.model)
        return None if model is None else stored_model(model, engine=engine, **declared)
    if plan.entity == "dataset" and plan.dataset is not None:
        # The key of a data set that was given on the command line is the user's own.
        key = plan.dataset.key if re.fullmatch(KEY, plan.dataset.key) else slug(plan.dataset.key)
        return stored_dataset(key, plan.dataset.display_name).model_copy(
            update={"tags": _tags(plan.dataset.tags)}
        )
    return None


def bare_specification(plan: TaskPlan) -> TaskResultSpecification:
    """What can be said of every plan: its task by name, without parameters and definition."""
    definition: dict[str, Any] = {"type": "system_task", "compute_evidence_snippet": ""}
    if plan.entity != "system":
        definition = {"type": "benchmark_task", "evaluated_entity_type": plan.entity, "scorers": []}
    names = {name: getattr(plan.task, name) for name in ("key", "display_name", "description")}
    task = {**names, "id": plan.task.key, "config_spec": [], "tags": [], "provider": "user"}
    return TaskResultSpecification.model_validate(
        {
            "display_name": plan.display_name,
            "task": {**task, "definition": definition},
            "config": {},
            "run_config": {},
        }
    )


def _parameter(document: Mapping[str, Any]) -> dict[str, Any]:
    """A declared parameter as AI GO stores it: less may stand in it than in files, and what is more would cost it other fields."""
    stored = {key: value for key, value in document.items() if key not in LATER_PARAMETER_FIELDS}
    if stored.get("examples"):
        stored["examples"] = [
            {**example, "display_name": example.get("display_name") or example["value"] or "–"}
            for example in stored["examples"]
        ]
    default = stored.get("default_value")
    if stored["type"] == "categorical" and isinstance(default, list):
        # There is room for one; those that the run used stand in its config.
        stored["default_value"] = default[0] if len(default) == 1 else None
    return stored


def dataset_tags(specification: TaskResultSpecification) -> tuple[str, ...]:
    """What a result says of the rows that it was made with, as tags of a data set."""
    noted = any(tag.value == SAMPLE_NOTE for tag in specification.task.tags)
    return (SAMPLE_TAG,) if noted else ()


def _tags(values: Iterable[str]) -> list[StoredTag]:
    return [StoredTag(id=slug(value), value=value, color=TAG_COLOR) for value in dict.fromkeys(values)]


def _stored_task(plan: TaskPlan) -> StoredTask:
    document = document_of(plan.task)
    definition = dict(document["definition"])
    if plan.entity != "system":
        definition["type"] = "benchmark_task"
        definition["evaluated_entity_type"] = plan.entity
        definition["scorers"] = definition.get("scorers", [])
        if plan.dataset is not None:
            definition["dataset"] = {"id": plan.dataset.key}
    return StoredTask.model_validate(
        {
            "id": plan.task.key,
            "key": plan.task.key,
            "display_name": plan.task.display_name,
            "description": plan.task.description,
            "config_spec": [_parameter(each) for each in document.get("config_spec", [])],
            "definition": definition,
            "provider": "user",
            "tags": _tags(plan.tags),
            **{name: document[name] for name in ("long_description", "tasks") if name in document},
        }
    )
