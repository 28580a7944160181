"""Result logs, written while samples are produced by a run, an import or rescoring.

In a `.json` log, the samples come first, one per line. Data that is only known at the end follows them.
The order of keys is irrelevant in JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import orjson
from pydantic_core import PydanticSerializationError, to_json

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import MetricData, RunEvidence, SampleEvidence, TaskResultLog
from aigo_bridge.dtypes.base import make_explicit, sparse_serializer
from aigo_bridge.errors import EvidenceError, Issue
from aigo_bridge.results.log_files import FIRST_LINE, is_json_lines, open_for_replacing
from aigo_bridge.text.json_text import read_json
from aigo_bridge.text.plurals import plural

Sample = SampleEvidence | Mapping[str, Any] | orjson.Fragment | bytes
"""Sample to write: typed, as plain data (which may contain encoded parts), or encoded as a whole."""

Piece = bytes | memoryview
"""Part of a JSON text. A `memoryview` is the beginning of a text that later parts may repeat."""

SAMPLE_SEPARATOR = b",\n"
"""Text between two samples of a `.json` log."""

_Finish = TaskResultLog | Callable[[], TaskResultLog]

Run = tuple[int, Iterable[Sample], Callable[[], RunEvidence]]
"""Run of a repeated task: its number, its samples, and a function that returns its evidence after the last
sample.
"""


def write_log(
    path: str | Path,
    samples: Iterable[Sample],
    *,
    finish: _Finish,
    runs: Iterable[Run] | None = None,
) -> None:
    """Write a result log, one sample after the other. Memory is bounded by the largest sample.

    The file appears when everything is written. An exception, a crash or a full disk leaves the old file
    unchanged and does not create other files.

    ```python
    import aigo_bridge

    plan = aigo_bridge.plan_task("examples/capitals")
    outcome = aigo_bridge.run(plan, "scripted/examples/capitals/answers.jsonl")
    log = aigo_bridge.read_log(outcome.result)
    aigo_bridge.write_log("copy.tasklog.jsonl.zst", log, finish=log.frame())
    assert aigo_bridge.read_log("copy.tasklog.jsonl.zst").load() == log.load()
    ```

    Args:
        path: file with the extension `.json` or `.jsonl`, followed by `.gz` or `.zst` for a compressed
            log.
        samples: samples in the order to write. Encoded samples are not checked. Types, roles and
            identifiers of typed samples count as set afterwards.
        finish: the log without its samples, or a function that returns it after the last sample.
        runs: runs of a repeated task (in a `.json` log), written before the samples, which may be derived
            from them.

    Raises:
        UsageError: the file extension does not belong to a result log.
        EvidenceError: the log already contains samples, lacks evidence to contain the samples, or has a
            metric that is not a number. JSON cannot represent such a metric, and the log would be
            unreadable.
        OSError: the file cannot be written.
    """
    path = Path(path)
    by_line = is_json_lines(path)
    with open_for_replacing(path) as file:
        if runs is not None:
            _write_repeated(file, runs, samples, finish)
        elif by_line:
            _write_lines(file, samples, finish)
        else:
            _write_document(file, samples, finish)


def _write_document(file: BinaryIO, samples: Iterable[Sample], finish: _Finish) -> None:
    writer = DocumentWriter(file)
    for sample in samples:
        writer.sample(encoded_sample(sample))
    frame = _checked(finish, any_samples=writer.num_samples > 0)
    if writer.num_samples:
        evidence = {key: value for key, value in frame.pop("evidence").items() if key != "samples"}
        writer.finish(_encoded(evidence), _encoded(frame))
    else:
        file.write(_encoded(frame) + b"\n")


def _write_repeated(file: BinaryIO, runs: Iterable[Run], samples: Iterable[Sample], finish: _Finish) -> None:
    file.write(b'{"evidence":{"runs":[')
    separator = b"\n"
    for index, run_samples, finish_run in runs:
        file.write(separator + b'{"index":%d,"samples":[' % index)
        _write_list(file, run_samples)
        file.write(_behind_list(make_explicit(finish_run()).model_dump(mode="json"), "index", "samples"))
        separator = b",\n"
    file.write(b'\n],"samples":[')
    _write_list(file, samples)
    frame = _checked(finish, any_samples=True)
    file.write(_behind_list(frame.pop("evidence"), "samples", "runs") + b"," + _encoded(frame)[1:] + b"\n")


def _write_list(file: BinaryIO, samples: Iterable[Sample]) -> None:
    separator = b"\n"
    for sample in samples:
        file.write(separator + encoded_sample(sample))
        separator = b",\n"


def _behind_list(fields: Mapping[str, Any], *written: str) -> bytes:
    """Return the rest of an object whose last written member is a list."""
    return b"\n]," + _encoded({key: value for key, value in fields.items() if key not in written})[1:]


class DocumentWriter:
    """Writer of a `.json` result log. It writes each part immediately."""

    def __init__(self, file: BinaryIO, start: bytes = FIRST_LINE):
        """Prepare a log, whose first sample follows the text `start`, without writing to it."""
        self._file = file
        self._start = start
        self.num_samples = 0

    def sample(self, *pieces: Piece) -> None:
        """Write a sample as JSON text, or the start of one."""
        self.samples(1, pieces)

    def samples(self, number: int, pieces: Iterable[Piece]) -> None:
        """Write a number of samples, at least one, as JSON text with `SAMPLE_SEPARATOR` between them."""
        self._file.write(SAMPLE_SEPARATOR if self.num_samples else self._start)
        self.num_samples += number
        self.extend(pieces)

    def extend(self, pieces: Iterable[Piece]) -> None:
        """Append text to the last sample."""
        for piece in pieces:
            self._file.write(piece)

    def finish(self, evidence: bytes, frame: bytes) -> None:
        """Write the text after the samples: the evidence, and the log without it, as JSON objects."""
        if not self.num_samples:
            self._file.write(b'{"evidence":' + evidence)
        elif evidence == b"{}":
            self._file.write(b"\n]}")
        else:
            self._file.write(b"\n]," + evidence[1:])
        self._file.write(b"," + frame[1:] + b"\n")


def _write_lines(file: BinaryIO, samples: Iterable[Sample], finish: _Finish) -> None:
    any_samples = False
    for sample in samples:
        line = encoded_sample(sample)
        if (
            b"\n" in line or b"\r" in line
        ):  # The sample was encoded by other code, with line breaks between values.
            line = _encoded(read_json(line))
        file.write(line)
        file.write(b"\n")
        any_samples = True
    file.write(_encoded(_checked(finish, any_samples=any_samples)) + b"\n")


def encoded_sample(sample: Sample) -> bytes:
    """Convert a sample to JSON text; a typed one with its types, roles and identifiers, set or not."""
    if isinstance(sample, bytes):
        return sample
    if not isinstance(sample, dict) and isinstance(sample, SampleEvidence):
        make_explicit(sample)
        serializer = sparse_serializer(SampleEvidence)
        try:
            return serializer.to_json(sample, exclude_unset=True, by_alias=True)
        except PydanticSerializationError:
            return _encoded(serializer.to_python(sample, exclude_unset=True, by_alias=True, mode="json"))
    return _encoded(sample)


def _encoded(value: Any) -> bytes:
    """Convert plain data to JSON: any integers, NaN and infinity as null, lone surrogates as escapes."""
    try:
        return orjson.dumps(value)
    except TypeError:  # A big integer, a lone surrogate, or a key that is not a text
        pass
    try:
        return to_json(value, inf_nan_mode="null")
    except (PydanticSerializationError, ValueError):
        return json.dumps(_finite(value), separators=(",", ":")).encode("ascii")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    if isinstance(value, orjson.Fragment):
        return read_json(orjson.dumps(value))
    return value


def encoded_frame(frame: TaskResultLog) -> bytes:
    """Convert a log without samples to JSON text.

    Raises:
        EvidenceError: the log cannot be written (see `write_log`).
    """
    return _encoded(_checked(frame, any_samples=True))


def _checked(finish: _Finish, *, any_samples: bool) -> dict[str, Any]:
    """Return the log without its samples as plain data."""
    frame = finish if isinstance(finish, TaskResultLog) else finish()
    evidence = frame.evidence
    if evidence is None and any_samples:
        raise EvidenceError(
            "the log lacks evidence to hold its samples", path=("evidence",), code=Code.UNFIT_RESULT
        )
    if evidence is not None and evidence.samples:
        message = f"the log already contains {plural(len(evidence.samples), 'sample')}"
        hint = "pass them as `samples`, and the log without them as `finish`"
        raise EvidenceError(message, path=("evidence", "samples"), hint=hint, code=Code.UNFIT_RESULT)
    issues = list(_metrics_that_are_no_numbers(frame))
    if issues:
        raise EvidenceError(issues)
    return make_explicit(frame).model_dump(mode="json")


def _metrics_that_are_no_numbers(frame: TaskResultLog) -> Iterator[Issue]:
    if frame.evidence is None:
        return
    places: list[tuple[tuple[str | int, ...], Sequence[MetricData] | None]] = [
        (("evidence",), frame.evidence.metrics)
    ]
    for index, run in enumerate(frame.evidence.runs or ()):
        places.append((("evidence", "runs", index), run.metrics))
    for place, metrics in places:
        for index, metric in enumerate(metrics or ()):
            for name, value in metric.values.items():
                if not math.isfinite(value):
                    yield Issue(
                        f"found {value!r} as value of metric {metric.metric_key!r}, expected a finite number",
                        path=(*place, "metrics", index, "values", name),
                        hint="remove a metric that could not be computed, and report it in `errors`",
                        code=Code.UNFIT_RESULT,
                    )
