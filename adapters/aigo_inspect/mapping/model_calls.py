"""Conversion of model calls: Inspect's `ModelEvent` to AI GO's `ModelCallEvent`."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from aigo_bridge.importing.log_import import LossReport
from aigo_bridge.text.json_text import json_text
from aigo_inspect.logs.parsing import seconds_between
from aigo_inspect.logs.pools import Walker, expand_call, expand_request
from aigo_inspect.logs.shapes import count_of
from aigo_inspect.mapping.messages import Item, logprobs_of
from aigo_inspect.mapping.records import (
    ChoiceRecord,
    MessageRecord,
    ModelRecord,
    Output,
    SampleRecord,
    Tools,
    tools_in,
)
from aigo_inspect.mapping.sample_messages import Messages
from aigo_inspect.mapping.spans import Event

STATUS_OF_STOP = {"max_tokens": "incomplete", "model_length": "incomplete", "content_filter": "incomplete"}
OUTPUT_FIELDS = {
    **{name: name for name in ("usage", "fallback", "response_id", "input_context_tokens")},
    **{name: f"output_{name}" for name in ("time", "metadata")},
}
"""Field of the output → name in the notes of the call."""
RAW_FIELDS = frozenset({"request", "response"})
"""Fields of a raw call that `direct_io` uses. Other fields stay with the model call."""
CHOICE_FIELDS = ("stop_reason", "stop_details", "prompt_logprobs")


class ModelCallData(NamedTuple):
    """A model call with its data outside the event."""

    event: Event
    span_id: str | None
    """Span of the call in the log."""
    answer: dict[str, Any] | None
    """Answers in AI GO's form; `None` without an answer."""
    direct_io: dict[str, Any] | None
    """Raw request and response, if the log contains them."""


class _Context(NamedTuple):
    refs: list[list[int]]
    length: int
    """Number of messages in the ranges."""
    items: list[Item]


def _continuation(earlier: list[list[int]], refs: Any) -> list[list[int]] | None:
    """Return the ranges by which `refs` continues `earlier`; `None` for another conversation."""
    final = len(earlier) - 1
    if type(refs) is not list or len(refs) <= final or refs[:final] != earlier[:final]:
        return None
    # Invalid ranges are detected during expansion.
    start, end = earlier[final]
    match refs[final]:
        case [int() as begin, int() as further] if begin == start and further >= end:
            return [[end, further], *refs[final + 1 :]]
    return None


class ModelCallConverter:
    """Converter for the model calls of one sample."""

    def __init__(self, sample: SampleRecord, walker: Walker, messages: Messages, loss: LossReport):
        self.exchanges: list[ModelCallData] = []
        """Calls outside nested tool transcripts."""
        self.offers: dict[int, list[Any]] = {}
        """Tool lists that were offered to models."""
        self._walker = walker
        self._messages = messages
        self._loss = loss
        self._contexts: dict[str | None, _Context] = {}
        """Span → input of its last call, for inputs in the pool."""
        self._inputs: dict[str | None, tuple[list[Any], list[Item]]] = {}
        """Span → input of its last call, for inputs in the call itself."""
        self._callers: dict[tuple[str | None, str], str] = {}
        self._pool = [messages.put_back(message) for message in sample.pool]
        self._raw_pool = sample.calls
        walker.walk(self._raw_pool)

    def check_contexts(self, named: list[tuple[Any, Any]]) -> None:
        """Raise `LogTooLargeError` if the contexts are far larger than the sample.

        Args:
            named: message ranges (`input_refs`) and raw request of every call.
        """
        self._walker.check_contexts([refs for refs, _ in named], self._pool)
        if self._raw_pool:
            raw = [request.get("call_refs") for _, request in named if type(request) is dict]
            self._walker.check_contexts(raw, self._raw_pool)

    def caller(self, span: str | None, call_id: str) -> str | None:
        """Return the id of the last model call in a span that requested a tool call."""
        return self._callers.get((span, call_id))

    def fill(self, native: ModelRecord, event: Event, *, nested: bool) -> None:
        """Convert `native` to the model call `event`. `nested` means that it is in a tool transcript."""
        output, notes = native.output, event["metadata"]["inspect"]
        span = event.get("span_id")
        tools = self._tools(native)
        event["model"] = native.model
        unknown = self._walker.unknown
        context = self._context(span, native)
        unknown = self._walker.unknown - unknown
        usage = model_usage(output.usage)
        if usage is None or len(usage) < 2:
            count_odd_usage(output.usage, self._loss)
        error = native.error or output.error
        if error:
            error = self._put_back(error)
        choice = output.choices[0] if output.choices else None
        text = ""
        logprobs: list[dict[str, Any]] | None = None
        items: list[Item] = []
        if choice is not None:
            message = choice.message = self._messages.put_back(choice.message)
            text = answer_text(message)
            if not (error and says_nothing(message)):
                logprobs = self._logprobs(choice) if choice.logprobs else None
                items = self._answer(native, choice, logprobs)
        event["output_items"] = items
        if usage is not None:
            event["usage"] = usage
        event["tools"] = tools.names
        if (seconds := seconds_between(native.timestamp, native.completed)) is not None:
            event["total_time"] = seconds
        if error:
            event["error"] = error if isinstance(error, str) else json_text(error)
        event["input_context"] = context  # the last field, as it is written
        self._add_notes(native, notes, unknown)
        self._add_output_notes(native, notes, text, logprobs)
        for item in items:
            if item["type"] == "function_call":
                self._callers[span, item["call_id"]] = event["id"]
        if native.call is not None:
            self._walker.walk(native.call)
            expand_request(native.call, self._raw_pool, self._walker)
            keep_rest(notes, "call", native.call, RAW_FIELDS)
        if not nested:
            self.offers[id(tools.definitions)] = tools.definitions
            answer = _chat_output(output, text, usage, failed=bool(error)) if output.choices else None
            io = None if native.call is None else direct_io(native.call, native.request_ids)
            self.exchanges.append(ModelCallData(event, native.span_id, answer, io))

    def keep(self, source: dict[str, Any], span: str | None, event: Event, *, nested: bool) -> None:
        """Complete a call with an unexpected form, which stays a custom event. The arguments are the same as
        for `fill`.
        """
        expand_call(source, msgspec.to_builtins(self._pool), self._raw_pool, self._walker)
        self._walker.walk(source)
        if nested:
            return
        if isinstance(tools := source.get("tools"), list):
            self.offers[id(tools)] = tools
        answer = chat_output(source.get("output"), failed=bool(source.get("error")))
        io = direct_io(source.get("call"), source.get("request_ids"))
        self.exchanges.append(ModelCallData(event, span, answer, io))

    def _put_back(self, value: Any) -> Any:
        walker = self._walker
        if type(value) is str:
            # Checking the length here avoids a function call for almost every text.
            return walker.text(value) if len(value) in walker.lengths else value
        if value:
            walker.walk([value])
        return value

    def _tools(self, native: ModelRecord) -> Tools:
        if type(native.tools) is not Tools:
            native.tools = tools_in(msgspec.json.decode(native.tools))
            self._walker.walk(native.tools.definitions)
        tools: Tools = native.tools
        return tools

    def _context(self, span: str | None, native: ModelRecord) -> list[Item]:
        """Return the input items of a call. Usually they extend the input of the previous call in the same
        span.
        """
        if native.input or not native.input_refs:
            return self._context_inside(span, native.input)
        refs, walker = native.input_refs, self._walker
        earlier, unknown = self._contexts.get(span), walker.unknown
        more = None if earlier is None else _continuation(earlier.refs, refs)
        if earlier is None or more is None:
            messages = walker.expand(refs, self._pool)
            length, context = len(messages), []
        else:
            messages = walker.expand(more, self._pool, earlier.length)
            length, context = earlier.length + len(messages), earlier.items[:]
        for message in messages:
            context += self._messages.of(message)
        if walker.unknown == unknown:
            self._contexts[span] = _Context(refs, length, context)
        return context

    def _context_inside(self, span: str | None, messages: list[Any]) -> list[Item]:
        earlier, items = self._inputs.get(span, ([], []))
        messages = [self._messages.put_back(message) for message in messages]
        begin = len(earlier) if messages[: len(earlier)] == earlier else 0
        context = items[:] if begin else []
        for message in messages[begin:]:
            context += self._messages.of(message)
        self._inputs[span] = (messages, context)
        return context

    def _logprobs(self, choice: ChoiceRecord) -> list[dict[str, Any]] | None:
        self._walker.walk([choice.logprobs])
        return (
            logprobs_of({"logprobs": choice.logprobs}, self._loss) if _single_text(choice.message) else None
        )

    def _answer(
        self, native: ModelRecord, choice: ChoiceRecord, logprobs: list[dict[str, Any]] | None
    ) -> list[Item]:
        pending = native.odd is not None and native.odd.native.get("pending")
        status = "in_progress" if pending else STATUS_OF_STOP.get(str(choice.stop_reason), "completed")
        if status == "completed" and logprobs is None:
            return self._messages.of(choice.message)
        return self._messages.items(choice.message, status, logprobs)

    def _add_notes(self, native: ModelRecord, notes: dict[str, Any], unknown: int) -> None:
        # Written out field by field: almost all fields are null in most calls, and a loop takes three times
        # as long.
        put_back = self._put_back
        if native.role is not None:
            notes["role"] = put_back(native.role)
        if native.requested_model is not None:
            notes["requested_model"] = put_back(native.requested_model)
        if unknown:
            # Kept for the reader, because the intended messages are unknown.
            notes["input_refs"] = native.input_refs
        if native.tool_choice is not None:
            notes["tool_choice"] = put_back(native.tool_choice)
        if native.retries is not None:
            notes["retries"] = native.retries
        if native.request_ids is not None:
            notes["request_ids"] = put_back(native.request_ids)
        if native.traceback is not None:
            notes["traceback"] = put_back(native.traceback)
        if native.cache is not None:
            notes["cache"] = put_back(native.cache)
        if native.completed is not None:
            notes["completed"] = put_back(native.completed)
        if native.working_time is not None:
            notes["working_time"] = native.working_time
        if native.config:
            notes["config"] = native.config
        if native.traceback_ansi:
            self._loss.changed["model event: colored copy of the traceback left out"] += 1

    def _add_output_notes(
        self, native: ModelRecord, notes: dict[str, Any], text: str, logprobs: list[dict[str, Any]] | None
    ) -> None:
        output, put_back = native.output, self._put_back
        if output.usage is not None:
            notes["usage"] = output.usage
        if output.input_context_tokens is not None:
            notes["input_context_tokens"] = output.input_context_tokens
        if output.fallback is not None:
            notes["fallback"] = put_back(output.fallback)
        if output.time is not None:
            notes["output_time"] = output.time
        if output.metadata is not None:
            notes["output_metadata"] = put_back(output.metadata)
        if output.response_id is not None:
            notes["response_id"] = put_back(output.response_id)
        if output.model and output.model != native.model:
            notes["output_model"] = output.model
        if output.choices:
            self._add_choice_notes(output, notes, logprobs)
        if output.completion and (completion := put_back(output.completion)) != text:
            notes["completion"] = completion
        if native.error and output.error:
            notes["output_error"] = put_back(output.error)
        if output.leftover is not None:
            notes["output"] = put_back(output.leftover)

    def _add_choice_notes(
        self, output: Output, notes: dict[str, Any], logprobs: list[dict[str, Any]] | None
    ) -> None:
        choice, put_back = output.choices[0], self._put_back
        if choice.stop_reason is not None:
            notes["stop_reason"] = choice.stop_reason
        if choice.stop_details is not None:
            notes["stop_details"] = put_back(choice.stop_details)
        if choice.prompt_logprobs is not None:
            notes["prompt_logprobs"] = put_back(choice.prompt_logprobs)
        if choice.logprobs and logprobs is None:
            notes["logprobs"] = choice.logprobs
        if output.more_choices:
            notes["choices"] = put_back(output.more_choices)
        if choice.leftover is not None:
            notes["choice"] = put_back(choice.leftover)


def _chat_output(
    output: Output, text: str, usage: dict[str, int] | None, *, failed: bool
) -> dict[str, Any] | None:
    """Return the same result as `chat_output`. `text` is the text of the first answer."""
    answer = output.choices[0].message
    if not output.more_choices and isinstance(answer, MessageRecord):
        return None if failed and says_nothing(answer) else chat_answers([text], usage)
    choices = [{"message": _dictionary(answer)}, *output.more_choices]
    return chat_output({"choices": choices, "usage": output.usage}, failed=failed)


def _dictionary(message: Any) -> Any:
    return msgspec.to_builtins(message) if isinstance(message, MessageRecord) else message


def chat_output(output: Any, *, failed: bool = False) -> dict[str, Any] | None:
    """Return a model's output in AI GO's form; `None` without an answer, or if the call failed with an empty
    answer.
    """
    choices = output.get("choices") if isinstance(output, dict) else None
    if not isinstance(output, dict) or not isinstance(choices, list):
        return None
    messages = [choice.get("message") if isinstance(choice, dict) else None for choice in choices]
    if (failed or output.get("error")) and all(map(says_nothing, messages)):
        return None
    texts = [answer_text(message) for message in messages if isinstance(message, dict)]
    return chat_answers(texts, model_usage(output.get("usage"))) if texts else None


def chat_answers(texts: list[str], usage: dict[str, int] | None) -> dict[str, Any]:
    """Return the result of `chat_output` from the answer texts and `model_usage`."""
    answers: dict[str, Any] = {
        "choices": [{"message": {"role": "assistant", "content": text}} for text in texts]
    }
    if usage is not None:
        answers["usage"] = usage
    return answers


def direct_io(call: Any, requests: Any) -> dict[str, Any] | None:
    """Return the raw request and response of a model call, if the log contains them (`log_model_api`).

    AI GO requires a status code. It is 0 if the log does not contain the status.
    """
    if not isinstance(call, dict):
        return None
    request = requests[-1] if isinstance(requests, list) and requests else None
    status = request.get("status") if isinstance(request, dict) else None
    return {
        "direct_input": {"body": json_text(call.get("request"))},
        "direct_output": {
            "body": json_text(call.get("response")),
            "status_code": status if isinstance(status, int) else 0,
        },
    }


def keep_rest(notes: dict[str, Any], name: str, native: dict[str, Any], fields: frozenset[str]) -> None:
    """Store the other fields of a logged object together under a name."""
    remainder = {key: value for key, value in native.items() if key not in fields and value is not None}
    if remainder:
        notes[name] = remainder


# Answers


def says_nothing(message: Any) -> bool:
    """Return whether a message has neither content nor tool calls. For a failed call, such a message means
    that the answer is missing, not empty.
    """
    content: Any
    if isinstance(message, MessageRecord):
        content, more = message.content, message.tool_calls or message.metadata
    elif isinstance(message, dict):
        content, more = message.get("content"), message.get("tool_calls") or message.get("metadata")
    else:
        return message is None
    if isinstance(content, list):
        content = [part for part in content if part != {"type": "text", "text": ""}]
    return not content and not more


def answer_text(message: Any) -> str:
    """Return the text of an assistant message without its reasoning, like Inspect's `message.text`."""
    if isinstance(message, MessageRecord):
        content: Any = message.content
    else:
        content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return content
    texts = [
        part["text"]
        for part in (content if isinstance(content, list) else ())
        if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
    ]
    return "\n".join(texts)


def _single_text(message: Any) -> bool:
    content: Any = message.content if isinstance(message, MessageRecord) else None
    if isinstance(message, dict):
        content = message.get("content")
    if isinstance(content, list):
        texts = [part for part in content if isinstance(part, dict) and part.get("type") == "text"]
        return len(texts) == 1
    return isinstance(content, str) and bool(content)


# Tokens


def model_usage(usage: Any) -> dict[str, int] | None:
    """Convert an Inspect `ModelUsage` to AI GO token counts. Inspect's `input_tokens` excludes cached tokens;
    AI GO's prompt count includes them.

    Missing and invalid counts are left out, because they are unknown and not 0. The result is `None` if both
    counts are unknown.
    """
    if not isinstance(usage, dict):
        return None
    get = usage.get
    counts: dict[str, int] = {}
    if (completion := count_of(get("output_tokens"))) is not None:
        counts["num_completion_tokens"] = completion
    prompt = count_of(get("input_tokens"))
    for name in _CACHED:
        if prompt is not None and (count := get(name)) is not None:
            cached = count_of(count)
            prompt = None if cached is None else prompt + cached
    if prompt is not None:
        counts["num_prompt_tokens"] = prompt
    return counts or None


def count_odd_usage(usage: Any, loss: LossReport) -> None:
    """Report a `ModelUsage` with invalid token counts. Missing counts are valid."""
    if not isinstance(usage, dict):
        odd = usage is not None
    else:
        odd = any(usage.get(name) is not None and count_of(usage[name]) is None for name in _COUNTS)
    if odd:
        loss.changed[ODD_COUNT] += 1


ODD_COUNT = "token count that is not an integer: unknown, original value kept"
TOKEN_COUNTS = ("num_completion_tokens", "num_prompt_tokens")
_CACHED = ("input_tokens_cache_read", "input_tokens_cache_write")
_COUNTS = ("input_tokens", "output_tokens", *_CACHED)
