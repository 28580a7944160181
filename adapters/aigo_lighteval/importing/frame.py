"""All parts of a `TaskResultLog` except its samples, from the results file's content for one task. Metrics
include their standard errors.

lighteval does not have AI GO entities. Ids and keys are derived from names, so the same files always produce
the same specification. The results file's content for the task and the run is kept in
`specification.config["lighteval"]`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from aigo_bridge.dtypes import StoredModel
from aigo_bridge.importing.log_import import Damage, LossReport
from aigo_bridge.importing.result_header import (
    ImportedTask,
    few_shot_parameter,
    metric_error,
    result_header,
    shown_value,
    unix_time_of,
)
from aigo_bridge.results.specification import custom_model, stored_model
from aigo_bridge.text.json_text import finite_number, key_of, without_non_finite
from aigo_lighteval.importing.header import BY_TASK, Header, own_part
from aigo_lighteval.importing.locate import RunFiles
from aigo_lighteval.importing.samples import LogTotals

Json = dict[str, Any]
_UNNAMED = "(unnamed)"
_STDERR = "_stderr"


def frame_of(
    run: RunFiles,
    header: Header,
    task: str,
    totals: LogTotals,
    scorers: Iterable[str],
    damage: list[Damage],
    loss: LossReport,
) -> Json:
    """Return a `TaskResultLog` as JSON whose `evidence` does not contain `samples` yet.

    Args:
        run: files of the run.
        header: content of the results file.
        task: lighteval's task name, with suite and shots as in this release.
        totals: totals over the documents.
        scorers: metric names in the documents.
        damage: unreadable parts.
        loss: report for loss counts.
    """
    config = own_part(header.tasks, task)
    config = config if isinstance(config, dict) else {}
    results = own_part(header.results, task)
    metrics: list[Json] | None = None
    errors: list[Json] = []
    if results is not None:
        metrics, errors = metrics_of(results, functions_of(config), loss)
    names = dict.fromkeys(
        [*_declared(config), *scorers, *(metric["scorer_name"] for metric in metrics or [])]
    )
    specification, odd = without_non_finite(_specification(run, header, task, config, totals, list(names)))
    if odd:
        loss.changed["number that is not finite in the configuration: written as text"] += odd
    return result_header(
        metrics=metrics,
        metric_errors=errors,
        failed=totals.failed,
        samples=totals.samples,
        specification=specification,
        execution=_execution(run, header, totals),
        damage=damage,
    )


def functions_of(config: Any) -> dict[str, str]:
    """Return the name of the function that aggregated each metric over all documents."""
    functions: dict[str, str] = {}
    for metric in _metric_configs(config):
        function = metric.get("corpus_level_fn")
        for name in _names(metric):
            function_name = function.get(name) if isinstance(function, dict) else function
            if isinstance(function_name, str) and function_name:
                # Instances are written with their settings, some with a memory address.
                functions[name] = (
                    function_name.split("(")[0].split(" object at ")[0].strip("<") or function_name
                )
    return functions


def _declared(config: Json) -> list[str]:
    return [name for metric in _metric_configs(config) for name in _names(metric)]


def _metric_configs(config: Any) -> list[Json]:
    metrics = config.get("metrics") if isinstance(config, dict) else None
    return [metric for metric in metrics if isinstance(metric, dict)] if isinstance(metrics, list) else []


def _names(metric: Json) -> list[str]:
    name = metric.get("metric_name")
    return [str(entry) for entry in name] if isinstance(name, list) else [str(name)] if name else []


def _specification(
    run: RunFiles, header: Header, task: str, config: Json, totals: LogTotals, scorers: list[str]
) -> Json:
    name, shots = _name_and_shots(task, config, totals)
    header_part: Json = {
        "task": task,
        "config_general": header.general,
        "config_task": config,
        "averages": header.averages(task),
        **{key: value for key, value in header.rest.items() if key not in BY_TASK},
    }
    for table, entry in BY_TASK.items():
        if (own := own_part(header.rest.get(table), task)) is not None:
            header_part[entry] = own
    run_config: Json = {}
    most = header.general.get("max_samples")
    if isinstance(most, int) and not isinstance(most, bool) and most >= 1:
        # lighteval shuffles documents before it takes the first ones.
        run_config |= {"num_samples": most, "subsampling": "random"}
    if totals.most_trials > 1:
        run_config["trials_config"] = {"num_trials": totals.most_trials}
    specification: Json = {
        "display_name": task or _UNNAMED,
        "task": _task(run, name, task, shots, config, totals, scorers),
        "config": {"num_fewshots": shots, "lighteval": header_part},
        "run_config": run_config,
    }
    model = header.model or run.model
    if model is not None:
        specification["evaluated_entity"] = _model(model, header.model_config).model_dump(mode="json")
    return specification


def _name_and_shots(task: str, config: Json, totals: LogTotals) -> tuple[str, int]:
    """Return the task name without suite and shots, and the number of shots: `community|demo:gen|2` →
    `demo:gen`, 2.
    """
    parts = task.split("|")
    if len(parts) == 1 and ":" in task:
        head, _, last = task.rpartition(":")
        parts = [head, last] if last.isdigit() else parts
    shots = int(parts[-1]) if len(parts) > 1 and parts[-1].isdecimal() and len(parts[-1]) < 9 else None
    names = parts[:-1] if shots is not None else parts
    if shots is None:
        declared = config.get("num_fewshots")
        shots = declared if isinstance(declared, int) else totals.num_fewshots or 0
    name = config.get("name")
    return (name if isinstance(name, str) and name else names[-1] or task), shots


def _task(
    run: RunFiles,
    name: str,
    task: str,
    shots: int,
    config: Json,
    totals: LogTotals,
    scorers: list[str],
) -> Json:
    repository = config.get("hf_repo")
    dataset = repository if isinstance(repository, str) and repository else name
    definitions = {entry: metric for metric in _metric_configs(config) for entry in _names(metric)}
    functions = functions_of(config)
    return ImportedTask(
        name=name,
        display_name=name or _UNNAMED,
        dataset=dataset,
        solver={
            "type": "lighteval",
            "num_fewshots": shots,
            **{
                key: config[key]
                for key in ("generation_size", "stop_sequence", "few_shots_split", "few_shots_select")
                if config.get(key) is not None
            },
        },
        scorers=[_scorer(entry, definitions.get(entry), functions.get(entry, entry)) for entry in scorers],
        num_trials=totals.most_trials,
        parameters=[few_shot_parameter(shots)],
        created_at=unix_time_of(run.date),
    ).to_json()


def _scorer(name: str, metric: Json | None, function: str) -> Json:
    scorer: Json = {
        "key": key_of(name),
        "type": name,
        "display_name": name or _UNNAMED,
        "metrics": [{"key": key_of(function), "type": function}],
    }
    if metric is not None:
        scorer["options"] = {key: value for key, value in metric.items() if key != "metric_name"}
    return scorer


def _model(name: str, config: Json) -> StoredModel:
    if config.get("provider") or config.get("base_url"):
        return stored_model(name, engine="lighteval")
    return custom_model(name, engine="lighteval")


def _execution(run: RunFiles, header: Header, totals: LogTotals) -> Json:
    # The date in the file names is local time without a time zone.
    ended = unix_time_of(run.date) or 0
    runtime = header.runtime or 0.0
    execution: Json = {
        "runtime": runtime,
        "started_at": max(0, ended - round(runtime)),
        "ended_at": ended,
    }
    if totals.answered:
        execution["model_usage"] = {"num_samples": totals.answered}
    return execution


def metrics_of(results: Any, functions: dict[str, str], loss: LossReport) -> tuple[list[Json], list[Json]]:
    """Return the `MetricData` of a task, and errors for values that are not finite numbers.

    Args:
        results: values by metric, with standard errors as `<metric>_stderr`.
        functions: name of the aggregation function by metric, if the configuration contains it.
        loss: report for loss counts.
    """
    metrics: list[Json] = []
    errors: list[Json] = []
    if not isinstance(results, dict):
        return metrics, [metric_error(f"the results are {type(results).__name__}, expected metrics by name")]
    for name, value in results.items():
        if name.endswith(_STDERR) and name.removesuffix(_STDERR) in results:
            continue
        number = finite_number(value)
        if number is None:
            errors.append(metric_error(f"metric {name!r} is {shown_value(value)}, not a finite number"))
            loss.changed["metric that is not a finite number: reported as an error"] += 1
            continue
        function = functions.get(name, name)
        data: Json = {
            "values": {name: number},
            "metric_key": key_of(function),
            "metric_type": function,
            "scorer_name": name,
            "scorer_key": key_of(name),
        }
        if (stderr := results.get(name + _STDERR)) is not None:
            if (number := finite_number(stderr)) is not None:
                data["values"][name + _STDERR] = number
            else:
                data["reason"] = f"its standard error is {shown_value(stderr)}, not a finite number"
                loss.changed[
                    "standard error that is not a finite number: added to the reason of the metric"
                ] += 1
        metrics.append(data)
        loss.kept["metric"] += 1
    return metrics, errors
