"""Result of a finished Inspect task: the imported log, its metrics, and warnings about them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from inspect_ai.event import ModelEvent, SpanBeginEvent
from inspect_ai.log import (
    EvalLog,
    EvalSample,
    read_eval_log,
    read_eval_log_sample,
    read_eval_log_sample_summaries,
)

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import TaskResultLog
from aigo_bridge.engine.benchmarks import BenchmarkRun
from aigo_bridge.engine.outcome import Outcome, errors_by_kind, uncomputed
from aigo_bridge.engine.protocol import LogRef
from aigo_bridge.errors import EngineError, UsageError
from aigo_bridge.importing.log_import import ImportOptions
from aigo_bridge.metrics.names import identity_parts
from aigo_bridge.redaction.secrets import redact
from aigo_bridge.results.assembling import MetricRow
from aigo_bridge.results.counts import Counts, read_counts
from aigo_bridge.results.reading import LogReader
from aigo_bridge.results.result_files import SUFFIX, RunIdentity, result_file
from aigo_bridge.text.escapes import is_unseen
from aigo_bridge.text.plurals import plural
from aigo_inspect.importing.importing import import_file
from aigo_inspect.mapping.scores import metric_definition, metric_entries

MAX_ERRORS = 5
"""Maximum number of failed samples in an outcome. The evidence contains all of them."""

_SETTINGS = ("solver", "solver_args_passed", "model_generate_config")
"""Fields of a log header that change results, in addition to the task arguments."""


def unreturned(logs: Sequence[EvalLog], written: set[Path]) -> list[EvalLog]:
    """Return the logs that Inspect wrote but did not return, which happens after an interruption."""
    returned = {Path(log.location.removeprefix("file://")).name for log in logs if log.location}
    return [
        read_eval_log(str(path), header_only=True) for path in sorted(written) if path.name not in returned
    ]


def log_file(log: EvalLog, out: Path) -> Path | None:
    """Return the path of a log in the output folder; `None` if it is not there."""
    path = out / Path(log.location.removeprefix("file://")).name if log.location else None
    return path if path is not None and path.is_file() else None


def unused_roles(logs: Sequence[EvalLog]) -> list[str]:
    """Return the roles that were given a model but made no model call in any task. The result is empty if a
    task did not succeed.
    """
    if any(log.status != "success" for log in logs):
        return []
    roles = {role for log in logs for role in log.eval.model_roles or ()}
    return sorted(roles.difference(*(log.stats.role_usage for log in logs)))


def outcome_of(log: EvalLog, request: BenchmarkRun, name: str, reused: int, models: Sequence[str]) -> Outcome:
    """Import a log and return the outcome of the task.

    Args:
        log: the log that Inspect returned.
        request: the requested run.
        name: file name of the evidence, without its extension.
        reused: number of trials from an earlier run.
        models: Inspect's names of the requested models.

    Raises:
        EngineError: the log does not exist.
        UsageError: the task needs a model, and the run has none.
    """
    path = log_file(log, request.out)
    if path is None:
        raise EngineError(
            log.error.message if log.error is not None else "no log was written", code=Code.FAILED_ENGINE
        )
    identity = _identity(log.eval.model_dump(mode="json", exclude_none=True))
    target = result_file(request.out, name, identity, _of_result)
    stem = target.with_name(target.name.removesuffix(SUFFIX))
    imported = import_file(path, stem, ImportOptions(provenance=True))
    failures = failures_of(path)
    if not models and any("No model specified" in message for _, message in failures):
        raise UsageError(
            f"task {log.eval.task!r} calls a model; choose it with --model PROVIDER/MODEL", code=Code.NO_MODEL
        )
    metrics = metrics_of_log(log)
    counts, stop_reasons = (
        (Counts(), {}) if imported.output is None else read_counts(LogReader(imported.output))
    )
    unscored = _unscored(log, path)
    model = None if log.eval.model in ("none", "none/none") else log.eval.model
    return Outcome(
        task=log.eval.task,
        status=log.status,
        error=redact(log.error.message)
        if log.error is not None
        else _interrupted(log) or imported.reason or None,
        models={} if model is None else {"": model},
        logs=(LogRef("inspect", path, reused),),
        result=imported.output,
        metrics=metrics,
        uncomputed=uncomputed(metrics, counts.samples, counts.failed),
        num_planned=len(log.eval.dataset.sample_ids or ()),
        counts=counts,
        stop_reasons=stop_reasons,
        num_unscored=max(unscored.values(), default=0),
        first_errors=errors_by_kind(failures, MAX_ERRORS),
        num_stopped=_stopped(log, path),
        doubts=_warnings(log, path, models, unscored),
        file=log.eval.task_file,
    )


def _identity(spec: Mapping[str, Any]) -> RunIdentity:
    """Return the run identity of a log from the `eval` section of its header."""
    roles = spec.get("model_roles") or {}
    settings = {name: spec[name] for name in _SETTINGS if spec.get(name)}
    return RunIdentity(
        str(spec.get("task")),
        str(spec.get("model")),
        {**(spec.get("task_args") or {}), **({"eval": settings} if settings else {})},
        {role: json.dumps(models, sort_keys=True) for role, models in roles.items()},
        {},
    )


def _of_result(frame: TaskResultLog) -> RunIdentity | None:
    """Return the run identity of an imported result, which includes the log header."""
    header = frame.specification.config.get("inspect")
    spec = header.get("eval") if isinstance(header, dict) else None
    return _identity(spec) if isinstance(spec, dict) else None


def _interrupted(log: EvalLog) -> str | None:
    return "interrupted; continue it with --resume" if log.status in ("cancelled", "started") else None


def _stopped(log: EvalLog, path: Path) -> int:
    """Return the number of samples that are missing because the task's own early stopping skipped all of
    their trials.
    """
    early = log.results.early_stopping if log.results is not None else None
    if early is None:
        return 0
    finished = {summary.id for summary in read_eval_log_sample_summaries(str(path))}
    return len({stop.id for stop in early.early_stops} - finished)


def _unscored(log: EvalLog, path: Path) -> dict[str, int]:
    """Return the number of unscored samples of each scorer.

    A sample is unscored if its score is marked as such, or if the scorer returned nothing, which Inspect does
    not count.
    """
    scores = log.results.scores if log.results is not None else []
    summaries = read_eval_log_sample_summaries(str(path)) if scores else []
    sound = len({summary.id for summary in summaries if summary.error is None and summary.completed})
    marked: dict[str, int] = {}
    looked_at: dict[str, int] = {}
    for score in scores:
        marked[score.scorer] = max(marked.get(score.scorer, 0), score.unscored_samples or 0)
        number = (score.scored_samples or 0) + (score.unscored_samples or 0)
        looked_at[score.scorer] = max(looked_at.get(score.scorer, 0), number)
    counts = {scorer: count + max(0, sound - looked_at[scorer]) for scorer, count in marked.items()}
    return {scorer: count for scorer, count in counts.items() if count}


def _warnings(
    log: EvalLog, path: Path, models: Sequence[str], unscored: Mapping[str, int]
) -> tuple[str, ...]:
    """Return warnings about metrics that are doubtful, or that differ from the request."""
    doubts = [
        f"scorer {scorer}: {plural(count, 'sample was', 'samples were')} not scored, and left"
        " out of its metrics"
        for scorer, count in unscored.items()
    ]
    if models and log.eval.model not in models:
        names = " or ".join(map(repr, models))
        doubts.append(f"the task sets its own model: {log.eval.model!r} was evaluated instead of {names}")
    return (*doubts, *_judging(log, path))


def _judging(log: EvalLog, path: Path) -> tuple[str, ...]:
    """Return a warning if a scorer used the evaluated model to judge its own answers."""
    summaries = read_eval_log_sample_summaries(str(path))
    scored = next((summary for summary in summaries if summary.error is None and summary.completed), None)
    if scored is None or log.eval.model in ("none", "none/none"):
        return ()
    # One sample is enough, because a scorer uses the same model for all samples.
    sample = read_eval_log_sample(str(path), scored.id, scored.epoch)
    judging = _own_judges(sample, log.eval.model)
    if not judging:
        return ()
    names = ", ".join(judging)
    hint = "choose another judge with --model-map grader=PROVIDER/MODEL, or with a parameter of the task"
    return (f"scorer {names}: the evaluated model {log.eval.model!r} judged its own answers ({hint})",)


def _own_judges(sample: EvalSample, model: str) -> list[str]:
    """Return the names of scorers that called the evaluated model, unless the user chose it for a role."""
    scorers: dict[str, str] = {}
    for event in sample.events:
        if isinstance(event, SpanBeginEvent):
            parent = event.name if event.type == "scorer" else scorers.get(event.parent_id or "")
            if parent is not None:
                scorers[event.id] = parent
    called = (
        scorers[event.span_id]
        for event in sample.events
        if isinstance(event, ModelEvent) and event.span_id in scorers
        if event.role is None and event.model == model
    )
    return list(dict.fromkeys(called))


def failures_of(log: Path) -> list[tuple[str | int, str]]:
    """Return the sample id and message of each failed sample, in order."""
    messages: dict[str | int, str] = {}
    for summary in read_eval_log_sample_summaries(str(log)):
        if summary.error is not None:
            messages.setdefault(summary.id, summary.error)
    return list(messages.items())


def metrics_of_log(log: EvalLog) -> tuple[MetricRow, ...]:
    """Return the metrics that Inspect computed."""
    if log.results is None:
        return ()
    header = {
        "eval": log.eval.model_dump(include={"scorers", "metrics"}),
        "results": log.results.model_dump(),
    }
    rows = []
    for entry in metric_entries(header):
        number = float(entry.metric["value"])
        parts = identity_parts(metric_definition(entry, header), entry.scorer)
        rows.append(
            MetricRow(
                entry.scorer,
                entry.name,
                number if math.isfinite(number) else None,
                entry.score.get("scored_samples"),
                metric_key=entry.key,
                score=parts["score"],
                reducer=parts["reducer"],
                group=parts["group"],
                kind=parts["kind"],
            )
        )
    return tuple(rows)


def file_name(task: str, taken: set[str]) -> str:
    """Return a file name for the evidence of a task. Tasks with the same name get a number."""
    seen = "".join("_" if is_unseen(char) else char for char in task.rpartition("/")[2])
    stem = re.sub(r"[<>:\"|?*\\/]", "_", seen).strip(". ")[:200] or "task"
    name, number = stem, 2
    while name in taken:
        name, number = f"{stem}-{number}", number + 1
    taken.add(name)
    return name
