"""Runs of lighteval's tasks in its pipeline: same prompts, order and metrics, but a failure affects only its
document.

Rows can be read from a local folder instead of a hub:

```text
DIR/<task>/<split>.jsonl        task with `:` written as `_` (`mmlu_abstract_algebra`), or
DIR/<subset>/<split>.jsonl      the dataset's subset (`abstract_algebra`), or
DIR/<split>.jsonl               when only one task is run
```

All dataset file extensions are supported: `.jsonl`, `.ndjson`, `.json`, `.csv` and `.parquet`. Text files can
also be compressed with `.gz` or `.zst`. A split in several files is named as on hubs:
`<split>-00000-of-00002.parquet`.
"""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import lighteval.tasks.lighteval_task as task_module
import numpy as np
from lighteval.logging.evaluation_tracker import EvaluationTracker
from lighteval.models.abstract_model import LightevalModel
from lighteval.models.model_output import ModelResponse
from lighteval.pipeline import ParallelismManager, Pipeline, PipelineParameters
from lighteval.tasks.lighteval_task import LightevalTask, LightevalTaskConfig
from lighteval.tasks.requests import Doc

from aigo_bridge.codes import Code
from aigo_bridge.datasets.copies import split_files
from aigo_bridge.datasets.files import file_kind, load_file
from aigo_bridge.datasets.rows import Missing
from aigo_bridge.errors import EngineError, UsageError
from aigo_bridge.execution.solutions import SampleFailure
from aigo_bridge.text.plurals import plural
from aigo_bridge.text.summaries import summary_of
from aigo_lighteval.benchmarks.faults import (
    OtherExamples,
    document_problems,
    mend_instruction,
    mend_metrics,
    refusals,
)
from aigo_lighteval.benchmarks.models import DocumentNotes
from aigo_lighteval.benchmarks.tasks import SelectedTask
from aigo_lighteval.models.loading import replaced
from aigo_lighteval.running.pipeline import one_task_only, quiet


@dataclass(frozen=True)
class DocumentMetrics:
    """Document with lighteval's metrics for one request type."""

    doc: Doc
    response: ModelResponse
    metrics: Mapping[str, Any]
    """Values by metric; empty for a failed document."""


class NativePipeline(Pipeline):  # type: ignore[misc]  # lighteval is untyped
    """lighteval pipeline in which documents fail independently.

    Args:
        told: failures of the model. Failures of metrics are added.
    """

    def __init__(self, told: DocumentNotes, **rest: Any):
        self.told = told
        self.measured: list[DocumentMetrics] = []
        super().__init__(**rest)

    def measure(self) -> None:
        """Call the model and compute the metrics of its answers: lighteval's `evaluate` without the
        aggregation.
        """
        self.evaluation_tracker.general_config_logger.log_args_info(
            num_fewshot_seeds=1, max_samples=self.pipeline_parameters.max_samples, job_id="0"
        )
        outputs = self.answers()
        self._post_process_outputs(outputs)
        self._compute_metrics(outputs)

    def ask_of(self, model: LightevalModel, told: DocumentNotes) -> None:
        """Replace the model that the documents were created with."""
        self.model, self.told = model, told
        self.evaluation_tracker.general_config_logger.log_model_info(model_config=model.config)

    def answers(self) -> dict[Any, list[ModelResponse]]:
        """Call the model only. Return the responses by request type, in the order of `sampling_docs`."""
        outputs: dict[Any, list[ModelResponse]] = self._run_model()
        return outputs

    def _compute_metrics(self, outputs: dict[Any, list[ModelResponse]]) -> None:
        """Compute metrics like lighteval's `apply_metric` and its caller, document by document if a metric
        allows it.
        """
        (task,) = self.tasks_dict.values()
        for method, responses in outputs.items():
            pairs = list(zip(self.sampling_docs[method], responses, strict=True))
            metrics = [metric for metric in task.metrics if metric.category == method]
            for metric in metrics:
                if not metric.batched_compute:
                    for doc, response in self._sound(pairs):
                        self._try(doc, metric, response)
            values = self._values(metrics, self._sound(pairs))
            for doc, response in pairs:
                self.measured.append(DocumentMetrics(doc, response, values.get(doc.id, {})))
        # A document that failed in one request type is excluded from all metrics.
        for document in self.measured:
            if document.doc.id not in self.told.failures:
                self.evaluation_tracker.metrics_logger.log(task.full_name, self._scored(document))
            self.evaluation_tracker.details_logger.log(
                task.full_name, document.doc, document.response, dict(document.metrics)
            )

    def _sound(self, pairs: list[tuple[Doc, ModelResponse]]) -> list[tuple[Doc, ModelResponse]]:
        return [(doc, response) for doc, response in pairs if doc.id not in self.told.failures]

    def _scored(self, document: DocumentMetrics) -> dict[str, Any]:
        """Return the metrics with a value. The others count as unscored and are excluded from the mean."""
        values = {name: value for name, value in document.metrics.items() if has_value(value)}
        for name in document.metrics.keys() - values.keys():
            self.told.unscored.setdefault(name, set()).add(document.doc.id)
        return values

    def _try(self, doc: Doc, metric: Any, response: ModelResponse) -> None:
        try:
            values = metric.compute_sample(model_response=response, doc=doc)
            # A metric can omit one of its values.
            names = metric.metric_name if isinstance(metric.metric_name, list) else [metric.metric_name]
            self._single.setdefault(doc.id, {}).update({**dict.fromkeys(names), **(values or {})})
        except Exception as error:  # noqa: BLE001  # any error of a metric is a failure of its document
            message = f"{_names(metric)}: {summary_of(error)}"
            self.told.failed(doc, SampleFailure("score", type(error).__name__, message))

    @functools.cached_property
    def _single(self) -> dict[str, dict[str, Any]]:
        return {}

    def _values(
        self, metrics: list[Any], pairs: list[tuple[Doc, ModelResponse]]
    ) -> dict[str, dict[str, Any]]:
        values_by_id = {doc.id: dict(self._single.pop(doc.id, {})) for doc, _ in pairs}
        if not pairs:
            return values_by_id
        docs, responses = [doc for doc, _ in pairs], [response for _, response in pairs]
        for metric in metrics:
            if metric.batched_compute:
                (values,) = metric.compute_sample(responses=responses, docs=docs).values()
                for doc, value in zip(docs, values, strict=True):
                    values_by_id[doc.id][metric.metric_name] = value
        return values_by_id


def has_value(value: Any) -> bool:
    """Return whether a metric has a value for a document: not `None`, and finite."""
    if value is None:
        return False
    try:
        return bool(np.isfinite(value).all())
    except TypeError:
        # Intermediate values of a corpus metric, such as answer and references.
        return True


def make_pipeline(
    selected: SelectedTask,
    model: LightevalModel,
    notes: DocumentNotes,
    splits: Mapping[str, SplitRows] | None,
    num_samples: int | None,
    out: Path,
    *,
    sample_ids: Sequence[str] | None = None,
) -> NativePipeline:
    """Return a lighteval pipeline with its documents, before any model call.

    Args:
        selected: the task.
        model: the model.
        notes: notes for failures.
        splits: rows of the task; `None`: lighteval loads them, from a hub if they are not on this
            machine.
        num_samples: number of documents, in lighteval's shuffled order; `None`: all.
        out: folder of the results.
        sample_ids: numbers of the documents to run; `None`: all.

    Raises:
        UsageError: rows or documents are missing, or rows do not fit the task.
        EngineError: the task cannot be run correctly.
    """
    config, numbered = _watched(selected.config)
    if problems := refusals(config):
        raise EngineError(
            f"task {config.name!r} cannot be run correctly: {'; '.join(problems)}", code=Code.FAILED_ENGINE
        )
    mend_metrics(config)
    with one_task_only(config, splits), replaced(task_module, "FewShotSampler", OtherExamples), quiet():
        try:
            pipeline = NativePipeline(
                notes,
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
            hint = "" if splits is not None else " (to use your own rows: --data-dir DIR)"
            raise UsageError(
                f"task {config.name!r} cannot be loaded: {summary_of(error)}{hint}", code=Code.UNFIT_BENCHMARK
            ) from error
    for number, doc in numbered:
        doc.id = str(number)
    if sample_ids is not None:
        _choose(pipeline, selected, sample_ids)
    docs = pipeline.documents_dict[selected.name]
    for doc in docs:
        mend_instruction(doc)
        # Tasks write -1 or 0 for "no length limit", but a server would apply it literally.
        if doc.generation_size is not None and doc.generation_size < 1:
            doc.generation_size = None
    if problems := document_problems(docs, selected.shots):
        raise UsageError(
            f"task {config.name!r} cannot be run correctly: {'; '.join(problems)}", code=Code.UNFIT_BENCHMARK
        )
    return pipeline


def _choose(pipeline: NativePipeline, selected: SelectedTask, sample_ids: Sequence[str]) -> None:
    """Remove all documents except the chosen ones."""
    docs = pipeline.documents_dict[selected.name]
    if unknown := sorted(set(sample_ids) - {doc.id for doc in docs}):
        raise UsageError(
            f"--sample-id: task {selected.config.name!r} has no document {', '.join(unknown)}, its"
            f" {plural(len(docs), 'document is', 'documents are')} numbered from 0",
            code=Code.UNKNOWN_CHOICE,
        )
    pipeline.documents_dict[selected.name] = [doc for doc in docs if doc.id in sample_ids]
    for method, asked in pipeline.sampling_docs.items():
        pipeline.sampling_docs[method] = [doc for doc in asked if doc.id in sample_ids]


def _watched(config: LightevalTaskConfig) -> tuple[LightevalTaskConfig, list[tuple[int, Doc]]]:
    """Return the task with a prompt function that reports the failing row, and the numbered documents that it
    will create.

    Numbers continue from one evaluated split to the next. lighteval restarts them, so that two documents can
    share an id.
    """
    original = config.prompt_function
    documents: list[tuple[int, Doc]] = []
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
                f"task {config.name!r}: row {row.get('__index')} does not fit its prompt function"
                f" ({type(error).__name__}: {error});"
                f" its columns: {columns or 'none'}",
                code=Code.UNFIT_BENCHMARK,
            ) from error
        if doc is not None and not isinstance(doc, Doc):
            raise UsageError(
                f"task {config.name!r}: its prompt function returns {type(doc).__name__} for a row, expected"
                " one document",
                code=Code.UNFIT_BENCHMARK,
            )
        if doc is not None and not is_example:
            documents.append((number, doc))
        return doc

    watched = copy.copy(config)
    watched.prompt_function = prompt
    return watched, documents


def _names(metric: Any) -> str:
    return metric.metric_name if isinstance(metric.metric_name, str) else ", ".join(metric.metric_name)


# Rows from a local folder


Row = dict[str, Any]


class SplitRows(Sequence[Row]):
    """Rows of a split. Every access returns a copy because prompt functions modify their rows."""

    def __init__(self, rows: Sequence[Row]):
        self._rows = rows

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> list[Row]: ...
    def __getitem__(self, at: int | slice) -> Row | list[Row]:
        return copy.deepcopy(self._rows[at])  # type: ignore[return-value]  # a slice of a sequence of rows is a list of rows

    def __iter__(self) -> Iterator[Row]:
        return (copy.deepcopy(row) for row in self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def local_splits(
    config: LightevalTaskConfig, shots: int, folder: Path, *, alone: bool
) -> Mapping[str, SplitRows]:
    """Return the splits of a task that a run reads.

    Args:
        config: the task.
        shots: number of few-shot examples. With 0, the split of the examples is not read.
        folder: value of `--data-dir`.
        alone: whether this is the only task, so that rows at the top of the folder belong to it.

    Raises:
        UsageError: the folder or a split is missing.
        DatasetError: a file is not valid.
    """
    if not folder.is_dir():
        raise UsageError(f"--data-dir: the folder {str(folder)!r} does not exist", code=Code.NOTHING_THERE)
    places = _places(config, folder, alone=alone)
    splits: dict[str, SplitRows] = {}
    for split in _splits(config, shots):
        files = next(filter(None, (split_files(place, split) for place in places)), [])
        if not files:
            wanted = " or ".join(repr(str(place / f"{split}.jsonl")) for place in places)
            raise UsageError(
                f"--data-dir: task {config.name!r} needs its split {split!r}, expected {wanted}",
                code=Code.WRONG_BENCHMARK_OPTION,
            )
        rows = [row.data for file in files for row in load_file(file, missing=_missing(file)).rows]
        keep = config.hf_filter
        splits[split] = SplitRows(rows if keep is None else [row for row in rows if keep(row)])
    return splits


def _missing(file: Path) -> Missing:
    # A JSON row that lacks a key must not produce a prompt with "None". An empty CSV cell is `None`, as in
    # hub loaders.
    return "none" if file_kind(file)[0] == ".csv" else "absent"


def _splits(config: LightevalTaskConfig, shots: int) -> list[str]:
    splits = list(config.evaluation_splits)
    if shots:
        examples = LightevalTask(config).fewshot_split
        splits += [examples] if examples is not None and examples not in splits else []
    return splits


def _places(config: LightevalTaskConfig, folder: Path, *, alone: bool) -> list[Path]:
    names = [folder_name(config.name)]
    if config.hf_subset and config.hf_subset != "default":
        names.append(folder_name(str(config.hf_subset)))
    places = [folder / name for name in dict.fromkeys(names)]
    return [*places, folder] if alone else places


def folder_name(name: str) -> str:
    """Return a task's or subset's name as a folder name."""
    return re.sub(r"[\x00-\x1f\x7f<>:\"|?*\\/]", "_", name).strip(". ") or "task"
