"""Output of a run of lighteval's tasks: lighteval's files and a result log.

The result log is created like an import of the files. It also contains data that the files cannot store:
failures, tokens, raw requests and responses, and clock times.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset  # type: ignore[import-untyped]  # untyped
from lighteval.metrics.utils.stderr import mean_stderr

from aigo_bridge.access.bounds import DEFAULT_BOUNDS
from aigo_bridge.codes import Code
from aigo_bridge.engine.provenance import write_import_provenance
from aigo_bridge.errors import EngineError, UsageError
from aigo_bridge.execution.solutions import SampleFailure
from aigo_bridge.importing.log_import import Damage, ImportOptions
from aigo_bridge.redaction.rules import redaction
from aigo_bridge.redaction.secrets import redact_value
from aigo_bridge.text.json_text import dumps
from aigo_bridge.text.summaries import named_summary_of
from aigo_lighteval.benchmarks.models import DocumentNotes
from aigo_lighteval.benchmarks.pipeline import DocumentMetrics, NativePipeline
from aigo_lighteval.benchmarks.tasks import SelectedTask, unchanged_process
from aigo_lighteval.importing.header import read_header
from aigo_lighteval.importing.importing import write_documents
from aigo_lighteval.importing.locate import RunFiles, log_files
from aigo_lighteval.importing.rows import COLUMN as FAILURE
from aigo_lighteval.importing.rows import DocumentRow, DocumentRows
from aigo_lighteval.importing.samples import DocumentMapper
from aigo_lighteval.models.models import TOKEN_COUNTS, call_events, direct_ios, tokens_used
from aigo_lighteval.running.pipeline import quiet

Json = dict[str, Any]


def write_result(
    task: str, finished: TaskOutput, notes: DocumentNotes, target: Path, *, started: float, ended: float
) -> Path:
    """Write `<target>.tasklog.json` and `<target>.loss.json`. Return the path of the former.

    Args:
        task: task name as in lighteval's results.
        finished: output of the run.
        notes: information that lighteval cannot store.
        target: path of the files without suffixes.
        started: Unix time in seconds.
        ended: Unix time in seconds.
    """
    location = str(finished.results_file)
    run = RunFiles(finished.date, location)
    secrets = redaction(())
    _, header = read_header(location, DEFAULT_BOUNDS, redaction(()), redact=True)

    def samples(mapper: DocumentMapper, _: list[Damage]) -> Iterator[bytes]:
        for document in _documents(finished.measured, notes):
            sample = mapper.sample(document)
            _complete(sample, document.sample_id, notes)
            yield dumps(sample)

    def amend(frame: Json) -> None:
        frame["evidence"]["failures"]["num_errors"] = len(notes.failures)
        frame["execution"] |= {"runtime": ended - started, "started_at": int(started), "ended_at": int(ended)}
        frame["execution"].get("model_usage", {}).update(_usage(notes))

    report = write_documents(
        *(run, header, task, location, samples, target, ImportOptions(), secrets, []), amend=amend, clean=True
    )
    report = replace(report, failed=len(notes.failures))
    report.write_loss()
    write_import_provenance(
        report, "lighteval", list(map(str, log_files(Path(location)))), ImportOptions(), verb="run"
    )
    assert report.output is not None
    return report.output


def _documents(measured: list[DocumentMetrics], notes: DocumentNotes) -> Iterator[DocumentRows]:
    rows: dict[str, list[DocumentRow]] = {}
    for number, document in enumerate(measured):
        metrics = {name: plain(value) for name, value in document.metrics.items()}
        row = DocumentRow(
            number,
            plain(asdict(document.doc)),
            plain(asdict(document.response)),
            None if document.doc.id in notes.failures else metrics,
            odd=True,
        )
        rows.setdefault(document.doc.id, []).append(row)
    for sample_id, document_rows in rows.items():
        yield DocumentRows(sample_id, document_rows)


def _complete(sample: Json, sample_id: str, notes: DocumentNotes) -> None:
    """Add information to a sample that lighteval cannot store."""
    failure, record = notes.failures.get(sample_id), notes.records.get(sample_id)
    trials = sample["trials"]
    if failure is not None:
        for trial in trials:
            trial["errors"].append(failure.to_error().model_dump(mode="json", exclude_unset=True))
    if record is None:
        return
    calls = record["calls"]
    for number, trial in enumerate(trials):
        if trial["solver"] is None:
            continue
        own_record = {**record, "calls": calls[number : number + 1] if len(trials) > 1 else calls}
        output = trial["solver"]["output"]
        mapped = output["trace"]["events"]
        events = call_events(own_record, f"solver:{number}")
        for event in events:
            if event["type"] == "model_call_event" and mapped:
                own = (event.get("metadata") or {}).get("lighteval") or {}
                event["metadata"] = {"lighteval": {**mapped[0]["metadata"]["lighteval"], **own}}
        output["trace"]["events"] = events
        output["direct_ios"] = direct_ios(own_record)


def _usage(notes: DocumentNotes) -> Mapping[str, int]:
    """Return the tokens of the run; empty if the token counts of an answer are missing."""
    used = [tokens for record in notes.records.values() for _, tokens in tokens_used(record)]
    known = [tokens for tokens in used if tokens is not None]
    if not known or len(known) < len(used):
        return {}
    return dict(zip(TOKEN_COUNTS, map(sum, zip(*known, strict=True)), strict=True))


# lighteval's own files


@dataclass(frozen=True)
class TaskOutput:
    """Output of a finished run of one task."""

    results_file: Path
    date: str
    results: Mapping[str, float]
    """Values by metric, with standard errors as `<metric>_stderr`."""
    measured: list[DocumentMetrics]
    planned: int


def finish(pipeline: NativePipeline, selected: SelectedTask, out: Path) -> TaskOutput:
    """Call the model, compute the metrics and write lighteval's files.

    Raises:
        EngineError: the model failed, or a metric over all documents failed.
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
        raise EngineError(
            f"task {selected.name!r} failed: {named_summary_of(error)}", code=Code.FAILED_ENGINE
        ) from error
    date = datetime.now().isoformat().replace(":", "-")  # noqa: DTZ005  # lighteval names its files in local time
    with quiet():
        tracker.save_details(date, {selected.name: _dataset(pipeline.measured, pipeline.told.failures)})
        tracker.save_results(date, redact_value(tracker.results))
    model = tracker.general_config_logger.model_name.strip("/")
    values = tracker.metrics_logger.metric_aggregated.get(selected.name, {})
    return TaskOutput(
        out / "results" / model / f"results_{date}.json",
        date,
        {name: float(value) for name, value in values.items()},
        sorted(pipeline.measured, key=lambda document: int(document.doc.id)),
        len(pipeline.documents_dict[selected.name]),
    )


def _add_standard_errors(pipeline: NativePipeline, name: str) -> None:
    """Add standard errors with a formula, as lighteval computes them. All others would need a thousand random
    draws in a process pool.
    """
    (task,) = pipeline.tasks_dict.values()
    logger = pipeline.evaluation_tracker.metrics_logger
    for metric, values in logger.metrics_values.get(name, {}).items():
        function = task.aggregation()[metric]
        if "mean" in getattr(function, "__name__", "") and len(values) > 1:
            logger.metric_aggregated[name][f"{metric}_stderr"] = mean_stderr(values)


# Files


def _dataset(measured: list[DocumentMetrics], failures: Mapping[str, SampleFailure]) -> Dataset:
    """Return the details file. If documents failed, it has an additional column with the reasons.

    Values that Arrow cannot store in one column become JSON text in every row. Examples are integers mixed
    with text, and objects without keys.
    """
    ordered = sorted(measured, key=lambda document: int(document.doc.id))
    rows = [
        {
            "doc": plain(asdict(document.doc)),
            "model_response": plain(asdict(document.response)),
            "metric": {name: plain(value) for name, value in document.metrics.items()},
        }
        for document in ordered
    ]
    if failures:
        for row, document in zip(rows, ordered, strict=True):
            failure = failures.get(document.doc.id)
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
    import pyarrow as pa  # type: ignore[import-untyped]  # no type stubs

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
    """Convert a value of a document, response or metric to JSON. numpy numbers become plain numbers."""
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
        # Intermediate values of a corpus metric.
        return {"golds": plain(value.golds), "preds": plain(value.preds)}
    if hasattr(value, "__dataclass_fields__"):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    return str(value)
