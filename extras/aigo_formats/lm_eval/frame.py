"""All parts of a `TaskResultLog` except its samples, from the results file's content for one task.

The harness does not have AI GO entities. Ids and keys are derived from names, so the same files always
produce the same specification. The results file's content for the task and the run is kept in
`specification.config["lm_eval"]`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from aigo_bridge.access.bounds import Bounds
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
from aigo_formats.lm_eval.header import HarnessHeader, score_name
from aigo_formats.lm_eval.locate import HarnessFiles
from aigo_formats.lm_eval.samples import HarnessTotals

Json = dict[str, Any]
ENGINE = "lm-eval"
_PROVIDERS = {
    "openai-completions": "openai",
    "openai-chat-completions": "openai",
    "anthropic-completions": "anthropic",
    "anthropic-chat": "anthropic",
    "anthropic-chat-completions": "anthropic",
}
"""Backends of the harness whose provider is known to AI GO."""
_SOLVER_FIELDS = (
    "output_type", "doc_to_text", "doc_to_target", "doc_to_choice", "description", "target_delimiter",
    "fewshot_delimiter", "num_fewshot", "generation_kwargs", "repeats", "filter_list",
)  # fmt: skip


def frame_of(
    run: HarnessFiles,
    header: HarnessHeader,
    task: str,
    totals: HarnessTotals,
    scorers: Iterable[str],
    damage: list[Damage],
    loss: LossReport,
    bounds: Bounds,
) -> Json:
    """Return a `TaskResultLog` as JSON whose `evidence` does not contain `samples` yet.

    Args:
        run: files of the run.
        header: content of the results file.
        task: task name.
        totals: totals over the documents.
        scorers: score names in the documents.
        damage: list of unreadable parts. New ones are added.
        loss: report for loss counts.
        bounds: limits; `growth` limits the content that all results of a run repeat.
    """
    metrics: list[Json] | None = None
    errors: list[Json] = []
    if header.results(task) is not None:
        metrics, errors = metrics_of(header, task, loss)
    names = dict.fromkeys([*_declared(header.config(task)), *scorers])
    names |= dict.fromkeys(metric["scorer_name"] for metric in metrics or [])
    about_run = header.about_run(bounds)
    if about_run is None:
        reason = "the configuration is too large to copy into the result of every task (bound 'growth')"
        damage.append(Damage(run.location, None, reason))
    about = {
        **(about_run or {}),
        **header.about_task(task),
        "groups": header.groups(task),
        "task": header.config(task),
    }
    specification, odd = without_non_finite(_specification(run, header, task, totals, list(names), about))
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


def filters_of(config: Json) -> list[str]:
    """Return the names of a task's filters."""
    declared = config.get("filter_list")
    names = (
        [entry.get("name") for entry in declared if isinstance(entry, dict)]
        if isinstance(declared, list)
        else []
    )
    return [name for name in names if isinstance(name, str)] or ["none"]


def _metric_configs(config: Json) -> list[Json]:
    declared = config.get("metric_list")
    return [entry for entry in declared if isinstance(entry, dict)] if isinstance(declared, list) else []


def _declared(config: Json) -> list[str]:
    return [
        score_name(entry["metric"], name)
        for name in filters_of(config)
        for entry in _metric_configs(config)
        if isinstance(entry.get("metric"), str)
    ]


def _specification(
    run: HarnessFiles,
    header: HarnessHeader,
    task: str,
    totals: HarnessTotals,
    scorers: list[str],
    about: Json,
) -> Json:
    run_config: Json = {}
    limit = header.run_config.get("limit")
    if isinstance(limit, (int, float)) and not isinstance(limit, bool) and limit >= 1 and limit == int(limit):
        run_config |= {"num_samples": int(limit), "subsampling": "head"}
    if totals.most_trials > 1:
        run_config["trials_config"] = {"num_trials": totals.most_trials}
    shots = _shots(header, task)
    specification: Json = {
        "display_name": task,
        "task": _task(run, header, task, shots, totals, scorers),
        "config": {"num_fewshots": shots, "lm_eval": about},
        "run_config": run_config,
    }
    if header.model is not None:
        specification["evaluated_entity"] = _model(header).model_dump(mode="json")
    return specification


def _shots(header: HarnessHeader, task: str) -> int:
    stated = (
        header.part("n-shot", task),
        header.config(task).get("num_fewshot"),
        header.run_config.get("num_fewshot"),
    )
    for value in stated:
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9:
            return value
    return 0


def _task(
    run: HarnessFiles,
    header: HarnessHeader,
    task: str,
    shots: int,
    totals: HarnessTotals,
    scorers: list[str],
) -> Json:
    config = header.config(task)
    path, name = config.get("dataset_path"), config.get("dataset_name")
    dataset = "/".join(part for part in (path, name) if isinstance(part, str) and part) or task
    solver = {key: config[key] for key in _SOLVER_FIELDS if config.get(key) not in (None, "")}
    return ImportedTask(
        name=task,
        display_name=task,
        dataset=dataset,
        solver={"type": "lm_eval", **solver, "num_fewshots": shots},
        scorers=[_scorer(header, task, entry) for entry in scorers],
        num_trials=totals.most_trials,
        parameters=[few_shot_parameter(shots)],
        created_at=_times(run, header)[1],
    ).to_json()


def _scorer(header: HarnessHeader, task: str, name: str) -> Json:
    metric, _, filter_name = name.partition(",")
    aggregation = header.aggregations(task).get(metric, metric)
    scorer: Json = {
        "key": key_of(name),
        "type": metric,
        "display_name": name,
        "metrics": [{"key": key_of(aggregation), "type": aggregation}],
    }
    options = next(
        (entry for entry in _metric_configs(header.config(task)) if entry.get("metric") == metric), {}
    )
    options = {key: value for key, value in options.items() if key != "metric"}
    better = header.part("higher_is_better", task)
    if isinstance(better, dict) and isinstance(better.get(metric), bool):
        options["higher_is_better"] = better[metric]
    if filter_name:
        options["filter"] = filter_name
    if options:
        scorer["options"] = options
    return scorer


def _model(header: HarnessHeader) -> StoredModel:
    name = header.model or "unknown"
    provider = _PROVIDERS.get(str(header.run_config.get("model")))
    if provider is not None:
        return stored_model(f"{provider}/{name}", engine=ENGINE, display_name=name)
    return custom_model(name, engine=ENGINE)


def _times(run: HarnessFiles, header: HarnessHeader) -> tuple[int | None, int | None]:
    """Return start and end in Unix seconds; `None` if unknown. The date in file names is local time without a
    time zone, read as UTC.
    """
    started, runtime = header.started_at, header.runtime
    if started is not None:
        return int(started), int(started + (runtime or 0))
    ended = unix_time_of(run.date)
    if ended is None:
        return None, None
    return max(0, ended - round(runtime or 0)), ended


def _execution(run: HarnessFiles, header: HarnessHeader, totals: HarnessTotals) -> Json:
    started, ended = _times(run, header)
    execution: Json = {"runtime": header.runtime or 0.0, "started_at": started or 0, "ended_at": ended or 0}
    if totals.samples:
        execution["model_usage"] = {"num_samples": totals.samples}
    return execution


def metrics_of(header: HarnessHeader, task: str, loss: LossReport) -> tuple[list[Json], list[Json]]:
    """Return the `MetricData` of a task, and errors for values that are not finite numbers.

    Args:
        header: content of the results file.
        task: task name.
        loss: report for loss counts.
    """
    metrics: list[Json] = []
    errors: list[Json] = []
    if not isinstance(header.results(task), dict):
        kind = type(header.results(task)).__name__
        return metrics, [metric_error(f"the results are {kind}, expected metrics by name")]
    aggregations = header.aggregations(task)
    for metric in header.metrics(task):
        if metric.metric == "bypass":
            loss.dropped["metric 'bypass': a placeholder of runs that only predict"] += 1
            continue
        number = finite_number(metric.value)
        if number is None or isinstance(metric.value, bool):
            errors.append(
                metric_error(f"metric {metric.name!r} is {shown_value(metric.value)}, not a finite number")
            )
            loss.changed["metric that is not a finite number: reported as an error"] += 1
            continue
        aggregation = aggregations.get(metric.metric, metric.metric)
        data: Json = {
            "values": {metric.name: number},
            "metric_key": key_of(aggregation),
            "metric_type": aggregation,
            "scorer_name": metric.name,
            "scorer_key": key_of(metric.name),
        }
        if metric.stderr is not None and metric.stderr != "N/A":
            if (stderr := finite_number(metric.stderr)) is not None:
                data["values"][f"{metric.name}_stderr"] = stderr
            else:
                data["reason"] = f"its standard error is {shown_value(metric.stderr)}, not a finite number"
                loss.changed[
                    "standard error that is not a finite number: added to the reason of the metric"
                ] += 1
        metrics.append(data)
        loss.kept["metric"] += 1
    return metrics, errors
