"""Answer files for shards of lighteval's tasks, and a model that returns their answers.

A file contains one JSON value per line. The first line has the model and the times. Next is one line per
document and request type with the response. Calls and failures of documents follow.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lighteval.models.abstract_model import ModelConfig
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc, SamplingMethod

from aigo_bridge.access.opening import open_regular
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError
from aigo_bridge.execution.solutions import SampleFailure
from aigo_bridge.results.log_files import open_for_replacing
from aigo_lighteval.benchmarks.models import DocumentNotes
from aigo_lighteval.benchmarks.outcomes import plain
from aigo_lighteval.running.pipeline import UncachedModel

Json = dict[str, Any]

FORMAT = 1
"""Format version, increased when the meaning of a line changes."""

_TENSOR, _ARRAY = "$tensor", "$array"

MOST_BYTES = 1 << 30
"""Maximum bytes of one line."""

_RESPONSE = tuple(field.name for field in fields(ModelResponse))


@dataclass(frozen=True)
class ShardModel:
    """Model and times of a shard."""

    task: str
    """Task name as in lighteval's results."""
    model: str
    config: Mapping[str, Any]
    """Model configuration in lighteval's results."""
    settings: Mapping[str, Any]
    """User settings for the end of answers, which are applied to the documents."""
    started: float
    """Unix time in seconds."""
    ended: float
    stopped: str | None = None
    """Reason why documents were not sent to the model; `None` if all were."""


@dataclass(frozen=True)
class Answers:
    """Outcomes of the documents of a shard."""

    asked: ShardModel
    responses: Mapping[tuple[str, str], ModelResponse]
    """Model responses by request type and document id."""
    records: Mapping[str, Json]
    """Model calls by document id."""
    failures: Mapping[str, SampleFailure]
    """Failures by document id, for documents without an answer."""


def write_answers(
    path: Path,
    asked: ShardModel,
    documents: Mapping[SamplingMethod, Sequence[Doc]],
    responses: Mapping[SamplingMethod, Sequence[ModelResponse]],
    told: DocumentNotes,
) -> None:
    """Write the answers atomically.

    Raises:
        OSError: the file cannot be written.
    """
    with open_for_replacing(path) as file:
        file.write(_line({"format": FORMAT, **asdict(asked)}))
        for method, answered in responses.items():
            for doc, response in zip(documents[method], answered, strict=True):
                content = {name: _kept(getattr(response, name)) for name in _RESPONSE}
                file.write(_line({"id": doc.id, "method": method.value, "response": content}))
        for name, record in told.records.items():
            file.write(_line({"id": name, "record": record}))
        for name, failure in told.failures.items():
            file.write(_line({"id": name, "failure": failure.to_json()}))


def _kept(value: Any) -> Any:
    """Convert a response value to JSON. Tensors are marked because lighteval hashes their text form."""
    if isinstance(value, torch.Tensor):
        return {_TENSOR: value.tolist(), "type": str(value.dtype).removeprefix("torch.")}
    if isinstance(value, np.ndarray):
        return {_ARRAY: value.tolist(), "type": value.dtype.str}
    if isinstance(value, list | tuple):
        return [_kept(item) for item in value]
    return plain(value)


def _given(value: Any) -> Any:
    """Convert a value back from `_kept`."""
    if isinstance(value, list):
        return [_given(item) for item in value]
    if isinstance(value, dict) and _TENSOR in value:
        return torch.tensor(value[_TENSOR], dtype=getattr(torch, value["type"]))
    if isinstance(value, dict) and _ARRAY in value:
        return np.array(value[_ARRAY], dtype=np.dtype(value["type"]))
    return value


def _line(value: Json) -> bytes:
    # Likelihoods can be NaN or infinite.
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def read_answers(path: Path) -> Answers:
    """Read the answer file of a shard.

    Raises:
        EvidenceError: the file cannot be read.
    """
    responses: dict[tuple[str, str], ModelResponse] = {}
    records: dict[str, Json] = {}
    failures: dict[str, SampleFailure] = {}
    try:
        lines = _lines(path)
        asked = _asked(next(lines))
        for line in lines:
            name = line["id"]
            if "response" in line:
                content = {
                    name: _given(value) for name, value in line["response"].items() if name in _RESPONSE
                }
                responses[line["method"], name] = ModelResponse(**content)
            elif "record" in line:
                records[name] = line["record"]
            else:
                failures[name] = SampleFailure.from_json(line["failure"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
        reason = "the file is empty" if isinstance(error, StopIteration) else error
        message = f"the answers cannot be read: {reason}"
        raise EvidenceError(message, file=str(path), code=Code.UNREADABLE_LOG) from error
    return Answers(asked, responses, records, failures)


def _asked(head: Json) -> ShardModel:
    if head.pop("format", None) != FORMAT:
        raise ValueError(f"it is not of format {FORMAT}, which this release can read")
    return ShardModel(**head)


def _lines(path: Path) -> Iterator[Json]:
    with open_regular(path) as file:
        while line := file.readline(MOST_BYTES):
            value = json.loads(line)
            if not isinstance(value, dict):
                raise TypeError(f"a line is {type(value).__name__}, expected an object")
            yield value


class _ToldConfig(ModelConfig):  # type: ignore[misc]  # lighteval is untyped
    """Model configuration in the results, for a model that is not loaded."""

    def __init__(self, told: Mapping[str, Any]):
        super().__init__(model_name=str(told.get("model_name")))
        self._told = dict(told)

    def model_dump(self, *_: Any, **__: Any) -> Json:
        return dict(self._told)


class AnsweredModel(UncachedModel):
    """Model that returns the answers of shards.

    Args:
        shards: answers of the shards.
        told: notes for calls and failures, including documents that were not sent to the model.
        missing: reason why some documents lack answers.
    """

    def __init__(self, shards: Sequence[Answers], told: DocumentNotes, missing: str | None):
        super().__init__(_ToldConfig(shards[0].asked.config))
        self._responses = {key: response for shard in shards for key, response in shard.responses.items()}
        self._told = told
        self._missing = missing or "its shard does not contain an answer for it"
        for shard in shards:
            told.records.update(shard.records)
            told.failures.update(shard.failures)

    def greedy_until(self, docs: list[Doc]) -> list[ModelResponse]:
        """Return one response per document, in document order."""
        return [self._response(doc, SamplingMethod.GENERATIVE) for doc in docs]

    def loglikelihood(self, docs: list[Doc]) -> list[ModelResponse]:
        """Return one response per document with likelihoods, in document order."""
        return [self._response(doc, SamplingMethod.LOGPROBS) for doc in docs]

    def _response(self, doc: Doc, method: SamplingMethod) -> ModelResponse:
        response = self._responses.get((method.value, doc.id))
        if response is None:
            self._told.failed(doc, SampleFailure("solver", "NotAsked", f"not called: {self._missing}"))
            return ModelResponse(text=[])
        return response
