"""Run files: what their entities say about each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aigo_bridge.errors import Issue
from aigo_bridge.locating import SHIPPED, shipped_tasks
from aigo_bridge.reading.checks.entities import (
    check_adapter,
    check_dataset,
    check_evaluation,
    check_generator,
    check_model,
)
from aigo_bridge.reading.checks.parameters import keys_of
from aigo_bridge.reading.checks.tasks import check_task
from aigo_bridge.reading.checks.trees import Path, duplicates, mapping, mappings
from aigo_bridge.reading.wording import nearest
from aigo_bridge.spec import has_marker

_LISTS = (
    ("tasks", "task", check_task),
    ("datasets", "data set", check_dataset),
    ("models", "model", check_model),
    ("model_adapters", "model adapter", check_adapter),
    ("dataset_generators", "data set generator", check_generator),
)


def check_run(run: dict[str, Any], path: Path) -> Iterator[Issue]:
    """Every entity by itself, then keys and values across them."""
    for name, word, check in _LISTS:
        entities = mappings(run.get(name))
        yield from duplicates(entities, (*path, name), word)
        for index, entity in entities:
            if "$provider" not in entity:
                yield from check(entity, (*path, name, index))
    evaluation = mapping(run.get("evaluation"))
    here = (*path, "evaluation")
    yield from check_evaluation(evaluation, here)
    # Values that are missing may come from a plan or an option: planning asks for them.
    yield from _values(
        mapping(run.get("config")), evaluation.get("config_spec"), (*path, "config"), "the evaluation", False
    )
    yield from _providers(run, path)
    tasks = {task["key"]: task for _, task in mappings(run.get("tasks")) if isinstance(task.get("key"), str)}
    for index, specification in mappings(evaluation.get("task_specifications")):
        yield from _specification(specification, (*here, "task_specifications", index), tasks)
    yield from _references(run, path)


def check_plan(plan: dict[str, Any], path: Path) -> Iterator[Issue]:
    """Every evaluation of a plan."""
    runs, specified = plan.get("evaluations"), plan.get("evaluation_specifications")
    if (runs is None) == (specified is None):
        found = "neither" if runs is None else "both"
        yield Issue(
            f"expected one of 'evaluation_specifications' and 'evaluations', found {found}", path=path
        )
    for index, run in mappings(runs):
        yield from check_run(run, (*path, "evaluations", index))
    yield from duplicates(mappings(specified), (*path, "evaluation_specifications"), "specification")


def _specification(
    specification: dict[str, Any], path: Path, tasks: dict[str, dict[str, Any]]
) -> Iterator[Issue]:
    key = specification.get("task_key")
    if not isinstance(key, str) or has_marker(key):
        return
    task = tasks.get(key)
    if task is None and f"{SHIPPED}/{key}" in shipped_tasks():
        return
    if task is None:
        yield Issue(
            f"no task {key!r} in this run file",
            path=(*path, "task_key"),
            hint=nearest(key, tasks) or "list its file under 'tasks'",
        )
        return
    config = dict(mapping(specification.get("task_config")))
    # The deprecated field is the parameter of the same name, where a task has one.
    if "dataset_key" in specification and "dataset_key" in keys_of(task.get("config_spec")):
        config.setdefault("dataset_key", specification["dataset_key"])
    yield from _values(config, task.get("config_spec"), (*path, "task_config"), f"task {key!r}", True)
    definition = mapping(task.get("definition"))
    if definition.get("solver") is not None and specification.get("model_key") is None:
        yield Issue(f"'model_key' is missing: task {key!r} evaluates a model", path=path)
    if (
        definition.get("type") != "system_task"
        and definition.get("dataset") is None
        and definition.get("solver") is None
        and specification.get("dataset_key") is None
    ):
        yield Issue(f"'dataset_key' is missing: task {key!r} evaluates a data set", path=path)


def _values(config: dict[str, Any], parameters: Any, path: Path, owner: str, used: bool) -> Iterator[Issue]:
    """Values that nobody declares (a warning: published files have them), and values that are missing."""
    known = keys_of(parameters)
    for key in config:
        if key not in known:
            yield Issue(
                f"{owner} has no parameter {key!r}; the value is not used",
                path=(*path, key),
                hint=nearest(str(key), known),
                severity="warning",
            )
    for _, parameter in mappings(parameters) if used else ():
        name = parameter.get("key")
        needed = parameter.get("default_value") is None and parameter.get("nullable") is not True
        if isinstance(name, str) and needed and name not in config:
            yield Issue(f"no value for parameter {name!r} of {owner}, which has no default", path=path)


def _providers(run: dict[str, Any], path: Path) -> Iterator[Issue]:
    for index, model in mappings(run.get("models")):
        declared = model.get("$provider")
        if isinstance(declared, str) and (declared.count("/") < 1 or not all(declared.split("/", 1))):
            yield Issue(
                f"'$provider': found {declared!r}, expected '<provider>/<model>'",
                path=(*path, "models", index, "$provider"),
                hint="for example 'openai/gpt-4.1-nano'",
            )


def _references(run: dict[str, Any], path: Path) -> Iterator[Issue]:
    """Keys of generators and adapters that the run file does not have, when it has any of that kind."""
    generators = {
        entry["key"]
        for _, entry in mappings(run.get("dataset_generators"))
        if isinstance(entry.get("key"), str)
    }
    for index, dataset in mappings(run.get("datasets")):
        key = mapping(dataset.get("generator_specification")).get("dataset_generator_key")
        if isinstance(key, str) and key not in generators:
            yield Issue(
                f"no data set generator {key!r} in this run file",
                path=(*path, "datasets", index, "generator_specification", "dataset_generator_key"),
                hint=nearest(key, generators) or "list its file under 'dataset_generators'",
            )
    adapters = {
        entry["key"] for _, entry in mappings(run.get("model_adapters")) if isinstance(entry.get("key"), str)
    }
    for index, model in mappings(run.get("models")):
        written = mapping(mapping(model.get("config")).get("adapter"))
        adapter = (
            written.get("key") if "process_input" not in written else None
        )  # a whole adapter needs no list
        if isinstance(adapter, str) and adapter not in adapters and "$" not in adapter:
            yield Issue(
                f"no model adapter {adapter!r} in this run file",
                path=(*path, "models", index, "config", "adapter", "key"),
                hint=nearest(adapter, adapters) or "list its file under 'model_adapters'",
                severity="warning",
            )
