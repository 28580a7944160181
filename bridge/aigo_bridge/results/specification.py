"""The specification part of a result log: the evaluated task and its settings, from a plan.

Entities of AI GO (model, dataset) need ids and adapters, also where they live in no AI GO workspace; what we
write is derived from names, so it is the same in every run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from aigo_bridge.dtypes import (
    CachePolicy,
    EvaluationConfig,
    MLTask,
    ModelCustomConnectionConfig,
    RepeatabilityConfig,
    StoredDataset,
    StoredModel,
    StoredTag,
    StoredTask,
    TaskResultSpecification,
    TrialsConfig,
)
from aigo_bridge.dtypes.task_result import LATER_PARAMETER_FIELDS

if TYPE_CHECKING:
    from aigo_bridge.plan.logged_plan import AnyPlan

PROVIDERS = frozenset(
    {"anthropic", "fireworks", "gemini", "latticeflow", "novita", "openai", "sambanova", "together"}
)
"""The providers that AI GO knows (`dtypes.ModelProviderId`)."""

_OTHER = re.compile(r"[^a-z0-9_]+")


def slug(text: str) -> str:
    """A text as (part of) an AI GO key: lower case, other characters as `-`; `x` if nothing is left."""
    return _OTHER.sub("-", text.lower()).strip("-")[:200] or "x"


def model_key(name: str) -> str:
    """The AI GO key of a model by its engine name: `openai/gpt-4.1-nano` → `openai$gpt-4-1-nano`.

    Providers that AI GO does not know become part of the key: `scripted/answers.jsonl` →
    `scripted-answers-jsonl`.
    """
    provider, _, model = name.partition("/")
    if model and provider in PROVIDERS:
        return f"{provider}${slug(model)}"
    return slug(name)


def _stored_key(key: str) -> str:
    """A key as stored models may have it: `$` stands behind a known provider only."""
    provider, dollar, model = key.partition("$")
    if not dollar or (provider in PROVIDERS and "$" not in model):
        return key
    return key.replace("$", "-")


def model_entity(
    name: str, *, engine: str, key: str | None = None, display_name: str | None = None
) -> dict[str, Any]:
    """A model entity for an engine's model name.

    Args:
        name: the engine's name, e.g. `openai/gpt-4.1-nano`.
        engine: the engine that reached the model; stands in the URL of models of no known provider.
        key: AI GO key of the model, where it is declared under one; `None`: made from the name.
        display_name: its shown name; `None`: the name.
    """
    key = _stored_key(key) if key else model_key(name)
    provider, _, model = name.partition("/")
    if model and provider in PROVIDERS:
        config = {"connection_type": "provider_connection", "provider_id": provider, "model_key": model}
    else:
        config = {
            "connection_type": "custom_connection",
            "adapter_id": engine,
            "url": f"{engine}://{name}",
            "model_key": name,
        }
    return {
        "id": key,
        "display_name": display_name or name,
        "key": key,
        "task": "chat_completion",
        "config": config,
        "adapter_id": engine,
    }


def dataset_entity(key: str, display_name: str) -> dict[str, Any]:
    """A dataset entity."""
    return {"display_name": display_name, "key": key, "id": key}


def stored_model(
    name: str, *, engine: str, key: str | None = None, display_name: str | None = None
) -> StoredModel:
    """A model entity for an engine's model name; arguments as for `model_entity`."""
    entity = model_entity(name, engine=engine, key=key, display_name=display_name)
    return StoredModel.model_validate(entity)


def custom_model(
    name: str, *, engine: str, key: str | None = None, display_name: str | None = None
) -> StoredModel:
    """Return a model entity without a provider: names of weights (`openai/gpt-oss-20b`) only look like one.

    Args:
        name: name in the engine.
        engine: engine or format that names it.
        key: text that the key is made from; `None`: the name.
        display_name: shown name; `None`: the name.
    """
    key = slug(name if key is None else key)
    return StoredModel(
        id=key,
        display_name=display_name or name,
        key=key,
        task=MLTask.chat_completion,
        config=ModelCustomConnectionConfig(
            connection_type="custom_connection", adapter_id=engine, url=f"{engine}://{name}", model_key=name
        ),
        adapter_id=engine,
    )


def stored_dataset(key: str, display_name: str) -> StoredDataset:
    """A dataset entity."""
    return StoredDataset.model_validate(dataset_entity(key, display_name))


_ENTITY: TypeAdapter[StoredModel | StoredDataset] = TypeAdapter(StoredModel | StoredDataset)

KEY = r"[a-zA-Z0-9_\-]{1,250}"
"""Keys of datasets in AI GO."""

TAG_COLOR = "#808080"
"""Tags need a colour in AI GO; files give none."""


def specification_of(plan: AnyPlan, *, model: str | None, engine: str) -> TaskResultSpecification:
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
    specified = plan.specification
    if plan.cache != "reuse":
        run_config["cache_policy"] = CachePolicy(plan.cache)
    repeated: dict[str, Any] = {}
    if specified is not None and specified.num_runs > 1:
        repeated["repeatability_config"] = RepeatabilityConfig(num_runs=specified.num_runs)
    return TaskResultSpecification(
        display_name=plan.display_name,
        task=_stored_task(plan),
        config=dict(plan.config),
        evaluated_entity=_entity(plan, model, engine),
        run_config=EvaluationConfig(**run_config),
        **repeated,
    )


def _entity(plan: AnyPlan, model: str | None, engine: str) -> StoredModel | StoredDataset | None:
    if plan.stored_entity is not None:
        return _ENTITY.validate_python(plan.stored_entity)
    if plan.entity == "model":
        declared = {} if plan.specification is None else dict(plan.specification.model)
        return None if model is None else stored_model(model, engine=engine, **declared)
    if plan.entity == "dataset" and plan.dataset is not None:
        # The key of a dataset that was given on the command line is the user's own.
        key = plan.dataset.key if re.fullmatch(KEY, plan.dataset.key) else slug(plan.dataset.key)
        return stored_dataset(key, plan.dataset.display_name).model_copy(
            update={"tags": _tags(plan.dataset.tags)}
        )
    return None


def bare_specification(plan: AnyPlan) -> TaskResultSpecification:
    """What can be said of every plan: its task by name, without parameters and definition."""
    definition: dict[str, Any] = {"type": "system_task", "compute_evidence_snippet": ""}
    if plan.entity != "system":
        definition = {"type": "benchmark_task", "evaluated_entity_type": plan.entity, "scorers": []}
    names = {name: plan.document[name] for name in ("key", "display_name", "description")}
    task = {**names, "id": names["key"], "config_spec": [], "tags": [], "provider": "user"}
    return TaskResultSpecification.model_validate(
        {
            "display_name": plan.display_name,
            "task": {**task, "definition": definition},
            "config": {},
            "run_config": {},
        }
    )


def _parameter(document: Mapping[str, Any]) -> dict[str, Any]:
    """A declared parameter as AI GO stores it: less may stand in it than in files, and what is more would
    cost it other fields.
    """
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
    """What a result says of the rows that it was made with, as tags of a dataset."""
    from aigo_bridge.spec.datasets import SAMPLE_NOTE, SAMPLE_TAG

    noted = any(tag.value == SAMPLE_NOTE for tag in specification.task.tags)
    return (SAMPLE_TAG,) if noted else ()


def _tags(values: Iterable[str]) -> list[StoredTag]:
    return [StoredTag(id=slug(value), value=value, color=TAG_COLOR) for value in dict.fromkeys(values)]


def _stored_task(plan: AnyPlan) -> StoredTask:
    document = plan.document
    definition = dict(document["definition"])
    if plan.entity != "system":
        definition["type"] = "benchmark_task"
        definition["evaluated_entity_type"] = plan.entity
        definition["scorers"] = definition.get("scorers", [])
        if plan.dataset is not None:
            definition["dataset"] = {"id": plan.dataset.key}
    return StoredTask.model_validate(
        {
            "id": document["key"],
            **{name: document[name] for name in ("key", "display_name", "description")},
            "config_spec": [_parameter(parameter) for parameter in document.get("config_spec", [])],
            "definition": definition,
            "provider": "user",
            "tags": _tags(plan.tags),
            **{name: document[name] for name in ("long_description", "tasks") if name in document},
        }
    )
