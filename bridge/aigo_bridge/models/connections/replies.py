"""Parse the output of an adapter as a model answer.

The format is AI GO's: `choices` with a `message` (and optional `references`), `items` of a trace,
`embeddings`, or any JSON for a custom task. `{"error": …}` reports a failed call.

Fields that AI GO's format lacks have OpenAI's names if an adapter passes them on: `tool_calls`,
`finish_reason`, `logprobs`, `reasoning_content`, and usage with cached tokens.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from pydantic import TypeAdapter, ValidationError

from aigo_bridge.dtypes import TraceItem
from aigo_bridge.dtypes.chat import LATE
from aigo_bridge.models.connections.calls import CallError
from aigo_bridge.spec.base import MLTask
from aigo_bridge.text.plurals import plural

_ITEMS: TypeAdapter[list[TraceItem]] = TypeAdapter(list[TraceItem], config=LATE)


@dataclass(frozen=True)
class ToolCallReply:
    """Tool call that the model requests."""

    call_id: str
    name: str
    arguments: str
    """JSON text as the model wrote it."""


@dataclass(frozen=True)
class Choice:
    """One answer of a chat model."""

    text: str
    refusal: str | None = None
    """Refusal text; `None` if the model did not refuse."""
    reasoning: str | None = None
    """Reasoning text; `None` if the endpoint does not return it."""
    tool_calls: tuple[ToolCallReply, ...] = ()
    finish_reason: str | None = None
    """Stop reason in the endpoint's word; `None` if the endpoint does not return one."""
    logprobs: tuple[Mapping[str, Any], ...] = ()
    """`token`, `logprob` and, if available, `bytes` and `top_logprobs` for each token of the text."""


@dataclass(frozen=True)
class Usage:
    """Token counts of one call; `None` if the endpoint does not report them."""

    prompt: int | None
    """All input tokens, including cached ones."""
    completion: int | None
    """All output tokens, including reasoning."""
    cached: int | None = None
    """Input tokens that the endpoint read from its cache."""
    reasoning: int | None = None
    """Output tokens that are not part of the answer."""


@dataclass(frozen=True)
class Reply:
    """Answer of a model."""

    choices: tuple[Choice, ...] = ()
    """Answers of a chat model; only the first one is used."""
    value: Any = None
    """Answer of a custom model, or the vectors of an embeddings model."""
    usage: Usage | None = None
    """Token usage; `None` if the endpoint does not report it."""
    raw: Any = None
    """Answer in AI GO's format if `choices` cannot express it (references, items, vectors); otherwise `None`.
    """
    model: str | None = None
    """Endpoint's name of the model that answered; `None` if the endpoint does not report it."""


def parse_reply(value: Any, task: MLTask, count: int | None = None) -> Reply:
    """Parse the output of an adapter.

    Args:
        value: output as JSON.
        task: ML task of the model.
        count: expected number of embeddings; `None`: not checked.

    Raises:
        CallError: the output reports a failed call, or it is not an answer of this task.
    """
    if isinstance(value, dict) and value.get("error") and not value.get("choices"):
        raise CallError(f"the model failed: {error_text(value['error'])}", "refused")
    if task == "custom":
        return Reply(value=value, raw=value, usage=_usage(value))
    if task == "embeddings":
        return _embeddings(value, count)
    if not isinstance(value, dict):
        raise _invalid(f"found {_kind(value)}, expected an object with 'choices'")
    if "choices" not in value and "items" in value:
        return _from_items(value)
    choices = value.get("choices")
    if not isinstance(choices, list):
        keys = ", ".join(map(repr, value)) or "no keys"
        raise _invalid(f"found an object with {keys[:200]}, expected 'choices'")
    parsed = tuple(_choice(choice, f"choices[{index}]") for index, choice in enumerate(choices))
    if not parsed:
        raise _invalid("the model returned no answer ('choices' is empty)")
    model = value.get("model")
    return Reply(
        choices=parsed,
        usage=_usage(value),
        raw=_in_aigo_form(choices, parsed, value.get("usage")),
        model=model if isinstance(model, str) and model else None,
    )


def error_text(error: Any) -> str:
    """Return the text of an endpoint's error: its message if it is an object with one."""
    if isinstance(error, dict):
        for name in ("message", "detail", "error", "msg"):
            if error.get(name):
                return error_text(error[name])
    return (error if isinstance(error, str) else json.dumps(error, ensure_ascii=False))[:2000]


def _invalid(message: str) -> CallError:
    return CallError(f"its answer is not valid: {message}", "invalid")


def _kind(value: Any) -> str:
    return "null" if value is None else f"a {type(value).__name__}"


def _text(value: Any, where: str) -> str:
    """Return a text or the joined texts of content parts; `None` gives an empty text."""
    if value is None:
        return ""
    if isinstance(value, list):
        return "\n".join(_text(part.get("text"), where) for part in value if isinstance(part, dict))
    if not isinstance(value, str):
        raise _invalid(f"{where}: found {_kind(value)}, expected text")
    return value


def _choice(choice: Any, where: str) -> Choice:
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        raise _invalid(f"{where}: 'message' is missing")
    if "content" not in message and not message.get("tool_calls") and not message.get("refusal"):
        raise _invalid(f"{where}.message: 'content' is missing")
    reason = choice.get("finish_reason")
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    return Choice(
        text=_text(message.get("content"), f"{where}.message.content"),
        refusal=message.get("refusal") if isinstance(message.get("refusal"), str) else None,
        reasoning=reasoning if isinstance(reasoning, str) else None,
        tool_calls=_calls(message.get("tool_calls") or choice.get("tool_calls"), where),
        finish_reason=reason if isinstance(reason, str) else None,
        logprobs=_logprobs(choice.get("logprobs"), where),
    )


def _calls(calls: Any, where: str) -> tuple[ToolCallReply, ...]:
    if calls is None:
        return ()
    replies = []
    for index, call in enumerate(calls if isinstance(calls, list) else [calls]):
        function = call.get("function", call) if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise _invalid(f"{where}.message.tool_calls[{index}]: the function name is missing")
        arguments = function.get("arguments")
        text = arguments if isinstance(arguments, str) else json.dumps({} if arguments is None else arguments)
        call_id = call.get("id") or call.get("call_id") or f"call_{index}"
        replies.append(ToolCallReply(str(call_id), function["name"], text))
    return tuple(replies)


def _logprobs(logprobs: Any, where: str) -> tuple[Mapping[str, Any], ...]:
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else logprobs
    if tokens is None:
        return ()
    if not isinstance(tokens, list):
        raise _invalid(f"{where}.logprobs: found {_kind(tokens)}, expected a list")
    return tuple(_logprob(token, f"{where}.logprobs[{index}]") for index, token in enumerate(tokens))


def _logprob(token: Any, where: str) -> Mapping[str, Any]:
    fits = isinstance(token, dict) and isinstance(token.get("token"), str) and is_number(token.get("logprob"))
    if not fits:
        raise _invalid(f"{where}: expected 'token' and 'logprob'")
    entry = {"token": token["token"], "logprob": token["logprob"], "bytes": token.get("bytes")}
    if token.get("top_logprobs"):
        tops = enumerate(token["top_logprobs"])
        entry["top_logprobs"] = [_logprob(top, f"{where}.top_logprobs[{index}]") for index, top in tops]
    return entry


MOST_TOKENS = 2**53
"""Largest valid count: JSON parsers disagree on larger integers."""


def is_number(value: Any) -> TypeGuard[int | float]:
    """Return whether a JSON value is a finite number; booleans do not count."""
    return isinstance(value, int | float) and not isinstance(value, bool) and _is_finite(value)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # An integer that is too large for a float.
        return False


def _usage(value: Any) -> Usage | None:
    usage = value.get("usage") if isinstance(value, dict) else None
    if not isinstance(usage, dict):
        return None
    prompt = _count(usage, "num_prompt_tokens", "prompt_tokens", "input_tokens")
    completion = _count(usage, "num_completion_tokens", "completion_tokens", "output_tokens")
    if prompt is None and completion is None:
        return None
    read = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    written = usage.get("completion_tokens_details") or usage.get("output_tokens_details") or {}
    return Usage(prompt, completion, _count(read, "cached_tokens"), _count(written, "reasoning_tokens"))


def _count(usage: Any, *names: str) -> int | None:
    if not isinstance(usage, dict):
        return None
    counts = (usage.get(name) for name in names)
    return next((int(count) for count in counts if is_number(count) and 0 <= count <= MOST_TOKENS), None)


def _aigo_usage(usage: Any) -> dict[str, int | None] | None:
    counts = _usage({"usage": usage})
    if counts is None:
        return None
    return {"num_prompt_tokens": counts.prompt, "num_completion_tokens": counts.completion}


def _in_aigo_form(choices: Sequence[Any], parsed: Sequence[Choice], usage: Any) -> Any:
    """Return the answer in AI GO's format if it has more than text: references, or only one of the token
    counts.
    """
    counts = _usage({"usage": usage})
    half_known = counts is not None and None in (counts.prompt, counts.completion)
    with_references = any("references" in choice for choice in choices)
    if not with_references and not half_known:
        return None
    entries: list[dict[str, Any]] = []
    for index, (choice, answer) in enumerate(zip(choices, parsed, strict=True)):
        message: dict[str, Any] = {"role": "assistant", "content": answer.text}
        if answer.refusal is not None:
            message["refusal"] = answer.refusal
        entries.append({"message": message})
        if with_references:
            where = f"choices[{index}].references"
            entries[-1]["references"] = _references(choice.get("references"), where)
    counted = _aigo_usage(usage)
    return {"choices": entries, "usage": counted} if counted else {"choices": entries}


def _references(references: Any, where: str) -> list[dict[str, Any]]:
    passages = []
    for index, reference in enumerate(
        references or [] if isinstance(references, list | None) else [references]
    ):
        if isinstance(reference, str):
            passages.append({"content": reference})
        elif isinstance(reference, dict) and isinstance(reference.get("content"), str):
            passages.append(reference)
        else:
            raise _invalid(f"{where}[{index}]: 'content' is missing")
    return passages


def _embeddings(value: Any, count: int | None) -> Reply:
    vectors = value.get("embeddings") if isinstance(value, dict) else value
    if isinstance(value, dict) and vectors is None and isinstance(value.get("data"), list):
        # Sort by index, the order of OpenAI's endpoint.
        data = [entry for entry in value["data"] if isinstance(entry, dict)]
        vectors = [entry.get("embedding") for entry in sorted(data, key=lambda entry: entry.get("index", 0))]
    if not isinstance(vectors, list):
        raise _invalid(f"found {_kind(value)} without 'embeddings', expected a list of vectors")
    for index, vector in enumerate(vectors):
        if not isinstance(vector, list) or not vector or not all(map(is_number, vector)):
            raise _invalid(f"embeddings[{index}]: expected a list of numbers")
        if len(vector) != len(vectors[0]):
            raise _invalid(f"embeddings[{index}]: has {len(vector)} numbers, the first one {len(vectors[0])}")
    if count is not None and len(vectors) != count:
        raise _invalid(f"{len(vectors)} vectors for {plural(count, 'text')}")
    vectors = [[float(number) for number in vector] for vector in vectors]
    raw: dict[str, Any] = {"embeddings": vectors}
    usage = value.get("usage") if isinstance(value, dict) else None
    if (counted := _aigo_usage(usage)) is not None:
        raw["usage"] = counted
    return Reply(value=vectors, raw=raw, usage=_usage(value))


def _from_items(value: dict[str, Any]) -> Reply:
    """Convert an answer in items to one choice with the same content."""
    try:
        items = [item.model_dump(mode="json") for item in _ITEMS.validate_python(value["items"])]
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        raise _invalid(f"items.{'.'.join(map(str, problem['loc']))}: {problem['msg']}") from error
    texts: list[str] = []
    reasoning: list[str] = []
    refusals: list[str] = []
    calls: list[ToolCallReply] = []
    logprobs: list[Mapping[str, Any]] = []
    for item in items:
        if item["type"] == "function_call":
            calls.append(ToolCallReply(item["call_id"], item["name"], item["arguments"]))
        for part in item.get("content") or [] if item["type"] == "message" else []:
            match part.get("type"):
                case "reasoning_text" | "summary_text":
                    reasoning.append(part["text"])
                case "refusal":
                    refusals.append(part["refusal"])
                case _:
                    texts.append(part.get("text", ""))
                    logprobs += _logprobs(part.get("logprobs"), "items")
    if not texts and not calls and not refusals:
        raise _invalid("the model returned no answer ('items' contains neither text nor a function call)")
    choice = Choice(
        text="\n".join(texts),
        refusal="\n".join(refusals) or None,
        reasoning="\n".join(reasoning) or None,
        tool_calls=tuple(calls),
        logprobs=tuple(logprobs) if len(texts) == 1 else (),
    )
    raw: dict[str, Any] = {"items": items}
    if (counted := _aigo_usage(value.get("usage"))) is not None:
        raw["usage"] = counted
    return Reply(choices=(choice,), usage=_usage(value), raw=raw)
