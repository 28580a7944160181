"""lighteval's pipeline around one of our runs: offline, with rows in memory, in the plan's order, saved in one go.

lighteval has its own ways with all of that; each one departed from is named where it is.
"""

from __future__ import annotations

import threading
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from datasets import Dataset  # type: ignore[import-untyped]  # has no types
from datasets.utils.logging import (  # type: ignore[import-untyped]  # has no types
    disable_progress_bar,
    enable_progress_bar,
    is_progress_bar_enabled,
)
from lighteval.logging.evaluation_tracker import EvaluationTracker
from lighteval.pipeline import ParallelismManager, Pipeline, PipelineParameters
from lighteval.tasks.lighteval_task import LightevalTask, LightevalTaskConfig
from lighteval.tasks.registry import Registry

from aigo_bridge.results.faults import explained
from aigo_bridge.secrets import redact_value
from aigo_lighteval.hosting import AigoModel, TaskRun
from aigo_lighteval.stored import BLOCK
from aigo_lighteval.translate import CARRIER, SPLIT, row_text

_LOADING = threading.Lock()
"""Held while lighteval's loaders are replaced, which is for the whole process."""


class Tracker(EvaluationTracker):  # type: ignore[misc]  # lighteval has no types
    """Writes lighteval's files, and our block into the results.

    Args:
        run: what is saved; documents, responses and scores become texts then, and not while it runs.
        out: the folder; lighteval's layout of `results/` and `details/` is made in it.
        block: gives our block when all is done, from the name of the details beside the results file.
    """

    def __init__(self, run: TaskRun, out: Path, block: Callable[[str | None], Mapping[str, Any]]):
        super().__init__(output_dir=str(out), save_details=True)
        self._run = run
        self._out = out
        self._block = block
        self.results_file: Path | None = None
        """Where the results are; `None` before they were saved."""

    def save(self) -> None:
        """Write details, then results: whoever finds the results finds their details."""
        date = datetime.now().isoformat().replace(":", "-")  # noqa: DTZ005  # lighteval names its files in local time
        model = self.general_config_logger.model_name
        datasets = {name: self._dataset(details) for name, details in self.details_logger.details.items()}
        self.save_details(date, datasets)
        details = next(
            (f"../../details/{model}/{date}/details_{name}_{date}.parquet" for name in datasets), None
        )
        self.save_results(date, redact_value({**self.results, BLOCK: self._block(details)}))
        self.results_file = self._out / "results" / model / f"results_{date}.json"

    def salvage(self, task: str) -> None:
        """Write what was run, without anything that lighteval makes of it."""
        date = datetime.now().isoformat().replace(":", "-")  # noqa: DTZ005  # as in `save`
        model = self.general_config_logger.model_name
        name = f"{task}|0"
        rows = [
            {
                "doc": {"specific": {CARRIER: row_text(sample)}},
                "model_response": {CARRIER: self._run.left_by_solver(number)},
                "metric": {CARRIER: self._run.metric_value(number)},
            }
            for number, sample in enumerate(self._run.plan.samples)
        ]
        self.save_details(date, {name: Dataset.from_list(rows)})
        details = f"../../details/{model}/{date}/details_{name}_{date}.parquet"
        self.save_results(date, {BLOCK: self._block(details)})
        self.results_file = self._out / "results" / model / f"results_{date}.json"

    def _dataset(self, details: list[Any]) -> Dataset:
        # lighteval's order is shuffled; readers want the plan's.
        docs = {int(detail.doc.id): detail.doc for detail in details}
        return Dataset.from_list(
            [
                redact_value(
                    {
                        "doc": _columns(docs[number]),
                        "model_response": _columns(self._run.response(number)),
                        "metric": {CARRIER: self._run.metric_value(number)},
                    }
                )
                for number in sorted(docs)
            ]
        )


def _columns(kept: Any) -> dict[str, Any]:
    """A document or a response by its fields, as it stands in the details.

    `asdict` copies everything that is in them, too; only of examples there is more to take apart.
    """
    if getattr(kept, "fewshot_samples", None):
        return asdict(kept)
    return {field.name: getattr(kept, field.name) for field in fields(kept)}


def run_pipeline(
    config: LightevalTaskConfig,
    rows: list[dict[str, Any]],
    model: AigoModel,
    out: Path,
    block: Callable[[str | None], Mapping[str, Any]],
) -> Path:
    """Run one task of ours through lighteval's pipeline.

    Args:
        config: the task.
        rows: its rows.
        model: our model.
        out: folder of the results.
        block: as `Tracker` takes it.

    Returns:
        The results file.
    """
    tracker = Tracker(model.run, out, block)
    if not rows:
        # lighteval refuses a task without documents; its results are what they are without one.
        tracker.general_config_logger.log_model_info(model_config=model.config)
        tracker.save()
    else:
        with _our_tasks_only(config, rows), quiet():
            pipeline = Pipeline(
                tasks=f"{config.name}|0",
                model=model,
                evaluation_tracker=tracker,
                pipeline_parameters=PipelineParameters(
                    launcher_type=ParallelismManager.NONE,
                    custom_tasks_directory=_module(config),
                    # Its standard errors come from a thousand draws in a pool of processes.
                    bootstrap_iters=0,
                    # Scorers see what the model said.
                    remove_reasoning_tags=False,
                ),
            )
        with quiet():
            try:
                pipeline.evaluate()
                pipeline.save_and_push_results()
            except Exception as error:
                if not model.run.solved:
                    raise
                model.run.fault = explained(error)
                tracker.salvage(config.name)
    assert tracker.results_file is not None
    return tracker.results_file


def _module(config: LightevalTaskConfig) -> types.ModuleType:
    module = types.ModuleType("aigo_bridge_tasks")
    module.TASKS_TABLE = [config]  # type: ignore[attr-defined]  # how lighteval finds tasks in a module
    return module


@contextmanager
def _our_tasks_only(config: LightevalTaskConfig, rows: list[dict[str, Any]]) -> Iterator[None]:
    """Keep lighteval from importing its built-in tasks (one of them downloads a file while it is imported), and give it the rows.

    Its loader of local files would guess types of columns, and keep a copy that it takes for current when the file has changed.
    """
    table = {config.name: config}
    with _LOADING:
        before = Registry.__dict__["load_all_task_configs"], LightevalTask.__dict__["download_dataset_worker"]
        Registry.load_all_task_configs = staticmethod(
            lambda custom_tasks=None, load_multilingual=False: table
        )
        LightevalTask.download_dataset_worker = staticmethod(lambda task: {SPLIT: rows})
        try:
            yield
        finally:
            Registry.load_all_task_configs, LightevalTask.download_dataset_worker = before


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars of the library that writes the files."""
    shown = is_progress_bar_enabled()
    disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            enable_progress_bar()
