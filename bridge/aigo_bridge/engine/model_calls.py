"""Content of cassette lines: requests in canonical JSON and their outcomes, independent of the engine.

A request contains the arguments of the sample program's call through the Model protocol, so every engine
records the same request for the same call. Data that varies between runs and is not sent to the model
(message ids) is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from aigo_bridge.dtypes import ChatCompletionInputMessage, ChatCompletionOutputMessage, TraceItem
from aigo_bridge.errors import SampleError, Stage
from aigo_bridge.models.connections import Choice, Reply, ToolCallReply, Usage
from aigo_bridge.models.protocol import ModelRequest
from aigo_bridge.scoring.likelihoods import Likelihood
from aigo_bridge.spec.base import MLTask
from aigo_bridge.text.canonical_json import canonical_json

Json = dict[str, Any]

_NOTES = frozenset({"id", "inspect"})
"""Keys of items that are specific to an engine."""


class CallSite(NamedTuple):
    """Position of a model call in a run.

    A named tuple is used because one is created and written for each call, which matters for performance
    (`make bench`, cassettes).
    """

    task: str
    """Name of the plan: its key, preceded by the evaluation key in an evaluation."""
    sample: str | int
    trial: int
    """Number of the trial, from 0."""
    by: str
    """`solver`, or a scorer with the row that it scores."""
    model_key: str
    """AI GO key of the model; empty for the evaluated model."""
    number: int
    """Number of earlier identical requests at this position."""

    def to_json(self) -> Json:
        """Return the position in the form of a line."""
        task, sample, trial, by, model_key, number = self
        return {
            "task": task,
            "sample": sample,
            "trial": trial,
            "by": by,
            "model_key": model_key,
            "number": number,
        }

    def __str__(self) -> str:
        trial = f", trial {self.trial + 1}" if self.trial else ""
        model = f", model {self.model_key!r}" if self.model_key else ""
        again = f", time {self.number + 1}" if self.number else ""
        return f"sample {self.sample!r}{trial}, {self.by}{model}{again}"


@dataclass(frozen=True)
class FailedCall:
    """Call without an answer after all attempts."""

    message: str
    kind: str
    hint: str | None = None

    def error(self, stage: Stage) -> SampleError:
        """Return the error that the call raised."""
        return SampleError(self.message, stage=stage, hint=self.hint, kind=self.kind)


@dataclass(frozen=True)
class CallOutcome:
    """Outcome of a model call."""

    said: Reply | tuple[Likelihood, ...] | FailedCall
    task: MLTask = "chat_completion"
    """Task of the model."""
    native: Mapping[str, Any] | None = None
    """Engine → answer in the engine's own format, if `said` does not contain all of it; `None` if it does."""

    def to_json(self) -> bytes:
        """Return the members of a line, without the surrounding braces.

        Raises:
            ValueError: JSON cannot represent a value (NaN, an unpaired surrogate).
        """
        members: Json = {}
        self.add_to(members)
        return _dumped(members)[1:-1]

    def add_to(self, line: Json) -> None:
        """Add the outcome to a line for `orjson`. A text in it may still be invalid UTF-8.

        Raises:
            ValueError: JSON cannot represent a value (NaN).
        """
        said = self.said
        if type(said) is Reply and self.task == "chat_completion" and _is_plain(self):
            line["reply"] = said  # Fast path for most replies
            return
        members: Json = {}
        if isinstance(said, Reply):
            members["reply"] = said
        elif isinstance(said, FailedCall):
            members["error"] = said
        else:
            members["likelihoods"] = said
        if self.task != "chat_completion":
            members["for"] = self.task
        if self.native is not None:
            members["native"] = dict(self.native)
        if not _is_plain(self) and CallOutcome.from_json(orjson.loads(_dumped(members))) != self:
            raise ValueError("the answer contains a number that JSON does not support")
        line |= members

    @staticmethod
    def from_json(line: Mapping[str, Any]) -> CallOutcome:
        """Convert a line to an outcome.

        Raises:
            ValueError: the line does not contain an outcome.
        """
        try:
            if "error" in line:
                return CallOutcome(FailedCall(**line["error"]), line.get("for", "chat_completion"))
            outcome: Reply | tuple[Likelihood, ...]
            if "likelihoods" in line:
                outcome = tuple(Likelihood(**weighed) for weighed in line["likelihoods"])
            else:
                outcome = _reply(line["reply"])
            return CallOutcome(outcome, line.get("for", "chat_completion"), line.get("native"))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a model answer: {error}") from error


def _dumped(members: Json) -> bytes:
    try:
        return orjson.dumps(members)
    except TypeError as error:
        raise ValueError(f"the answer is not JSON: {error}") from error


def _is_plain(outcome: CallOutcome) -> bool:
    """Return whether an answer contains only texts and integers."""
    said = outcome.said
    if isinstance(said, FailedCall):
        return True
    if (
        not isinstance(said, Reply)
        or outcome.native is not None
        or said.raw is not None
        or said.value is not None
    ):
        return False
    for choice in said.choices:  # noqa: SIM110  # faster than a generator; called for every model call
        if choice.logprobs:
            return False
    return True


def _reply(fields: Mapping[str, Any]) -> Reply:
    usage = fields["usage"]
    choices = tuple(_choice(choice) for choice in fields["choices"])
    return Reply(**{**fields, "choices": choices, "usage": None if usage is None else Usage(**usage)})


def _choice(fields: Mapping[str, Any]) -> Choice:
    calls = tuple(ToolCallReply(**call) for call in fields["tool_calls"])
    return Choice(**{**fields, "tool_calls": calls, "logprobs": tuple(fields["logprobs"])})


# Requests


def request_json(request: ModelRequest, continuations: Sequence[str] | None = None) -> Json:
    """Return a call in the form of a recording; `continuations` are texts whose likelihoods are requested."""
    content: Json = {}
    if request.items is not None:
        content["items"] = [_item(item) for item in request.items]
    else:
        content["messages"] = [_message(message) for message in request.input.messages]
    if request.input.response_format is not None:
        content["response_format"] = request.input.response_format.model_dump(
            mode="json", by_alias=True, exclude_none=True
        )
    if options := _options(request):
        content["options"] = options
    if continuations is not None:
        content["continuations"] = list(continuations)
    return content


def request_text(request: ModelRequest, continuations: Sequence[str] | None = None) -> bytes:
    """Return a call as canonical JSON.

    Raises:
        ValueError: the request cannot be represented; see `canonical_json`.
    """
    messages = request.input.messages
    if request.items is None and continuations is None and request.input.response_format is None:
        # Fast path: most requests contain only texts and a few options, and checking each part would be slow.
        parts: list[Json] = []
        for message in messages:
            if type(message) is not ChatCompletionInputMessage:
                break
            role, content = message.role, message.content
            if type(content) is not str or type(role) is not str or message.model_extra:
                break
            parts.append({"content": content, "role": role})
        else:
            options = _options(request)
            text = canonical_json(options) if options else b""
            with suppress(TypeError):  # The slower path reports the position of an unpaired surrogate.
                if options:
                    return orjson.dumps({"messages": parts, "options": orjson.Fragment(text)})
                return orjson.dumps({"messages": parts})
    return canonical_json(request_json(request, continuations))


def _options(request: ModelRequest) -> Json:
    return {name: _whole(value) for name, value in request.options.items() if value is not None}


def _message(message: ChatCompletionInputMessage | ChatCompletionOutputMessage) -> Json:
    if (
        type(message) is ChatCompletionInputMessage
        and type(message.content) is str
        and not message.model_extra
    ):
        # Fast path for most messages, equal to their dump.
        return {"role": message.role, "content": message.content}
    return message.model_dump(mode="json", exclude_none=True)


def _whole(value: Any) -> Any:
    """Return a number in the form of canonical JSON, which is faster than checking it later."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _item(item: TraceItem) -> Any:
    fields = _without_notes(item.model_dump(mode="json"))
    if fields.get("type") == "function_call":
        with suppress(ValueError):
            # Whitespace differs between engines.
            fields["arguments"] = orjson.loads(fields["arguments"])
    return fields


def _without_notes(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _without_notes(part)
            for name, part in value.items()
            if name not in _NOTES and part is not None
        }
    return [_without_notes(part) for part in value] if isinstance(value, list) else value
