"""Tasks of results as AI GO task files: the author's own, or a description of what an engine ran."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from aigo_bridge.dtypes import MetricData, StoredDataset, TaskResultLog
from aigo_bridge.errors import Issue, SpecError
from aigo_bridge.exporting.evidence.options import parameter_name
from aigo_bridge.exporting.evidence.yaml_text import Include, yaml_text
from aigo_bridge.reading import read
from aigo_bridge.results.values import member
from aigo_bridge.spec.base import is_whole_marker, mapping, mappings, walk
from aigo_bridge.spec.scorers import SCORERS
from aigo_bridge.spec.solvers import SOLVERS
from aigo_bridge.spec.task import TaskSpec
from aigo_bridge.text.json_text import key_of

Json = dict[str, Any]

DATASET = "dataset_key"
"""Parameter for the dataset of an exported task."""
JUDGES = ("model_key", "judge_model_key")
"""Fields that name a model."""
IMPORTED = "imported.py"
"""Code of all tasks that only describe a measurement."""
IMPORTED_CODE = '''"""Code of a task that another program measured: nothing is computed here."""

MESSAGE = "another program measured this task: its result was uploaded, and the task cannot run here"


async def run_solver(sample, model, trace):
    raise RuntimeError(MESSAGE)


def compute_scores(SAMPLE):
    raise RuntimeError(MESSAGE)


def compute_metrics(scores):
    raise RuntimeError(MESSAGE)
'''
_SETTINGS = (
    ("inspect", "eval", "task_args"),
    ("inspect", "eval", "task_version"),
    ("lm_eval", "task"),
    ("lighteval", "config_task"),
)
"""Paths in the config of an imported result that belong to its task."""


@dataclass(frozen=True)
class TaskEntity:
    """Task to export."""

    name: str
    """Key of the task in the result."""
    document: Json
    """Content of the task file without its key. Snippets are texts or `Include`."""
    identity: Any
    """Content that distinguishes the task from others with the same name."""
    dataset_parameter: str | None
    """Parameter for the key of the dataset."""
    models: Mapping[str, str] = field(default_factory=dict)
    """Parameter for the key of a model → name of the model in the result."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Values of the other task parameters."""
    is_described: bool = False
    """Whether the file only describes a measurement."""
    gaps: tuple[Issue, ...] = ()
    """Parts of the author's task that AI GO 3.17 does not support."""


def task_entity(frame: TaskResultLog, dataset: str | None, scorers: Sequence[str]) -> TaskEntity:
    """Return the task of a result: the author's own if AI GO 3.17 can express it, otherwise a description.

    Args:
        frame: result without its samples.
        dataset: name of the dataset; `None` without a dataset.
        scorers: keys of the scorers with scores in the samples.
    """
    definition = _definition(frame)
    if not _is_own(definition):
        return _described(frame, definition, dataset, scorers)
    own = _own(frame, definition, dataset)
    issues = _refusals(own)
    if not issues:
        return own
    described = _described(frame, definition, dataset, scorers)
    gaps = tuple(
        Issue(issue.message, file=f"task {own.name!r}", path=issue.path, hint=issue.hint, code=issue.code)
        for issue in issues
    )
    return TaskEntity(**{**vars(described), "gaps": gaps})


def dataset_name(frame: TaskResultLog) -> str | None:
    """Return the name of the dataset of a result; `None` without a dataset."""
    entity = frame.specification.evaluated_entity
    if isinstance(entity, StoredDataset):
        return entity.key
    named = mapping(_definition(frame).get("dataset")).get("id")
    if not isinstance(named, str):
        return None
    if is_whole_marker(named):
        parameter = named.strip(" <>").removeprefix("config.").strip()
        value = (frame.specification.config or {}).get(parameter)
        return value if isinstance(value, str) else frame.specification.task.key
    return named


def _definition(frame: TaskResultLog) -> Json:
    definition: Json = frame.specification.task.definition.model_dump(
        mode="json", by_alias=True, exclude_unset=True
    )
    return definition


def _is_own(definition: Mapping[str, Any]) -> bool:
    """Return whether a definition uses AI GO's types, and not the types of an engine."""
    if definition.get("type") == "system_task":
        return True
    solver = definition.get("solver")
    scorers = [scorer for _, scorer in mappings(definition.get("scorers"))]
    return (solver is None or mapping(solver).get("type") in SOLVERS) and all(
        scorer.get("type") in SCORERS for scorer in scorers
    )


# Author's own task


def _own(frame: TaskResultLog, definition: Json, dataset: str | None) -> TaskEntity:
    stored = frame.specification.task.model_dump(mode="json", by_alias=True, exclude_unset=True)
    definition = copy.deepcopy(definition)
    definition.pop("evaluated_entity_type", None)
    parameters: list[Json] = [dict(parameter) for parameter in stored.get("config_spec") or []]
    values = frame.specification.config or {}
    given = {parameter["key"]: values.get(parameter["key"]) for parameter in parameters}
    of_dataset = None
    if definition.get("type") != "system_task":
        of_dataset = _bind_dataset(definition, parameters, given, dataset)
        _bind_models(definition, parameters, given)
        _use_exact_forms(definition, frame)
    models = {
        parameter["key"]: value
        for parameter in parameters
        if parameter["type"] == "model" and isinstance(value := given.get(parameter["key"]), str)
    }
    for parameter in parameters:
        if parameter["type"] == "model":
            # A key on the author's platform may not exist on the other one.
            parameter.pop("default_value", None)
    document: Json = {
        "display_name": stored["display_name"],
        "description": stored.get("description") or "",
        **{name: stored[name] for name in ("long_description", "tasks") if stored.get(name)},
        **({"tags": [tag["value"] for tag in stored["tags"]]} if stored.get("tags") else {}),
        **({"config_spec": parameters} if parameters else {}),
        "definition": definition,
    }
    config = {
        name: value
        for name, value in given.items()
        if value is not None and name not in models and name != of_dataset
    }
    return TaskEntity(stored["key"], document, document, of_dataset, models, config)


def _bind_dataset(
    definition: Json, parameters: list[Json], given: dict[str, Any], dataset: str | None
) -> str | None:
    """Add or find a parameter that names the dataset, as 3.17 requires; return the parameter."""
    if dataset is None:
        definition.pop("dataset", None)
        return None
    known = next(
        (
            parameter["key"]
            for parameter in parameters
            if parameter["type"] == "dataset" and given.get(parameter["key"]) == dataset
        ),
        None,
    )
    if known is None:
        known = parameter_name(DATASET, given)
        parameters.append({"type": "dataset", "key": known, "display_name": "Dataset"})
        given[known] = dataset
    else:
        for parameter in parameters:
            if parameter["key"] == known:
                parameter.pop("default_value", None)
    definition["dataset"] = {"key": f"<< config.{known} >>"}
    return known


def _bind_models(definition: Json, parameters: list[Json], given: dict[str, Any]) -> None:
    """Add parameters for the judges and other models that the task names directly."""
    added: dict[str, str] = {}
    for part in _parts(definition):
        for name in JUDGES:
            value = part.get(name)
            if not isinstance(value, str) or is_whole_marker(value):
                continue
            if value not in added:
                added[value] = parameter_name(f"{name}_{value}", given)
                parameters.append({"type": "model", "key": added[value], "display_name": f"Model {value}"})
                given[added[value]] = value
            part[name] = f"<< config.{added[value]} >>"


def _parts(definition: Json) -> Iterator[Json]:
    for name in ("solver", "scorers"):
        yield from (part for _, part in walk(definition.get(name), (name,)))


def _refusals(task: TaskEntity) -> list[Issue]:
    """Return the errors that release 3.17 reports for a task."""
    text = yaml_text({"key": "task", **task.document})
    try:
        read(TaskSpec, Path("task.yaml"), root=Path(), dialect="aigo-3.17", env={}, text=text)
    except SpecError as error:
        return [issue for issue in error.issues if issue.severity == "error"]
    return []


# Description of an engine's task


def _described(
    frame: TaskResultLog, definition: Json, dataset: str | None, scored: Sequence[str]
) -> TaskEntity:
    specification = frame.specification
    task = specification.task
    engine = getattr(specification.evaluated_entity, "adapter_id", None)
    has_model = specification.evaluated_entity is not None and not isinstance(
        specification.evaluated_entity, StoredDataset
    )
    scorers = _scorers(frame, definition, scored, of_dataset=not has_model)
    data = dataset or task.key
    document: Json = {
        "display_name": task.display_name,
        "description": _description(task.description, scorers, engine, data),
        "config_spec": [{"type": "dataset", "key": DATASET, "display_name": "Dataset"}],
        "definition": {
            "type": "benchmark_task",
            "dataset": {"key": f"<< config.{DATASET} >>"},
            **({"solver": {"type": "python", "run_solver_snippet": Include(IMPORTED)}} if has_model else {}),
            "scorers": [scorer for scorer, _ in scorers],
        },
    }
    config = specification.config or {}
    settings = [member(config, *place) for place in _SETTINGS]
    # Two tasks with the same name may have equal metric names.
    identity = [task.key, document["description"], definition, engine, settings]
    return TaskEntity(task.key, document, identity, DATASET, is_described=True)


def _scorers(
    frame: TaskResultLog, definition: Mapping[str, Any], scored: Sequence[str], *, of_dataset: bool
) -> list[tuple[Json, list[str]]]:
    found: dict[str, tuple[Json, dict[str, None]]] = {}

    def scorer(key: str, name: str | None, purpose: str | None) -> dict[str, None]:
        if key not in found:
            code = "imported_dataset.py" if of_dataset else IMPORTED
            document = {"type": "python", "key": key_of(key), "display_name": name or key}
            if purpose == "qa":
                document["purpose"] = purpose
            found[key] = ({**document, "compute_scores_snippet": Include(code)}, {})
        return found[key][1]

    for _, part in mappings(definition.get("scorers")):
        key = str(part.get("key") or part.get("type"))
        metrics = scorer(key, part.get("display_name"), part.get("purpose"))
        metrics.update((str(m.get("key") or m.get("type")), None) for _, m in mappings(part.get("metrics")))
    for metric in (frame.evidence.metrics if frame.evidence is not None else None) or ():
        key = metric.scorer_key or metric.scorer_name or frame.specification.task.key
        purpose = None if metric.scorer_purpose is None else metric.scorer_purpose.value
        scorer(key, metric.scorer_name, purpose)[metric.metric_key] = None
    for key in scored:
        scorer(key, None, None)
    code = "imported_dataset.py" if of_dataset else IMPORTED
    return [
        (
            {
                **document,
                "metrics": [
                    {"type": "python", "key": key_of(name), "compute_metrics_snippet": Include(code)}
                    for name in metrics
                ],
            },
            list(metrics),
        )
        for document, metrics in found.values()
    ]


def _description(
    text: str, scorers: Sequence[tuple[Json, list[str]]], engine: str | None, dataset: str
) -> str:
    lines = [text.strip()] if text.strip() else []
    lines.append(f"Imported result{'' if engine is None else f', measured with {engine}'}.")
    lines.append(f"Dataset: {dataset}.")
    for scorer, metrics in scorers:
        names = ", ".join(metrics) or "none"
        lines.append(f"Scorer {scorer['display_name']}: metrics {names}.")
    return "\n".join(lines)


def code_files() -> dict[str, str]:
    """Return the code that described tasks include: file name → text."""
    replaced = partial(IMPORTED_CODE.replace, "SAMPLE")
    return {IMPORTED: replaced("sample, solver_output"), "imported_dataset.py": replaced("sample")}


def _use_exact_forms(definition: Json, frame: TaskResultLog) -> None:
    """Replace forms that AI GO 3.17 rejects by an equivalent form, if there is one.

    * A list of `choices` or `function_calls` becomes JSON text.
    * One trial is the default.
    * A Python scorer without metrics gets the means of its scores in the result.
    """
    trials = definition.get("trials")
    if isinstance(trials, dict) and trials.get("num_trials") == 1 and not trials.get("score_aggregators"):
        del definition["trials"]
    scorers = [scorer for _, scorer in mappings(definition.get("scorers"))]
    types = Counter(str(scorer.get("type")) for scorer in scorers)
    metrics = (frame.evidence.metrics if frame.evidence is not None else None) or []
    for scorer in scorers:
        for name in ("choices", "function_calls"):
            if isinstance(scorer.get(name), list):
                scorer[name] = json.dumps(scorer[name], ensure_ascii=False)
        kind = str(scorer.get("type"))
        spec = SCORERS.get(kind)
        if spec is None or spec.snippet is None or scorer.get("metrics") is not None:
            continue
        key = scorer.get("key") or (kind if types[kind] == 1 else None)
        means = [_mean_of(metric) for metric in metrics if metric.scorer_key == key]
        if key is not None and None not in means:
            scorer["metrics"] = means


def _mean_of(metric: MetricData) -> Json | None:
    """Return a default metric in the form of a task; `None` for another metric."""
    if metric.metric_type != "mean" or len(metric.values) != 1:
        return None
    (name,) = metric.values
    if not name.endswith("_mean"):
        return None
    return {"type": "mean", "key": metric.metric_key, "field": name.removesuffix("_mean"), "name": name}
