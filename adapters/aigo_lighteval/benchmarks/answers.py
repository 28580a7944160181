"""What a shard of one of lighteval's own tasks was answered, in a file, and a model that answers so again.

JSON, one value per line: who was asked and when, then each document with what it came to in one way of
asking, then calls and failures by document.
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
from aigo_bridge.errors import EvidenceError, Issue
from aigo_bridge.execution.program import Failure
from aigo_bridge.results.log_files import open_for_replacing
from aigo_lighteval.benchmarks.models import Told
from aigo_lighteval.benchmarks.outcomes import plain
from aigo_lighteval.running.pipeline import UncachedModel

Json = dict[str, Any]

FORMAT = 1
"""Raised when a line changes its meaning."""

_TENSOR, _ARRAY = "$tensor", "$array"

MOST_BYTES = 1 << 30
"""Of one line."""

_RESPONSE = tuple(field.name for field in fields(ModelResponse))


@dataclass(frozen=True)
class Asked:
    """Who was asked, and when."""

    task: str
    """As lighteval names it in results."""
    model: str
    config: Mapping[str, Any]
    """What lighteval's results tell of the model."""
    settings: Mapping[str, Any]
    """What the user says about the end of answers, which documents then have."""
    started: float
    """Unix time, in seconds."""
    ended: float
    stopped: str | None = None
    """Why documents were not asked; `None`: all were."""


@dataclass(frozen=True)
class Answers:
    """What documents came to."""

    asked: Asked
    responses: Mapping[tuple[str, str], ModelResponse]
    """Way of asking, and id of the document → what the model gave."""
    records: Mapping[str, Json]
    """Id of a document → its calls."""
    failures: Mapping[str, Failure]
    """Id of a document → why it has no answer."""


def write_answers(
    path: Path,
    asked: Asked,
    documents: Mapping[SamplingMethod, Sequence[Doc]],
    responses: Mapping[SamplingMethod, Sequence[ModelResponse]],
    told: Told,
) -> None:
    """Write them, at once or not at all.

    Raises:
        OSError: they cannot be written.
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
    """A value of a response; tensors stay tensors, as lighteval hashes their texts."""
    if isinstance(value, torch.Tensor):
        return {_TENSOR: value.tolist(), "type": str(value.dtype).removeprefix("torch.")}
    if isinstance(value, np.ndarray):
        return {_ARRAY: value.tolist(), "type": value.dtype.str}
    if isinstance(value, list | tuple):
        return [_kept(item) for item in value]
    return plain(value)


def _given(value: Any) -> Any:
    """Back from `_kept`."""
    if isinstance(value, list):
        return [_given(item) for item in value]
    if isinstance(value, dict) and _TENSOR in value:
        return torch.tensor(value[_TENSOR], dtype=getattr(torch, value["type"]))
    if isinstance(value, dict) and _ARRAY in value:
        return np.array(value[_ARRAY], dtype=np.dtype(value["type"]))
    return value


def _line(value: Json) -> bytes:
    # With NaN and infinities, which likelihoods can be.
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def read_answers(path: Path) -> Answers:
    """What a shard wrote.

    Raises:
        EvidenceError: it cannot be read.
    """
    responses: dict[tuple[str, str], ModelResponse] = {}
    records: dict[str, Json] = {}
    failures: dict[str, Failure] = {}
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
                failures[name] = Failure.from_json(line["failure"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
        reason = "the file is empty" if isinstance(error, StopIteration) else error
        message = f"the answers cannot be read: {reason}"
        raise EvidenceError([Issue(message, file=str(path), code=Code.UNREADABLE_LOG)]) from error
    return Answers(asked, responses, records, failures)


def _asked(head: Json) -> Asked:
    if head.pop("format", None) != FORMAT:
        raise ValueError(f"it is not of format {FORMAT}, which this release reads")
    return Asked(**head)


def _lines(path: Path) -> Iterator[Json]:
    with open_regular(path) as file:
        while line := file.readline(MOST_BYTES):
            value = json.loads(line)
            if not isinstance(value, dict):
                raise TypeError(f"a line is {type(value).__name__}, expected an object")
            yield value


class _ToldConfig(ModelConfig):  # type: ignore[misc]  # lighteval has no types
    """What results tell of a model that is not here."""

    def __init__(self, told: Mapping[str, Any]):
        super().__init__(model_name=str(told.get("model_name")))
        self._told = dict(told)

    def model_dump(self, *_: Any, **__: Any) -> Json:
        return dict(self._told)


class AnsweredModel(UncachedModel):
    """A model that says what shards were answered.

    Args:
        shards: their answers.
        told: gets their calls and failures, and those of documents that nobody was asked.
        missing: why documents have no answers, where some do not.
    """

    def __init__(self, shards: Sequence[Answers], told: Told, missing: str | None):
        super().__init__(_ToldConfig(shards[0].asked.config))
        self._responses = {key: response for shard in shards for key, response in shard.responses.items()}
        self._told = told
        self._missing = missing or "its shard has no answer to it"
        for shard in shards:
            told.records.update(shard.records)
            told.failures.update(shard.failures)

    def greedy_until(self, docs: list[Doc]) -> list[ModelResponse]:
        """One response per document, in their order."""
        return [self._response(doc, SamplingMethod.GENERATIVE) for doc in docs]

    def loglikelihood(self, docs: list[Doc]) -> list[ModelResponse]:
        """As `greedy_until`, for documents that ask for likelihoods."""
        return [self._response(doc, SamplingMethod.LOGPROBS) for doc in docs]

    def _response(self, doc: Doc, method: SamplingMethod) -> ModelResponse:
        response = self._responses.get((method.value, doc.id))
        if response is None:
            self._told.failed(doc, Failure("solver", "NotAsked", f"not asked: {self._missing}"))
            return ModelResponse(text=[])
        return response
