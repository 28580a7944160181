"""Earlier results as datasets (`dataset: {source: task_result}`): every trial of a result log is a row.

AI GO defines the columns `sample` (the row that was run), `solver_output` (as in the log; for a trace also
`messages` and `output`) and `errors`. aigo-bridge adds these columns: the columns of the row itself,
`sample_id`, `trace` (the solver output as a trace), `scores` (scorer key → values) and `error` (the
message of the first error, or null). If there are several, it also adds `trial` and `run` (from 1), which
are then appended to the `sample_id`.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aigo_bridge.access.existence import is_file
from aigo_bridge.access.grants import record_file
from aigo_bridge.access.opening import root_of_folder
from aigo_bridge.access.private import refusal
from aigo_bridge.codes import Code
from aigo_bridge.datasets.rows import Rows, Selection, collect
from aigo_bridge.datasets.tables import ObjectTable
from aigo_bridge.dtypes import (
    GroupedSolverOutput,
    GroupedSolverTrace,
    SampleEvidence,
    SampleTrialEvidence,
    SingleSolverOutput,
    SolverOutput,
    SolverTrace,
    Trace,
    lf_messages_to_trace_items,
    make_explicit,
)
from aigo_bridge.errors import DatasetError, EvidenceError, Issue, SpecError, UsageError
from aigo_bridge.plan.plan import PlannedDataset, Sample
from aigo_bridge.reading import Document
from aigo_bridge.results.reading import LogReader, SamplePart
from aigo_bridge.results.records import records_of
from aigo_bridge.results.specification import dataset_tags
from aigo_bridge.spec.task import BenchmarkDefinition, TaskSpec

SUFFIX = ".tasklog.json"
PACKED = ("", ".gz", ".zst")


def find_result(key: str, given: Mapping[str, Path], folders: Sequence[Path]) -> Path:
    """Return the file of an earlier result: the given one, otherwise `<key>.tasklog.json` in one of the
    folders.

    Raises:
        UsageError: the given file does not exist.
        SpecError: the result was not found.
    """
    if key in given:
        if not is_file(given[key]):
            raise UsageError(
                f"task result {key!r}: file {str(given[key])!r} does not exist", code=Code.NOTHING_THERE
            )
        return given[key]
    for folder in folders:
        for packed in PACKED:
            if is_file(path := folder / f"{key}{SUFFIX}{packed}"):
                issue = refusal(path, root_of_folder(folder), repr(path.name), own=folder, file=str(path))
                if issue is not None:
                    raise SpecError([issue])
                record_file(path)
                return path
    looked = ", ".join(dict.fromkeys(str(folder) for folder in folders))
    near = difflib.get_close_matches(key, given, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"pass it with --dataset {key}=FILE{SUFFIX}"
    message = f"task result {key!r} was not found; looked for {key}{SUFFIX} in {looked}"
    where = ("definition", "dataset", "key")
    raise SpecError(message, path=where, hint=hint, option="--dataset", code=Code.WRONG_EARLIER_RESULT)


def result_rows(file: Path, selection: Selection) -> Rows:
    """Return the selected trials of a result log.

    Raises:
        DatasetError: rows cannot be used.
        EvidenceError: the file is not a result log.
    """
    try:
        return collect(ObjectTable(_rows(file)), selection, file=str(file))
    except EvidenceError as error:
        raise EvidenceError(
            error.issues or [Issue(str(error), file=str(file), code=Code.WRONG_EARLIER_RESULT)]
        ) from error


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    reader = LogReader(file)
    evidence = reader.frame().evidence
    # The top level of a repeated task contains the agreement of the runs instead of trials.
    repeated = evidence is not None and bool(evidence.runs)
    for part in reader.parts():
        if isinstance(part, SamplePart) and (part.run is not None) == repeated:
            sample = reader.typed_sample(part)
            for trial in sample.trials:
                yield _row(sample, trial, part)


def _row(sample: SampleEvidence, trial: SampleTrialEvidence, part: SamplePart) -> dict[str, Any]:
    sample_id = part.position if sample.sample_id is None else sample.sample_id
    numbers = {} if part.run is None else {"run": part.run + 1}
    if len(sample.trials) > 1:
        numbers["trial"] = trial.index + 1
    data = {} if trial.sample is None else dict(trial.sample.data)
    output = None if trial.solver is None else _output(trial.solver.output)
    errors = [error.model_dump(mode="json") for error in (*trial.errors, *sample.errors)]
    return {
        **data,
        "sample_id": "/".join(map(str, [sample_id, *numbers.values()])) if numbers else sample_id,
        "sample": data,
        "solver_output": output,
        "trace": _trace(trial, output),
        "scores": {score.scorer_key: dict(score.values) for score in trial.scores or ()},
        "errors": errors,
        "error": errors[0]["message"] if errors else None,
        **numbers,
    }


def _output(output: SolverOutput) -> dict[str, Any]:
    """Return a solver output as in the log; for a trace, add the chat format for scorers."""
    if isinstance(output, GroupedSolverTrace | GroupedSolverOutput):
        group = output.solver_outputs
        if isinstance(group, dict):
            return {"solver_outputs": {name: _output(part) for name, part in group.items()}}
        return {"solver_outputs": [_output(part) for part in group]}
    dumped: dict[str, Any] = make_explicit(output).model_dump(mode="json")
    if isinstance(output, SolverTrace):
        chat = SingleSolverOutput(messages=output.messages, output=output.output)
        dumped |= make_explicit(chat).model_dump(mode="json", include={"messages", "output"})
    return dumped


def _trace(trial: SampleTrialEvidence, dumped: Mapping[str, Any] | None) -> dict[str, Any] | None:
    output = None if trial.solver is None else trial.solver.output
    if isinstance(output, SolverTrace):
        assert dumped is not None
        trace: dict[str, Any] = dumped["trace"]
        return trace
    if isinstance(output, SingleSolverOutput):
        items = lf_messages_to_trace_items(output.messages)
        dump: dict[str, Any] = make_explicit(Trace.from_items(items)).model_dump(mode="json")
        return dump
    return None  # The solver is missing, or its output is a group.


@dataclass(frozen=True)
class StoredRows:
    """Data of a result log for a plan."""

    dataset: PlannedDataset
    samples: tuple[Sample, ...]
    """Samples without duplicates, in the order of the log."""
    num_trials: int
    """Maximum number of trials of a sample."""
    entity: Mapping[str, Any] | None
    """Evaluated entity in the specification of the log."""


def stored_rows(definition: BenchmarkDefinition, document: Document[TaskSpec], log: Path) -> StoredRows:
    """Return the samples of a result log as the rows of a plan.

    Raises:
        EvidenceError: the file is not a result log.
        DatasetError: the log does not contain samples.
    """
    samples: dict[str, Sample] = {}
    num_trials = 0
    for record in records_of(log):
        samples.setdefault(str(record.sample_id), Sample(record.sample_id, record.data))
        num_trials = max(num_trials, record.index + 1)
    if not samples:
        raise DatasetError(
            "the result log does not contain samples, expected at least one", file=str(log), code=Code.NO_ROWS
        )
    reference = definition.dataset
    key = (None if reference is None else reference.key) or document.spec.key
    columns = tuple(dict.fromkeys(name for sample in samples.values() for name in sample.data))
    with log.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    specification = LogReader(log).frame().specification
    tags = dataset_tags(specification)
    dataset = PlannedDataset(key, f"samples of {log.name}", columns, digest, len(samples), tags)
    entity = specification.evaluated_entity
    return StoredRows(
        dataset,
        tuple(samples.values()),
        num_trials,
        None if entity is None else entity.model_dump(mode="json", exclude_unset=True),
    )
