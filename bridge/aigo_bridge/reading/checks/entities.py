"""Checks of datasets, generators, models, adapters, evaluations, and run files and plans with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue
from aigo_bridge.reading.checks.scoring import check_constant, meant_expression
from aigo_bridge.reading.checks.snippets import call_of
from aigo_bridge.reading.checks.tasks import FUNCTIONS, check_parameters, check_task, keys_of
from aigo_bridge.reading.checks.texts import (
    check_adapter_template,
    check_markers,
    check_snippet,
    check_template,
)
from aigo_bridge.reading.locating import SHIPPED, shipped_tasks
from aigo_bridge.reading.messages import nearest
from aigo_bridge.spec.base import (
    Path,
    duplicates,
    has_marker,
    mapping,
    mappings,
    not_finite,
    texts,
    texts_of,
    walk,
)


def check_dataset(dataset: dict[str, Any], path: Path) -> Iterator[Issue]:
    """Check that a dataset has a source of rows, and that its filters can be evaluated."""
    source, generated = dataset.get("source"), dataset.get("generator_specification")
    if source is None and generated is None:
        yield Issue(
            "expected 'source' or 'generator_specification', found neither",
            path=path,
            code=Code.CONTRADICTION,
        )
    if source is not None and generated is not None:
        yield Issue(
            "'source' and 'generator_specification' are both given",
            path=(*path, "generator_specification"),
            hint="a dataset is either read or generated; remove one of them",
            code=Code.CONTRADICTION,
        )
    for index, entry in mappings(mapping(source).get("filters")):
        place = (*path, "source", "filters", index)
        if isinstance(entry.get("expression"), str):
            at = (*place, "expression")
            yield from check_template(entry["expression"], at)
            meant = meant_expression(entry["expression"])
            for issue in check_constant(entry["expression"], at, "row", meant):
                # AI GO accepts it, and the constant may be intended: `True` keeps every row.
                yield replace(issue, severity="warning")
        yield from not_finite(entry.get("value"), (*place, "value"))


def check_generator(generator: dict[str, Any], path: Path) -> Iterator[Issue]:
    """Check the texts and parameters of a generator."""
    parameters = generator.get("config_spec")
    yield from check_parameters(parameters, (*path, "config_spec"))
    keys = keys_of(parameters)
    for place, part in walk(generator.get("definition"), (*path, "definition")):
        if place[-2:-1] == ("samples",):
            continue  # Rows are data, even if they look like templates.
        for at, name, text in texts_of(part, place):
            yield from check_markers(text, at, keys)
            if name in FUNCTIONS:
                yield from check_snippet(text, at, FUNCTIONS[name], call_of(name, part, solved=False))
            elif name in {"system_prompt", "user_prompt_template", "template"}:
                yield from check_template(text, at)


def check_model(model: dict[str, Any], path: Path) -> Iterator[Issue]:
    """Check the secrets and code of a model."""
    secrets = set(texts(list(mapping(model.get("secrets")))))
    config = mapping(model.get("config"))
    for place, part in walk(config, (*path, "config")):
        for name, value in part.items():
            if not isinstance(value, str):
                continue
            if secrets:  # Otherwise the secrets belong to the run file.
                yield from check_markers(value, (*place, name), secrets, root="secrets")
            if name in FUNCTIONS:
                yield from check_snippet(
                    value, (*place, name), FUNCTIONS[name], call_of(name, part, solved=False)
                )
    yield from _at_least_one(model, "rate_limit", "1 request per minute", path)


def _at_least_one(part: dict[str, Any], name: str, least: str, path: Path) -> Iterator[Issue]:
    value = part.get(name)
    if isinstance(value, int) and not isinstance(value, bool) and value < 1:
        yield Issue(
            f"{name!r}: found {value}, expected {least} or more", path=(*path, name), code=Code.WRONG_VALUE
        )


def check_adapter(adapter: dict[str, Any], path: Path) -> Iterator[Issue]:
    """Check the two templates of an adapter."""
    for name in ("process_input", "process_output"):
        source = mapping(adapter.get(name)).get("source_code")
        if isinstance(source, str):
            yield from check_adapter_template(source, (*path, name, "source_code"))


def check_evaluation(evaluation: dict[str, Any], path: Path) -> Iterator[Issue]:
    """Check the parameters and keys of an evaluation."""
    parameters = evaluation.get("config_spec")
    yield from check_parameters(parameters, (*path, "config_spec"))
    specifications = mappings(evaluation.get("task_specifications"))
    place = (*path, "task_specifications")
    yield from duplicates(specifications, place, "specification")
    keys = keys_of(parameters)
    for holder, part in walk(evaluation.get("task_specifications"), place):
        for at, _, text in texts_of(part, holder):
            yield from check_markers(text, at, keys)
    for index, specification in specifications:
        yield from _at_least_one(specification, "num_samples", "1", (*place, index))


_LISTS = (
    ("tasks", "task", check_task),
    ("datasets", "dataset", check_dataset),
    ("models", "model", check_model),
    ("model_adapters", "model adapter", check_adapter),
    ("dataset_generators", "dataset generator", check_generator),
)


def check_run(run: dict[str, Any], path: Path) -> Iterator[Issue]:
    """Check every entity separately, then keys and values across them."""
    for name, word, check in _LISTS:
        entities = mappings(run.get(name))
        yield from duplicates(entities, (*path, name), word)
        for index, entity in entities:
            if "$provider" not in entity:
                yield from check(entity, (*path, name, index))
    evaluation = mapping(run.get("evaluation"))
    place = (*path, "evaluation")
    yield from check_evaluation(evaluation, place)
    # A plan or an option may provide missing values, and planning reports them.
    yield from _values(
        mapping(run.get("config")), evaluation.get("config_spec"), (*path, "config"), "the evaluation", False
    )
    yield from _providers(run, path)
    tasks = {task["key"]: task for _, task in mappings(run.get("tasks")) if isinstance(task.get("key"), str)}
    for index, specification in mappings(evaluation.get("task_specifications")):
        yield from _specification(specification, (*place, "task_specifications", index), tasks)
    yield from _references(run, path)


def check_plan(plan: dict[str, Any], path: Path) -> Iterator[Issue]:
    """Check every evaluation of a plan."""
    runs, specified = plan.get("evaluations"), plan.get("evaluation_specifications")
    if (runs is None) == (specified is None):
        number_of = "neither" if runs is None else "both"
        yield Issue(
            f"expected one of 'evaluation_specifications' and 'evaluations', found {number_of}",
            path=path,
            code=Code.CONTRADICTION,
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
            code=Code.UNKNOWN_ENTITY,
        )
        return
    config = dict(mapping(specification.get("task_config")))
    # The deprecated field sets the parameter of the same name, if the task declares it.
    if "dataset_key" in specification and "dataset_key" in keys_of(task.get("config_spec")):
        config.setdefault("dataset_key", specification["dataset_key"])
    yield from _values(config, task.get("config_spec"), (*path, "task_config"), f"task {key!r}", True)
    if "definition" not in task:
        return  # A key of the task is misspelt, which is reported. The evaluated entity is therefore unknown.
    definition = mapping(task["definition"])
    if definition.get("solver") is not None and specification.get("model_key") is None:
        yield Issue(
            f"'model_key' is missing: task {key!r} evaluates a model", path=path, code=Code.MISSING_KEY
        )
    if (
        definition.get("type") != "system_task"
        and definition.get("dataset") is None
        and definition.get("solver") is None
        and specification.get("dataset_key") is None
    ):
        yield Issue(
            f"'dataset_key' is missing: task {key!r} evaluates a dataset", path=path, code=Code.MISSING_KEY
        )


def _values(config: dict[str, Any], parameters: Any, path: Path, owner: str, used: bool) -> Iterator[Issue]:
    """Yield undeclared values (a warning: published files contain them), and missing values."""
    keys = keys_of(parameters)
    for key in config:
        if key not in keys:
            yield Issue(
                f"{owner} has no parameter {key!r}; the value is not used",
                path=(*path, key),
                hint=nearest(str(key), keys),
                severity="warning",
                code=Code.UNKNOWN_PARAMETER,
            )
    for _, parameter in mappings(parameters) if used else ():
        name = parameter.get("key")
        needed = parameter.get("default_value") is None and parameter.get("nullable") is not True
        if isinstance(name, str) and needed and name not in config:
            yield Issue(
                f"parameter {name!r} of {owner} needs a value: it does not have a default",
                path=path,
                code=Code.MISSING_PARAMETER,
            )


def _providers(run: dict[str, Any], path: Path) -> Iterator[Issue]:
    for index, model in mappings(run.get("models")):
        declared = model.get("$provider")
        if isinstance(declared, str) and (declared.count("/") < 1 or not all(declared.split("/", 1))):
            yield Issue(
                f"'$provider': found {declared!r}, expected '<provider>/<model>'",
                path=(*path, "models", index, "$provider"),
                hint="for example 'openai/gpt-4.1-nano'",
                code=Code.WRONG_VALUE,
            )


def _references(run: dict[str, Any], path: Path) -> Iterator[Issue]:
    """Yield keys of generators and adapters that the run file lacks, if it has any entity of that kind."""
    generators = keys_of(run.get("dataset_generators"))
    for index, dataset in mappings(run.get("datasets")):
        key = mapping(dataset.get("generator_specification")).get("dataset_generator_key")
        if isinstance(key, str) and key not in generators:
            yield Issue(
                f"no dataset generator {key!r} in this run file",
                path=(*path, "datasets", index, "generator_specification", "dataset_generator_key"),
                hint=nearest(key, generators) or "list its file under 'dataset_generators'",
                code=Code.UNKNOWN_ENTITY,
            )
    adapters = keys_of(run.get("model_adapters"))
    for index, model in mappings(run.get("models")):
        written = mapping(mapping(model.get("config")).get("adapter"))
        # An inline adapter is not in the list.
        adapter = written.get("key") if "process_input" not in written else None
        if isinstance(adapter, str) and adapter not in adapters and "$" not in adapter:
            yield Issue(
                f"no model adapter {adapter!r} in this run file",
                path=(*path, "models", index, "config", "adapter", "key"),
                hint=nearest(adapter, adapters) or "list its file under 'model_adapters'",
                severity="warning",
                code=Code.UNKNOWN_ENTITY,
            )
