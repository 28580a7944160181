"""lighteval's pipeline around one of our runs: offline, rows in memory, in the plan's order, saved at once.

lighteval has its own ways with all of that; each one departed from is named where it is.
"""

from __future__ import annotations

import math
import threading
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from datasets import Dataset, concatenate_datasets  # type: ignore[import-untyped]  # has no types
from datasets.utils.logging import (  # type: ignore[import-untyped]  # has no types
    disable_progress_bar,
    enable_progress_bar,
    is_progress_bar_enabled,
)
from lighteval.logging.evaluation_tracker import EvaluationTracker
from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.models.abstract_model import LightevalModel, ModelConfig
from lighteval.models.model_output import ModelResponse
from lighteval.pipeline import ParallelismManager, Pipeline, PipelineParameters
from lighteval.tasks.lighteval_task import LightevalTask, LightevalTaskConfig
from lighteval.tasks.registry import Registry
from lighteval.tasks.requests import Doc, SamplingMethod

from aigo_bridge.process.signals import finishing
from aigo_bridge.redaction.secrets import redact_value
from aigo_bridge.results.faults import explained
from aigo_lighteval.documents.translate import CARRIER, row_text
from aigo_lighteval.documents.turns import SPLIT
from aigo_lighteval.running.evidence import BLOCK
from aigo_lighteval.running.hosted import TaskRun

Json = dict[str, Any]

BATCH_ROWS = 500
"""Rows of the details that are made at a time."""

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
        """Write what lighteval makes of the run."""
        details = self.details_logger.details.items()
        self._write(
            {name: _dataset(self._rows(documents)) for name, documents in details},
            lambda block: redact_value({**self.results, **block}),
        )

    def salvage(self, task: str) -> None:
        """Write what was run, without anything that lighteval makes of it."""
        rows = [
            {
                "doc": {"specific": {CARRIER: row_text(sample)}},
                "model_response": {CARRIER: self._run.left_by_solver(number)},
                "metric": {CARRIER: self._run.metric_value(number)},
            }
            for number, sample in enumerate(self._run.plan.samples)
        ]
        self._write({f"{task}|0": _dataset(rows)}, dict)

    def _write(
        self, datasets: Mapping[str, Dataset], results: Callable[[Mapping[str, Any]], dict[str, Any]]
    ) -> None:
        """Write details, then results: whoever finds the results finds their details."""
        with finishing():
            self._write_files(datasets, results)

    def _write_files(
        self, datasets: Mapping[str, Dataset], results: Callable[[Mapping[str, Any]], dict[str, Any]]
    ) -> None:
        date = datetime.now().isoformat().replace(":", "-")  # noqa: DTZ005  # lighteval names its files in local time
        model = self.general_config_logger.model_name
        self.save_details(date, datasets)
        details = next(
            (f"../../details/{model}/{date}/details_{name}_{date}.parquet" for name in datasets), None
        )
        self.save_results(date, results({BLOCK: self._block(details)}))
        self.results_file = self._out / "results" / model / f"results_{date}.json"

    def _rows(self, details: list[Any]) -> Iterator[Json]:
        # lighteval's order is shuffled; readers want the plan's.
        docs = {int(detail.doc.id): detail.doc for detail in details}
        for number in sorted(docs):
            row = {
                "doc": _columns(docs[number]),
                "model_response": _columns(self._run.response(number)),
                "metric": {CARRIER: self._run.metric_value(number)},
            }
            yield redact_value(row)


def _dataset(rows: Iterable[Json]) -> Dataset:
    """What lighteval saves.

    Made in parts: the library keeps the texts of each three times while it makes one, as they are, in its
    table, and where it computes a name for its cache (`benchmarks/shards.py --engine lighteval`).
    """
    remaining = iter(rows)
    parts: list[Dataset] = []
    while part := list(islice(remaining, BATCH_ROWS)):
        parts.append(Dataset.from_list(part))
    return concatenate_datasets(parts) if parts else Dataset.from_list([])


def _columns(value: Any) -> dict[str, Any]:
    """A document or a response by its fields, as it stands in the details.

    `asdict` copies everything that is in them, too; only of examples there is more to take apart.
    """
    if getattr(value, "fewshot_samples", None):
        return asdict(value)
    return {field.name: getattr(value, field.name) for field in fields(value)}


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
        with one_task_only(config, {SPLIT: rows}), quiet():
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
            except (Exception, KeyboardInterrupt) as error:
                if not model.run.solved:
                    raise
                if isinstance(error, Exception):
                    model.run.fault = explained(error)
                else:
                    model.run.interrupted = True
                if tracker.results_file is None:
                    tracker.salvage(config.name)
    assert tracker.results_file is not None
    return tracker.results_file


def _module(config: LightevalTaskConfig) -> types.ModuleType:
    module = types.ModuleType("aigo_bridge_tasks")
    module.TASKS_TABLE = [config]  # type: ignore[attr-defined]  # how lighteval finds tasks in a module
    return module


@contextmanager
def one_task_only(config: LightevalTaskConfig, splits: Mapping[str, Any] | None) -> Iterator[None]:
    """Keep lighteval from importing its built-in tasks, of which one downloads a file; give it the rows, if
    any.

    Its loader of local files would guess types of columns, and keep a copy that it takes for current when the
    file has changed.
    """
    table = {config.name: config}
    with _LOADING:
        originals = (
            Registry.__dict__["load_all_task_configs"],
            LightevalTask.__dict__["download_dataset_worker"],
        )
        Registry.load_all_task_configs = staticmethod(
            lambda custom_tasks=None, load_multilingual=False: table
        )
        if splits is not None:
            LightevalTask.download_dataset_worker = staticmethod(lambda task: splits)
        try:
            yield
        finally:
            Registry.load_all_task_configs, LightevalTask.download_dataset_worker = originals


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


# The run as lighteval's model and metric


class UncachedModel(LightevalModel):  # type: ignore[misc]  # lighteval has no types
    """A model of ours where lighteval wants one: nothing of it is asked but what a class of ours answers.

    It stands in place of lighteval's response cache, too, which gives old answers to changed rows and
    prompts. Whoever made what is behind it gives that up again, as several tasks share it.
    """

    disable_tqdm = True

    def __init__(self, config: ModelConfig):
        self.config = config
        self._cache = self

    @property
    def tokenizer(self) -> Any:
        """The model's own; `None` where prompts are messages."""
        return None

    @property
    def add_special_tokens(self) -> bool:
        """As `tokenizer`."""
        return False

    @property
    def max_length(self) -> int:
        """As `tokenizer`; whoever is asked refuses what is too long."""
        return 2**31

    def _init_registry(self, registry: object) -> None:
        """Asked of the cache by the pipeline."""

    def greedy_until(self, docs: list[Doc]) -> list[ModelResponse]:
        """One response per document, in their order."""
        raise NotImplementedError

    def loglikelihood(self, docs: list[Doc]) -> list[ModelResponse]:
        """As `greedy_until`, for documents that ask for likelihoods."""
        raise NotImplementedError

    def loglikelihood_rolling(self, docs: list[Doc]) -> list[ModelResponse]:
        """No task that runs here is about the likelihood of prompts."""
        raise NotImplementedError


class AigoModel(UncachedModel):
    """A lighteval model that runs the plan's solver on every document, and never raises."""

    def __init__(self, run: TaskRun, name: str):
        super().__init__(ModelConfig(model_name=name))
        self.run = run

    def greedy_until(self, docs: list[Doc]) -> list[ModelResponse]:
        """One response per document, in the order of the documents."""
        self.run.solve_all()
        # What else there is to say of them is made when they are saved (see `pipeline.Tracker`).
        return [ModelResponse() for _ in docs]

    loglikelihood = greedy_until


class AigoComputation(SampleLevelComputation):  # type: ignore[misc]  # lighteval has no types
    """Scores all documents of a task at once; the values, texts of all results, are made when saved."""

    def __init__(self, run: TaskRun):
        self.run = run

    def __deepcopy__(self, memo: object) -> AigoComputation:
        # lighteval copies the metrics of every task; a run has one state.
        return self

    def __str__(self) -> str:
        # Stands in the results file; the usual form has an address of memory.
        return type(self).__name__

    def compute(self, responses: list[ModelResponse], docs: list[Doc], **_: Any) -> list[str]:
        """One text per document, in the order of the documents."""
        self.run.score_all()
        return ["" for _ in docs]


def aigo_metric(run: TaskRun, summary: Callable[[], Mapping[str, float]]) -> SampleLevelMetric:
    """The metric under which all of a plan's scorers and metrics stand in lighteval's results.

    Args:
        run: the run.
        summary: the plan's metrics by name, computed when all is scored.
    """

    def aigo(values: list[str]) -> dict[str, float]:
        return {name: value for name, value in summary().items() if math.isfinite(value)}

    return SampleLevelMetric(
        metric_name=CARRIER,
        higher_is_better=True,
        category=SamplingMethod.GENERATIVE
        if run.likelihoods is None or run.likelihoods.generates
        else SamplingMethod.LOGPROBS,
        sample_level_fn=AigoComputation(run),
        corpus_level_fn=aigo,
        batched_compute=True,
    )
