"""`aigo-bridge export --to every-eval-ever`: a result log as an aggregate file and a file of instances.

The paths follow the rules of the collection:

```text
<out>/data/<task>/<developer>/<model>/<uuid>.json
                                      <uuid>_samples.jsonl
<out>/<uuid>.loss.json
```

The same result always produces the same files. The identifier is derived from the result, and the current
time is not used.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import MetricData, ModelProviderConnectionConfig, StoredModel, TaskResultLog
from aigo_bridge.errors import EvidenceError, UsageError
from aigo_bridge.importing.log_import import LossReport
from aigo_bridge.metrics.grades import is_graded
from aigo_bridge.redaction.secrets import redact_value
from aigo_bridge.results.log_files import open_for_replacing
from aigo_bridge.results.reading import LogReader
from aigo_bridge.text.json_text import dumps, json_text
from aigo_formats.every_eval_ever.instances import SCHEMA_VERSION, AggregateResult, Instances

Json = dict[str, Any]
_LIBRARIES = {"lm_eval": "lm_eval", "lighteval": "lighteval", "inspect": "inspect_ai"}
"""Library names by the config key under which an import stores another library's run."""
_STDERR = "_stderr"
_LOWER = re.compile(r"(?:^|[^a-z])(?:perplexity|bits_per_byte|ter|wer|loss|error|rmse|mae)(?:[^a-z]|$)")
"""Names of metrics for which lower values are better, by definition."""
_RESERVED = re.compile(r"(?i)(?:con|prn|aux|nul|com\d|lpt\d|data)(?:\..*)?$")
_SECTIONS = re.compile(r"[^A-Za-z0-9._+-]+")


@dataclass(frozen=True)
class ExportedResult:
    """Files written by an export."""

    path: Path
    """Aggregate file."""
    loss_file: Path
    loss: LossReport

    @property
    def lines(self) -> list[str]:
        """Return the parts of the result that were dropped or changed, as text lines."""
        return [
            f"{title}: {count} x {kind}"
            for title, counts in (("dropped", self.loss.dropped), ("changed", self.loss.changed))
            for kind, count in sorted(counts.items())
        ]


def export_result(result: Path, out: Path, *, force: bool) -> ExportedResult:
    """Export a result log into the folder `out`.

    Raises:
        EvidenceError: the file is not a result log, does not evaluate a model, has several runs, or lacks
            numbers.
        UsageError: the files already exist (without `force`).
    """
    reader = LogReader(result)
    log = reader.frame()
    entity = log.specification.evaluated_entity
    if not isinstance(entity, StoredModel):
        raise EvidenceError(
            f"{str(result)!r} does not evaluate a model, and Every Eval Ever only has results of models",
            code=Code.UNFIT_RESULT,
        )
    if log.evidence is None or log.evidence.runs:
        raise EvidenceError(
            f"{str(result)!r} has {'several runs' if log.evidence else 'no evidence'}, expected one run",
            code=Code.UNFIT_RESULT,
        )
    loss = LossReport()
    model = _model_id(entity)
    task = log.specification.task.key
    evaluation = f"{task}/{model.replace('/', '_')}/{log.execution.ended_at}"
    numbers = list(_numbers(log, loss))
    if not numbers:
        raise EvidenceError(
            f"{str(result)!r} does not contain a metric, and Every Eval Ever needs at least one number",
            code=Code.UNFIT_RESULT,
        )
    identifier = _identifier(result)
    developer, _, name = model.rpartition("/")
    folder = "/".join(["data", _section(task), _section(developer or "unknown"), _section(name)])
    path = out / folder / f"{identifier}.json"
    if path.exists() and not force:
        raise UsageError(f"{str(path)!r} already exists (replace it with --force)", code=Code.ALREADY_THERE)
    path.parent.mkdir(parents=True, exist_ok=True)
    instances = Instances(
        evaluation,
        model,
        log.specification.display_name,
        [number for number, _ in numbers],
        loss,
        graded=is_graded(log.specification.config),
    )
    samples_name = f"{identifier}_samples.jsonl"
    digest, count = hashlib.sha256(), 0
    with open_for_replacing(path.with_name(samples_name)) as file:
        for sample in reader.raw_samples():
            for instance in instances.of(sample):
                line = dumps(redact_value(instance)) + b"\n"
                digest.update(line)
                count += 1
                file.write(line)
    aggregate = _aggregate(log, evaluation, model, entity, [number for _, number in numbers])
    if count:
        aggregate["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": f"{folder}/{samples_name}",
            "hash_algorithm": "sha256",
            "checksum": digest.hexdigest(),
            "total_rows": count,
        }
    else:
        path.with_name(samples_name).unlink()
    with open_for_replacing(path) as file:
        file.write(dumps(redact_value(aggregate)) + b"\n")
    _count_frame(log, loss)
    loss_file = out / f"{identifier}.loss.json"
    with open_for_replacing(loss_file) as file:
        file.write(dumps({"log": str(result), "export": str(path), **loss.as_dict()}) + b"\n")
    return ExportedResult(path, loss_file, loss)


def _identifier(result: Path) -> str:
    """Return a UUID (version 4 format) derived from the result, so that another export replaces the files."""
    digest = hashlib.sha256()
    with result.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return str(uuid.UUID(bytes=digest.digest()[:16], version=4))


def _section(name: str) -> str:
    """Return a name as a folder name that all operating systems accept."""
    text = _SECTIONS.sub("-", name).strip("-. ") or "unknown"
    return f"{text}-" if _RESERVED.fullmatch(text) else text[:100].rstrip(". ")


def _model_id(entity: StoredModel) -> str:
    config = entity.config
    if isinstance(config, ModelProviderConnectionConfig):
        return f"{config.provider_id.value}/{config.model_key}"
    return str(getattr(config, "model_key", None) or entity.display_name)


def _numbers(log: TaskResultLog, loss: LossReport) -> Iterator[tuple[AggregateResult, Json]]:
    """Yield the numbers of the metrics. A standard error is stored with its number."""
    task = log.specification.task.key
    seen: dict[str, int] = {}
    assert log.evidence is not None
    for metric in log.evidence.metrics or []:
        for name, value in metric.values.items():
            if name.endswith(_STDERR) and name.removesuffix(_STDERR) in metric.values:
                continue
            parts = [task, metric.scorer_key, metric.metric_key, name]
            plain = "/".join(dict.fromkeys(part for part in parts if part))
            seen[plain] = seen.get(plain, 0) + 1
            identifier = plain if seen[plain] == 1 else f"{plain}#{seen[plain]}"
            result = AggregateResult(identifier, log.specification.display_name, metric.scorer_key, name)
            loss.kept["metric"] += 1
            yield result, _number(log, metric, result, float(value), loss)


def _number(
    log: TaskResultLog, metric: MetricData, result: AggregateResult, value: float, loss: LossReport
) -> Json:
    better, is_told = _higher_is_better(log, metric, result.value)
    if not is_told:
        # The field is required, but AI GO metrics do not contain this information.
        loss.changed["lower_is_better: not defined in AI GO, derived from the metric name"] += 1
    details = {
        "aigo_metric_key": metric.metric_key,
        "aigo_value": result.value,
        **({"aigo_metric_type": metric.metric_type} if metric.metric_type else {}),
        **({"aigo_scorer_key": metric.scorer_key} if metric.scorer_key else {}),
        **({"aigo_scorer_name": metric.scorer_name} if metric.scorer_name else {}),
        **({"aigo_reason": metric.reason} if metric.reason else {}),
    }
    score: Json = {"score": value, "details": details}
    stderr = metric.values.get(result.value + _STDERR)
    if stderr is not None:
        score["uncertainty"] = {"standard_error": {"value": float(stderr)}}
    return {
        "evaluation_result_id": result.id,
        "evaluation_name": result.name,
        "source_data": _source(log),
        "metric_config": {
            "metric_id": metric.metric_key,
            "metric_name": result.value,
            "lower_is_better": not better,
            "additional_details": {
                "lower_is_better": "from the evaluation" if is_told else "from the metric name"
            },
        },
        "score_details": score,
    }


def _higher_is_better(log: TaskResultLog, metric: MetricData, name: str) -> tuple[bool, bool]:
    """Return whether higher values are better, and whether the evaluation specifies it."""
    definition = log.specification.task.definition.model_dump(mode="json")
    for scorer in definition.get("scorers") or []:
        if isinstance(scorer, dict) and scorer.get("key") == metric.scorer_key:
            options = scorer.get("options")
            for place in (scorer, options if isinstance(options, dict) else {}):
                if isinstance(place.get("higher_is_better"), bool):
                    return bool(place["higher_is_better"]), True
    return not _LOWER.search(name.lower()), False


def _source(log: TaskResultLog) -> Json:
    """Return the dataset. For an imported task it is on the Hub if the task's config names it."""
    config = log.specification.config or {}
    for repository in (
        _member(config, "lm_eval", "task", "dataset_path"),
        _member(config, "lighteval", "config_task", "hf_repo"),
    ):
        if isinstance(repository, str) and re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
            return {"dataset_name": repository, "source_type": "hf_dataset", "hf_repo": repository}
    dataset = _member(log.specification.task.definition.model_dump(mode="json"), "dataset", "id")
    return {"dataset_name": str(dataset or log.specification.task.key), "source_type": "other"}


def _member(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _aggregate(
    log: TaskResultLog, evaluation: str, model: str, entity: StoredModel, numbers: list[Json]
) -> Json:
    config = log.specification.config or {}
    foreign = next((key for key in _LIBRARIES if key in config), None)
    version = _member(config, "lm_eval", "lm_eval_version") if foreign == "lm_eval" else None
    library = {"name": _LIBRARIES[foreign], "version": str(version or "unknown")} if foreign else None
    _, _, aigo_version = log.app_version.rpartition(" ")
    is_provider = isinstance(entity.config, ModelProviderConnectionConfig)
    developer = model.rpartition("/")[0]
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation,
        "evaluation_timestamp": str(log.execution.started_at),
        "retrieved_timestamp": str(log.execution.ended_at),
        "source_metadata": {
            "source_name": log.specification.display_name,
            "source_type": "evaluation_run",
            # Results do not contain the organization. The user must fill it in before submitting the file.
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {
            **(library or {"name": "aigo-bridge", "version": aigo_version or "unknown"}),
            "additional_details": {"converted_by": log.app_version, "engine": entity.adapter_id},
        },
        "model_info": {
            "name": entity.display_name,
            "id": model,
            **({"developer": developer} if developer else {}),
            "additional_details": {
                "deployment_type": "externally_managed" if is_provider else "unknown",
                "model_availability": "unknown",
                "aigo_key": entity.key,
            },
        },
        "evaluation_results": [
            {**number, "generation_config": {"additional_details": _settings(log)}} for number in numbers
        ],
    }


def _settings(log: TaskResultLog) -> dict[str, str]:
    """Return the settings of the task as text values, without large configurations of imported runs."""
    settings = {
        key: value if isinstance(value, str) else json_text(value)
        for key, value in (log.specification.config or {}).items()
        if key not in _LIBRARIES
    }
    return {"aigo_task": log.specification.task.key, "aigo_status": log.status, **settings}


def _count_frame(log: TaskResultLog, loss: LossReport) -> None:
    """Count the parts of the frame that the format cannot store."""
    loss.dropped["definition of the task"] += 1
    assert log.evidence is not None
    for what, values in (("error of the run", log.errors), ("error of the evidence", log.evidence.errors)):
        if values:
            loss.dropped[what] += len(values)
    if any(key in (log.specification.config or {}) for key in _LIBRARIES):
        loss.dropped["configuration of the imported run"] += 1
