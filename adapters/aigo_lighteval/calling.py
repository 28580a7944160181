"""One attempt to call a model: the scripted one, or one behind a `Connection` of the core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import anyio
import orjson

from aigo_bridge.connections import (
    CallError,
    CallInput,
    Choice,
    Connection,
    Exchange,
    Reply,
    ToolCallReply,
    Usage,
    shared_pace,
)
from aigo_bridge.dtypes import CustomTaskInputMessage
from aigo_bridge.errors import SampleError, Stage
from aigo_bridge.models import ModelRequest
from aigo_bridge.scoring.likelihoods import Likelihood
from aigo_bridge.scripted import ScriptedReply, load_script
from aigo_lighteval.answers import Answer
from aigo_lighteval.messages import chat_messages, text_of

DEFAULT_CONNECTIONS = 10
"""Calls of a model at a time where nobody says otherwise; Inspect's default."""

SAMPLE_ROW: ContextVar[Mapping[str, Any] | None] = ContextVar("sample_row", default=None)
"""The row that is being solved or scored, for models whose answer depends on it."""


class AttemptError(Exception):
    """One attempt gave no answer."""

    def __init__(
        self,
        error: SampleError,
        *,
        is_transient: bool,
        retry_after: float | None = None,
        exchange: Exchange | None = None,
    ):
        super().__init__(error.message)
        self.error = error
        self.is_transient = is_transient
        self.retry_after = retry_after
        self.exchange = exchange


class Caller(Protocol):
    """A model that is called once, without being asked again."""

    name: str
    """What the user calls the model."""
    max_concurrent: int
    """Calls at a time."""

    async def attempt(self, request: ModelRequest, stage: Stage) -> tuple[Answer, Exchange]:
        """Call the model.

        Raises:
            SampleError: the request has no form for this model.
            AttemptError: there is no answer.
        """
        ...

    async def aclose(self) -> None:
        """Give up what is held open."""
        ...


@runtime_checkable
class LikelihoodCaller(Protocol):
    """A model that tells how likely given texts are."""

    async def likelihoods(
        self, request: ModelRequest, continuations: Sequence[str], stage: Stage
    ) -> tuple[tuple[Likelihood, ...], Exchange]:
        """How likely the model finds texts behind a request's prompt.

        Raises:
            SampleError: the request has no form for this model.
            AttemptError: there is no answer.
        """
        ...


@runtime_checkable
class LoadingCaller(Protocol):
    """A model that has to be loaded before it can be called."""

    def load(self) -> object:
        """Load it, once.

        Raises:
            UsageError: it cannot be loaded.
        """
        ...


class ScriptedCaller:
    """`scripted/FILE`: answers from a file of rules.

    Raises:
        SpecError: the rules cannot be read.
    """

    def __init__(self, name: str, path: str):
        self.name = name
        self.max_concurrent = DEFAULT_CONNECTIONS
        self._path = path
        self._script = load_script(Path(path))
        self._calls = 0

    async def attempt(self, request: ModelRequest, stage: Stage) -> tuple[Answer, Exchange]:
        """Answer from the first rule that matches."""
        messages = [(message["role"], text_of(message)) for message in chat_messages(request, stage)]
        reply = self._script.reply(messages)
        if reply.delay:
            await anyio.sleep(reply.delay)
        asked = {
            "model": self._path,
            "messages": [{"role": role, "content": text} for role, text in messages],
            "config": _options(request),
        }
        sent = _json(asked)
        if reply.error is not None:
            kind = "RuntimeError" if reply.status is None else "HTTPStatusError"
            raise AttemptError(
                SampleError(reply.error, stage=stage, kind=kind),
                is_transient=reply.status is not None and _is_transient(reply.status),
                exchange=Exchange(sent, None, reply.status),
            )
        self._calls += 1
        response = {"text": reply.text, "stop_reason": reply.stop_reason}
        return Answer(_reply(reply, messages, self._calls)), Exchange(sent, _json(response))

    async def aclose(self) -> None:
        """Nothing is held open."""


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


def _is_transient(status: int) -> bool:
    return status in (408, 409, 429) or status >= 500


class ConnectionCaller:
    """A model behind an address, or behind the author's code."""

    def __init__(self, name: str, connection: Connection):
        self.name = name
        self.connection = connection
        self.max_concurrent = connection.max_concurrent or DEFAULT_CONNECTIONS

    async def attempt(self, request: ModelRequest, stage: Stage) -> tuple[Answer, Exchange]:
        """One call, when the model's rate allows."""
        connection = self.connection
        call = self._input(request, stage)
        if connection.rate_limit:
            pace = shared_pace(f"{connection.key}:{connection.digest}", connection.rate_limit)
            await anyio.sleep(pace.reserve())
        try:
            answered = await connection.call(call)
        except CallError as error:
            raise AttemptError(
                SampleError(error.message, stage=stage, hint=error.hint, kind="ModelError"),
                is_transient=error.is_transient,
                retry_after=error.retry_after,
                exchange=error.exchange,
            ) from error
        return Answer(answered.reply, connection.task), answered.exchange

    def _input(self, request: ModelRequest, stage: Stage) -> CallInput:
        connection = self.connection
        row = SAMPLE_ROW.get()
        if connection.task != "chat_completion":
            return CallInput(self._opaque(request, stage), {}, row)
        options = dict(request.options)
        if options and not connection.takes_options:
            raise SampleError(
                f"model {connection.key!r} is asked with {', '.join(options)}, which its adapter"
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
        given = request.items or ()
        if len(given) == 1 and isinstance(given[0], CustomTaskInputMessage):
            return given[0].content
        if given or self.connection.task == "embeddings":
            raise SampleError(
                f"model {self.connection.key!r} is for {self.connection.task!r} and cannot answer a conversation",
                stage=stage,
                kind="UnsupportedModel",
            )
        return {**request.input.model_dump(mode="json", by_alias=True, exclude_unset=True), **request.options}

    async def aclose(self) -> None:
        """Close connections, end workers."""
        await self.connection.aclose()


def _options(request: ModelRequest) -> dict[str, Any]:
    found = dict(request.options)
    if (wanted := request.input.response_format) is not None:
        found["response_format"] = wanted.model_dump(mode="json", by_alias=True, exclude_none=True)
    return found


def _json(value: Any) -> str:
    return orjson.dumps(value, default=str).decode()
