"""Inspect hook that writes AI GO evidence at the end of each task, so that every `inspect eval` produces a
result log. It also does so for failed and cancelled tasks.

Set the environment variable `AIGO_BRIDGE_EVIDENCE` to a folder to enable the hook. The value `log` means the
folder of the log:

```sh
AIGO_BRIDGE_EVIDENCE=evidence inspect eval my_task.py --model openai/gpt-4.1
```
"""

from __future__ import annotations

import logging
import os
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from anyio import CancelScope, to_thread
from inspect_ai.hooks import Hooks, RunEnd, SampleStart, TaskEnd, TaskStart, hooks
from inspect_ai.log import EvalLog
from inspect_ai.log._samples import sample_active

from aigo_bridge.errors import BridgeError, EvidenceError
from aigo_bridge.importing.log_import import ImportOptions, ImportReport
from aigo_inspect.importing.importing import import_file, import_own
from aigo_inspect.logs.sources import local_path

VARIABLE = "AIGO_BRIDGE_EVIDENCE"
"""Environment variable with the folder for the evidence. If it is unset or empty, the hook is disabled."""

_logger = logging.getLogger(__name__)


@dataclass
class _Run:
    tasks: dict[str, str] = field(default_factory=dict)
    """Attempt at a task (`eval_id`) → task."""
    begun: dict[str, str] = field(default_factory=dict)
    """Task → log of its last attempt that started a sample. Earlier attempts are not imported."""
    written: set[str] = field(default_factory=set)
    """Logs whose evidence has been written."""


@hooks(name="aigo_bridge_evidence", description="AI GO evidence from every task")
class EvidenceHook(Hooks):
    """Hook that imports the log of each finished task.

    Inspect reports the end of a task only if the task completed. Failed tasks are reported with their run.
    Cancelled tasks are not reported at all, so the hook finds them by their started samples.
    """

    def __init__(self) -> None:
        self._runs: defaultdict[str, _Run] = defaultdict(_Run)

    def enabled(self) -> bool:
        """Return whether the user asked for evidence."""
        return bool(os.environ.get(VARIABLE))

    async def on_task_start(self, data: TaskStart) -> None:
        """Store the task of this attempt."""
        self._runs[data.run_id].tasks[data.eval_id] = data.spec.task_id

    async def on_sample_start(self, data: SampleStart) -> None:
        """Store the log of a started sample. If its task has ended before, this is another attempt."""
        sample = sample_active()
        if sample is not None and sample.log_location:
            run = self._runs[data.run_id]
            run.begun[run.tasks.get(data.eval_id, data.eval_id)] = sample.log_location
            run.written.discard(sample.log_location)

    async def on_task_end(self, data: TaskEnd) -> None:
        """Write the evidence. A failure is logged and does not fail the evaluation."""
        self._runs[data.run_id].written.add(data.log.location)
        await _write(data.log.location, data.log)

    async def on_run_end(self, data: RunEnd) -> None:
        """Write the evidence of failed and cancelled tasks."""
        run = self._runs.pop(data.run_id, _Run())
        logs: dict[str, EvalLog | None] = {log.location: log for log in data.logs}
        for location in dict.fromkeys([*logs, *run.begun.values()]):
            if location and location not in run.written:
                await _write(location, logs.get(location))


async def _write(location: str, log: EvalLog | None) -> None:
    # In a thread, because reading a large log would block the other tasks of the event loop.
    try:
        # Shielded, because a cancelled run also needs its evidence.
        with CancelScope(shield=True):
            result = await to_thread.run_sync(write_evidence, location, os.environ[VARIABLE])
    except (BridgeError, OSError) as error:
        _logger.warning("the evidence of %s was not written: %s", location, error)
        return
    if result is None:
        return
    if result.exit_code:
        _logger.warning("the evidence of %s: %s", location, result.reason)
    if log is not None:
        for difference in _differences(log, result):
            message = (
                "evidence of %s differs from what Inspect shows: %s (please report this defect of"
                " aigo-bridge)"
            )
            _logger.error(message, location, difference)


def _differences(log: EvalLog, result: ImportReport) -> tuple[str, ...]:
    if result.output is None:
        return ()
    # Imported late, because Inspect loads this module even if the hook is disabled.
    from aigo_bridge.engine.outcome import DisplayedRun, differences, shown_metrics
    from aigo_inspect.benchmarks.outcomes import metrics_of_log

    shown = DisplayedRun(
        metrics=shown_metrics(metrics_of_log(log)),
        succeeded=log.status == "success",
        num_samples=result.samples,
        num_failed=result.failed,
    )
    return differences(shown, result.output)


def write_evidence(log: str, folder: str) -> ImportReport | None:
    """Import `log` to `folder`. If `folder` is `log` and the log is a local file, write to the folder of the
    log.

    Return `None` for the log of an AI GO task, if its complete evidence was restored from the log.
    """
    path = local_path(log)
    name = log.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".eval").removesuffix(".json")
    target = (
        Path(path).parent
        if folder == "log" and path is not None
        else Path("." if folder == "log" else folder)
    )
    target.mkdir(parents=True, exist_ok=True)
    from aigo_inspect.running.translate import planned_here

    try:
        # The task code runs in this process already, so recomputing with it adds no risk.
        if import_own(log, target, ImportOptions(recompute=planned_here)) is not None:
            return None
    except EvidenceError as error:
        return import_file(log, target / name, known_damage=str(error))
    return import_file(log, target / name)
