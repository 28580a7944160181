"""Shards of lighteval's tasks. Each shard runs the model on a part of the documents, and a merge computes all
metrics.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict

from anyio.from_thread import BlockingPortal, start_blocking_portal
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc, SamplingMethod

from aigo_bridge.codes import Code
from aigo_bridge.engine.benchmarks import BenchmarkPart, BenchmarkRun, PartLogs, PartRun
from aigo_bridge.engine.outcome import Outcome, errors_by_kind
from aigo_bridge.errors import EngineError, EvidenceError, Issue, UsageError
from aigo_bridge.plan.shards import Shard
from aigo_bridge.process import steady_time
from aigo_bridge.redaction.secrets import learn_environment
from aigo_bridge.text.summaries import named_summary_of
from aigo_lighteval.benchmarks.answers import AnsweredModel, Answers, ShardModel, read_answers, write_answers
from aigo_lighteval.benchmarks.models import DocumentNotes
from aigo_lighteval.benchmarks.outcomes import finish, plain
from aigo_lighteval.benchmarks.pipeline import NativePipeline, folder_name, make_pipeline
from aigo_lighteval.benchmarks.requests import apply_settings
from aigo_lighteval.benchmarks.run import (
    MAX_ERRORS,
    checkpoint_of,
    concluded,
    model_of,
    refuse_options,
    refuse_tasks,
    sample_ids,
    settle,
    splits_of,
    stdout_for_people,
    tasks_of,
    watch,
)
from aigo_lighteval.benchmarks.tasks import SelectedTask, unchanged_process
from aigo_lighteval.models.batches import BackendCaller
from aigo_lighteval.models.callers import make_caller
from aigo_lighteval.models.messages import Caller
from aigo_lighteval.running.pipeline import quiet

_SETTINGS = ("max_tokens", "stop")
"""Model settings that are applied to the documents (see `apply_settings`)."""


def run(
    request: BenchmarkRun, shard: Shard, begin: Callable[[Sequence[BenchmarkPart]], bool]
) -> list[PartRun]:
    """Run a shard of each task's documents. See `BenchmarkShards.run`.

    For a model that answers all documents in one call, an interrupted run keeps no answers. All documents run
    again.
    """
    refuse_options(request)
    learn_environment()
    with stdout_for_people():
        caller = make_caller(request.model, attempt_timeout=request.attempt_timeout)
        tasks = tasks_of(request)
        refuse_tasks(tasks, caller)
        pipelines = _pipelines(tasks, request)
        models = {"": caller.name}
        parts = [_part(pipeline, task, models) for pipeline, task in zip(pipelines, tasks, strict=True)]
        for pipeline, task in zip(pipelines, tasks, strict=True):
            settle(_share(pipeline, task, shard), task, caller)
        if not begin(parts):
            return []
        with start_blocking_portal() as portal:
            try:
                if isinstance(caller, BackendCaller):
                    caller.load()
                return [
                    _asked(pipeline, task, request, caller, portal)
                    for pipeline, task in zip(pipelines, tasks, strict=True)
                ]
            finally:
                portal.call(caller.aclose)


def _pipelines(tasks: Sequence[SelectedTask], request: BenchmarkRun) -> list[NativePipeline]:
    """Return the pipelines of whole tasks with their documents and an empty model."""
    nobody = Answers(ShardModel("", "none", {}, {}, 0.0, 0.0), {}, {}, {})
    return [
        make_pipeline(
            *(
                task,
                AnsweredModel([nobody], DocumentNotes(), None),
                DocumentNotes(),
                rows,
                request.num_samples,
                request.out,
            ),
            sample_ids=sample_ids(request),
        )
        for task, rows in zip(tasks, splits_of(tasks, request), strict=True)
    ]


def _part(pipeline: NativePipeline, task: SelectedTask, models: Mapping[str, str]) -> BenchmarkPart:
    """Return a task's identity, with its documents before a model's settings are applied."""
    documents = pipeline.documents_dict[task.name]
    digest = hashlib.sha256(json.dumps([task.name, _metrics(task)]).encode())
    for doc in documents:
        digest.update(json.dumps(plain(asdict(doc)), sort_keys=True, default=str).encode() + b"\n")
    return BenchmarkPart(task.name, digest.hexdigest(), len(documents), 1, models)


def _metrics(task: SelectedTask) -> list[str]:
    return [str(metric.metric_name) for metric in task.config.metrics]


def _asked(
    pipeline: NativePipeline,
    task: SelectedTask,
    request: BenchmarkRun,
    caller: Caller,
    portal: BlockingPortal,
) -> PartRun:
    """Run the model on the documents of a shard, and write the answers."""
    documents = pipeline.documents_dict[task.name]
    if not documents:
        return PartRun()
    notes = DocumentNotes()
    started = steady_time()
    pipeline.ask_of(model_of(caller, request, portal, notes), notes)
    checkpoint = checkpoint_of(task, request)
    try:
        watch(documents, task, request, notes, checkpoint)
        responses = _responses(pipeline, task)
        settings = {name: caller.settings[name] for name in _SETTINGS if name in caller.settings}
        config = plain(pipeline.model.config.model_dump())
        head = ShardModel(task.name, caller.name, config, settings, started, steady_time(), notes.stopped)
        path = request.out / f"answers-{folder_name(task.name)}.jsonl"
        write_answers(path, head, pipeline.sampling_docs, responses, notes)
        if notes.stopped is None:
            checkpoint.remove()
    finally:
        checkpoint.close()
    failures = [(name, notes.failures[name].message) for name in sorted(notes.failures, key=int)]
    return PartRun(
        path,
        num_samples=len(documents),
        num_failed=len(failures),
        status="success" if notes.stopped is None else "error",
        error=notes.stopped,
        num_reused=checkpoint.num_given,
        first_errors=tuple(errors_by_kind(failures, MAX_ERRORS)),
    )


def _share(pipeline: NativePipeline, task: SelectedTask, shard: Shard) -> list[Doc]:
    """Remove all documents outside of the shard."""
    documents = pipeline.documents_dict[task.name]
    begin, end = shard.bounds(len(documents))
    share: list[Doc] = documents[begin:end]
    names = {doc.id for doc in share}
    pipeline.documents_dict[task.name] = share
    for method, documents_of_method in pipeline.sampling_docs.items():
        pipeline.sampling_docs[method] = [doc for doc in documents_of_method if doc.id in names]
    return share


def _responses(
    pipeline: NativePipeline, task: SelectedTask
) -> Mapping[SamplingMethod, Sequence[ModelResponse]]:
    try:
        with quiet(), unchanged_process():
            return pipeline.answers()
    except (UsageError, EngineError):
        raise
    except Exception as error:
        raise EngineError(
            f"task {task.name!r} failed: {named_summary_of(error)}", code=Code.FAILED_ENGINE
        ) from error


def merge(
    request: BenchmarkRun, logs: Callable[[Sequence[BenchmarkPart]], Sequence[PartLogs]]
) -> list[Outcome]:
    """Compute metrics from the answers of all shards. See `BenchmarkShards.merge`."""
    refuse_options(request)
    learn_environment()
    with stdout_for_people():
        tasks = tasks_of(request)
        pipelines = _pipelines(tasks, request)
        parts = logs([_part(pipeline, task, {}) for pipeline, task in zip(pipelines, tasks, strict=True)])
        shards = [_answers(task, part) for task, part in zip(tasks, parts, strict=True)]
        return [
            _merged(pipeline, task, request, answers, part.missing)
            for pipeline, task, answers, part in zip(pipelines, tasks, shards, parts, strict=True)
        ]


def _answers(task: SelectedTask, part: PartLogs) -> list[Answers]:
    """Return the answers in all shards of a task, which must be of one model."""
    problems: list[Issue] = []
    shards: list[Answers] = []
    for log in part.logs:
        try:
            shard = read_answers(log.path)
        except EvidenceError as error:
            problems += error.issues
            continue
        shards.append(shard)
        head = shards[0].asked
        alike = ("task", "model", "config", "settings")
        differences = [name for name in alike if getattr(shard.asked, name) != getattr(head, name)]
        if differences:
            where = f"different from shard {part.logs[0].shard}"
            message = f"shard {log.shard}: {', '.join(differences)}: {where}"
            problems.append(Issue(message, file=str(log.path), code=Code.SHARDS_APART))
    if problems:
        raise EvidenceError(problems)
    if not shards:
        raise EvidenceError(
            f"no shard has answers to {task.name!r}, so there is nothing to merge", code=Code.SHARDS_MISSING
        )
    return shards


def _merged(
    pipeline: NativePipeline,
    task: SelectedTask,
    request: BenchmarkRun,
    shards: Sequence[Answers],
    missing: str | None,
) -> Outcome:
    notes = DocumentNotes(stopped=missing)
    pipeline.ask_of(AnsweredModel(shards, notes, missing), notes)
    apply_settings(pipeline.documents_dict[task.name], shards[0].asked.settings)
    finished = finish(pipeline, task, request.out)
    times = (
        min(shard.asked.started for shard in shards),
        max(shard.asked.ended for shard in shards),
    )
    return concluded(task, finished, notes, request.out, shards[0].asked.model, times)
