"""One of lighteval's own tasks through lighteval's pipeline: its prompts, its order, its metrics; a failure stays with its document."""

from __future__ import annotations

import copy
import functools
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any

import lighteval.tasks.lighteval_task as task_module
import numpy as np
from datasets import Dataset  # type: ignore[import-untyped]  # has no types
from lighteval.logging.evaluation_tracker import EvaluationTracker
from lighteval.metrics.utils.stderr import mean_stderr
from lighteval.models.abstract_model import LightevalModel
from lighteval.models.model_output import ModelResponse
from lighteval.pipeline import ParallelismManager, Pipeline, PipelineParameters
from lighteval.tasks.lighteval_task import LightevalTask, LightevalTaskConfig
from lighteval.tasks.registry import Registry
from lighteval.tasks.requests import Doc

from aigo_bridge.errors import EngineError, UsageError
from aigo_bridge.program import Failure
from aigo_bridge.secrets import redact_value
from aigo_lighteval.foreign.failures import COLUMN as FAILURE
from aigo_lighteval.loading import replaced
from aigo_lighteval.native_faults import OtherExamples, document_problems, mend_metrics, refusals
from aigo_lighteval.native_models import Told
from aigo_lighteval.native_registry import Selected, unchanged_process
from aigo_lighteval.native_rows import SplitRows
from aigo_lighteval.pipeline import quiet

_LOADING = threading.Lock()
"""Held while lighteval's loaders are replaced, which is for the whole process."""


@dataclass(frozen=True)
class Measured:
    """A document as lighteval measured it, in one way of asking."""

    doc: Doc
    response: ModelResponse
    metrics: Mapping[str, Any]
    """Empty for one that failed."""


class NativePipeline(Pipeline):  # type: ignore[misc]  # lighteval has no types
    """lighteval's pipeline, in which documents fail alone.

    Args:
        told: the model's failures; those of metrics are added.
    """

    def __init__(self, told: Told, **rest: Any):
        self.told = told
        self.measured: list[Measured] = []
        super().__init__(**rest)

    def measure(self) -> None:
        """Ask the model and measure its answers: lighteval's `evaluate` without its aggregation."""
        self.evaluation_tracker.general_config_logger.log_args_info(
            num_fewshot_seeds=1, max_samples=self.pipeline_parameters.max_samples, job_id="0"
        )
        outputs = self._run_model()
        self._post_process_outputs(outputs)
        self._compute_metrics(outputs)

    def _compute_metrics(self, outputs: dict[Any, list[ModelResponse]]) -> None:
        """As lighteval's `apply_metric` and its caller do, document by document where a metric allows."""
        (task,) = self.tasks_dict.values()
        for method, responses in outputs.items():
            pairs = list(zip(self.sampling_docs[method], responses, strict=True))
            metrics = [metric for metric in task.metrics if metric.category == method]
            for metric in metrics:
                if not metric.batched_compute:
                    for doc, response in self._sound(pairs):
                        self._try(doc, metric, response)
            found = self._values(metrics, self._sound(pairs))
            for doc, response in pairs:
                self.measured.append(Measured(doc, response, found.get(doc.id, {})))
        # A document that failed in one way of asking counts in no metric.
        for each in self.measured:
            if each.doc.id not in self.told.failures:
                self.evaluation_tracker.metrics_logger.log(task.full_name, each.metrics)
            self.evaluation_tracker.details_logger.log(
                task.full_name, each.doc, each.response, dict(each.metrics)
            )

    def _sound(self, pairs: list[tuple[Doc, ModelResponse]]) -> list[tuple[Doc, ModelResponse]]:
        return [(doc, response) for doc, response in pairs if doc.id not in self.told.failures]

    def _try(self, doc: Doc, metric: Any, response: ModelResponse) -> None:
        try:
            self._single.setdefault(doc.id, {}).update(
                metric.compute_sample(model_response=response, doc=doc)
            )
        except Exception as error:  # noqa: BLE001  # whatever a metric raises is the failure of its document
            lines = str(error).strip().splitlines() or [type(error).__name__]
            self.told.failed(doc, Failure("score", type(error).__name__, f"{_names(metric)}: {lines[0]}"))

    @functools.cached_property
    def _single(self) -> dict[str, dict[str, Any]]:
        return {}

    def _values(
        self, metrics: list[Any], pairs: list[tuple[Doc, ModelResponse]]
    ) -> dict[str, dict[str, Any]]:
        found = {doc.id: dict(self._single.pop(doc.id, {})) for doc, _ in pairs}
        if not pairs:
            return found
        docs, responses = [doc for doc, _ in pairs], [response for _, response in pairs]
        for metric in metrics:
            if metric.batched_compute:
                (values,) = metric.compute_sample(responses=responses, docs=docs).values()
                for doc, value in zip(docs, values, strict=True):
                    found[doc.id][metric.metric_name] = value
        return found


@dataclass(frozen=True)
class Finished:
    """What a run of one task left."""

    results_file: Path
    date: str
    results: Mapping[str, float]
    """Metric → value, standard errors as `<metric>_stderr`."""
    measured: list[Measured]
    planned: int


def make_pipeline(
    selected: Selected,
    model: LightevalModel,
    told: Told,
    splits: Mapping[str, SplitRows] | None,
    num_samples: int | None,
    out: Path,
) -> NativePipeline:
    """A pipeline of lighteval with the documents made, nothing asked yet.

    Args:
        selected: the task.
        model: the model.
        told: its failures.
        splits: its rows; `None`: lighteval loads them, from a hub where they are not on this machine.
        num_samples: that many documents of lighteval's shuffled order; `None`: all.
        out: folder of the results.

    Raises:
        UsageError: there are no rows, or they do not fit the task.
        EngineError: the task cannot be run right.
    """
    config, numbered = _watched(selected.config)
    if problems := refusals(config):
        raise EngineError(f"task {config.name!r} cannot be run right: {'; '.join(problems)}")
    mend_metrics(config)
    with _one_task(config, splits), quiet():
        try:
            pipeline = NativePipeline(
                told,
                tasks=selected.name,
                model=model,
                evaluation_tracker=EvaluationTracker(output_dir=str(out), save_details=True),
                pipeline_parameters=PipelineParameters(
                    launcher_type=ParallelismManager.NONE, max_samples=num_samples, bootstrap_iters=0
                ),
            )
        except (UsageError, EngineError):
            raise
        except Exception as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            hint = "" if splits is not None else " (rows of your own: --data-dir DIR)"
            raise UsageError(f"task {config.name!r} cannot be loaded: {lines[0]}{hint}") from error
    for number, doc in numbered:
        doc.id = str(number)
    docs = pipeline.documents_dict[selected.name]
    for doc in docs:
        # Tasks write -1 or 0 where a length has no meaning; a server takes it at its word.
        if doc.generation_size is not None and doc.generation_size < 1:
            doc.generation_size = None
    if problems := document_problems(docs, selected.shots):
        raise UsageError(f"task {config.name!r} cannot be run right: {'; '.join(problems)}")
    return pipeline


def finish(pipeline: NativePipeline, selected: Selected, out: Path) -> Finished:
    """Ask the model, measure, write lighteval's files.

    Raises:
        EngineError: a metric failed for all documents at once, or the model as a whole.
    """
    try:
        with quiet(), unchanged_process():
            pipeline.measure()
            tracker = pipeline.evaluation_tracker
            tracker.general_config_logger.log_end_time()
            tracker.metrics_logger.aggregate(task_dict=pipeline.tasks_dict, bootstrap_iters=0)
            _add_standard_errors(pipeline, selected.name)
            tracker.details_logger.aggregate()
    except (UsageError, EngineError):
        raise
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        raise EngineError(f"task {selected.name!r} failed: {type(error).__name__}: {lines[0]}") from error
    date = datetime.now().isoformat().replace(":", "-")  # noqa: DTZ005  # lighteval names its files in local time
    with quiet():
        tracker.save_details(date, {selected.name: _dataset(pipeline.measured, pipeline.told.failures)})
        tracker.save_results(date, redact_value(tracker.results))
    model = tracker.general_config_logger.model_name.strip("/")
    values = tracker.metrics_logger.metric_aggregated.get(selected.name, {})
    return Finished(
        out / "results" / model / f"results_{date}.json",
        date,
        {name: float(value) for name, value in values.items()},
        sorted(pipeline.measured, key=lambda each: int(each.doc.id)),
        len(pipeline.documents_dict[selected.name]),
    )


def _watched(config: LightevalTaskConfig) -> tuple[LightevalTaskConfig, list[tuple[int, Doc]]]:
    """The task with a prompt function that says which row it failed at, and the list of documents it will make, each with its number.

    Numbers go on from one evaluated split to the next; lighteval's own start again, so that two documents have one id.
    """
    original = config.prompt_function
    made: list[tuple[int, Doc]] = []
    seen = 0

    @functools.wraps(original)
    def prompt(row: dict[str, Any], task_name: str) -> Doc | None:
        nonlocal seen
        number = seen
        is_example = bool(row.get("__few_shots"))
        seen += not is_example
        try:
            doc = original(row, task_name)
        except Exception as error:
            columns = ", ".join(name for name in row if not name.startswith("__"))
            raise UsageError(
                f"task {config.name!r}: row {row.get('__index')} does not fit its prompt function ({type(error).__name__}: {error});"
                f" its columns: {columns or 'none'}"
            ) from error
        if doc is not None and not isinstance(doc, Doc):
            raise UsageError(
                f"task {config.name!r}: its prompt function makes {type(doc).__name__} of a row, expected one document"
            )
        if doc is not None and not is_example:
            made.append((number, doc))
        return doc

    watched = copy.copy(config)
    watched.prompt_function = prompt
    return watched, made


@contextmanager
def _one_task(config: LightevalTaskConfig, splits: Mapping[str, SplitRows] | None) -> Iterator[None]:
    """Have lighteval know a single task, with rows in memory where there are some, and with examples drawn right."""
    with _LOADING, replaced(task_module, "FewShotSampler", OtherExamples):
        tables = Registry.__dict__["load_all_task_configs"]
        loader = LightevalTask.__dict__["download_dataset_worker"]
        Registry.load_all_task_configs = staticmethod(
            lambda custom_tasks=None, load_multilingual=False: {config.name: config}
        )
        if splits is not None:
            LightevalTask.download_dataset_worker = staticmethod(lambda task: splits)
        try:
            yield
        finally:
            Registry.load_all_task_configs = tables
            LightevalTask.download_dataset_worker = loader


def _add_standard_errors(pipeline: NativePipeline, name: str) -> None:
    """Those that have a formula, as lighteval computes them; others it draws at random, a thousand times, in a pool of processes."""
    (task,) = pipeline.tasks_dict.values()
    logger = pipeline.evaluation_tracker.metrics_logger
    for metric, values in logger.metrics_values.get(name, {}).items():
        function = task.aggregation()[metric]
        if "mean" in getattr(function, "__name__", "") and len(values) > 1:
            logger.metric_aggregated[name][f"{metric}_stderr"] = mean_stderr(values)


def _names(metric: Any) -> str:
    return metric.metric_name if isinstance(metric.metric_name, str) else ", ".join(metric.metric_name)


# Files


def _dataset(measured: list[Measured], failures: Mapping[str, Failure]) -> Dataset:
    """The details file; where documents failed, with a column of ours that says why.

    What Arrow cannot hold in one column (an int here and a text there, an object without keys) is JSON text in every row.
    """
    ordered = sorted(measured, key=lambda each: int(each.doc.id))
    rows = [
        {
            "doc": plain(asdict(each.doc)),
            "model_response": plain(asdict(each.response)),
            "metric": {name: plain(value) for name, value in each.metrics.items()},
        }
        for each in ordered
    ]
    if failures:
        for row, each in zip(rows, ordered, strict=True):
            failure = failures.get(each.doc.id)
            row[FAILURE] = None if failure is None else _text(failure.to_json())
    for part in ("doc", "model_response", "metric"):
        names = dict.fromkeys(name for row in rows for name in row[part])
        for row in rows:
            row[part] = {name: row[part].get(name) for name in names}
        if not names:
            for row in rows:
                row[part] = {"none": None}
        for name in names:
            values = [row[part][name] for row in rows]
            if not _is_storable(values):
                for row in rows:
                    row[part][name] = None if row[part][name] is None else _text(row[part][name])
    return Dataset.from_list([redact_value(row) for row in rows])


def _is_storable(values: list[Any]) -> bool:
    import pyarrow as pa  # type: ignore[import-untyped]  # ships none

    try:
        kind = pa.array(values).type
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return False
    return not _has_empty_struct(kind)


def _has_empty_struct(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_struct(kind) and kind.num_fields == 0:
        return True
    return any(_has_empty_struct(kind.field(at).type) for at in range(kind.num_fields))


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


_SURROGATE = re.compile("[\ud800-\udfff]")


def plain(value: Any) -> Any:
    """A value of a document, response or metric as JSON has it; numbers of numpy are numbers."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Enum):
        return plain(value.value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "golds") and hasattr(value, "preds"):
        # What a corpus metric keeps of a document.
        return {"golds": plain(value.golds), "preds": plain(value.preds)}
    if hasattr(value, "__dataclass_fields__"):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    return str(value)
