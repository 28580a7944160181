"""Model calls: Inspect's `ModelEvent` → AI GO's `ModelCallEvent`."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from aigo_bridge.importing.log_import import LossReport
from aigo_bridge.text.json_text import json_text
from aigo_inspect.logs.parsing import seconds_between
from aigo_inspect.logs.pools import Walker, expand_call, expand_request
from aigo_inspect.logs.shapes import count_of
from aigo_inspect.mapping.messages import Item, logprobs_of
from aigo_inspect.mapping.records import Choice, Message, Model, Output, Sample, Tools, tools_in
from aigo_inspect.mapping.sample_messages import Messages
from aigo_inspect.mapping.spans import Event

STATUS_OF_STOP = {"max_tokens": "incomplete", "model_length": "incomplete", "content_filter": "incomplete"}
OUTPUT_FIELDS = {
    **{name: name for name in ("usage", "fallback", "response_id", "input_context_tokens")},
    **{name: f"output_{name}" for name in ("time", "metadata")},
}
"""Field of the output → its name beside those of the call."""
RAW_FIELDS = frozenset({"request", "response"})
"""What `direct_io` takes from a raw call; the rest of it stays with the model call."""
CHOICE_FIELDS = ("stop_reason", "stop_details", "prompt_logprobs")


class Exchange(NamedTuple):
    """A model call, besides its event."""

    event: Event
    span_id: str | None
    """The span that the log gives it."""
    answer: dict[str, Any] | None
    """Its answers as AI GO keeps them; `None` when it has none."""
    direct_io: dict[str, Any] | None
    """Its raw request and response, where the log has them."""


class _Context(NamedTuple):
    refs: list[list[int]]
    length: int
    """Messages that the ranges name."""
    items: list[Item]


def _continuation(earlier: list[list[int]], refs: Any) -> list[list[int]] | None:
    """The ranges of messages by which `refs` goes on behind `before`; `None` where it is another
    conversation.
    """
    final = len(earlier) - 1
    if type(refs) is not list or len(refs) <= final or refs[:final] != earlier[:final]:
        return None
    # What is wrong with a range is found where it is expanded.
    start, end = earlier[final]
    match refs[final]:
        case [int() as begin, int() as further] if begin == start and further >= end:
            return [[end, further], *refs[final + 1 :]]
    return None


class ModelCalls:
    """Maps the model calls of one sample."""

    def __init__(self, sample: Sample, walker: Walker, messages: Messages, loss: LossReport):
        self.exchanges: list[Exchange] = []
        """The calls that do not stand in the transcript of a tool."""
        self.offers: dict[int, list[Any]] = {}
        """The lists of tools that their models were offered."""
        self._walker = walker
        self._messages = messages
        self._loss = loss
        self._contexts: dict[str | None, _Context] = {}
        """The input of the last call in each span, where it stands in the pool."""
        self._inputs: dict[str | None, tuple[list[Any], list[Item]]] = {}
        """The same, where it stands in the call."""
        self._callers: dict[tuple[str | None, str], str] = {}
        self._pool = [messages.put_back(message) for message in sample.pool]
        self._raw_pool = sample.calls
        walker.walk(self._raw_pool)

    def check_contexts(self, named: list[tuple[Any, Any]]) -> None:
        """Refuse contexts that come to far more than the sample; raises `TooLargeError`.

        Args:
            named: of every call, the messages of its input (`input_refs`) and its raw request.
        """
        self._walker.check_contexts([refs for refs, _ in named], self._pool)
        if self._raw_pool:
            raw = [request.get("call_refs") for _, request in named if type(request) is dict]
            self._walker.check_contexts(raw, self._raw_pool)

    def caller(self, span: str | None, call_id: str) -> str | None:
        """Id of the last model call in a span that asked for a tool call."""
        return self._callers.get((span, call_id))

    def fill(self, native: Model, event: Event, *, nested: bool) -> None:
        """Make `event` the model call that `native` is; `nested`: it stands in the transcript of a tool."""
        output, notes = native.output, event["metadata"]["inspect"]
        span = event.get("span_id")
        tools = self._tools(native)
        event["model"] = native.model
        unknown = self._walker.unknown
        event["input_context"] = self._context(span, native)
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
        seconds = seconds_between(native.timestamp, native.completed)
        if seconds is not None:
            event["total_time"] = seconds
        if error:
            event["error"] = error if isinstance(error, str) else json_text(error)
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
            self.exchanges.append(Exchange(event, native.span_id, answer, io))

    def keep(self, source: dict[str, Any], span: str | None, event: Event, *, nested: bool) -> None:
        """Complete a call of an unexpected shape, which stays a custom event; arguments as for `fill`."""
        expand_call(source, msgspec.to_builtins(self._pool), self._raw_pool, self._walker)
        self._walker.walk(source)
        if nested:
            return
        if isinstance(tools := source.get("tools"), list):
            self.offers[id(tools)] = tools
        answer = chat_output(source.get("output"), failed=bool(source.get("error")))
        io = direct_io(source.get("call"), source.get("request_ids"))
        self.exchanges.append(Exchange(event, span, answer, io))

    def _put_back(self, value: Any) -> Any:
        walker = self._walker
        if type(value) is str:
            # Looking at the length here saves a call for nearly every text.
            return walker.text(value) if len(value) in walker.lengths else value
        if value:
            walker.walk([value])
        return value

    def _tools(self, native: Model) -> Tools:
        if type(native.tools) is not Tools:
            native.tools = tools_in(msgspec.json.decode(native.tools))
            self._walker.walk(native.tools.definitions)
        tools: Tools = native.tools
        return tools

    def _context(self, span: str | None, native: Model) -> list[Item]:
        """The items of a call's input: nearly always those of the call before in the same span, and some
        more.
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

    def _logprobs(self, choice: Choice) -> list[dict[str, Any]] | None:
        self._walker.walk([choice.logprobs])
        return (
            logprobs_of({"logprobs": choice.logprobs}, self._loss) if _single_text(choice.message) else None
        )

    def _answer(self, native: Model, choice: Choice, logprobs: list[dict[str, Any]] | None) -> list[Item]:
        pending = native.odd is not None and native.odd.native.get("pending")
        status = "in_progress" if pending else STATUS_OF_STOP.get(str(choice.stop_reason), "completed")
        if status == "completed" and logprobs is None:
            return self._messages.of(choice.message)
        return self._messages.items(choice.message, status, logprobs)

    def _add_notes(self, native: Model, notes: dict[str, Any], unknown: int) -> None:
        # One by one: nearly all of them are null in nearly all calls, and a loop over their names takes three
        # times as long.
        put_back = self._put_back
        if native.role is not None:
            notes["role"] = put_back(native.role)
        if native.requested_model is not None:
            notes["requested_model"] = put_back(native.requested_model)
        if unknown:
            # What they may have meant is for the reader to judge.
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
            self._loss.changed["model event: coloured copy of the traceback left out"] += 1

    def _add_output_notes(
        self, native: Model, notes: dict[str, Any], text: str, logprobs: list[dict[str, Any]] | None
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
    """As `chat_output`; `text` is that of the first answer."""
    answer = output.choices[0].message
    if not output.more_choices and isinstance(answer, Message):
        return None if failed and says_nothing(answer) else chat_answers([text], usage)
    choices = [{"message": _dictionary(answer)}, *output.more_choices]
    return chat_output({"choices": choices, "usage": output.usage}, failed=failed)


def _dictionary(message: Any) -> Any:
    return msgspec.to_builtins(message) if isinstance(message, Message) else message


def chat_output(output: Any, *, failed: bool = False) -> dict[str, Any] | None:
    """A model's output as AI GO keeps it; `None` when it has no answer: none at all, or nothing from a call
    that failed.
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
    """As `chat_output`, from the texts of the answers and `model_usage`."""
    answers: dict[str, Any] = {
        "choices": [{"message": {"role": "assistant", "content": text}} for text in texts]
    }
    if usage is not None:
        answers["usage"] = usage
    return answers


def direct_io(call: Any, requests: Any) -> dict[str, Any] | None:
    """Raw request and response of a model call; only where the log has them (`log_model_api`).

    AI GO wants a status code; it is 0 where the log does not tell which one the endpoint sent.
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
    """Keep what an object of the log has besides these fields together, under a name."""
    remainder = {key: value for key, value in native.items() if key not in fields and value is not None}
    if remainder:
        notes[name] = remainder


# Answers


def says_nothing(message: Any) -> bool:
    """Whether a message has neither content nor calls of tools: the answer of a call that failed is none, not
    an empty one.
    """
    content: Any
    if isinstance(message, Message):
        content, more = message.content, message.tool_calls or message.metadata
    elif isinstance(message, dict):
        content, more = message.get("content"), message.get("tool_calls") or message.get("metadata")
    else:
        return message is None
    if isinstance(content, list):
        content = [part for part in content if part != {"type": "text", "text": ""}]
    return not content and not more


def answer_text(message: Any) -> str:
    """The text of an assistant message without its reasoning, as Inspect's `message.text`."""
    if isinstance(message, Message):
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
    content: Any = message.content if isinstance(message, Message) else None
    if isinstance(message, dict):
        content = message.get("content")
    if isinstance(content, list):
        texts = [part for part in content if isinstance(part, dict) and part.get("type") == "text"]
        return len(texts) == 1
    return isinstance(content, str) and bool(content)


# Tokens


def model_usage(usage: Any) -> dict[str, int] | None:
    """AI GO token counts of an Inspect `ModelUsage`: its `input_tokens` leave cached tokens out, ours do not.

    A count that the log does not tell, or tells as something that is no count, is left out: it is unknown,
    not 0. `None` when both are.
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
    """Count what stands in a `ModelUsage` where a count of tokens should; what does not stand there is not
    odd.
    """
    if not isinstance(usage, dict):
        odd = usage is not None
    else:
        odd = any(usage.get(name) is not None and count_of(usage[name]) is None for name in _COUNTS)
    if odd:
        loss.changed[ODD_COUNT] += 1


ODD_COUNT = "token count that is no whole number: unknown, kept as it is beside it"
TOKEN_COUNTS = ("num_completion_tokens", "num_prompt_tokens")
_CACHED = ("input_tokens_cache_read", "input_tokens_cache_write")
_COUNTS = ("input_tokens", "output_tokens", *_CACHED)
