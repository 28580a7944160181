"""What became of the run of an Inspect task: its log imported, its numbers, what is doubtful about them."""

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

from aigo_bridge.benchmarks import BenchmarkMetric, BenchmarkOutcome, BenchmarkRun, by_kind
from aigo_bridge.dtypes import TaskResultLog
from aigo_bridge.errors import EngineError, UsageError
from aigo_bridge.results.result_files import SUFFIX, RunIdentity, result_file
from aigo_bridge.secrets import redact
from aigo_inspect.importing import ImportSettings, import_file

MAX_ERRORS = 5
"""Failed samples that are named in an outcome; all are in the evidence."""


def unreturned(logs: Sequence[EvalLog], written: set[Path]) -> list[EvalLog]:
    """Logs that Inspect has written and, after an interruption, does not return."""
    returned = {Path(log.location.removeprefix("file://")).name for log in logs if log.location}
    return [
        read_eval_log(str(path), header_only=True) for path in sorted(written) if path.name not in returned
    ]


def outcome_of(
    log: EvalLog, request: BenchmarkRun, name: str, reused: int, asked: str | None
) -> BenchmarkOutcome:
    """Import a log and say what the run came to.

    Args:
        log: as Inspect returned it.
        request: what was asked for.
        name: of the evidence's file, without its suffix.
        reused: trials that were taken over from an earlier run.
        asked: Inspect's name of the model that was asked for; `None`: none was.

    Raises:
        EngineError: there is no log.
        UsageError: a model was needed, and none was given.
    """
    path = request.out / Path(log.location.removeprefix("file://")).name if log.location else None
    if path is None or not path.is_file():
        raise EngineError(log.error.message if log.error is not None else "no log was written")
    target = result_file(request.out, name, _identity(log.eval.model_dump(mode="json")), _of_result)
    imported = import_file(path, target.with_name(target.name.removesuffix(SUFFIX)), ImportSettings())
    failures = _failures(path)
    if request.model is None and any("No model specified" in message for _, message in failures):
        raise UsageError(f"task {log.eval.task!r} calls a model; say which: --model PROVIDER/MODEL")
    first_errors, error_counts = by_kind(failures, MAX_ERRORS)
    model = None if log.eval.model in ("none", "none/none") else log.eval.model
    return BenchmarkOutcome(
        task=log.eval.task,
        status=log.status,
        error=redact(log.error.message)
        if log.error is not None
        else _interrupted(log) or imported.reason or None,
        model=model,
        native_log=path,
        result=imported.output,
        metrics=metrics_of_log(log),
        planned=len(log.eval.dataset.sample_ids or ()),
        num_samples=imported.samples,
        num_failed=imported.failed,
        first_errors=first_errors,
        error_counts=error_counts,
        reused=reused,
        num_stopped=_stopped(log, path),
        num_unscored=max(_unscored(log).values(), default=0),
        warnings=_warnings(log, path, asked),
        file=log.eval.task_file,
    )


def _identity(spec: Mapping[str, Any]) -> RunIdentity:
    """Which run a log is of, from the `eval` of its header."""
    roles = spec.get("model_roles") or {}
    return RunIdentity(
        str(spec.get("task")),
        str(spec.get("model")),
        spec.get("task_args") or {},
        {role: json.dumps(models, sort_keys=True) for role, models in roles.items()},
        {},
    )


def _of_result(frame: TaskResultLog) -> RunIdentity | None:
    """Which run an imported result is of: it has the header of its log."""
    header = frame.specification.config.get("inspect")
    spec = header.get("eval") if isinstance(header, dict) else None
    return _identity(spec) if isinstance(spec, dict) else None


def _interrupted(log: EvalLog) -> str | None:
    return "interrupted; continue it with --resume" if log.status in ("cancelled", "started") else None


def _stopped(log: EvalLog, path: Path) -> int:
    """Samples that are not in the log because the task's own early stopping left all of their trials out."""
    early = log.results.early_stopping if log.results is not None else None
    if early is None:
        return 0
    there = {summary.id for summary in read_eval_log_sample_summaries(str(path))}
    return len({stop.id for stop in early.early_stops} - there)


def _unscored(log: EvalLog) -> dict[str, int]:
    """Scorer → samples that it gave no score."""
    scores = log.results.scores if log.results is not None else []
    return {score.scorer: score.unscored_samples for score in scores if score.unscored_samples}


def _warnings(log: EvalLog, path: Path, asked: str | None) -> tuple[str, ...]:
    """What makes the numbers doubtful, or different from what was asked for."""
    found = [
        f"scorer {scorer}: {count} samples were not scored, and are in none of its metrics"
        for scorer, count in _unscored(log).items()
    ]
    if asked is not None and log.eval.model != asked:
        found.append(f"the task names a model of its own: {log.eval.model!r} was evaluated, not {asked!r}")
    return (*found, *_judging(log, path))


def _judging(log: EvalLog, path: Path) -> tuple[str, ...]:
    """A scorer that had the evaluated model judge its own answers."""
    summaries = read_eval_log_sample_summaries(str(path))
    scored = next((each for each in summaries if each.error is None and each.completed), None)
    if scored is None or log.eval.model in ("none", "none/none"):
        return ()
    # One sample tells: a scorer asks the same model of all of them.
    sample = read_eval_log_sample(str(path), scored.id, scored.epoch)
    judging = _own_judges(sample, log.eval.model)
    if not judging:
        return ()
    names = ", ".join(judging)
    hint = "name another judge with --model-map grader=PROVIDER/MODEL, or with the task's own parameter"
    return (f"scorer {names}: the evaluated model {log.eval.model!r} judged its own answers ({hint})",)


def _own_judges(sample: EvalSample, model: str) -> list[str]:
    """Names of the scorers that called the evaluated model in no role of the user's choice."""
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


def _failures(log: Path) -> list[tuple[str | int, str]]:
    """Sample id and message of each failed sample, in order."""
    found: dict[str | int, str] = {}
    for summary in read_eval_log_sample_summaries(str(log)):
        if summary.error is not None:
            found.setdefault(summary.id, summary.error)
    return list(found.items())


def metrics_of_log(log: EvalLog) -> tuple[BenchmarkMetric, ...]:
    """The numbers as Inspect computed them."""
    rows = []
    for score in log.results.scores if log.results is not None else ():
        # The scorer says which numbers these are; of a score with several values, the name does, too.
        parts = [score.name] if score.name != score.scorer else []
        parts += [score.reducer] if score.reducer else []
        for key, metric in score.metrics.items():
            value = float(metric.value) if math.isfinite(metric.value) else None
            rows.append(BenchmarkMetric(score.scorer, "_".join([*parts, key]), value, score.scored_samples))
    return tuple(rows)


def file_name(task: str, taken: set[str]) -> str:
    """A file name for a task's evidence; tasks of the same name get a number."""
    stem = re.sub(r"[\x00-\x1f\x7f<>:\"|?*\\/]", "_", task.rpartition("/")[2]).strip(". ")[:200] or "task"
    name, number = stem, 2
    while name in taken:
        name, number = f"{stem}-{number}", number + 1
    taken.add(name)
    return name
