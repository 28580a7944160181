"""Model calls of a current sample (see `current`) → AI GO model calls, as `model_calls` makes them."""

from __future__ import annotations

from typing import Any, NamedTuple

from aigo_bridge.importing.loss import LossReport

from . import current
from .clock import seconds_between
from .content import Item
from .current import UnusualError
from .current_messages import Messages, text_of_answer
from .model_calls import (
    RAW_FIELDS,
    STATUS_OF_STOP,
    ModelCalls,
    count_odd_usage,
    keep_rest,
    model_usage,
    says_nothing,
)
from .ordering import Event
from .pools import Walker, expand_request, has_references
from .repeated import Repeated
from .samples import chat_answers


class CallConstants:
    """What is the same in the model calls of a whole log."""

    def __init__(self) -> None:
        self.tools = Repeated(_tools)
        """Definitions of the tools that a model was offered, and their names."""
        self.config = Repeated(_given)
        """What the model was configured with."""


def _tools(value: Any) -> tuple[list[Any], list[str]]:
    if not isinstance(value, list) or has_references(value):
        raise UnusualError
    if not all(isinstance(tool, dict) for tool in value):
        raise UnusualError
    return value, [str(tool["name"]) for tool in value if tool.get("name")]


def _given(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UnusualError
    return {key: item for key, item in value.items() if item is not None}


class _Context(NamedTuple):
    refs: list[list[int]]
    length: int
    """Messages that the ranges name."""
    items: list[Item]


def _continuation(before: list[list[int]], refs: list[list[int]]) -> list[list[int]] | None:
    """The ranges of messages by which `refs` goes on behind `before`; `None` where it is another conversation."""
    last = len(before) - 1
    if len(refs) <= last or refs[:last] != before[:last]:
        return None
    # What is wrong with a range is found where it is expanded.
    (start, end), (first, *ends) = before[last], refs[last]
    if first != start or len(ends) != 1 or ends[0] < end:
        return None
    return [[end, ends[0]], *refs[last + 1 :]]


class CurrentCalls:
    """Maps the model calls of one sample."""

    def __init__(
        self,
        pools: current.Pools | None,
        walker: Walker,
        messages: Messages,
        constants: CallConstants,
        loss: LossReport,
    ):
        self.answers: list[tuple[str | None, dict[str, Any] | None]] = []
        """Span and answer of every call (see `samples.chat_answers`); `None` for one that has none."""
        self.natives: list[current.Model] = []
        """The calls that hold their raw request and response."""
        self.offers: dict[int, list[Any]] = {}
        """The lists of tools that the models were offered."""
        self._walker = walker
        self._messages = messages
        self._loss = loss
        self._constants = constants
        self._text = ""
        """Text of the answer of the last call."""
        self._contexts: dict[str | None, _Context] = {}
        """The input of the last call in each span."""
        self._calls = ModelCalls(messages, loss)
        self.caller = self._calls.caller
        self._pool: list[current.Message] = []
        self._raw_pool: list[Any] = []
        if pools is not None:
            self._pool = [messages.put_back(message) for message in pools.messages]
            self._raw_pool = pools.calls
            walker.walk(self._raw_pool)

    def check_contexts(self, natives: list[current.Model]) -> None:
        """Refuse contexts that come to far more than the sample; raises `TooLargeError`."""
        self._walker.check_contexts([native.input_refs for native in natives], self._pool)
        if self._raw_pool:
            raw = [native.call.get("call_refs") for native in natives if native.call is not None]
            self._walker.check_contexts(raw, self._raw_pool)

    def event(self, native: current.Model, time: str) -> Event:
        """The event of a model call."""
        output = native.output
        choices = output.choices
        if native.input or not native.input_refs or len(choices) > 1:
            raise UnusualError
        span, walker = native.span_id, self._walker
        definitions, names = self._constants.tools.of(native.tools)
        self.offers[id(definitions)] = definitions
        event = base(native, "model_call_event", time, walker)
        event["model"] = native.model
        event["input_context"] = self._context(span, native.input_refs)
        usage = model_usage(output.usage)
        if usage is None or len(usage) < 2:
            count_odd_usage(output.usage, self._loss)
        self._text = ""
        error = native.error or output.error
        items: list[Item] = []
        if choices and not (error and _says_nothing(choices[0].message)):
            items = self._answer(choices[0], span, usage)
        else:
            self.answers.append((span, None))
        event["output_items"] = items
        if usage is not None:
            event["usage"] = usage
        event["tools"] = names
        seconds = seconds_between(native.timestamp, native.completed)
        if seconds is not None:
            event["total_time"] = seconds
        if error:
            event["error"] = walker.text(error)
        self._add_notes(native, output, event["metadata"]["inspect"])
        self._calls.asked(span, items, native.uuid)
        if native.call is not None:
            walker.walk(native.call)
            expand_request(native.call, self._raw_pool, walker)
            keep_rest(event["metadata"]["inspect"], "call", native.call, RAW_FIELDS)
            self.natives.append(native)
        return event

    def _context(self, span: str | None, refs: list[list[int]]) -> list[Item]:
        """The items of a call's input: nearly always those of the call before in the same span, and some more."""
        before = self._contexts.get(span)
        rest = None if before is None else _continuation(before.refs, refs)
        if before is None or rest is None:
            messages = self._walker.expand(refs, self._pool)
            length, context = len(messages), []
        else:
            messages = self._walker.expand(rest, self._pool, before.length)
            length, context = before.length + len(messages), before.items[:]
        for message in messages:
            context += self._messages.of(message)
        self._contexts[span] = _Context(refs, length, context)
        return context

    def _answer(self, choice: current.Choice, span: str | None, usage: dict[str, int] | None) -> list[Item]:
        messages = self._messages
        message = messages.put_back(choice.message)
        self._text = text_of_answer(message)
        self.answers.append((span, chat_answers([self._text], usage)))
        status = STATUS_OF_STOP.get(choice.stop_reason, "completed")
        return messages.of(message) if status == "completed" else messages.broken_off(message, status)

    def _add_notes(self, native: current.Model, output: current.Output, notes: dict[str, Any]) -> None:
        # One by one: nearly all of them are null in nearly all calls, and a loop over their names takes three times as long.
        text, walk = self._walker.text, self._walker.walk
        if native.role is not None:
            notes["role"] = text(native.role)
        if native.requested_model is not None:
            notes["requested_model"] = text(native.requested_model)
        choice = native.tool_choice
        if isinstance(choice, dict):
            walk(choice)
            notes["tool_choice"] = choice
        else:
            notes["tool_choice"] = text(choice)
        if native.retries is not None:
            notes["retries"] = native.retries
        if native.request_ids is not None:
            walk(native.request_ids)
            notes["request_ids"] = native.request_ids
        if native.traceback is not None:
            notes["traceback"] = text(native.traceback)
        if native.cache is not None:
            notes["cache"] = text(native.cache)
        if native.completed is not None:
            notes["completed"] = text(native.completed)
        if native.working_time is not None:
            notes["working_time"] = native.working_time
        if given := self._constants.config.of(native.config):
            notes["config"] = given
        self._add_output_notes(native.model, output, notes)
        if native.error and output.error:
            notes["output_error"] = text(output.error)

    def _add_output_notes(self, model: str, output: current.Output, notes: dict[str, Any]) -> None:
        if output.usage is not None:
            notes["usage"] = output.usage
        if output.input_context_tokens is not None:
            notes["input_context_tokens"] = output.input_context_tokens
        if output.fallback is not None:
            self._walker.walk(output.fallback)
            notes["fallback"] = output.fallback
        if output.time is not None:
            notes["output_time"] = output.time
        if output.metadata is not None:
            self._walker.walk(output.metadata)
            notes["output_metadata"] = output.metadata
        if output.response_id is not None:
            notes["response_id"] = self._walker.text(output.response_id)
        if output.model and output.model != model:
            notes["output_model"] = output.model
        if output.choices:
            notes["stop_reason"] = output.choices[0].stop_reason
        if output.completion and (completion := self._walker.text(output.completion)) != self._text:
            notes["completion"] = completion


def _says_nothing(message: current.Message) -> bool:
    return says_nothing(
        {"content": message.content, "tool_calls": message.tool_calls, "metadata": message.metadata}
    )


def base(native: Any, kind: str, time: str, walker: Walker) -> Event:
    """What all events have; `native` is any of `current.NativeEvent`."""
    notes: dict[str, Any] = {"working_start": native.working_start}
    metadata: dict[str, Any] = {"inspect": notes}
    if given := native.metadata:
        walker.walk(given)
        metadata = {**given, "inspect": notes}
        if "inspect" in given:
            notes["metadata"] = given
    span = native.span_id
    if span:
        return {"type": kind, "id": native.uuid, "span_id": span, "timestamp": time, "metadata": metadata}
    return {"type": kind, "id": native.uuid, "timestamp": time, "metadata": metadata}
