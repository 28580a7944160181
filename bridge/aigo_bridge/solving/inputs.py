"""Input builders: from one sample to one model request."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from aigo_bridge.dtypes import ChatCompletionInput, CustomTaskInputMessage
from aigo_bridge.errors import SampleError, TemplateError
from aigo_bridge.models import GENERATION_OPTIONS, ModelRequest
from aigo_bridge.solving.conversation import chat_request
from aigo_bridge.spec.solvers import ChatInputBuilder, GenericInputBuilder
from aigo_bridge.templates import SampleTemplate

BuildInput = Callable[[Mapping[str, Any]], ModelRequest]
"""Sample data in, request out; raises `SampleError` with stage `solver`."""


def compile_input(builder: ChatInputBuilder | GenericInputBuilder) -> BuildInput:
    """The input builder of a solver, templates compiled once."""
    if isinstance(builder, ChatInputBuilder):
        return _chat(builder)
    return _generic(builder)


def _chat(builder: ChatInputBuilder) -> BuildInput:
    messages = [(message.role, SampleTemplate(message.content)) for message in builder.input_messages]

    def build(sample: Mapping[str, Any]) -> ModelRequest:
        return chat_request((role, render(template, sample)) for role, template in messages)

    return build


def _generic(builder: GenericInputBuilder) -> BuildInput:
    template = SampleTemplate(builder.template)

    def build(sample: Mapping[str, Any]) -> ModelRequest:
        return request_from_body(body_from_template(template, sample))

    return build


def body_from_template(template: SampleTemplate, sample: Mapping[str, Any]) -> Any:
    """What a template that must give JSON gives for a sample.

    Raises:
        SampleError: it cannot be rendered, or what it gives is not JSON.
    """
    text = render(template, sample)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        shown = text.split("\n")[error.lineno - 1].strip()[:120]
        raise SampleError(
            f"the input template did not give JSON: {error.msg} at line {error.lineno}, column {error.colno}"
            f" ({shown!r})",
            stage="solver",
            hint="write {{ sample.x | tojson }} without quotes around it, so that quotes and newlines are escaped",
            kind="InvalidModelInput",
        ) from error


def request_from_body(body: Any, *, source: str = "the input template") -> ModelRequest:
    """A chat completion body (`messages`, `response_format`, generation options) as a request.

    Args:
        body: the body as JSON.
        source: where it comes from, for errors.

    Raises:
        SampleError: it is not one, or asks for an option that would be lost.
    """
    if not isinstance(body, dict) or "messages" not in body:
        found = f"an object with {sorted(body)}" if isinstance(body, dict) else f"a {type(body).__name__}"
        raise SampleError(
            f'{source} gave {found}, expected an object with "messages"',
            stage="solver",
            kind="InvalidModelInput",
        )
    options = {name: value for name, value in body.items() if name not in ("messages", "response_format")}
    unknown = sorted(set(options) - GENERATION_OPTIONS)
    if unknown:
        raise SampleError(
            f"{source} asks for {', '.join(unknown)}, which would be lost",
            stage="solver",
            hint=f"known options: {', '.join(sorted(GENERATION_OPTIONS))}",
            kind="InvalidModelInput",
        )
    try:
        chat = ChatCompletionInput.model_validate(
            {name: body[name] for name in ("messages", "response_format") if name in body}
        )
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise SampleError(
            f"{source} did not give chat messages: {where}: {first['msg']}",
            stage="solver",
            kind="InvalidModelInput",
        ) from error
    return ModelRequest(chat, options)


def request_of_value(value: Any) -> ModelRequest:
    """The request of a model that is not for chat: one input, passed on unchanged."""
    item = CustomTaskInputMessage(type="custom_task_input_message", content=value)
    return ModelRequest(ChatCompletionInput(messages=[]), items=(item,))


def render(template: SampleTemplate, sample: Mapping[str, Any]) -> str:
    """A template's text for a sample; one that cannot be rendered is an error of the sample."""
    try:
        return template.render(sample=sample)
    except TemplateError as error:
        raise SampleError(str(error), stage="solver", kind="TemplateError") from error
