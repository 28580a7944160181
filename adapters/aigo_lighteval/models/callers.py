"""Models by name: scripted models, and models with a `Connection` of aigo-bridge. Each call is one
attempt.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import orjson

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import CustomTaskInputMessage
from aigo_bridge.engine.recording import PREFIX as CASSETTE
from aigo_bridge.errors import SampleError, Stage, UsageError
from aigo_bridge.execution.jobs import NO_MODEL
from aigo_bridge.models.connections import (
    CallError,
    CallInput,
    Choice,
    Connection,
    Exchange,
    ModelInfo,
    ProviderTarget,
    Reply,
    ToolCallReply,
    Usage,
    is_model_file,
    load_model,
)
from aigo_bridge.models.connections.adapters import SHIPPED
from aigo_bridge.models.connections.transports import TLS, Endpoint, header_value
from aigo_bridge.models.gate import pace
from aigo_bridge.models.protocol import ModelRequest
from aigo_bridge.models.scripted import ScriptedReply, is_transient, load_script
from aigo_bridge.redaction.secrets import KNOWN, address_secrets, is_credential
from aigo_lighteval.models.backends import BACKENDS, PREFIX, backend_model
from aigo_lighteval.models.cassettes import CassetteCaller
from aigo_lighteval.models.generation import named_model, server_options, with_settings
from aigo_lighteval.models.messages import (
    AttemptError,
    Caller,
    ModelAnswer,
    chat_messages,
    text_of,
)

DEFAULT_CONNECTIONS = 10
"""Default number of concurrent model calls, as in Inspect."""

SAMPLE_ROW: ContextVar[Mapping[str, Any] | None] = ContextVar("sample_row", default=None)
"""Row that is currently solved or scored, for models whose answer depends on it."""


class ScriptedCaller:
    """Scripted model `scripted/FILE`, which answers from a file of rules.

    Raises:
        SpecError: the rules cannot be read.
    """

    def __init__(self, name: str, path: str, settings: Mapping[str, Any] | None = None):
        self.name = name
        self.settings = settings or {}
        self.max_concurrent = DEFAULT_CONNECTIONS
        self._path = path
        self._script = load_script(Path(path))
        self._calls = 0

    async def attempt(self, request: ModelRequest, stage: Stage) -> tuple[ModelAnswer, Exchange]:
        """Answer from the first matching rule."""
        messages = [(message["role"], text_of(message)) for message in chat_messages(request, stage)]
        reply = self._script.reply(messages)
        if reply.delay:
            await anyio.sleep(reply.delay)
        body = {
            "model": self._path,
            "messages": [{"role": role, "content": text} for role, text in messages],
            "config": _options(request, self.settings, stage),
        }
        sent = _json(body)
        if reply.error is not None:
            kind = "RuntimeError" if reply.status is None else "HTTPStatusError"
            raise AttemptError(
                SampleError(reply.error, stage=stage, kind=kind),
                is_transient=reply.status is not None and is_transient(reply.status),
                exchange=Exchange(sent, None, reply.status),
            )
        self._calls += 1
        response = {"text": reply.text, "stop_reason": reply.stop_reason}
        return ModelAnswer(_reply(reply, messages, self._calls)), Exchange(sent, _json(response))

    async def aclose(self) -> None:
        """Do nothing: no resources are open."""


def _reply(reply: ScriptedReply, messages: list[tuple[str, str]], number: int) -> Reply:
    calls = tuple(
        ToolCallReply(call.id or f"call_{number}_{index}", call.name, _json(call.arguments))
        for index, call in enumerate(reply.tool_calls)
    )
    choice = Choice(
        text="" if reply.refusal else reply.text,
        refusal=reply.text if reply.refusal else None,
        reasoning=reply.reasoning,
        tool_calls=calls,
        finish_reason=reply.stop_reason,
        logprobs=tuple(
            {"token": token, "logprob": value, "bytes": list(token.encode())}
            for token, value in reply.logprobs
        ),
    )
    return Reply(choices=(choice,), usage=Usage(*reply.tokens(messages)))


class ConnectionCaller:
    """Model at an address or in task code."""

    def __init__(self, name: str, connection: Connection, settings: Mapping[str, Any] | None = None):
        self.name = name
        self.settings = settings or {}
        self.connection = connection
        self.max_concurrent = connection.max_concurrent or DEFAULT_CONNECTIONS

    async def attempt(self, request: ModelRequest, stage: Stage) -> tuple[ModelAnswer, Exchange]:
        """Make one call as soon as the model's rate limit allows it."""
        connection = self.connection
        call = self._input(request, stage)
        if connection.rate_limit:
            await anyio.sleep(await pace(f"{connection.key}:{connection.digest}", connection.rate_limit))
        try:
            answered = await connection.call(call)
        except CallError as error:
            raise AttemptError(
                SampleError(error.message, stage=stage, hint=error.hint, kind="ModelError"),
                is_transient=error.is_transient,
                retry_after=error.retry_after,
                exchange=error.exchange,
            ) from error
        return ModelAnswer(answered.reply, connection.task), answered.exchange

    def _input(self, request: ModelRequest, stage: Stage) -> CallInput:
        connection = self.connection
        row = SAMPLE_ROW.get()
        if connection.task != "chat_completion":
            return CallInput(self._opaque(request, stage), {}, row)
        options = with_settings(request.options, self.settings, stage)
        if options and not connection.takes_options:
            raise SampleError(
                f"model {connection.key!r} receives {', '.join(options)}, which its adapter"
                f" {connection.adapter.key!r} does not pass on",
                stage=stage,
                hint="let 'process_input' write the options in `kwargs`",
                kind="UnsupportedOption",
            )
        chat: dict[str, Any] = {"messages": chat_messages(request, stage)}
        if (response_format := request.input.response_format) is not None:
            chat["response_format"] = response_format.model_dump(
                mode="json", by_alias=True, exclude_none=True
            )
        return CallInput(chat, options, row)

    def _opaque(self, request: ModelRequest, stage: Stage) -> Any:
        items = request.items or ()
        if len(items) == 1 and isinstance(items[0], CustomTaskInputMessage):
            return items[0].content
        if items or self.connection.task == "embeddings":
            raise SampleError(
                f"model {self.connection.key!r} is for {self.connection.task!r}"
                " and cannot answer a conversation",
                stage=stage,
                kind="UnsupportedModel",
            )
        return {**request.input.model_dump(mode="json", by_alias=True, exclude_unset=True), **request.options}

    async def aclose(self) -> None:
        """Close connections and end worker processes."""
        await self.connection.aclose()


def _options(request: ModelRequest, settings: Mapping[str, Any], stage: Stage) -> dict[str, Any]:
    options = with_settings(request.options, settings, stage)
    if (wanted := request.input.response_format) is not None:
        options["response_format"] = wanted.model_dump(mode="json", by_alias=True, exclude_none=True)
    return options


def _json(value: Any) -> str:
    return orjson.dumps(value, default=str).decode()


# Models by name


@dataclass(frozen=True)
class Provider:
    """Provider that serves models with OpenAI's chat completion protocol."""

    url: str | None
    """Base URL; `None` if only the environment can set it."""
    needs_key: bool = True


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider("https://api.openai.com/v1"),
    "fireworks": Provider("https://api.fireworks.ai/inference/v1"),
    "groq": Provider("https://api.groq.com/openai/v1"),
    "mistral": Provider("https://api.mistral.ai/v1"),
    "openrouter": Provider("https://openrouter.ai/api/v1"),
    "sambanova": Provider("https://api.sambanova.ai/v1"),
    "together": Provider("https://api.together.xyz/v1"),
    "ollama": Provider("http://localhost:11434/v1", needs_key=False),
    "sglang": Provider(None, needs_key=False),
    "vllm": Provider(None, needs_key=False),
}
"""Providers by the first part of the model name. `<NAME>_BASE_URL` and `<NAME>_API_KEY` in the environment
configure them. Any other server is `openai-api/<name>/<model>`."""


def make_caller(name: str | None, *, attempt_timeout: int | None = None) -> Caller:
    """Return the model with this name.

    Args:
        name: `cassette/MODEL` for a recorded model, `scripted/FILE`, a model entity's file (`model.yaml`,
            `run.yaml#key`), or `provider/model` for a server with OpenAI's chat completion protocol. Each can
            have settings (see `generation`). A lighteval backend (see `backends`) is also possible and is not
            loaded yet.
        attempt_timeout: maximum seconds for one call of a backend. For other models, the caller enforces
            the limit.

    Raises:
        UsageError: the model is unknown or not reachable from here.
        SpecError: the model file is not valid.
    """
    if name is None:
        raise UsageError(NO_MODEL, code=Code.NO_MODEL)
    if name.startswith(CASSETTE):
        return CassetteCaller(name)
    backend = backend_model(name)
    if backend is not None:
        from aigo_lighteval.models.batches import BackendCaller

        return BackendCaller(backend, attempt_timeout)
    named = named_model(name)
    settings = server_options(named)
    provider, _, rest = named.name.partition("/")
    if provider == "scripted" and rest:
        return ScriptedCaller(name, rest, settings)
    if provider == "aigo_bridge" or (is_model_file(named.name) and provider not in PROVIDERS):
        caller = _entity(named.name.removeprefix("aigo_bridge/"), settings)
        return _with_suffix(caller, name.removeprefix(named.name))
    return ConnectionCaller(name, _endpoint(named.name), settings)


def _with_suffix(caller: ConnectionCaller, suffix: str) -> ConnectionCaller:
    """Add the settings to a caller's name, so that answers with other settings are never reused."""
    caller.name += suffix
    if suffix and not caller.connection.takes_options:
        raise UsageError(
            f"model {caller.name!r}: its adapter {caller.connection.adapter.key!r} does not pass settings on"
            " (let 'process_input' write the options in `kwargs`)",
            code=Code.LOST_OPTION,
        )
    return caller


def _entity(file: str, settings: Mapping[str, Any]) -> ConnectionCaller:
    target = load_model(file)
    # The name contains the version, so that a resumed run never reuses answers of another version.
    name = f"aigo_bridge/{file}@{target.digest[:8]}"
    if isinstance(target, ProviderTarget):
        if target.task != "chat_completion":
            raise UsageError(
                f"model {target.key!r}: models of providers are only supported for chat, not for"
                f" {target.task!r}",
                code=Code.UNFIT_MODEL,
            )
        endpoint = _endpoint(f"{target.provider}/{target.model}", target)
        return ConnectionCaller(name, endpoint, settings)
    return ConnectionCaller(name, target, settings)


def _endpoint(name: str, target: ProviderTarget | None = None) -> Connection:
    """Return a connection to a server with OpenAI's protocol."""
    provider, _, model = name.partition("/")
    if provider == "openai-api":
        service, _, model = model.partition("/")
        settings, prefix = Provider(None), service.upper().replace("-", "_")
    else:
        settings, prefix = PROVIDERS.get(provider, Provider(None)), provider.upper().replace("-", "_")
    if (provider not in PROVIDERS and provider != "openai-api") or not model:
        names = ", ".join(["scripted", *PROVIDERS])
        raise UsageError(
            f"model {name!r} is not available on the lighteval engine. Expected one of "
            f"{names} and a model, a model file, openai-api/<service>/<model>, or a "
            f"lighteval backend ({', '.join(BACKENDS)}). For other providers, use --engine "
            "inspect",
            code=Code.UNKNOWN_PROVIDER,
        )
    url = os.environ.get(f"{prefix}_BASE_URL") or settings.url
    if url is None:
        loaded_here = f"; {PREFIX}{name} loads it in this process" if provider in BACKENDS else ""
        raise UsageError(
            f"model {name!r}: the address is unknown; set {prefix}_BASE_URL{loaded_here}",
            code=Code.MISSING_SECRET,
        )
    key = os.environ.get(f"{prefix}_API_KEY")
    if key is None and settings.needs_key:
        raise UsageError(
            f"model {name!r}: the key is missing; set {prefix}_API_KEY", code=Code.MISSING_SECRET
        )
    try:
        headers = {} if key is None else {"authorization": header_value(f"Bearer {key}")}
        hidden = [] if key is None or not is_credential(key) else [key]
        KNOWN.learn([*hidden, *address_secrets(url)])
    except ValueError as error:
        raise UsageError(f"model {name!r}: its key {error}", code=Code.MISSING_SECRET) from error
    address = f"{url.rstrip('/')}/chat/completions"
    return Connection(
        key=name if target is None else target.key,
        display_name=name,
        info=ModelInfo("chat_completion", model),
        adapter=SHIPPED["latticeflow$openai_chat_completion"],
        transport=Endpoint(address, headers, TLS()),
        digest=address,
        rate_limit=None if target is None else target.rate_limit,
        max_concurrent=None if target is None else target.max_concurrent,
    )
