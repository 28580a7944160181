"""Carrying out a plan: Inspect's `eval`, and its `eval_retry` for runs that were interrupted."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inspect_ai import eval as inspect_eval
from inspect_ai import eval_retry
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.model import Model, get_model

from aigo_bridge.engine import LogRef, RunSettings
from aigo_bridge.errors import BridgeError, EngineError, EvidenceError, UsageError
from aigo_bridge.plan import TaskPlan
from aigo_inspect import _registry  # noqa: F401  # registers what Inspect must find by name
from aigo_inspect.keys import HEADER_KEY
from aigo_inspect.models import InspectModel
from aigo_inspect.progress import ProgressCounter
from aigo_inspect.reading import open_log
from aigo_inspect.stored import has_failed
from aigo_inspect.translate import Run, aigo_task, running

DEFAULT_MAX_RETRIES = 8
"""Attempts per call after transient failures (Inspect's own default is without end)."""


def run(plan: TaskPlan, settings: RunSettings) -> LogRef:
    """Run a plan; see `Engine.run`."""
    wanted = plan.calls_model or (plan.entity == "model" and settings.model is not None)
    model = _model(settings.model, settings.model_args) if wanted else None
    roles = {key: _model(settings.model_map[key], {}) for key in plan.model_keys if key in settings.model_map}
    try:
        settings.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"--out: {str(settings.out)!r} cannot be used as a folder: {error.strerror}"
        ) from error
    earlier = _interrupted(plan, settings, model, roles) if settings.resume else None
    reused = 0 if earlier is None else _keep_finished(earlier)
    before = set(settings.out.glob("*.eval"))
    progress = ProgressCounter(settings.on_progress, len(plan.samples) * plan.num_trials - reused)
    # What Inspect prints is for people; standard output may be read by a program.
    with _engine_errors(), contextlib.redirect_stdout(sys.stderr), running(Run(plan, progress)):
        logs = _eval(plan, settings, model, roles) if earlier is None else _retry(earlier, settings)
    return LogRef("inspect", _path(logs, settings.out, before), reused)


def _eval(
    plan: TaskPlan, settings: RunSettings, model: Model | None, roles: dict[str, Model]
) -> list[EvalLog]:
    origin = plan.origin
    if origin is None:
        raise EngineError("the plan was not made from a file, so Inspect could not make its task again")
    native = aigo_task(
        task=origin.task,
        config=dict(origin.config),
        dataset=dict(origin.datasets),
        num_samples=origin.num_samples,
        subsampling=origin.subsampling,
        model_map={key: settings.model_map[key] for key in roles},
        root=origin.root,
        digest=plan.digest,
    )
    return inspect_eval(
        native,
        model=model,
        model_roles=dict(roles),
        log_dir=str(settings.out),
        log_format="eval",
        display="none",
        fail_on_error=False,
        max_samples=settings.max_samples,
        max_connections=settings.max_connections,
        max_retries=DEFAULT_MAX_RETRIES,
        time_limit=settings.time_limit,
        token_limit=settings.token_limit,
        cost_limit=settings.cost_limit,
        # Raw requests and responses of every call: the evidence's `direct_ios`.
        log_model_api=True,
        # Scoring while running would compute all metrics again after each sample.
        score_display=False,
        ctl_server=False,
    )


def _retry(log: EvalLog, settings: RunSettings) -> list[EvalLog]:
    try:
        return eval_retry(
            log,
            log_dir=str(settings.out),
            display="none",
            fail_on_error=False,
            max_samples=settings.max_samples,
            max_connections=settings.max_connections,
            score_display=False,
            ctl_server=False,
        )
    except IndexError:
        return []  # interrupted: Inspect looks for the first of no logs


def _model(name: str | None, arguments: Any) -> Model:
    """A model by Inspect's name for it, so that a bad name is told before anything runs."""
    if name is None:
        raise UsageError(
            "the task evaluates a model, and none was given; use --model, e.g. --model openai/gpt-4.1-nano"
        )
    try:
        # Not memoized: settings of the environment and files of rules may have changed since an earlier run.
        return get_model(name, memoize=False, **arguments)
    except BridgeError:
        raise
    except (PrerequisiteError, ValueError, ImportError) as error:
        raise UsageError(f"model {name!r}: {_plain(error)}") from error


def single_model(name: str) -> InspectModel:
    """A model for calls outside a run."""
    return InspectModel(name, _model(name, {}))


@contextmanager
def _engine_errors() -> Iterator[None]:
    """What Inspect raises before it has a log, as our errors."""
    try:
        yield
    except PrerequisiteError as error:
        raise EngineError(_plain(error)) from error
    except FileNotFoundError as error:
        raise EngineError(str(error)) from error


def _plain(error: Exception) -> str:
    """An error's text without terminal markup."""
    from rich.errors import MarkupError
    from rich.text import Text

    text = str(getattr(error, "message", None) or error)
    try:
        return Text.from_markup(text).plain.strip()
    except MarkupError:
        return text.strip()


def _path(logs: list[EvalLog], out: Path, before: set[Path]) -> Path:
    """The log of the run; after an interruption Inspect returns none, but has written one."""
    if logs and logs[0].location:
        return Path(logs[0].location.removeprefix("file://"))
    written = sorted(set(out.glob("*.eval")) - before, key=os.path.getmtime)
    if not written:
        raise EngineError("Inspect wrote no log")
    return written[-1]


# Resuming


def _interrupted(
    plan: TaskPlan, settings: RunSettings, model: Model | None, roles: dict[str, Model]
) -> EvalLog | None:
    """The newest log of the same plan and the same models; `None` when there is none."""
    for path in sorted(settings.out.glob("*.eval"), key=os.path.getmtime, reverse=True):
        try:
            with open_log(path) as log:
                spec = log.header.get("eval") or {}
        except EvidenceError:
            continue  # a file that was cut off; an older one may do
        header = (spec.get("metadata") or {}).get(HEADER_KEY) or {}
        same_models = model is None or spec.get("model") == str(model)
        given = {key: (value or {}).get("model") for key, value in (spec.get("model_roles") or {}).items()}
        if (
            header.get("digest") == plan.digest
            and same_models
            and given == {k: str(m) for k, m in roles.items()}
        ):
            return _recovered(path)
    return None


def _recovered(path: Path) -> EvalLog:
    """A log with its samples; for a killed run also those that Inspect had not yet written to the file."""
    from inspect_ai.log import RecoveryNotAvailable, recover_eval_log

    log = read_eval_log(str(path))
    if log.status != "started":
        return log
    try:
        recovered = recover_eval_log(str(path), cleanup=False)
    except RecoveryNotAvailable:
        return log
    recovered_path = Path((recovered.location or "").removeprefix("file://"))
    if recovered_path != path and recovered_path.is_file():
        recovered = read_eval_log(str(recovered_path))
        # Its samples are in memory now; a second file of the same run would only confuse.
        recovered_path.unlink()
    recovered.location = str(path)
    return recovered


def _keep_finished(log: EvalLog) -> int:
    """Leave only finished samples in the log, those that Inspect will take over; returns how many.

    For Inspect a sample whose scorer failed is finished, for us it is not.
    """
    log.samples = [
        sample
        for sample in log.samples or []
        if sample.error is None
        and sample.completed_at
        and not any(has_failed(score.model_dump()) for score in (sample.scores or {}).values())
    ]
    return len(log.samples)
