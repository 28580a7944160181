"""Earlier runs in a folder of Inspect logs, and their finished trials, for `execution.jobs`."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inspect_ai.event import SpanBeginEvent
from inspect_ai.log import EvalLog, EvalSample, RecoveryNotAvailable, read_eval_log, recover_eval_log
from inspect_ai.log._recorders.buffer import database  # source for recovering a killed run
from inspect_ai.log._recover._reconstruct import _extract_messages_from_events  # no public API
from inspect_ai.model import ModelUsage

from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError
from aigo_bridge.execution import jobs
from aigo_bridge.execution.earlier_runs import EarlierLogs, EarlierRun
from aigo_bridge.plan.plan import TaskPlan
from aigo_inspect.logs.reader import open_log
from aigo_inspect.logs.shapes import HEADER_KEY, MALFORMED
from aigo_inspect.running.codec import has_failed, load_stored
from aigo_inspect.running.evidence import TRUSTED, execution_of

STATUSES = ("started", "success", "cancelled", "error")
"""Status values of an Inspect log."""


def earlier_runs(out: Path) -> list[EarlierRun]:
    """Return the logs of AI GO runs in a folder, newest first."""
    return jobs.earlier_runs(out.glob("*.eval"), _head, MALFORMED)


def _head(path: Path) -> EarlierRun | None:
    with open_log(path, bounds=TRUSTED) as log:
        header, summaries = log.header, log.summaries()
    spec = header.get("eval") or {}
    plan = (spec.get("metadata") or {}).get(HEADER_KEY)
    if not isinstance(plan, dict):
        return None
    config = spec.get("config") or {}
    execution = execution_of(header, summaries)
    roles = spec.get("model_roles") or {}
    if header.get("status") not in STATUSES or (log.damage and header["status"] == "success"):
        return None
    return EarlierRun(
        path=path,
        plan=plan,
        status=str(header.get("status") or "started"),
        models={"": spec.get("model"), **{key: (role or {}).get("model") for key, role in roles.items()}},
        limits=tuple(config.get(name) for name in ("time_limit", "token_limit", "cost_limit")),
        datasets=_named_datasets(spec),
        times=(execution.started_at, execution.ended_at),
    )


def _named_datasets(spec: Mapping[str, Any]) -> dict[str, str]:
    named = (spec.get("task_args") or {}).get("dataset")
    return {str(key): str(file) for key, file in named.items()} if isinstance(named, dict) else {}


def _count_finished(run: EarlierRun, plan: TaskPlan) -> int:
    with open_log(run.path, bounds=TRUSTED) as log:
        return sum(
            not sample.data.get("error")
            and bool(sample.data.get("completed_at"))
            and not any(has_failed(score) for score in (sample.data.get("scores") or {}).values())
            for sample in log.samples()
        )


def _finished(run: EarlierRun, plan: TaskPlan) -> tuple[EvalLog, int]:
    """Return a log with only its finished trials, which Inspect will reuse, and their number.

    Inspect treats a sample with a failed scorer as finished; aigo-bridge runs it again. After a killed run, a
    few trials may not be in the file yet. Inspect can only recover a part of their data, so they run again
    with the answers in the checkpoint. Agents are the exception, because the checkpoint does not have their
    calls.

    Raises:
        EvidenceError: Inspect cannot read the log.
    """
    try:
        log = recovered(run.path) if plan.runs_tools else read_eval_log(str(run.path))
    except (*MALFORMED, NotImplementedError) as error:
        raise EvidenceError(f"{str(run.path)!r} cannot be resumed: {error}", code=Code.DAMAGED_LOG) from error
    solved = "solver" in ((log.eval.metadata or {})[HEADER_KEY]["task"].get("definition") or {})
    samples = [
        sample
        for sample in log.samples or []
        if sample.error is None
        and sample.completed_at
        and not any(has_failed(score.model_dump()) for score in (sample.scores or {}).values())
        and (not solved or load_stored(_native_json(sample)))
    ]
    log.samples = samples
    # Tokens of other trials are counted when these run again.
    log.stats.model_usage = _total(sample.model_usage for sample in samples)
    log.stats.role_usage = _total(sample.role_usage for sample in samples)
    return log, len(samples)


def _total(usages: Iterable[Mapping[str, ModelUsage]]) -> dict[str, ModelUsage]:
    total: dict[str, ModelUsage] = {}
    for usage in usages:
        for name, tokens in usage.items():
            total[name] = total.get(name, ModelUsage()) + tokens
    return total


EARLIER_LOGS = EarlierLogs(earlier_runs, _count_finished, _finished)
"""Source of earlier runs that jobs can resume."""


def _native_json(sample: EvalSample) -> dict[str, Any]:
    """Return the parts of a sample that may contain the solver's result. A recovered sample has only its
    events.
    """
    native = sample.model_dump(mode="json", include={"output": {"metadata"}, "store": True})
    return (
        native if load_stored(native) else sample.model_dump(mode="json", include={"events", "attachments"})
    )


def recovered(path: Path) -> EvalLog:
    """Return a log, including the samples that Inspect had not written when the run was killed."""
    log = read_eval_log(str(path))
    if log.status != "started":
        return log
    try:
        with _without_recomputing():
            whole_log = recover_eval_log(str(path), cleanup=False)
    except RecoveryNotAvailable:
        return log
    recovered_path = Path((whole_log.location or "").removeprefix("file://"))
    if recovered_path != path and recovered_path.is_file():
        whole_log = read_eval_log(str(recovered_path))
        # Remove the second file, because its samples are in memory.
        recovered_path.unlink()
    whole_log.location = str(path)
    written = {(sample.id, sample.epoch) for sample in log.samples or []}
    for sample in whole_log.samples or []:
        if (sample.id, sample.epoch) not in written:
            _leave_scoring_out(sample)
    return whole_log


def _leave_scoring_out(sample: EvalSample) -> None:
    """Correct the conversation of a recovered sample. Inspect uses the last call, which may be a judge's."""
    for number, event in enumerate(sample.events):
        if isinstance(event, SpanBeginEvent) and event.type == "scorers":
            sample.messages, sample.output = _extract_messages_from_events(sample.events[:number])
            return


@contextmanager
def order_kept() -> Iterator[None]:
    """Make Inspect keep the field order of requests in this block, including samples in progress."""
    module: Any = database
    stored, name = module._call_pool_json, "_call_pool_json"  # noqa: SLF001  # no public API
    setattr(module, name, json.dumps)
    try:
        yield
    finally:
        setattr(module, name, stored)


@contextmanager
def _without_recomputing() -> Iterator[None]:
    """Suppress warnings about metrics that Inspect cannot recompute in a recovered log. AI GO runs do not use
    them.
    """
    logger = logging.getLogger("inspect_ai.log._recover._write")

    def is_told(record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith("Unable to recompute metrics")

    logger.addFilter(is_told)
    try:
        yield
    finally:
        logger.removeFilter(is_told)
