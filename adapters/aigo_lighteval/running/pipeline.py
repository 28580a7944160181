"""lighteval's pipeline for aigo-bridge runs: offline, rows in memory, plan order, results saved immediately.

lighteval handles each of these differently. Every deviation is explained in the code that makes it.
"""

from __future__ import annotations

import math
import threading
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # untyped
from datasets import Dataset, Features, concatenate_datasets  # type: ignore[import-untyped]  # untyped
from datasets.utils.logging import (  # type: ignore[import-untyped]  # untyped
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

from aigo_bridge.datasets.spill_files import SpillFile
from aigo_bridge.process.signals import finishing, interruptible
from aigo_bridge.redaction.secrets import redact_value
from aigo_bridge.results.internal_errors import explained
from aigo_lighteval.documents.translate import CARRIER, row_text
from aigo_lighteval.documents.turns import SPLIT
from aigo_lighteval.running.evidence import BLOCK
from aigo_lighteval.running.hosted import PlanRun

Json = dict[str, Any]

BATCH_ROWS = 500
"""Number of detail rows that are converted and written together."""

_LOADING = threading.Lock()
"""Lock for replacing lighteval's loaders, which affects the whole process."""


class Tracker(EvaluationTracker):  # type: ignore[misc]  # lighteval is untyped
    """Writer of lighteval's files, with aigo-bridge's block in the results file.

    Args:
        run: run to save. Documents, responses and scores are converted to text only when they are saved.
        out: output folder. lighteval creates `results/` and `details/` in it.
        block: callable that returns aigo-bridge's block, given the path of the details relative to the
            results file.
    """

    def __init__(self, run: PlanRun, out: Path, block: Callable[[str | None], Mapping[str, Any]]):
        super().__init__(output_dir=str(out), save_details=True)
        self._run = run
        self._out = out
        self._block = block
        self.results_file: Path | None = None
        """Path of the results file; `None` before results are saved."""

    def save(self) -> None:
        """Write lighteval's results of the run."""
        details = self.details_logger.details.items()
        self._write(
            {name: TaskDetails(self._rows(documents)) for name, documents in details},
            lambda block: redact_value({**self.results, **block}),
        )

    def salvage(self, task: str) -> None:
        """Write the finished trials without lighteval's own results, after lighteval failed."""
        rows = (
            {
                "doc": {"specific": {CARRIER: row_text(sample)}},
                "model_response": {CARRIER: self._run.texts(self._run.solved, number)},
                "metric": {CARRIER: self._run.metric_value(number)},
            }
            for number, sample in enumerate(self._run.plan.samples)
        )
        self._write({f"{task}|0": TaskDetails(rows)}, dict)

    def _write(
        self, datasets: Mapping[str, TaskDetails], results: Callable[[Mapping[str, Any]], dict[str, Any]]
    ) -> None:
        """Write the details first, then the results, so that a results file always has its details."""
        date = datetime.now().isoformat().replace(":", "-")  # noqa: DTZ005  # lighteval names its files in local time
        model = self.general_config_logger.model_name
        details = next(
            (f"../../details/{model}/{date}/details_{name}_{date}.parquet" for name in datasets), None
        )
        with finishing():
            self.save_details(date, datasets)
            self.save_results(date, results({BLOCK: self._block(details)}))
            self.results_file = self._out / "results" / model / f"results_{date}.json"

    def _rows(self, details: list[Any]) -> Iterator[Json]:
        # lighteval shuffles documents. Restore the plan's order.
        docs = {int(detail.doc.id): detail.doc for detail in details}
        for number in sorted(docs):
            carried = {"specific": {CARRIER: row_text(self._run.plan.samples[number])}}
            yield {
                "doc": _redacted(_columns(docs[number]) | carried),
                "model_response": _redacted(_columns(self._run.response(number))),
                "metric": _redacted({CARRIER: self._run.metric_value(number)}),
            }


class TaskDetails:
    """Details of a task for lighteval to save, with the columns of a `Dataset` of all rows.

    They are converted in parts, which wait in a temporary file until the types of all columns are known: a
    part can contain only empty values of a column. To measure the memory, run
    `benchmarks/lighteval_engine.py`.
    """

    def __init__(self, rows: Iterable[Json]):
        self._parts = SpillFile()
        self._kinds: list[Features] = []
        remaining = iter(rows)
        while part := list(islice(remaining, BATCH_ROWS)):
            dataset = _Part.from_list(part)
            if dataset.features not in self._kinds:
                self._kinds.append(dataset.features)
            kind = self._kinds.index(dataset.features)
            self._parts.append((kind, dataset.data.table))
        self._features = _common_features(self._kinds)

    def to_parquet(self, file: BinaryIO) -> None:
        """Write the details like `Dataset.to_parquet`, with one row group for each part."""
        with pq.ParquetWriter(file, self._features.arrow_schema) as writer:
            for kind, part in self._parts.read(0, len(self._parts)):
                is_common = self._kinds[kind] == self._features
                table = part if is_common else Dataset(part).cast(self._features).with_format("arrow")[:]
                writer.write_table(table)


class _Part(Dataset):  # type: ignore[misc]  # untyped
    """Dataset without a fingerprint, which is only for caches and takes longer than the conversion."""

    def __init__(self, table: Any, **options: Any):
        super().__init__(table, **options, fingerprint="part")


def _common_features(kinds: Sequence[Features]) -> Features:
    """Return the types of columns that some parts have values for.

    Raises:
        ValueError: two parts have different types for a column.
    """
    if len(kinds) == 1:
        return kinds[0]
    blanks = [Dataset.from_dict({name: [None] for name in features}, features=features) for features in kinds]
    return concatenate_datasets(blanks).features


def _columns(value: Any) -> dict[str, Any]:
    """Return the fields of a document or response for the details.

    `asdict` would also copy all nested values. Only few-shot examples need that.
    """
    if getattr(value, "fewshot_samples", None):
        return asdict(value)
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _redacted(columns: Json) -> Json:
    """Return a row of columns with secrets masked. Most columns are empty, and their names are fixed."""
    return {
        name: value if value is None or isinstance(value, int) else redact_value(value)
        for name, value in columns.items()
    }


def run_pipeline(
    config: LightevalTaskConfig,
    rows: Sequence[dict[str, Any]],
    model: AigoModel,
    out: Path,
    block: Callable[[str | None], Mapping[str, Any]],
) -> Path:
    """Run one aigo-bridge task through lighteval's pipeline, which a signal can interrupt.

    Args:
        config: the task.
        rows: rows of the task.
        model: aigo-bridge's model.
        out: folder of the results.
        block: callable that returns aigo-bridge's block (see `Tracker`).

    Returns:
        Path of the results file.
    """
    tracker = Tracker(model.run, out, block)
    if not rows:
        # lighteval refuses a task without documents, so write its empty results directly.
        tracker.general_config_logger.log_model_info(model_config=model.config)
        tracker.save()
    else:
        with interruptible(), one_task_only(config, {SPLIT: rows}), quiet():
            pipeline = Pipeline(
                tasks=f"{config.name}|0",
                model=model,
                evaluation_tracker=tracker,
                pipeline_parameters=PipelineParameters(
                    launcher_type=ParallelismManager.NONE,
                    custom_tasks_directory=_module(config),
                    # lighteval's standard errors need a thousand bootstrap draws in a process pool.
                    bootstrap_iters=0,
                    # Scorers get the model's unmodified answer.
                    remove_reasoning_tags=False,
                ),
            )
        with quiet():
            try:
                with interruptible():
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
    module.TASKS_TABLE = [config]  # type: ignore[attr-defined]  # lighteval finds tasks by this attribute
    return module


@contextmanager
def one_task_only(config: LightevalTaskConfig, splits: Mapping[str, Any] | None) -> Iterator[None]:
    """Replace lighteval's task and dataset loaders with this one task and its rows, if any.

    lighteval would import its built-in tasks, and one of them downloads a file. Its loader of local files
    guesses column types, and keeps using a cached copy after the file has changed.
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
    """Disable the progress bars of the `datasets` library."""
    shown = is_progress_bar_enabled()
    disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            enable_progress_bar()


# The run as lighteval's model and metric


class UncachedModel(LightevalModel):  # type: ignore[misc]  # lighteval is untyped
    """Base class of aigo-bridge's models for lighteval, without any of lighteval's own behavior.

    It also replaces lighteval's response cache, which returns outdated answers for changed rows and prompts.
    It does not close the underlying model because several tasks share it.
    """

    disable_tqdm = True

    def __init__(self, config: ModelConfig):
        self.config = config
        self._cache = self

    @property
    def tokenizer(self) -> Any:
        """Return `None` because prompts are messages."""
        return None

    @property
    def add_special_tokens(self) -> bool:
        """Return `False`: prompts are not tokenized here."""
        return False

    @property
    def max_length(self) -> int:
        """Return a limit that is never reached. The called model itself refuses prompts that are too long."""
        return 2**31

    def _init_registry(self, registry: object) -> None:
        """Do nothing. The pipeline calls this method of the cache."""

    def greedy_until(self, docs: list[Doc]) -> list[ModelResponse]:
        """Return one response per document, in document order."""
        raise NotImplementedError

    def loglikelihood(self, docs: list[Doc]) -> list[ModelResponse]:
        """Return one response per document with likelihoods, in document order."""
        raise NotImplementedError

    def loglikelihood_rolling(self, docs: list[Doc]) -> list[ModelResponse]:
        """Raise an error: no supported task measures the likelihood of prompts."""
        raise NotImplementedError


class AigoModel(UncachedModel):
    """lighteval model that runs the plan's program on every document. It never raises errors."""

    def __init__(self, run: PlanRun, name: str):
        super().__init__(ModelConfig(model_name=name))
        self.run = run

    def greedy_until(self, docs: list[Doc]) -> list[ModelResponse]:
        """Return one response per document, in document order."""
        self.run.run_all()
        # The content of the responses is added when they are saved (see `pipeline.Tracker`).
        return [ModelResponse()] * len(docs)

    loglikelihood = greedy_until


class AigoComputation(SampleLevelComputation):  # type: ignore[misc]  # lighteval is untyped
    """Computation without values, because documents are scored when they are solved."""

    def __str__(self) -> str:
        # This text is written to the results file. The default form contains a memory address.
        return type(self).__name__

    def compute(self, responses: list[ModelResponse], docs: list[Doc], **_: Any) -> list[str]:
        """Return one text per document, in document order."""
        return ["" for _ in docs]


def aigo_metric(run: PlanRun, summary: Callable[[], Mapping[str, float]]) -> SampleLevelMetric:
    """Return the lighteval metric that carries all scorers and metrics of a plan.

    Args:
        run: the run.
        summary: callable that returns the plan's metrics by name, after scoring.
    """

    def aigo(values: list[str]) -> dict[str, float]:
        return {name: value for name, value in summary().items() if math.isfinite(value)}

    return SampleLevelMetric(
        metric_name=CARRIER,
        higher_is_better=True,
        category=SamplingMethod.GENERATIVE
        if run.likelihoods is None or run.likelihoods.generates
        else SamplingMethod.LOGPROBS,
        sample_level_fn=AigoComputation(),
        corpus_level_fn=aigo,
        batched_compute=True,
    )
