"""Conversion of Inspect's messages to AI GO conversation items, as JSON-ready dictionaries.

One message can become several items. Reasoning becomes a separate assistant message before the answer,
because it would otherwise count as answer text. Tool calls and provider-side tools become function calls. A
tool message becomes a function call output. Items always contain `type` and `role`. Fields without a field in
AI GO are in the extra key `inspect` of the item.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from aigo_bridge.importing.log_import import LossReport
from aigo_bridge.text.json_text import json_text
from aigo_inspect.logs.shapes import MALFORMED, listed
from aigo_inspect.mapping.parts import (
    Part,
    add_rest,
    answer_part,
    check_parts,
    input_part,
    text_of,
    tool_result,
)

Item = dict[str, Any]
_ROLES = frozenset({"system", "user", "assistant", "developer"})
_FIELDS = frozenset({"id", "role", "content", "source", "metadata", "tool_call_id", "model"})
_TOOL_FIELDS = _FIELDS | {"function", "error"}
_ANSWER_FIELDS = _FIELDS | {"tool_calls"}
"""Message fields that are converted, or counted when left out. Other fields are kept with the item."""
_USUAL_SOURCES = frozenset({"input", "generate"})
SOURCE_LEFT_OUT = "message: source (input, generate) and name of the model left out"
"""The model calls already contain both, because a generated message is in their answers."""
_NO_PROBABILITY = -9999.0
"""Value that providers use for an impossible token. It replaces minus infinity, which JSON cannot hold."""


def items_from_message(
    message: Any,
    loss: LossReport | None = None,
    *,
    status: str = "completed",
    logprobs: list[dict[str, Any]] | None = None,
) -> list[Item]:
    """Return the conversation items of one message.

    Args:
        message: a `ChatMessage` in Inspect's JSON with resolved attachments.
        loss: collects the changes.
        status: AI GO status of the items, `completed` or `incomplete`.
        logprobs: AI GO log probabilities of the answer's tokens, if the answer is a single text.
    """
    loss = loss if loss is not None else LossReport()
    if not isinstance(message, dict):
        loss.changed["message that is not an object: kept as custom message"] += 1
        return [{"type": "custom_task_input_message", "content": message}]
    try:
        return _items(message, loss, status, logprobs)
    except MALFORMED:
        loss.changed["message of an unexpected shape: kept as custom message"] += 1
        return [{"type": "custom_task_input_message", "content": message}]


def _items(
    message: dict[str, Any], loss: LossReport, status: str, logprobs: list[dict[str, Any]] | None
) -> list[Item]:
    role = message.get("role")
    message_id = message.get("id") or content_id(message)
    if role == "tool":
        return [_tool_output(message, str(message_id), loss)]
    if role not in _ROLES:
        loss.changed["message of unknown role: kept as custom message"] += 1
        return [{"type": "custom_task_input_message", "content": message}]
    extra = {key: message[key] for key in ("metadata", "tool_call_id") if message.get(key)}
    extra |= _rest(message, _ANSWER_FIELDS if role == "assistant" else _FIELDS, loss)
    if role != "assistant":
        content = message.get("content")
        if isinstance(content, str):
            parts: list[Part] = [{"type": "input_text", "text": content}]
        else:
            parts = [input_part(part, loss) for part in _parts(content)]
        return [_message(str(message_id), role, parts, status, extra)]
    return _assistant_items(message, str(message_id), status, extra, logprobs, loss)


def content_id(value: Any) -> str:
    """Return an id for a value without one. The same content gives the same id."""
    # Imported late, because messages of current releases have ids.
    import hashlib

    return "msg_" + hashlib.blake2b(json_text(value).encode(), digest_size=11).hexdigest()


def _parts(content: Any) -> Iterable[Any]:
    if isinstance(content, list):
        return check_parts(content)
    return [] if content is None else [{"type": "text", "text": content}]


def _message(
    message_id: str, role: str, parts: list[Part], status: str, extra: dict[str, Any] | None
) -> Item:
    item: Item = {"type": "message", "id": message_id, "status": status, "role": role, "content": parts}
    if extra:
        item["inspect"] = extra
    return item


def _rest(message: dict[str, Any], fields: frozenset[str], loss: LossReport) -> dict[str, Any]:
    """Return the other fields of a message, including an unusual source or model, and count a usual one."""
    remainder: dict[str, Any] = {}
    if not fields.issuperset(message):
        # Few messages have other fields.
        remainder = {
            key: value
            for key, value in message.items()
            if key not in fields and value is not None and value != [] and value != ""
        }
    source, model = message.get("source"), message.get("model")
    is_usual = type(source) is str and source in _USUAL_SOURCES
    if source is not None and not is_usual:
        remainder["source"] = source
    if model is not None and type(model) is not str:
        remainder["model"] = model
    if is_usual or (model and type(model) is str):
        loss.changed[SOURCE_LEFT_OUT] += 1
    return remainder


def _tool_output(message: dict[str, Any], message_id: str, loss: LossReport) -> Item:
    error = message.get("error")
    output = tool_result(message.get("content"), loss)
    extra = {key: message[key] for key in ("metadata", "function") if message.get(key)}
    if isinstance(error, dict):
        extra["error"] = error
        # The model saw the text of the error. The content is then empty.
        output = output or text_of(error.get("message", ""))
    elif error is not None:
        extra["error"] = error
    extra |= _rest(message, _TOOL_FIELDS, loss)
    item: Item = {
        "type": "function_call_output",
        "id": message_id,
        "call_id": text_of(message.get("tool_call_id") or ""),
        "output": output,
        "status": "completed",
    }
    if extra:
        item["inspect"] = extra
    return item


# Assistant messages


def _assistant_items(
    message: dict[str, Any],
    message_id: str,
    status: str,
    extra: dict[str, Any] | None,
    logprobs: list[dict[str, Any]] | None,
    loss: LossReport,
) -> list[Item]:
    content = message.get("content")
    tool_calls = check_parts(listed(message.get("tool_calls")))
    items: list[Item] = []
    answers = 0
    if isinstance(content, str):
        # By far the most frequent form.
        if content or not tool_calls:
            part: Part = {"type": "output_text", "text": content, "annotations": []}
            if logprobs:
                part["logprobs"] = logprobs
            items.append(_message(message_id, "assistant", [part], status, extra))
            answers = 1
    else:
        content = check_parts(listed(content))
        texts = sum(isinstance(part, dict) and part.get("type") == "text" for part in content)
        for kind, parts in _runs(_reasoning_first(content, loss)):
            if kind == "reasoning":
                items.append(_reasoning_message(message_id, parts, status, len(items), loss))
            elif kind == "tool_use":
                items += _server_tool_items(message_id, parts)
            else:
                mapped = [answer_part(part, loss, logprobs if texts == 1 else None) for part in parts]
                answer_id = message_id if answers == 0 else f"{message_id}:{answers}"
                items.append(
                    _message(answer_id, "assistant", mapped, status, extra if answers == 0 else None)
                )
                answers += 1
        if not answers and not tool_calls:
            # The answer is empty; the reasoning is separate.
            empty: Part = {"type": "output_text", "text": "", "annotations": []}
            items.append(_message(message_id, "assistant", [empty], status, extra))
            answers = 1
    calls = [_function_call(call, message_id, position, loss) for position, call in enumerate(tool_calls)]
    if extra and not answers and calls:
        calls[0].setdefault("inspect", {}).update(extra)
    return items + calls


def _reasoning_first(content: list[Any], loss: LossReport) -> list[Any]:
    """Return the parts with reasoning moved before the answer that it interrupts or follows.

    An answer with reasoning in the middle would become two messages. The second would contain only half of
    the text that Inspect shows and scores. With reasoning after the answer, the conversation would end with
    the reasoning. Provider-side tools still split an answer, so that their results keep their position.
    """
    kinds = [_nature(part) for part in content]
    if "reasoning" not in kinds or "answer" not in kinds:
        return content
    end = len(kinds) - 1 - kinds[::-1].index("answer")
    ordered: list[Any] = []
    answer: list[Any] = []
    moved = 0
    for kind, part in zip(kinds[: end + 1], content, strict=False):
        if kind == "answer":
            answer.append(part)
        elif kind == "reasoning":
            ordered.append(part)
            moved += bool(answer)
        else:
            ordered += [*answer, part]
            answer = []
    behind = [part for part in content[end + 1 :] if _nature(part) == "reasoning"]
    answers = [part for part in content[end + 1 :] if _nature(part) != "reasoning"]
    if moved := moved + len(behind):
        loss.changed["reasoning inside or after an answer: moved before it"] += moved
    return [*ordered, *behind, *answer, *answers]


def _nature(part: Any) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    return kind if kind in ("reasoning", "tool_use") else "answer"


def _runs(content: Iterable[Any]) -> list[tuple[str, list[Any]]]:
    """Group adjacent parts of the same kind: `reasoning`, `tool_use` or `answer`."""
    runs: list[tuple[str, list[Any]]] = []
    for part in content:
        kind = _nature(part)
        if runs and runs[-1][0] == kind:
            runs[-1][1].append(part)
        else:
            runs.append((kind, [part]))
    return runs


def _reasoning_message(
    message_id: str, parts: list[Part], status: str, position: int, loss: LossReport
) -> Item:
    mapped: list[Part] = []
    redacted = False
    for part in parts:
        if part.get("redacted"):
            # The text is encrypted by the provider.
            redacted = True
            loss.changed["redacted reasoning: ciphertext left out, summary kept"] += 1
        else:
            mapped.append({"type": "reasoning_text", "text": text_of(part.get("reasoning", ""))})
        if part.get("summary") or part.get("redacted"):
            mapped.append({"type": "summary_text", "text": text_of(part.get("summary") or "")})
        if part.get("signature"):
            loss.changed["reasoning: provider's signature left out"] += 1
        add_rest(mapped[-1], part, _REASONING)
    suffix = "reasoning" if position == 0 else f"reasoning:{position}"
    return _message(
        f"{message_id}:{suffix}", "assistant", mapped, status, {"redacted": True} if redacted else None
    )


def _server_tool_items(message_id: str, parts: list[Part]) -> list[Item]:
    """Return the call and output of a tool that the provider ran during the answer."""
    items: list[Item] = []
    for part in parts:
        call_id = text_of(part.get("id") or "")
        extra = {key: part[key] for key in ("tool_type", "context") if part.get(key)}
        call: Item = {
            "type": "function_call",
            "id": f"{message_id}:{call_id}",
            "call_id": call_id,
            "name": text_of(part.get("name") or ""),
            "arguments": text_of(part.get("arguments") or ""),
            "status": "completed",
        }
        if extra:
            call["inspect"] = extra
        output: Item = {
            "type": "function_call_output",
            "id": f"{message_id}:{call_id}:output",
            "call_id": call_id,
            "output": text_of(part.get("result") or part.get("error") or ""),
            "status": "completed",
        }
        if part.get("error"):
            output["inspect"] = {"error": part["error"]}
        add_rest(call, part, _SERVER_TOOL)
        items += [call, output]
    return items


_REASONING = frozenset({"type", "reasoning", "summary", "signature", "redacted"})
_SERVER_TOOL = frozenset({"type", "id", "name", "arguments", "result", "error", "tool_type", "context"})


def _function_call(call: Any, message_id: str, position: int, loss: LossReport) -> Item:
    call = call if isinstance(call, dict) else {"function": "", "arguments": call}
    call_id = text_of(call.get("id") or "")
    arguments = call.get("arguments")
    if call.get("type") == "custom" and not isinstance(arguments, dict):
        arguments = {"input": arguments}
    item: Item = {
        "type": "function_call",
        "id": f"{message_id}:{call_id or position}",
        "call_id": call_id,
        "name": text_of(call.get("function") or ""),
        "arguments": arguments
        if isinstance(arguments, str)
        else json_text({} if arguments is None else arguments),
        "status": "completed",
    }
    if not _USUAL_CALL.issuperset(call) or call.get("type") not in (None, "function"):
        extra = {key: call[key] for key in ("parse_error", "view") if call.get(key)}
        if call.get("type") not in (None, "function"):
            extra["type"] = call["type"]
        if extra:
            item["inspect"] = extra
        add_rest(item, call, _CALL)
    return item


_USUAL_CALL = frozenset({"id", "function", "arguments", "type"})
_CALL = _USUAL_CALL | {"parse_error", "view"}


# Log probabilities


def logprobs_of(choice: dict[str, Any], loss: LossReport) -> list[dict[str, Any]] | None:
    """Return AI GO log probabilities of a choice; `None` if they are missing or have an unexpected form.

    The log probabilities of the choice are converted in place.
    """
    logprobs = choice.get("logprobs")
    if logprobs is None:
        return None
    try:
        if logprobs.keys() - {"content"}:
            raise TypeError("more than the tokens")
        tokens = listed(logprobs["content"])
        for token in tokens:
            _check_logprob(token)
            for top in listed(token.get("top_logprobs")):
                _check_logprob(top)
    except MALFORMED:
        loss.changed["log probabilities of an unexpected shape: kept unchanged"] += 1
        return None
    # In place, because they are the largest part of a log, and few of them need changes.
    for token in tokens:
        tops = token.get("top_logprobs") or []
        _settle_logprob(token, loss)
        token["top_logprobs"] = tops
        for top in tops:
            _settle_logprob(top, loss)
            top.pop("top_logprobs", None)
    return tokens or None


def _check_logprob(token: dict[str, Any]) -> None:
    if not isinstance(token, dict):
        raise TypeError("a token that is not an object")
    value = token.get("logprob")
    if isinstance(value, int):
        # An integer may be too large for a float.
        math.isfinite(value)
    if not all(type(octet) is int for octet in listed(token.get("bytes"))):
        raise TypeError("bytes that are not numbers")


def _settle_logprob(token: dict[str, Any], loss: LossReport) -> None:
    value = token.get("logprob")
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        loss.changed[f"log probability that is not finite: written as {_NO_PROBABILITY}"] += 1
        token["logprob"] = _NO_PROBABILITY
    if type(token.get("token")) is not str:
        token["token"] = text_of(token.get("token", ""))
    if token.get("bytes") is None:
        token["bytes"] = []
    if not _LOGPROB.issuperset(token):
        remainder = {key: token.pop(key) for key in token.keys() - _LOGPROB}
        add_rest(token, remainder, _LOGPROB)


_LOGPROB = frozenset({"token", "logprob", "bytes", "top_logprobs"})
