"""Result logs, written while the samples are made.

In a `.json` log the samples stand first, one per line, and everything that is known only at the end stands behind
them. The order of keys means nothing to readers of JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import orjson
from pydantic_core import PydanticSerializationError, to_json

from aigo_bridge.dtypes import MetricData, SampleEvidence, TaskResultLog
from aigo_bridge.dtypes.dumping import sparse_serializer
from aigo_bridge.dtypes.explicit import make_explicit
from aigo_bridge.dtypes.json_text import read_json
from aigo_bridge.errors import EvidenceError, Issue
from aigo_bridge.results.log_files import FIRST_LINE, is_json_lines, open_for_replacing
from aigo_bridge.secrets import redact_json

Sample = SampleEvidence | Mapping[str, Any] | orjson.Fragment | bytes
"""A sample to write: typed, as plain data (which may hold encoded parts), or encoded as a whole."""

_Finish = TaskResultLog | Callable[[], TaskResultLog]


def write_log(
    path: str | Path,
    samples: Iterable[Sample],
    *,
    finish: _Finish,
) -> None:
    """Write a result log, one sample after the other; memory is bounded by the largest sample.

    The file takes its place at once, when everything is written: an exception, a crash or a full disk leaves what
    was there before, and nothing besides.

    Args:
        path: Ends in `.json` or `.jsonl`, with `.gz` or `.zst` behind it for a compressed log.
        samples: In the order in which they are to stand. Encoded ones are taken at their word; in typed ones types,
            roles and identifiers count as set from then on.
        finish: The log without its samples, or a function that is called for it after the last sample.

    Raises:
        UsageError: The suffix is none of these.
        EvidenceError: The log has samples of its own, has no evidence to hold the samples, or has a metric that is
            not a number: JSON has no word for it, and the log would not be readable.
        OSError: The file cannot be written.
    """
    path = Path(path)
    by_line = is_json_lines(path)
    with open_for_replacing(path) as file:
        if by_line:
            _write_lines(file, samples, finish)
        else:
            _write_document(file, samples, finish)


def _write_document(file: BinaryIO, samples: Iterable[Sample], finish: _Finish) -> None:
    separator = FIRST_LINE
    any_samples = False
    for sample in samples:
        file.write(separator)
        file.write(encoded_sample(sample))
        separator, any_samples = b",\n", True
    frame = _checked(finish, any_samples=any_samples)
    if any_samples:
        evidence = {key: value for key, value in frame.pop("evidence").items() if key != "samples"}
        own, rest = redact_json(_encoded(evidence)), redact_json(_encoded(frame))
        file.write(b"\n]," + own[1:] + b"," + rest[1:] + b"\n")
    else:
        file.write(redact_json(_encoded(frame)) + b"\n")


def _write_lines(file: BinaryIO, samples: Iterable[Sample], finish: _Finish) -> None:
    any_samples = False
    for sample in samples:
        line = encoded_sample(sample)
        if b"\n" in line or b"\r" in line:  # encoded elsewhere, with line breaks between values
            line = _encoded(read_json(line))
        file.write(line)
        file.write(b"\n")
        any_samples = True
    file.write(redact_json(_encoded(_checked(finish, any_samples=any_samples))) + b"\n")


def encoded_sample(sample: Sample) -> bytes:
    """A sample as JSON text, without secrets. A typed one is written with its types, roles and identifiers, set or not."""
    return redact_json(_sample_text(sample))


def _sample_text(sample: Sample) -> bytes:
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
    """Plain data as JSON text: integers of any size, NaN and infinity as null, lone surrogates as escapes."""
    try:
        return orjson.dumps(value)
    except TypeError:  # a big integer, a lone surrogate, a key that is no text
        pass
    try:
        return to_json(value)
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
    """A log without samples as JSON text.

    Raises:
        EvidenceError: it cannot be written, see `write_log`.
    """
    return _encoded(_checked(frame, any_samples=True))


def _checked(finish: _Finish, *, any_samples: bool) -> dict[str, Any]:
    """The log without its samples as plain data."""
    frame = finish if isinstance(finish, TaskResultLog) else finish()
    evidence = frame.evidence
    if evidence is None and any_samples:
        raise EvidenceError([Issue("the log has no evidence to hold its samples", path=("evidence",))])
    if evidence is not None and evidence.samples:
        message = f"the log has {len(evidence.samples)} samples of its own"
        hint = "hand them over as `samples`, and the log without them as `finish`"
        raise EvidenceError([Issue(message, path=("evidence", "samples"), hint=hint)])
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
                        hint="leave out a metric that could not be computed, and say so in `errors`",
                    )
