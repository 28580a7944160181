"""Providers that this package adds to Inspect: AI GO model entities (`aigo_bridge/<file>`) and scripted
models.

The core's `Connection` makes one call. This module presents it as an Inspect provider, so that Inspect
caches, retries, counts and logs the call. The limits of the entity apply in addition to Inspect's limits.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import httpx
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    Content,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    Logprob,
    Logprobs,
    ModelAPI,
    ModelCall,
    ModelOutput,
    ModelUsage,
    RetryDecision,
    get_model,
    record_response_headers,
)
from inspect_ai.tool import ToolCall, ToolChoice, ToolInfo
from inspect_ai.util import concurrency
from tenacity import RetryCallState
from tenacity.wait import wait_base

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.execution.progress import wait_after
from aigo_bridge.models.connections import (
    CallError,
    Connection,
    ConnectionSettings,
    Exchange,
    ProviderTarget,
    load_model,
)
from aigo_bridge.models.gate import pace, passing
from aigo_bridge.models.scripted import Script, ScriptedReply, is_transient, load_script
from aigo_inspect.models.requests import call_input, model_output

PROVIDER = "aigo_bridge"
"""Provider name in Inspect's model strings."""

PROVIDERS: Mapping[str, str] = {
    "anthropic": "anthropic",
    "fireworks": "fireworks",
    "gemini": "google",
    "novita": "openai-api/novita",
    "openai": "openai",
    "sambanova": "sambanova",
    "together": "together",
}
"""AI GO's provider name → Inspect's provider name."""

_VERSIONED = re.compile(r"(.+\.ya?ml(?:#[^@]*)?)@([0-9a-f]{8})")
"""Model name in logs: the file, followed by the first digits of its digest."""


def entity_api(
    model_name: str,
    base_url: str | None = None,
    api_key: str | None = None,
    config: GenerateConfig = GenerateConfig(),  # noqa: B008  # Inspect's signature
    *,
    root: str | None = None,
    client_cert: str | None = None,
    client_key: str | None = None,
    request_timeout: float | None = None,
    **model_args: Any,
) -> ModelAPI:
    """Return the provider for `aigo_bridge/<file>` or `aigo_bridge/<run file>#<key>`.

    Args:
        model_name: the file; for a run file, also the key of the model.
        base_url: another URL for the endpoint.
        api_key: API key, only for models of integrated providers.
        config: generation settings, as for every provider.
        root: folder that contains all files that the model file may include [default: the project of the
            model file].
        client_cert: PEM file with the client certificate.
        client_key: PEM file with the private key, if it is not in `client_cert`.
        request_timeout: maximum time without data from the endpoint, in seconds.
        model_args: arguments for the integrated provider.

    Raises:
        UsageError: the model does not exist, it has changed since the resumed run, or it does not accept an
            argument.
        SpecError: the model file is not valid.
    """
    versioned = _VERSIONED.fullmatch(model_name)
    name, version = versioned.groups() if versioned is not None else (model_name, None)
    settings = ConnectionSettings(url=base_url, client_cert=client_cert, client_key=client_key)
    if request_timeout is not None:
        settings = replace(settings, read_seconds=float(request_timeout))
    target = load_model(name, root=None if root is None else Path(root), settings=settings)
    if version is not None and not target.digest.startswith(version):
        raise UsageError(
            f"model {name!r} has changed since this run began (its address, adapter or code):"
            " start a new run",
            code=Code.CHANGED_SINCE,
        )
    # The version is part of the name, so that logs, the cache and resumed runs never confuse two models.
    name = f"{name}@{target.digest[:8]}"
    if isinstance(target, ProviderTarget):
        return ProviderModelAPI(name, target, base_url, api_key, config, model_args)
    unknown = [*model_args, *(["api_key"] if api_key is not None else [])]
    if unknown:
        raise UsageError(
            f"model {name!r}: {', '.join(unknown)} has no effect on it; its file defines the connection",
            code=Code.WRONG_MODEL_ARGUMENT,
        )
    return EntityAPI(name, target, base_url, config)


class EntityAPI(ModelAPI):
    """Provider for a model that is called at a URL or through user code."""

    def __init__(self, model_name: str, connection: Connection, url: str | None, config: GenerateConfig):
        super().__init__(model_name, url, None, [], config)
        self.connection = connection

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002  # Inspect's signature
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput | tuple[ModelOutput | Exception, ModelCall]:
        """Make one call. Raise failures that Inspect may retry; return other failures with their request and
        response.
        """
        connection = self.connection
        call = call_input(connection.task, input, tools, tool_choice, config, sample_row())
        async with limited(
            connection.key, connection.digest, connection.max_concurrent, connection.rate_limit
        ):
            started = time.monotonic()
            try:
                answered = await connection.call(call)
            except CallError as error:
                _report(error.exchange)
                if error.is_transient or error.exchange is None:
                    raise
                return error, model_call(error.exchange, time.monotonic() - started, error=True)
            seconds = time.monotonic() - started
        _report(answered.exchange)
        record_response_headers(answered.headers)
        output = model_output(self.model_name, connection.task, answered.reply)
        return output, model_call(answered.exchange, seconds)

    def should_retry(self, ex: BaseException) -> RetryDecision:
        """Return whether to retry: after a rate limit, a server error or a network error."""
        if not isinstance(ex, CallError) or not ex.is_transient:
            return RetryDecision.no()
        if ex.kind == "rate_limit":
            return RetryDecision.rate_limit(ex.retry_after)
        return RetryDecision.transient(ex.retry_after)

    def retry_wait(self) -> wait_base:
        """Return the wait between retries: as requested by the endpoint, otherwise Inspect's usual wait."""
        return AskedWait()

    def max_connections(self) -> int:
        """Return the concurrency limit of the entity."""
        return self.connection.max_concurrent or super().max_connections()

    def connection_key(self) -> str:
        """Return the key by which Inspect counts connections, one for each endpoint."""
        return f"{self.connection.key}:{self.connection.digest[:16]}"

    async def aclose(self) -> None:
        """Close connections and stop workers."""
        await self.connection.aclose()


class ProviderModelAPI(ModelAPI):
    """Provider for a model of an integrated provider: Inspect's own provider with the name and limits of the
    entity.
    """

    def __init__(
        self,
        model_name: str,
        target: ProviderTarget,
        base_url: str | None,
        api_key: str | None,
        config: GenerateConfig,
        model_args: Mapping[str, Any],
    ):
        if target.task != "chat_completion":
            raise UsageError(
                f"model {target.key!r}: models of providers are only supported for chat, not for"
                f" {target.task!r}",
                code=Code.UNFIT_MODEL,
            )
        if target.provider not in PROVIDERS:
            names = ", ".join(PROVIDERS)
            raise UsageError(
                f"model {target.key!r}: provider {target.provider!r} is not supported here (known: {names})",
                code=Code.UNKNOWN_PROVIDER,
            )
        self.target = target
        self.native = get_model(
            f"{PROVIDERS[target.provider]}/{target.model}",
            base_url=base_url,
            api_key=api_key,
            config=config,
            memoize=False,
            **model_args,
        ).api
        super().__init__(model_name, self.native.base_url, api_key, [], config)

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002  # Inspect's signature
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput | tuple[ModelOutput | Exception, ModelCall]:
        """Make one call of the provider."""
        target = self.target
        async with limited(target.key, target.digest, target.max_concurrent, target.rate_limit):
            return await self.native.generate(input, tools, tool_choice, config)


def _forwarded(name: str) -> Callable[..., Any]:
    def method(self: ProviderModelAPI, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.native, name)(*args, **kwargs)

    method.__name__ = name
    return method


for _name, _value in vars(ModelAPI).items():
    # All other questions about the model are forwarded to Inspect's provider.
    if callable(_value) and not _name.startswith("_") and _name not in vars(ProviderModelAPI):
        setattr(ProviderModelAPI, _name, _forwarded(_name))


@asynccontextmanager
async def limited(
    key: str, identity: str, max_concurrent: int | None, rate_limit: int | None
) -> AsyncIterator[None]:
    """Wait for a free slot and for the rate limit of an endpoint, and hold the slot during this block. Models
    with the same identity share both.
    """
    name = f"{PROVIDER}:{key}:{identity}"
    if max_concurrent is not None:
        async with concurrency(key, max_concurrent, key=name, visible=False), passing(name, max_concurrent):
            await _paced(name, rate_limit)
            yield
    else:
        await _paced(name, rate_limit)
        yield


async def _paced(name: str, rate_limit: int | None) -> None:
    if rate_limit is not None and rate_limit > 0:
        wait = await pace(name, rate_limit)
        if wait > 0:
            await anyio.sleep(wait)


class AskedWait(wait_base):
    """Retry wait for Inspect that follows the core's `wait_after`."""

    def __call__(self, retry_state: RetryCallState) -> float:
        error = retry_state.outcome.exception() if retry_state.outcome is not None else None
        seconds = error.retry_after if isinstance(error, CallError) else None
        return wait_after(retry_state.attempt_number, seconds)


def sample_row() -> Mapping[str, Any] | None:
    """Return the dataset row of the running sample; `None` outside a task."""
    from inspect_ai.solver._task_state import sample_state

    state = sample_state()
    return None if state is None else state.metadata


def _report(exchange: Exchange | None) -> None:
    """Report the response status and the endpoint's request id to Inspect."""
    if exchange is None or exchange.status is None:
        return
    from inspect_ai.log._samples import report_active_model_request_id

    report_active_model_request_id(exchange.request_id or "", "", exchange.status)


def model_call(exchange: Exchange, seconds: float, *, error: bool = False) -> ModelCall:
    """Return the raw request and response for the log."""
    response = None if exchange.response is None else _object(exchange.response)
    call = ModelCall.create(_object(exchange.request), response, time=seconds)
    call.error = True if error else None
    return call


def _object(text: str) -> dict[str, Any]:
    """Return a body as a JSON object, as Inspect requires; other values are stored under `body`."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {"body": text}
    return value if isinstance(value, dict) else {"body": value}


# Scripted model. Only its answers are scripted; everything else is the real engine.


class ScriptedAPI(ModelAPI):
    """Provider `scripted/<file>`, which answers from a file of rules (see `aigo_bridge.models.scripted`)."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008  # Inspect's signature
    ):
        self.script: Script = load_script(Path(model_name))
        # The URL is part of Inspect's cache key. Other rules must count as another model, even in a file
        # with the same name.
        rules = hashlib.sha256(Path(model_name).read_bytes()).hexdigest()[:16]
        super().__init__(model_name, f"rules:{rules}", api_key, [], config)
        self._calls = 0

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002  # Inspect's signature
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> tuple[ModelOutput, ModelCall]:
        """Answer from the first rule that matches."""
        reply = self.script.reply([(message.role, message.text) for message in input])
        if reply.delay:
            await anyio.sleep(reply.delay)
        if reply.error is not None:
            raise _failure(reply.error, reply.status)
        self._calls += 1
        output = _output(self.model_name, input, reply, self._calls)
        request = {
            "model": self.model_name,
            "messages": [{"role": message.role, "content": message.text} for message in input],
            "config": config.model_dump(mode="json", exclude_none=True),
        }
        response = {"text": reply.text, "stop_reason": reply.stop_reason}
        return output, ModelCall.create(request, response)

    def should_retry(self, ex: BaseException) -> bool:
        """Return whether a real client would retry the error."""
        return isinstance(ex, httpx.HTTPStatusError) and is_transient(ex.response.status_code)

    def connection_key(self) -> str:
        """Return the key for Inspect's concurrency limit, one for each script."""
        return self.model_name


def _output(name: str, messages: list[ChatMessage], reply: ScriptedReply, number: int) -> ModelOutput:
    content: str | list[Content] = reply.text
    if reply.reasoning is not None or reply.refusal:
        content = [ContentText(text=reply.text, refusal=True if reply.refusal else None)]
        if reply.reasoning is not None:
            content.insert(0, ContentReasoning(reasoning=reply.reasoning))
    calls = [
        ToolCall(id=call.id or f"call_{number}_{index}", function=call.name, arguments=call.arguments)
        for index, call in enumerate(reply.tool_calls)
    ]
    logprobs = [
        Logprob(token=token, logprob=value, bytes=list(token.encode())) for token, value in reply.logprobs
    ]
    choice = ChatCompletionChoice(
        message=ChatMessageAssistant(
            content=content, tool_calls=calls or None, model=name, source="generate"
        ),
        stop_reason=reply.stop_reason,
        logprobs=Logprobs(content=logprobs) if logprobs else None,
    )
    prompt, completion = reply.tokens([(message.role, message.text) for message in messages])
    # Without token counts, Inspect downloads a tokenizer to estimate them, which fails without a network.
    usage = ModelUsage(input_tokens=prompt, output_tokens=completion, total_tokens=prompt + completion)
    return ModelOutput(model=name, choices=[choice], usage=usage)


def _failure(message: str, status: int | None) -> httpx.HTTPStatusError | RuntimeError:
    """Return the exception that a provider's client would raise."""
    if status is None:
        return RuntimeError(message)
    request = httpx.Request("POST", "https://scripted.invalid/")
    return httpx.HTTPStatusError(message, request=request, response=httpx.Response(status, request=request))
