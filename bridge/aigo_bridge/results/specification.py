"""Specification part of a result log: the evaluated task and its settings, from a plan.

AI GO entities (model, dataset) need ids and adapters, even outside of an AI GO workspace. aigo-bridge
derives them from names, so that they are the same in every run.
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
from aigo_bridge.dtypes.chat import LATE
from aigo_bridge.dtypes.task_result import LATER_PARAMETER_FIELDS

if TYPE_CHECKING:
    from aigo_bridge.plan.logged_plan import AnyPlan

PROVIDERS = frozenset(
    {"anthropic", "fireworks", "gemini", "latticeflow", "novita", "openai", "sambanova", "together"}
)
"""Providers that AI GO supports (`dtypes.ModelProviderId`)."""

_OTHER = re.compile(r"[^a-z0-9_]+")


def slug(text: str) -> str:
    """Convert a text to (part of) an AI GO key: lowercase, `-` for other characters, `x` if empty."""
    return _OTHER.sub("-", text.lower()).strip("-")[:200] or "x"


def model_key(name: str) -> str:
    """Convert a model name for an engine to an AI GO key: `openai/gpt-4.1-nano` → `openai$gpt-4-1-nano`.

    Providers that AI GO does not support become part of the key: `scripted/answers.jsonl` →
    `scripted-answers-jsonl`.
    """
    provider, _, model = name.partition("/")
    if model and provider in PROVIDERS:
        return f"{provider}${slug(model)}"
    return slug(name)


def _stored_key(key: str) -> str:
    """Return a key that is valid for stored models, where `$` may only follow a supported provider."""
    provider, dollar, model = key.partition("$")
    if not dollar or (provider in PROVIDERS and "$" not in model):
        return key
    return key.replace("$", "-")


def model_entity(
    name: str, *, engine: str, key: str | None = None, display_name: str | None = None
) -> dict[str, Any]:
    """Return a model entity for an engine's model name.

    Args:
        name: model name for the engine, for example `openai/gpt-4.1-nano`.
        engine: engine that called the model; part of the URL of models without a supported provider.
        key: declared AI GO key of the model; `None` to derive it from the name.
        display_name: display name; `None` for the name.
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
    """Return a dataset entity."""
    return {"display_name": display_name, "key": key, "id": key}


def stored_model(
    name: str, *, engine: str, key: str | None = None, display_name: str | None = None
) -> StoredModel:
    """Return a model entity for an engine's model name. The arguments are described in `model_entity`."""
    entity = model_entity(name, engine=engine, key=key, display_name=display_name)
    return StoredModel.model_validate(entity)


def custom_model(
    name: str, *, engine: str, key: str | None = None, display_name: str | None = None
) -> StoredModel:
    """Return a model entity without a provider, because names of weights (`openai/gpt-oss-20b`) can look like
    a provider and a model.

    Args:
        name: name in the engine.
        engine: engine or format that uses the name.
        key: text to derive the key from; `None` for the name.
        display_name: display name; `None` for the name.
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
    """Return a dataset entity."""
    return StoredDataset.model_validate(dataset_entity(key, display_name))


_ENTITY: TypeAdapter[StoredModel | StoredDataset] = TypeAdapter(StoredModel | StoredDataset, config=LATE)

KEY = r"[a-zA-Z0-9_\-]{1,250}"
"""Pattern of dataset keys in AI GO."""

TAG_COLOR = "#808080"
"""Colour of tags. AI GO requires one, but files do not contain it."""


def specification_of(plan: AnyPlan, *, model: str | None, engine: str) -> TaskResultSpecification:
    """Return the specification of a run.

    Args:
        plan: plan that ran.
        model: name of the evaluated model for the engine; `None` if the task does not evaluate a model.
        engine: engine that ran the plan.
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
        # The user chooses the key of a dataset on the command line, so it may be invalid in AI GO.
        key = plan.dataset.key if re.fullmatch(KEY, plan.dataset.key) else slug(plan.dataset.key)
        return stored_dataset(key, plan.dataset.display_name).model_copy(
            update={"tags": _tags(plan.dataset.tags)}
        )
    return None


def bare_specification(plan: AnyPlan) -> TaskResultSpecification:
    """Return a minimal specification, valid for every plan: names without parameters and definition."""
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
    """Convert a declared parameter to AI GO's stored form. It allows fewer values than files, and an invalid
    value would make AI GO drop other fields.
    """
    stored = {key: value for key, value in document.items() if key not in LATER_PARAMETER_FIELDS}
    if stored.get("examples"):
        stored["examples"] = [
            {**example, "display_name": example.get("display_name") or example["value"] or "–"}
            for example in stored["examples"]
        ]
    default = stored.get("default_value")
    if stored["type"] == "categorical" and isinstance(default, list):
        # Only one value can be stored. The values of the run are in its config.
        stored["default_value"] = default[0] if len(default) == 1 else None
    return stored


def dataset_tags(specification: TaskResultSpecification) -> tuple[str, ...]:
    """Return dataset tags from a result's notes about its rows."""
    from aigo_bridge.spec.base import SAMPLE_NOTE, SAMPLE_TAG

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
