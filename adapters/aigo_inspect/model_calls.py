"""Model calls: Inspect's `ModelEvent` → AI GO's `ModelCallEvent`."""

from __future__ import annotations

from typing import Any

from aigo_bridge.importing.encoding import json_text
from aigo_bridge.importing.loss import LossReport

from .clock import seconds_between
from .content import Item, ItemsOf, items_from_message, logprobs_of
from .ordering import Event
from .shapes import count_of, listed

STATUS_OF_STOP = {"max_tokens": "incomplete", "model_length": "incomplete", "content_filter": "incomplete"}
_CALL_FIELDS = frozenset(
    {
        "role", "requested_model", "retries", "request_ids", "tool_choice", "cache", "completed", "working_time",
        "traceback", "input_refs",
    }
)  # fmt: skip
KNOWN_FIELDS = _CALL_FIELDS | {
    "model", "input", "tools", "config", "output", "error", "call", "traceback_ansi",
}  # fmt: skip
"""Fields of a model event that have a place of their own."""
OUTPUT_FIELDS = {
    **{name: name for name in ("usage", "fallback", "response_id", "input_context_tokens")},
    **{name: f"output_{name}" for name in ("time", "metadata")},
}
"""Field of the output → its name beside those of the call."""
RAW_FIELDS = frozenset({"request", "response"})
"""What `direct_ios` takes from a raw call; the rest of it stays with the model call."""
_KNOWN_OUTPUT = frozenset(OUTPUT_FIELDS) | {"model", "choices", "completion", "error"}
CHOICE_FIELDS = ("stop_reason", "stop_details", "prompt_logprobs")
_KNOWN_CHOICE = frozenset(CHOICE_FIELDS) | {"message", "logprobs"}


class ModelCalls:
    """Maps the model calls of one sample; contexts that go on share their items."""

    def __init__(self, items: ItemsOf, loss: LossReport):
        self._items = items
        self._loss = loss
        self._contexts: dict[str | None, tuple[list[Any], list[Item]]] = {}
        self._callers: dict[tuple[str | None, str], str] = {}
        self._tools: Any = None
        self._names: list[str] = []
        self._unread: Any = None

    def fill(self, native: dict[str, Any], event: Event) -> None:
        """Make `event` the model call that `native` tells of; raises any of `shapes.MALFORMED` when it cannot be one."""
        output = _object(native.get("output"))
        choices = [_object(choice) for choice in listed(output.get("choices"))]
        _object(native.get("config"))
        _object(native.get("call"))
        span = event.get("span_id")
        event["type"] = "model_call_event"
        event["model"] = str(native.get("model") or output.get("model") or "unknown")
        event["input_context"] = self.context(span, listed(native.get("input")))
        self._unread = None
        error = native.get("error") or output.get("error")
        items: list[Item] = []
        if choices and not (error and says_nothing(choices[0].get("message"))):
            items = self._answer(native, choices[0])
        event["output_items"] = items
        usage = model_usage(output.get("usage"))
        if usage is None or len(usage) < 2:
            count_odd_usage(output.get("usage"), self._loss)
        if usage is not None:
            event["usage"] = usage
        event["tools"] = self._tool_names(native.get("tools"))
        seconds = seconds_between(native.get("timestamp"), native.get("completed"))
        if seconds is not None:
            event["total_time"] = seconds
        if error:
            event["error"] = error if isinstance(error, str) else json_text(error)
        self._add_extras(native, output, choices, event)
        self.asked(span, items, event["id"])

    def asked(self, span: str | None, items: list[Item], event_id: str) -> None:
        """Remember which model call asked for the tool calls among these items."""
        for item in items:
            if item["type"] == "function_call":
                self._callers[span, item["call_id"]] = event_id

    def caller(self, span: str | None, call_id: str) -> str | None:
        """Id of the last model call in a span that asked for a tool call."""
        return self._callers.get((span, call_id))

    def _answer(self, native: dict[str, Any], choice: dict[str, Any]) -> list[Item]:
        status = STATUS_OF_STOP.get(str(choice.get("stop_reason")), "completed")
        status = "in_progress" if native.get("pending") else status
        message = choice.get("message")
        logprobs = None
        if choice.get("logprobs") and _single_text(message):
            logprobs = logprobs_of(choice, self._loss)
        if logprobs is None:
            self._unread = choice.get("logprobs") or None
        if status == "completed" and logprobs is None:
            return self._items.of(message)
        return items_from_message(message, self._loss, status=status, logprobs=logprobs)

    def context(self, span: str | None, messages: list[Any]) -> list[Item]:
        """Items of a call's input: nearly always those of the call before in the same span, and some more."""
        before, context = self._contexts.get(span, ((), []))
        known = len(before) if before and messages[: len(before)] == before else 0
        context = context[:] if known else []
        for message in messages[known:]:
            context += self._items.of(message)
        self._contexts[span] = (messages, context)
        return context

    def _tool_names(self, tools: Any) -> list[str]:
        # Calls with equal tools have the same list of them (see `pools`).
        if tools is not self._tools:
            self._names = [str(tool["name"]) for tool in map(_object, listed(tools)) if tool.get("name")]
            self._tools = tools
        return self._names

    def _add_extras(
        self, native: dict[str, Any], output: dict[str, Any], choices: list[dict[str, Any]], event: Event
    ) -> None:
        extra = event["metadata"]["inspect"]
        for field, value in native.items():
            if field in _CALL_FIELDS and value is not None:
                extra[field] = value
        if config := native.get("config"):
            given = {key: value for key, value in config.items() if value is not None}
            if given:
                extra["config"] = given
        self._add_output_extras(output, choices, event)
        if native.get("error") and output.get("error"):
            extra["output_error"] = output["error"]
        keep_rest(extra, "output", output, _KNOWN_OUTPUT)
        keep_rest(extra, "call", native.get("call") or {}, RAW_FIELDS)
        if native.get("traceback_ansi"):
            self._loss.changed["model event: coloured copy of the traceback left out"] += 1

    def _add_output_extras(self, output: dict[str, Any], choices: list[dict[str, Any]], event: Event) -> None:
        extra = event["metadata"]["inspect"]
        for field, value in output.items():
            if field in OUTPUT_FIELDS and value is not None:
                extra[OUTPUT_FIELDS[field]] = value
        if (served := output.get("model")) and served != event["model"]:
            extra["output_model"] = served
        if choices:
            choice = choices[0]
            for field in CHOICE_FIELDS:
                if choice.get(field) is not None:
                    extra[field] = choice[field]
            if self._unread is not None:
                extra["logprobs"] = self._unread
            if len(choices) > 1:
                extra["choices"] = choices[1:]
            keep_rest(extra, "choice", choice, _KNOWN_CHOICE)
        completion = output.get("completion")
        if completion and completion != answer_text(choices[0].get("message") if choices else None):
            extra["completion"] = completion


def keep_rest(extra: dict[str, Any], name: str, given: dict[str, Any], known: frozenset[str]) -> None:
    """Keep the fields of `given` that are not known together, under a name."""
    rest = {key: value for key, value in given.items() if key not in known and value is not None}
    if rest:
        extra[name] = rest


def says_nothing(message: Any) -> bool:
    """Whether a message has neither content nor calls of tools: the answer of a call that failed is none, not an empty one."""
    if not isinstance(message, dict):
        return message is None
    content = message.get("content")
    if isinstance(content, list):
        content = [part for part in content if part != {"type": "text", "text": ""}]
    return not content and not message.get("tool_calls") and not message.get("metadata")


def answer_text(message: Any) -> str:
    """The text of an assistant message without its reasoning, as Inspect's `message.text`."""
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return content
    texts = [
        part["text"]
        for part in (content if isinstance(content, list) else ())
        if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
    ]
    return "\n".join(texts)


def _object(value: Any) -> dict[str, Any]:
    """`value` as an object, an empty one for `None`; anything else is a `TypeError`."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError(f"expected an object, found {type(value).__name__}")
    return value


def model_usage(usage: Any) -> dict[str, int] | None:
    """AI GO token counts of an Inspect `ModelUsage`: its `input_tokens` leave cached tokens out, ours do not.

    A count that the log does not tell, or tells as something that is no count, is left out: it is unknown, not 0.
    `None` when both are.
    """
    if not isinstance(usage, dict):
        return None
    get = usage.get
    found: dict[str, int] = {}
    if (completion := count_of(get("output_tokens"))) is not None:
        found["num_completion_tokens"] = completion
    prompt = count_of(get("input_tokens"))
    for name in _CACHED:
        if prompt is not None and (given := get(name)) is not None:
            cached = count_of(given)
            prompt = None if cached is None else prompt + cached
    if prompt is not None:
        found["num_prompt_tokens"] = prompt
    return found or None


def count_odd_usage(usage: Any, loss: LossReport) -> None:
    """Count what stands in a `ModelUsage` where a count of tokens should; what does not stand there is not odd."""
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


def _single_text(message: Any) -> bool:
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        texts = [part for part in content if isinstance(part, dict) and part.get("type") == "text"]
        return len(texts) == 1
    return isinstance(content, str) and bool(content)
