"""Merge of the Inspect logs of all shards into one log. Samples are copied unchanged, and Inspect's own code
computes the metrics over all scores.

Memory use: one sample at a time, and the scores, metadata and summaries of all samples.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inspect_ai._eval.score import reducers_from_log_header
from inspect_ai._eval.task.results import eval_results
from inspect_ai._util.error import EvalError
from inspect_ai.log import EvalLog, EvalSample, EvalStats, read_eval_log, read_eval_log_sample
from inspect_ai.model import ModelUsage
from inspect_ai.scorer import SampleScore, Score
from inspect_ai.scorer._scorer import unique_scorer_name
from pydantic import TypeAdapter
from pydantic_core import from_json

from aigo_bridge.codes import Code
from aigo_bridge.engine.benchmarks import PartLog, PartLogs
from aigo_bridge.errors import BridgeError, EvidenceError, Issue
from aigo_bridge.results.log_files import open_for_replacing
from aigo_bridge.text.plurals import plural
from aigo_inspect.benchmarks.resume import TaskWithModel, settings_in
from aigo_inspect.logs.archive import Archive
from aigo_inspect.logs.sources import open_source

_SCORES = TypeAdapter(dict[str, Score])
_LARGE = {"messages", "events", "store", "attachments", "output"}
"""Fields of a sample that metrics do not read."""

Trial = tuple[str, int]
"""Sample id as text, and trial number from 1."""


@dataclass
class _Gathered:
    """Data for the metrics of the merged log."""

    scores: dict[Trial, dict[str, SampleScore]] = field(default_factory=dict)
    num_whole: int = 0
    """Number of trials without an error."""
    summaries: list[Any] = field(default_factory=list)


def merged_log(run: TaskWithModel, part: PartLogs, chosen: Mapping[str, Any], out: Path) -> EvalLog:
    """Merge the shard logs of a task into one log, and return its header.

    Args:
        run: the whole task, created again from its definition.
        part: the shard logs.
        chosen: sample selection, by the names of `EvalConfig`.
        out: folder for the merged log.

    Raises:
        EvidenceError: a log cannot be read, or belongs to another run.
    """
    if not part.logs:
        raise EvidenceError(
            f"no shard has a log of {run.task.name!r}, so there is nothing to merge", code=Code.SHARDS_MISSING
        )
    headers = _headers(run, part.logs)
    path = out / part.logs[0].path.name
    gathered = _Gathered()
    with (
        open_for_replacing(path, clean=False) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        log = headers[0].model_copy(deep=True)
        _describe(log, run, chosen)
        start = {name: getattr(log, name) for name in ("version", "eval", "plan")}
        archive.writestr("_journal/start.json", _json(start))
        for one, header in zip(part.logs, headers, strict=True):
            for name, data in _members(one, header, run, gathered):
                archive.writestr(name, data)
        _conclude(log, headers, run, part, gathered)
        archive.writestr("summaries.json", _json(gathered.summaries))
        if log.reductions is not None:
            archive.writestr("reductions.json", _json(log.reductions))
        archive.writestr("header.json", _json(log.model_copy(update={"reductions": None, "samples": None})))
    log.location = str(path)
    return log


def _json(value: Any) -> bytes:
    """Return JSON as Inspect writes it: without `None` values, and with NaN unchanged."""
    from inspect_ai._util.json import to_json_safe

    return to_json_safe(value)


def _headers(run: TaskWithModel, logs: Sequence[PartLog]) -> list[EvalLog]:
    """Return the headers of the shard logs, after checking that they belong to one run."""
    problems: list[Issue] = []
    headers: list[EvalLog] = []
    ids = [sample.id for sample in run.samples]
    for one in logs:
        try:
            header = read_eval_log(str(one.path), header_only=True)
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            problems.append(
                Issue(
                    f"shard {one.shard}: the log cannot be read: {error}",
                    file=str(one.path),
                    code=Code.UNREADABLE_LOG,
                )
            )
            continue
        headers.append(header)
        if list(header.eval.dataset.sample_ids or ()) != ids[slice(*one.rows)]:
            message = f"shard {one.shard}: the log contains other samples than the shard"
            problems.append(Issue(message, file=str(one.path), code=Code.SHARDS_APART))
        if differences := _others(headers[0], header):
            message = f"shard {one.shard}: {', '.join(differences)}: different from shard {logs[0].shard}"
            problems.append(Issue(message, file=str(one.path), code=Code.SHARDS_APART))
    if problems:
        raise EvidenceError(problems)
    return headers


def _others(first: EvalLog, other: EvalLog) -> list[str]:
    """Return the names of the settings that differ between two logs."""
    settings, other_settings = (
        {
            "task": log.eval.task,
            "arguments": log.eval.task_args,
            "model": log.eval.model,
            "scorers": log.eval.scorers,
            "reducers": log.eval.config.epochs_reducer,
            **settings_in(log),
        }
        for log in (first, other)
    )
    return [name for name, value in settings.items() if other_settings[name] != value]


def _describe(log: EvalLog, run: TaskWithModel, chosen: Mapping[str, Any]) -> None:
    """Change a header to describe one run over all samples."""
    dataset, config = log.eval.dataset, log.eval.config
    dataset.samples = len(run.task.dataset)
    dataset.sample_ids = [sample.id for sample in run.samples if sample.id is not None]
    for name, value in chosen.items():
        setattr(config, name, value)
    if log.eval.solver is None:
        log.eval.solver_args_passed = None  # same value as after reading a log without a solver


def _members(
    one: PartLog, header: EvalLog, run: TaskWithModel, gathered: _Gathered
) -> Iterator[tuple[str, bytes]]:
    """Yield the samples of a shard log unchanged, and collect the data for the metrics."""
    ids = {str(sample_id) for sample_id in header.eval.dataset.sample_ids or ()}
    names = scorer_names(run)
    seen: set[Trial] = set()
    try:
        archive = Archive(open_source(one.path))
        summaries = from_json(archive.read("summaries.json"), allow_inf_nan=True)
        gathered.summaries += summaries
        for name in archive.members:
            if not name.startswith("samples/"):
                continue
            data = archive.read(name)
            yield name, data
            # A large sample may be split into several members. Those samples are read below.
            if name.count("/") == 1:
                sample = from_json(data, allow_inf_nan=True)
                seen.add(_gather(sample, names, gathered))
        for summary in summaries:
            trial = (str(summary["id"]), int(summary["epoch"]))
            if trial not in seen:
                large_sample = read_eval_log_sample(
                    str(one.path), summary["id"], trial[1], exclude_fields=_LARGE
                )
                seen.add(_gather(_plain(large_sample), names, gathered))
        problems = [*archive.damage]
    except (OSError, ValueError, KeyError, TypeError, BridgeError) as error:
        message = f"shard {one.shard}: the log cannot be read: {error}"
        raise EvidenceError(message, file=str(one.path), code=Code.UNREADABLE_LOG) from error
    foreign = {trial for trial in seen if trial[0] not in ids or trial[1] > run.num_trials}
    if problems or foreign:
        reason = (
            str(problems[0].reason)
            if problems
            else f"it contains samples of other shards: {sorted(foreign)[:3]}"
        )
        raise EvidenceError(f"shard {one.shard}: {reason}", file=str(one.path), code=Code.SHARDS_APART)


def _plain(sample: EvalSample) -> dict[str, Any]:
    return {
        "id": sample.id,
        "epoch": sample.epoch,
        "metadata": sample.metadata,
        "error": sample.error,
        "scores": sample.scores,
    }


def _gather(sample: Mapping[str, Any], names: Sequence[str], gathered: _Gathered) -> Trial:
    trial = (str(sample["id"]), int(sample["epoch"]))
    scores = _SCORES.validate_python(sample.get("scores") or {})
    failed = sample.get("error") is not None
    gathered.num_whole += not failed
    if scores or not failed:
        gathered.scores[trial] = {
            name: SampleScore(
                score=score,
                sample_id=sample["id"],
                sample_metadata=sample.get("metadata"),
                # Scores set by a solver are without a scorer. Inspect then uses the metrics of the task.
                scorer=name if name in names else None,
            )
            for name, score in scores.items()
        }
    return trial


def scorer_names(run: TaskWithModel) -> list[str]:
    """Return the names of a task's scorers as they are in its log."""
    names: list[str] = []
    for scorer in run.task.scorer or ():
        names.append(unique_scorer_name(scorer, names))
    return names


def _conclude(
    log: EvalLog, headers: Sequence[EvalLog], run: TaskWithModel, part: PartLogs, gathered: _Gathered
) -> None:
    """Set the metrics, times, usage and status over all shards."""
    order = [(str(sample.id), trial) for trial in range(1, run.num_trials + 1) for sample in run.samples]
    scores = [gathered.scores[trial] for trial in order if trial in gathered.scores]
    log.results, log.reductions = None, None
    if scores:
        log.results, log.reductions = eval_results(
            samples=len(order),
            scores=scores,
            reducers=reducers_from_log_header(log),
            scorers=run.task.scorer,
            metrics=run.task.metrics,
            scorer_names=scorer_names(run) or None,
            completed_samples=gathered.num_whole,
            headline_metric=run.task.headline_metric,
        )
    places = {trial: number for number, trial in enumerate(order)}
    gathered.summaries.sort(key=lambda summary: places.get((str(summary["id"]), int(summary["epoch"])), 0))
    log.stats = _stats([header.stats for header in headers])
    failed = next((header for header in headers if header.status != "success"), None)
    if failed is not None:
        log.status, log.error = failed.status, failed.error
    if part.missing is not None:
        number = len({summary["id"] for summary in gathered.summaries})
        message = f"{part.missing}; {number} of {plural(len(run.samples), 'sample')} are complete"
        log.status, log.error = "error", EvalError(message=message, traceback="", traceback_ansi="")


def _stats(all_stats: Sequence[EvalStats]) -> EvalStats:
    """Return the statistics of all shards: first start, last end and total tokens."""
    return EvalStats(
        started_at=min((stats.started_at for stats in all_stats if stats.started_at), default=""),
        completed_at=max((stats.completed_at for stats in all_stats if stats.completed_at), default=""),
        model_usage=_usage([stats.model_usage for stats in all_stats]),
        role_usage=_usage([stats.role_usage for stats in all_stats]),
        connection_limit_history=[change for stats in all_stats for change in stats.connection_limit_history],
    )


def _usage(usages: Sequence[Mapping[str, ModelUsage]]) -> dict[str, ModelUsage]:
    total: dict[str, ModelUsage] = {}
    for usage in usages:
        for name, tokens in usage.items():
            total[name] = total[name] + tokens if name in total else tokens
    return total
