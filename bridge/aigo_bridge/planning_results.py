"""Earlier results as data sets (`dataset: {source: task_result}`): every trial of a result log is a row.

The platform does not say which columns such rows have. Ours: the columns of the sample that was run; over them `sample_id`, `trace` (what
the solver made, as a trace), `scores` (scorer key → its values), `error` (the first error's message, or null), and, where samples have
several trials, `trial` (from 0), which then also ends the `sample_id`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from aigo_bridge.datasets import Rows, Selection
from aigo_bridge.datasets.json_tables import ObjectTable
from aigo_bridge.datasets.tables import collect
from aigo_bridge.dtypes import SampleEvidence, SampleTrialEvidence, make_explicit
from aigo_bridge.errors import EvidenceError, Issue, SpecError, UsageError
from aigo_bridge.results import LogReader

SUFFIX = ".tasklog.json"
PACKED = ("", ".gz", ".zst")


def find_result(key: str, given: Mapping[str, Path], folders: Sequence[Path]) -> Path:
    """The file of an earlier result: the one that was given, else `<key>.tasklog.json` in one of the folders.

    Raises:
        UsageError: the file that was given does not exist.
        SpecError: nothing was found.
    """
    if key in given:
        if not given[key].is_file():
            raise UsageError(f"task result {key!r}: there is no file {str(given[key])!r}")
        return given[key]
    for folder in folders:
        for packed in PACKED:
            if (path := folder / f"{key}{SUFFIX}{packed}").is_file():
                return path
    looked = ", ".join(dict.fromkeys(str(folder) for folder in folders))
    near = difflib.get_close_matches(key, given, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"give it: --dataset {key}=FILE{SUFFIX}"
    message = f"task result {key!r} was not found; looked for {key}{SUFFIX} in {looked}"
    where = ("definition", "dataset", "key")
    raise SpecError([Issue(message, path=where, hint=hint, option="--dataset")])


def result_rows(file: Path, selection: Selection) -> Rows:
    """The selected trials of a result log.

    Raises:
        DatasetError: rows cannot be used.
        EvidenceError: the file is no result log.
    """
    try:
        return collect(ObjectTable(_rows(file)), selection, file=str(file))
    except EvidenceError as error:
        raise EvidenceError(error.issues or [Issue(str(error), file=str(file))]) from error


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    for number, sample in enumerate(LogReader(file).samples()):
        for trial in sample.trials:
            yield _row(sample, trial, number)


def _row(sample: SampleEvidence, trial: SampleTrialEvidence, number: int) -> dict[str, Any]:
    sample_id = number if sample.sample_id is None else sample.sample_id
    several = len(sample.trials) > 1
    data = {} if trial.sample is None else dict(trial.sample.data)
    row = {
        **data,
        "sample_id": f"{sample_id}/{trial.index}" if several else sample_id,
        "trace": _trace(trial),
        "scores": {score.scorer_key: dict(score.values) for score in trial.scores or ()},
        "error": trial.errors[0].message if trial.errors else None,
    }
    return {**row, "trial": trial.index} if several else row


def _trace(trial: SampleTrialEvidence) -> dict[str, Any] | None:
    output = None if trial.solver is None else trial.solver.output
    trace = getattr(output, "trace", None)
    if trace is None:
        return None  # no solver, a group of outputs, or an embedding
    dumped: dict[str, Any] = make_explicit(trace).model_dump(mode="json")
    return dumped
