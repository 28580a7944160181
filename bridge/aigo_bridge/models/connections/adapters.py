"""Adapters by key: the platform's own, adapters in a run file, and adapters in files next to the model file.

The platform's own adapters follow the formats in OpenAI's API reference: chat completions, embeddings and
responses. The platform's sources are not public. If the reference is unclear, the endpoint's error is passed
on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aigo_bridge.access.opening import read_regular
from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, SpecError, TemplateError
from aigo_bridge.models.connections.calls import (
    Adapter,
    CallError,
    CallInput,
    ModelInfo,
    TemplateAdapter,
    parse_json,
    to_json,
)
from aigo_bridge.models.connections.replies import error_text
from aigo_bridge.models.connections.streaming import final_response, merged, stream_error, stream_of
from aigo_bridge.reading import read
from aigo_bridge.spec.models import AdapterSpec

Json = dict[str, Any]


def _body(text: str, status: int) -> Any:
    """Parse a response as JSON: a stream becomes its chat completion, an error status becomes an error."""
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
        what = f"found {shown!r}" if shown else "found nothing"
        raise CallError(f"the response is not JSON: {what}", "invalid") from error


def _status_error(text: str, status: int) -> str:
    return f"status {status}: {response_text(text)}" if text.strip() else f"status {status} without a body"


def response_text(text: str) -> str:
    """Return the error text of a response body in one or two lines."""
    try:
        body = parse_json(text)
    except ValueError:
        return " ".join(text.split())[:500]
    if isinstance(body, dict) and body.get("error"):
        return error_text(body["error"])[:500]
    return error_text(body)[:500]


@dataclass(frozen=True)
class ShippedAdapter:
    """Adapter of aigo-bridge: two functions instead of an author's templates."""

    key: str
    body: Callable[[CallInput, ModelInfo], Any]
    """Function that returns the request body as JSON."""
    completion: Callable[[Any], Any] = lambda response: response
    """Function that converts response JSON; answers in OpenAI's format need no conversion."""
    takes_options: bool = True

    def request(self, call: CallInput, info: ModelInfo) -> str:
        return to_json(self.body(call, info))

    def answer(self, body: str, status: int, info: ModelInfo) -> Any:
        return self.completion(_body(body, status))


def _as_it_is(call: CallInput, info: ModelInfo) -> Any:
    """Return AI GO's own format, with options next to `messages`; a custom model's input is unchanged."""
    return {**call.input, **call.options} if isinstance(call.input, dict) else call.input


def _chat_completion(call: CallInput, info: ModelInfo) -> Json:
    """Return a request for OpenAI's chat completions or embeddings: `model`, `messages` (or `input`) and all
    options.
    """
    model = {"model": info.model_key} if info.model_key is not None else {}
    value = call.input if isinstance(call.input, dict) else {"input": call.input}
    return {**model, **value, **call.options}


def _responses(call: CallInput, info: ModelInfo) -> Json:
    """Return a request for OpenAI's Responses API: `model`, `input` items, `text.format`, and options under
    their names in that API. Every request contains the whole conversation; the endpoint stores nothing.
    """
    value = call.input if isinstance(call.input, dict) else {}
    body: Json = {"model": info.model_key} if info.model_key is not None else {}
    body["input"] = [item for message in value.get("messages", []) for item in _input_items(message)]
    response_format = value.get("response_format")
    if response_format and response_format.get("type") == "json_schema":
        body["text"] = {"format": {"type": "json_schema", **response_format["json_schema"]}}
    # By default, the endpoint stores the conversations of an evaluation.
    body["store"] = False
    return body | _response_options(call.options)


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
    renamed = dict(options)
    if "max_tokens" in renamed:
        renamed["max_output_tokens"] = renamed.pop("max_tokens")
    if renamed.pop("logprobs", None):
        renamed["include"] = ["message.output_text.logprobs"]
    if "reasoning_effort" in renamed:
        renamed["reasoning"] = {"effort": renamed.pop("reasoning_effort")}
    if "tools" in renamed:
        renamed["tools"] = [{"type": "function", **tool["function"]} for tool in renamed["tools"]]
    choice = renamed.get("tool_choice")
    if isinstance(choice, dict):
        renamed["tool_choice"] = {"type": "function", "name": choice["function"]["name"]}
    return renamed


def _completion(response: Any) -> Any:
    """Convert output items of OpenAI's Responses API to a chat completion; return anything else unchanged."""
    is_output = isinstance(response, dict) and isinstance(response.get("output"), list)
    if not is_output or response.get("error"):
        return response
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
    is_answer = bool(texts or refusals or calls)
    completion: Json = {"choices": [choice] if is_answer else [], "model": response.get("model")}
    if response.get("usage"):
        completion["usage"] = response["usage"]
    return completion


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
        ShippedAdapter("latticeflow$identity", _as_it_is),
        ShippedAdapter("latticeflow$identity_custom", _as_it_is),
        ShippedAdapter("latticeflow$openai_chat_completion", _chat_completion),
        ShippedAdapter("latticeflow$openai", _chat_completion),
        ShippedAdapter("openai-chat-completion", _chat_completion),
        ShippedAdapter("latticeflow$openai_responses", _responses, _completion),
    )
}
"""Adapters by the key that model files use; the last but two are deprecated keys."""


FOLDERS = (".", "model_adapters", "adapters", "../model_adapters", "../adapters")
"""Folders with adapters, relative to the model's folder."""

LONGEST_FILE = 4_000_000
"""Maximum size in bytes of a YAML file that is searched."""


def adapter_of(spec: AdapterSpec) -> Adapter:
    """Return an author's adapter.

    Raises:
        SpecError: a template is invalid.
    """
    try:
        return TemplateAdapter(spec.key, spec.process_input.source_code, spec.process_output.source_code)
    except TemplateError as error:
        raise SpecError(
            [Issue(f"adapter {spec.key!r}: {issue}", code=issue.code) for issue in error.issues]
        ) from error


def find_adapter(
    key: str, declared: Sequence[AdapterSpec], folder: Path, env: Mapping[str, str] | None = None
) -> Adapter | None:
    """Find the adapter with a key; return `None` if it does not exist.

    Args:
        key: key in the model file.
        declared: adapters of the surrounding run file; they take precedence.
        folder: folder of the model file.
        env: environment variables; `None`: the process's own.

    Raises:
        SpecError: the file that declares the adapter is invalid, or several files declare it.
    """
    for spec in declared:
        if spec.key == key:
            return adapter_of(spec)
    if key in SHIPPED:
        return SHIPPED[key]
    files = list(dict.fromkeys(path.resolve() for path in _files_that_name(key, folder)))
    if not files:
        return None
    specs = [spec for spec in (read(AdapterSpec, path, env=env).spec for path in files) if spec.key == key]
    if len(specs) > 1:
        names = ", ".join(path.name for path in files)
        raise SpecError(
            f"adapter {key!r} is declared by several files: {names}", code=Code.SEVERAL_DECLARATIONS
        )
    return adapter_of(specs[0]) if specs else None


def _files_that_name(key: str, folder: Path) -> Iterator[Path]:
    """Yield YAML files that look like the adapter's file: they contain templates and the key."""
    for name in FOLDERS:
        place = folder / name
        for path in sorted([*place.glob("*.yaml"), *place.glob("*.yml")]):
            try:
                text = read_regular(path, LONGEST_FILE).decode("utf-8")
            except (OSError, UnicodeDecodeError):
                continue  # The file belongs to other software.
            # Model and run files also name adapters, but without this key at the top level.
            if "process_input" in text and _top_level_key(text) == key:
                yield path


def _top_level_key(text: str) -> str | None:
    for line in text.splitlines():
        if line.startswith("key:"):
            return line[4:].split(" #")[0].strip().strip("\"'")
    return None
