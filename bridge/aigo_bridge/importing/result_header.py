"""Header of an imported result: a `TaskResultLog` without samples, the same for all importers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from aigo_bridge.importing.log_import import Damage
from aigo_bridge.text.json_text import key_of, non_finite_text
from aigo_bridge.version import __version__

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ImportedTask:
    """Task of an imported result, as far as the log describes it."""

    name: str
    display_name: str
    dataset: str
    """Name of the dataset."""
    solver: Json
    scorers: Sequence[Json]
    entity: Literal["model", "dataset"] = "model"
    """Kind of the evaluated entity."""
    task_id: str | None = None
    """Id in the log; `None` for the key."""
    description: str = ""
    num_trials: int = 1
    parameters: Sequence[Json] = ()
    """Declared parameters with their values."""
    tags: Sequence[Json] = ()
    created_at: int | None = None
    """Creation time, in Unix seconds."""

    def to_json(self) -> Json:
        """Return the `StoredTask` as a JSON-serializable dictionary."""
        key = key_of(self.name)
        definition: Json = {
            "type": "benchmark_task",
            "evaluated_entity_type": self.entity,
            "dataset": {"id": key_of(self.dataset)},
            "solver": self.solver,
            "scorers": list(self.scorers),
        }
        if self.num_trials > 1:
            definition["trials"] = {"num_trials": self.num_trials}
        task: Json = {
            "id": key if self.task_id is None else self.task_id,
            "key": key,
            "display_name": self.display_name,
            "description": self.description,
            "config_spec": list(self.parameters),
            "definition": definition,
            "provider": "user",
            "tags": list(self.tags),
        }
        if self.created_at is not None:
            task["created_at"] = self.created_at
        return task


def few_shot_parameter(shots: int) -> Json:
    """Return the parameter for the number of examples in a prompt."""
    return {
        "type": "int",
        "key": "num_fewshots",
        "display_name": "Examples in front of each question",
        "default_value": shots,
    }


def metric_error(message: str) -> Json:
    """Return the error of a metric without a value."""
    return {"error_type": "MetricWithoutValue", "message": message, "stage": "metric"}


def shown_value(value: Any) -> str:
    """Return a value that is not a finite number, for messages."""
    return non_finite_text(value) if isinstance(value, float) else repr(value)[:100]


def unix_time_of(date: str) -> int | None:
    """Return the Unix time of a date in UTC such as `2025-01-31T12-30-00.5`; `None` if it is not a date."""
    day, _, clock = date.partition("T")
    try:
        time = datetime.fromisoformat(f"{day}T{clock.replace('-', ':')}")
        return max(0, int(time.replace(tzinfo=UTC).timestamp()))
    except (ValueError, OverflowError):
        return None


def result_header(
    *,
    metrics: Sequence[Json] | None,
    metric_errors: Sequence[Json] = (),
    failed: int,
    samples: int,
    specification: Json,
    execution: Json,
    damage: Sequence[Damage],
    errors: Sequence[Json] = (),
    is_complete: bool = True,
    software: str | None = None,
) -> Json:
    """Return a `TaskResultLog` as JSON whose `evidence` does not contain `samples` yet.

    Args:
        metrics: `MetricData` of the task; `None` if unknown.
        metric_errors: errors of metrics.
        failed: number of failed samples.
        samples: number of samples.
        specification: the `TaskResultSpecification`.
        execution: the `TaskResultExecution`.
        damage: parts that could not be read; any damage makes the result a failure.
        errors: errors of the run.
        is_complete: whether the run ended successfully.
        software: package and version that created the log, if known.
    """
    return {
        "format_version": "v1",
        "app_version": f"aigo-bridge {__version__}" + (f" ({software})" if software else ""),
        "status": "success" if is_complete and not damage else "failure",
        "evidence": {
            "metrics": metrics,
            **({"errors": list(metric_errors)} if metric_errors else {}),
            "failures": {"num_errors": failed, "num_total": samples},
        },
        "specification": specification,
        "execution": execution,
        "errors": [*errors, *({"error_type": part.kind, "message": str(part)} for part in damage)],
    }
