"""The adapters that the platform ships, by key.

Written from the formats that they translate: chat completions, embeddings and responses as in OpenAI's API reference. The platform's own
sources are not public; where they are silent, an endpoint's error is passed on rather than guessed around.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aigo_bridge.connections.adapters import Adapter, CallInput, ModelInfo, parse_json, to_json
from aigo_bridge.connections.failures import CallError
from aigo_bridge.connections.replies import error_text
from aigo_bridge.connections.streaming import final_response, merged, stream_error, stream_of

Json = dict[str, Any]


def _body(text: str, status: int) -> Any:
    """A response as JSON; a stream of chat pieces as the completion that it makes up; an error status as an error."""
    stream = stream_of(text)
    if not 200 <= status < 300:
        return {"error": _status_error(text, status)}
    if stream is not None and (stream.is_known or stream_error(stream) is not None):
        error = stream_error(stream)
        return {"error": error} if error is not None else (final_response(stream) or merged(stream))
    try:
        return parse_json(text)
    except ValueError as error:
        shown = text.strip()[:120]
        found = f"found {shown!r}" if shown else "found nothing"
        raise CallError(f"the response is not JSON: {found}", "invalid") from error


def _status_error(text: str, status: int) -> str:
    return f"status {status}: {response_text(text)}" if text.strip() else f"status {status} without a body"


def response_text(text: str) -> str:
    """What the body of an error response says, in a line or two."""
    try:
        body = parse_json(text)
    except ValueError:
        return " ".join(text.split())[:500]
    if isinstance(body, dict) and body.get("error"):
        return error_text(body["error"])[:500]
    return error_text(body)[:500]


class IdentityAdapter:
    """The endpoint speaks AI GO's own form (or, for custom models, whatever the task writes)."""

    takes_options = True

    def __init__(self, key: str):
        self.key = key

    def request(self, call: CallInput, info: ModelInfo) -> str:
        """The model input as it is, generation options beside `messages`."""
        given = call.input
        return to_json({**given, **call.options} if isinstance(given, dict) else given)

    def answer(self, body: str, status: int, info: ModelInfo) -> Any:
        """The response as it is."""
        return _body(body, status)


class ChatCompletionAdapter:
    """OpenAI's chat completions; for embeddings models, its embeddings."""

    takes_options = True

    def __init__(self, key: str):
        self.key = key

    def request(self, call: CallInput, info: ModelInfo) -> str:
        """`model`, `messages` (or `input`), `response_format` and all options."""
        model = {"model": info.model_key} if info.model_key is not None else {}
        given = call.input if isinstance(call.input, dict) else {"input": call.input}
        return to_json({**model, **given, **call.options})

    def answer(self, body: str, status: int, info: ModelInfo) -> Any:
        """The completion as it is: answers are read in OpenAI's words, too."""
        return _body(body, status)


class ResponsesAdapter:
    """OpenAI's responses; the whole conversation is sent every time, nothing is kept at the endpoint."""

    takes_options = True

    def __init__(self, key: str):
        self.key = key

    def request(self, call: CallInput, info: ModelInfo) -> str:
        """`model`, `input` items, `text.format`, and options under the names that they have there."""
        given = call.input if isinstance(call.input, dict) else {}
        body: Json = {"model": info.model_key} if info.model_key is not None else {}
        body["input"] = [item for message in given.get("messages", []) for item in _input_items(message)]
        response_format = given.get("response_format")
        if response_format and response_format.get("type") == "json_schema":
            body["text"] = {"format": {"type": "json_schema", **response_format["json_schema"]}}
        # Without it, the endpoint keeps the conversations of an evaluation.
        body["store"] = False
        return to_json(body | _response_options(call.options))

    def answer(self, body: str, status: int, info: ModelInfo) -> Any:
        """The response's output items as a chat completion."""
        found = _body(body, status)
        if not isinstance(found, dict) or found.get("error") or not isinstance(found.get("output"), list):
            return found
        return _completion(found)


def _input_items(message: Mapping[str, Any]) -> list[Json]:
    if message["role"] == "tool":
        return [
            {
                "type": "function_call_output",
                "call_id": message.get("tool_call_id", ""),
                "output": message["content"],
            }
        ]
    items: list[Json] = []
    if message.get("content") or not message.get("tool_calls"):
        items.append({"role": message["role"], "content": _input_parts(message)})
    for call in message.get("tool_calls") or []:
        function = call["function"]
        items.append(
            {
                "type": "function_call",
                "call_id": call["id"],
                "name": function["name"],
                "arguments": function["arguments"],
            }
        )
    return items


def _input_parts(message: Mapping[str, Any]) -> Any:
    content = message.get("content")
    if not isinstance(content, list):
        return content or ""
    parts: list[Json] = []
    for part in content:
        match part.get("type"):
            case "text":
                kind = "output_text" if message["role"] == "assistant" else "input_text"
                parts.append({"type": kind, "text": part["text"]})
            case "image_url":
                image = part["image_url"]
                parts.append(
                    {
                        "type": "input_image",
                        "image_url": image["url"],
                        "detail": image.get("detail", "auto"),
                    }
                )
            case "file":
                parts.append({"type": "input_file", **part["file"]})
            case _:
                parts.append(part)
    return parts


def _response_options(options: Mapping[str, Any]) -> Json:
    found = dict(options)
    if "max_tokens" in found:
        found["max_output_tokens"] = found.pop("max_tokens")
    if found.pop("logprobs", None):
        found["include"] = ["message.output_text.logprobs"]
    if "reasoning_effort" in found:
        found["reasoning"] = {"effort": found.pop("reasoning_effort")}
    if "tools" in found:
        found["tools"] = [{"type": "function", **tool["function"]} for tool in found["tools"]]
    choice = found.get("tool_choice")
    if isinstance(choice, dict):
        found["tool_choice"] = {"type": "function", "name": choice["function"]["name"]}
    return found


def _completion(response: Json) -> Json:
    texts: list[str] = []
    refusals: list[str] = []
    reasoning: list[str] = []
    calls: list[Json] = []
    logprobs: list[Any] = []
    for item in response["output"]:
        match item.get("type"):
            case "message":
                for part in item.get("content") or []:
                    if part.get("type") == "refusal":
                        refusals.append(part.get("refusal", ""))
                    else:
                        texts.append(part.get("text", ""))
                        logprobs += part.get("logprobs") or []
            case "function_call":
                function = {"name": item.get("name"), "arguments": item.get("arguments")}
                calls.append({"id": item.get("call_id") or item.get("id"), "function": function})
            case "reasoning":
                reasoning += [
                    part.get("text", "") for part in _parts(item, "content") or _parts(item, "summary")
                ]
    message: Json = {"role": "assistant", "content": "\n".join(texts)}
    if refusals:
        message["refusal"] = "\n".join(refusals)
    if reasoning:
        message["reasoning_content"] = "\n".join(reasoning)
    if calls:
        message["tool_calls"] = calls
    choice: Json = {"message": message, "finish_reason": _finish_reason(response, calls)}
    if logprobs and len(texts) == 1:
        choice["logprobs"] = {"content": logprobs}
    said = bool(texts or refusals or calls)
    found: Json = {"choices": [choice] if said else [], "model": response.get("model")}
    if response.get("usage"):
        found["usage"] = response["usage"]
    return found


def _parts(item: Json, name: str) -> Sequence[Json]:
    parts = item.get(name)
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _finish_reason(response: Json, calls: Sequence[Json]) -> str:
    reason = (response.get("incomplete_details") or {}).get("reason")
    if response.get("status") == "incomplete" and reason:
        return {"max_output_tokens": "length"}.get(reason, str(reason))
    return "tool_calls" if calls else "stop"


SHIPPED: Mapping[str, Adapter] = {
    adapter.key: adapter
    for adapter in (
        IdentityAdapter("latticeflow$identity"),
        IdentityAdapter("latticeflow$identity_custom"),
        ChatCompletionAdapter("latticeflow$openai_chat_completion"),
        ChatCompletionAdapter("latticeflow$openai"),
        ChatCompletionAdapter("openai-chat-completion"),
        ResponsesAdapter("latticeflow$openai_responses"),
    )
}
"""Adapters by the key under which model files name them; the last but two are older names."""
