"""Reader of an aggregate file, with limits, and the parts that one evaluation's result needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from aigo_bridge.access.bounds import Bounds
from aigo_bridge.codes import Code
from aigo_bridge.dtypes import StoredModel
from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.log_import import Damage, LossReport
from aigo_bridge.importing.places import FileLocation
from aigo_bridge.importing.result_header import ImportedTask, metric_error, result_header
from aigo_bridge.redaction.redactor import Redactor
from aigo_bridge.results.specification import custom_model
from aigo_bridge.text.json_text import (
    DEEPEST,
    finite_number,
    key_of,
    read_json_once,
    without_depths,
    without_non_finite,
)

Json = dict[str, Any]
ENGINE = "every-eval-ever"


@dataclass(frozen=True)
class Number:
    """Entry of `evaluation_results`, with its names in the evidence."""

    id: str | None
    """Value of `evaluation_result_id`."""
    evaluation: str
    value: str
    """Name of the value."""
    metric: str
    """Key of the metric."""
    kind: str
    """Type of the metric."""
    scorer: str
    """Key of the scorer."""
    scorer_name: str
    entry: Json

    @classmethod
    def of(cls, entry: Json) -> Number:
        """Return the number of an entry. Entries exported by aigo-bridge contain its keys in `details`."""
        config = _object(entry.get("metric_config"))
        details = _object(_object(entry.get("score_details")).get("details"))
        evaluation = str(entry.get("evaluation_name"))
        name = str(config.get("metric_name") or config.get("metric_id") or "score")
        metric = str(config.get("metric_id") or name)
        scorer_name = details.get("aigo_scorer_name") or metric
        identifier = entry.get("evaluation_result_id")
        return cls(
            id=identifier if isinstance(identifier, str) else None,
            evaluation=evaluation,
            value=str(details.get("aigo_value") or name),
            metric=str(details.get("aigo_metric_key") or key_of(metric)),
            kind=str(details.get("aigo_metric_type") or config.get("metric_kind") or metric),
            scorer=str(details.get("aigo_scorer_key") or key_of(scorer_name)),
            scorer_name=str(scorer_name),
            entry=entry,
        )


@dataclass(frozen=True)
class AggregateRecord:
    """Content of an aggregate file; empty if the file is missing."""

    content: Json = field(default_factory=dict)

    @property
    def numbers(self) -> list[Number]:
        """Return all entries of `evaluation_results` that are objects."""
        entries = self.content.get("evaluation_results")
        return (
            [Number.of(entry) for entry in entries if isinstance(entry, dict)]
            if isinstance(entries, list)
            else []
        )

    @property
    def model(self) -> Json:
        """Return `model_info`."""
        return _object(self.content.get("model_info"))

    @property
    def companion(self) -> Json:
        """Return `detailed_evaluation_results`."""
        return _object(self.content.get("detailed_evaluation_results"))


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def read_record(location: str, bounds: Bounds, redaction: Redactor, *, redact: bool) -> AggregateRecord:
    """Read the aggregate file.

    Raises:
        EvidenceError: the file cannot be read, has another format, has a duplicate key, or exceeds the
            bounds.
    """
    place = FileLocation.of(location)
    try:
        data = place.read(bounds.member_bytes)
    except OSError as error:
        raise EvidenceError(f"cannot read the file: {error}", code=Code.UNREADABLE_LOG) from error
    bounds.check_document(location, data)
    try:
        content = read_json_once(redaction.json(data))
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"no JSON: {error}", code=Code.NOT_A_LOG) from error
    if not isinstance(content, dict) or not isinstance(content.get("evaluation_results"), list):
        raise EvidenceError(
            "found no list 'evaluation_results', so it is not an Every Eval Ever file", code=Code.NOT_A_LOG
        )
    if without_depths(content):
        raise EvidenceError(f"nested more than {DEEPEST} levels deep", code=Code.NOT_A_LOG)
    return AggregateRecord(redaction.settings(content) if redact else content)


def frame_of(
    record: AggregateRecord, evaluation: str, totals: tuple[int, int], damage: list[Damage], loss: LossReport
) -> Json:
    """Return a `TaskResultLog` as JSON whose `evidence` does not contain `samples` yet.

    Args:
        record: content of the aggregate file.
        evaluation: name of the evaluation.
        totals: number of samples, and number of samples with an error.
        damage: unreadable parts.
        loss: report for loss counts.
    """
    numbers = [number for number in record.numbers if number.evaluation == evaluation]
    metrics, errors = _metrics(numbers, loss)
    specification, odd = without_non_finite(_specification(record, evaluation, numbers))
    if odd:
        loss.changed["number that is not finite in the record: written as text"] += odd
    ended = _seconds(record.content.get("retrieved_timestamp"))
    started = _seconds(record.content.get("evaluation_timestamp"))
    return result_header(
        metrics=metrics if record.content else None,
        metric_errors=errors,
        failed=totals[1],
        samples=totals[0],
        specification=specification,
        execution={
            # The times of the record do not show how long the run took.
            "runtime": 0.0,
            "started_at": started if started is not None else ended or 0,
            "ended_at": max(ended or 0, started or 0),
        },
        damage=damage,
    )


def _metrics(numbers: list[Number], loss: LossReport) -> tuple[list[Json], list[Json]]:
    metrics: list[Json] = []
    errors: list[Json] = []
    for number in numbers:
        details = _object(number.entry.get("score_details"))
        value = finite_number(details.get("score"))
        if value is None or isinstance(details.get("score"), bool):
            message = f"metric {number.value!r} is {str(details.get('score'))[:100]}, not a finite number"
            errors.append(metric_error(message))
            loss.changed["metric that is not a finite number: reported as an error"] += 1
            continue
        loss.kept["metric"] += 1
        values = {number.value: value}
        stderr = _object(_object(details.get("uncertainty")).get("standard_error")).get("value")
        if (error := finite_number(stderr)) is not None:
            values[f"{number.value}_stderr"] = error
        keys = {
            "metric_key": number.metric,
            "metric_type": number.kind,
            "scorer_key": number.scorer,
            "scorer_name": number.scorer_name,
        }
        previous = metrics[-1] if metrics else {}
        # An export by aigo-bridge writes the values of one metric as separate entries. Join them.
        if all(previous.get(name) == key for name, key in keys.items()) and not set(values) & set(
            previous["values"]
        ):
            previous["values"] |= values
            continue
        reason = _object(details.get("details")).get("aigo_reason")
        metrics.append({"values": values, **keys, **({"reason": reason} if isinstance(reason, str) else {})})
    return metrics, errors


def _specification(record: AggregateRecord, evaluation: str, numbers: list[Number]) -> Json:
    settings = [_object(_object(n.entry.get("generation_config")).get("additional_details")) for n in numbers]
    task = next((str(values["aigo_task"]) for values in settings if values.get("aigo_task")), evaluation)
    scorers: dict[str, Json] = {}
    for number in numbers:
        config = _object(number.entry.get("metric_config"))
        scorer = scorers.setdefault(
            number.scorer,
            {
                "key": number.scorer,
                "type": number.scorer_name,
                "display_name": number.scorer_name,
                "metrics": [],
                "options": {},
            },
        )
        scorer["metrics"].append({"key": number.metric, "type": number.kind})
        scorer["options"] |= _scale(config)
        if isinstance(config.get("lower_is_better"), bool):
            scorer["options"]["higher_is_better"] = not config["lower_is_better"]
    source = next((_object(number.entry.get("source_data")) for number in numbers), {})
    dataset = str(source.get("hf_repo") or source.get("dataset_name") or evaluation)
    about = {name: part for name, part in record.content.items() if name != "evaluation_results"}
    specification: Json = {
        "display_name": evaluation,
        "task": ImportedTask(
            name=task,
            display_name=evaluation,
            dataset=dataset,
            solver={"type": "every_eval_ever"},
            scorers=list(scorers.values()),
        ).to_json(),
        "config": {"every_eval_ever": {**about, "evaluation_results": [number.entry for number in numbers]}},
        "run_config": {},
    }
    name = record.model.get("id") or record.model.get("name")
    if isinstance(name, str) and name:
        specification["evaluated_entity"] = _model(record, name).model_dump(mode="json")
    return specification


def _scale(config: Json) -> Json:
    """Return the declared range of a score, and whether it is binary."""
    ends = [finite_number(config.get(name)) for name in ("min_score", "max_score")]
    scale: Json = {} if None in ends else {"scale": ends}
    return scale | ({"score_type": "binary"} if config.get("score_type") == "binary" else {})


def _model(record: AggregateRecord, name: str) -> StoredModel:
    stored_key = _object(record.model.get("additional_details")).get("aigo_key")
    return custom_model(
        name,
        engine=ENGINE,
        key=stored_key if isinstance(stored_key, str) else name,
        display_name=str(record.model.get("name") or name),
    )


def _seconds(value: Any) -> int | None:
    """Return a Unix time in seconds; `None` for other date formats, which remain in the config."""
    try:
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return int(seconds) if 0 <= seconds < 1e11 else None
