"""Models behind the core's Model protocol: made from what a user calls them, limited, asked again after transient failures."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import anyio
from anyio.lowlevel import checkpoint

from aigo_bridge.connections import (
    Connection,
    ConnectionSettings,
    Exchange,
    MLTask,
    ModelInfo,
    ProviderTarget,
    is_model_file,
    load_model,
)
from aigo_bridge.connections.endpoint import TLS, Endpoint, header_value
from aigo_bridge.connections.hidden import Mask
from aigo_bridge.connections.shipped import SHIPPED
from aigo_bridge.dtypes import ModelResponse
from aigo_bridge.engine import Retry
from aigo_bridge.errors import SampleError, Stage, UsageError
from aigo_bridge.models import ModelRequest
from aigo_bridge.scoring.likelihoods import Likelihood, raw_output
from aigo_bridge.secrets import KNOWN, learn_arguments, redact
from aigo_lighteval.answers import tokens_of
from aigo_lighteval.backends import BACKENDS, PREFIX, backend_model
from aigo_lighteval.calling import (
    AttemptError,
    Caller,
    ConnectionCaller,
    LikelihoodCaller,
    LoadingCaller,
    ScriptedCaller,
)
from aigo_lighteval.recording import current

ATTEMPTS = 8
"""Attempts per call after transient failures, as on Inspect."""

FIRST_WAIT = 3.0
"""Seconds before the second attempt, where the endpoint does not ask for a time; doubled each time."""

LONGEST_WAIT = 30 * 60.0
"""Seconds that are waited at most, whatever the endpoint asks for."""


RETRIES: ContextVar[Callable[[Retry], None] | None] = ContextVar("retries", default=None)
"""Who is told of calls that will be made again; `None`: nobody."""


@dataclass(frozen=True)
class Provider:
    """Who serves models over OpenAI's chat completion protocol."""

    url: str | None
    """Base URL; `None`: the environment must say it."""
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
"""By the name in front of the model; `<NAME>_BASE_URL` and `<NAME>_API_KEY` of the environment say the rest. Any other server is
`openai-api/<name>/<model>`."""


def make_caller(name: str | None, arguments: Mapping[str, Any] | None = None) -> Caller:
    """A model by what a user calls it.

    Args:
        name: `scripted/FILE`, a model entity's file (`model.yaml`, `run.yaml#key`), `provider/model` of a server that speaks OpenAI's chat
            completion protocol, or a model of a backend of lighteval (see `backends`), which is not loaded yet.
        arguments: `base_url` and `api_key`, in place of the environment's.

    Raises:
        UsageError: there is no such model, or it cannot be reached from here.
        SpecError: its file is not valid.
    """
    if name is None:
        raise UsageError(
            "the task evaluates a model, and none was given; use --model, e.g. --model openai/gpt-4.1-nano"
        )
    given = dict(arguments or {})
    learn_arguments(given)
    backend = backend_model(name)
    if backend is not None:
        _refuse(name, given)
        from aigo_lighteval.asking import BackendCaller

        return BackendCaller(backend)
    provider, _, rest = name.partition("/")
    if provider == "scripted" and rest:
        _refuse(name, given)
        return ScriptedCaller(name, rest)
    if provider == "aigo_bridge" or (is_model_file(name) and provider not in PROVIDERS):
        return _entity(name.removeprefix("aigo_bridge/"), given)
    url, key = given.pop("base_url", None), given.pop("api_key", None)
    _refuse(name, given)
    return ConnectionCaller(name, _endpoint(name, url, key))


def _refuse(name: str, arguments: Mapping[str, Any]) -> None:
    if arguments:
        raise UsageError(f"model {name!r}: unknown arguments {', '.join(arguments)}")


def _entity(file: str, arguments: dict[str, Any]) -> Caller:
    url = arguments.pop("base_url", None)
    _refuse(file, arguments)
    target = load_model(file, settings=ConnectionSettings(url=url))
    # The version is part of the name, so that no resumed run takes the answers of one model for those of another.
    name = f"aigo_bridge/{file}@{target.digest[:8]}"
    if isinstance(target, ProviderTarget):
        if target.task != "chat_completion":
            raise UsageError(
                f"model {target.key!r}: models of providers are for chat here, not for {target.task!r}"
            )
        return ConnectionCaller(name, _endpoint(f"{target.provider}/{target.model}", url, None, target))
    return ConnectionCaller(name, target)


def _endpoint(
    name: str, url: str | None, api_key: str | None, target: ProviderTarget | None = None
) -> Connection:
    """A model of a server that speaks OpenAI's protocol."""
    provider, _, model = name.partition("/")
    if provider == "openai-api":
        service, _, model = model.partition("/")
        known, prefix = Provider(None), service.upper().replace("-", "_")
    else:
        known, prefix = PROVIDERS.get(provider, Provider(None)), provider.upper().replace("-", "_")
    if (provider not in PROVIDERS and provider != "openai-api") or not model:
        names = ", ".join(["scripted", *PROVIDERS])
        raise UsageError(
            f"model {name!r} cannot be reached from the lighteval engine: expected one of {names} and a model, a model entity's"
            " file, openai-api/<service>/<model>, or a backend of lighteval with its model"
            f" ({', '.join(BACKENDS)}); other providers run with --engine inspect"
        )
    url = url or os.environ.get(f"{prefix}_BASE_URL") or known.url
    if url is None:
        loaded_here = f"; {PREFIX}{name} loads it in this process" if provider in BACKENDS else ""
        raise UsageError(f"model {name!r}: its address is not known; set {prefix}_BASE_URL{loaded_here}")
    key = api_key or os.environ.get(f"{prefix}_API_KEY")
    if key is None and known.needs_key:
        raise UsageError(f"model {name!r}: there is no key; set {prefix}_API_KEY")
    try:
        headers = {} if key is None else {"authorization": header_value(f"Bearer {key}")}
        KNOWN.learn([] if key is None else [key])
    except ValueError as error:
        raise UsageError(f"model {name!r}: its key {error}") from error
    address = f"{url.rstrip('/')}/chat/completions"
    return Connection(
        key=name if target is None else target.key,
        display_name=name,
        info=ModelInfo("chat_completion", model),
        adapter=SHIPPED["latticeflow$openai_chat_completion"],
        transport=Endpoint(address, headers, TLS()),
        mask=Mask([] if key is None else [key]),
        digest=address,
        rate_limit=None if target is None else target.rate_limit,
        max_concurrent=None if target is None else target.max_concurrent,
    )


_Called = tuple[Any, ModelResponse, tuple[int, int] | None, Exchange]
"""What a call gives its caller, and what is kept of it: response, tokens, raw exchange."""


class HostedModel:
    """A model as the sample program sees it; made per use, the caller and its limit are shared."""

    def __init__(self, key: str, caller: Caller, limiter: anyio.CapacityLimiter, stage: Stage = "solver"):
        self._key = key
        self._caller = caller
        self._limiter = limiter
        self._stage: Stage = stage

    @property
    def key(self) -> str:
        """AI GO key; `""` for the evaluated model."""
        return self._key

    @property
    def name(self) -> str:
        """What the user calls it."""
        return self._caller.name

    @property
    def task(self) -> MLTask:
        """What the model is for."""
        return (
            self._caller.connection.task if isinstance(self._caller, ConnectionCaller) else "chat_completion"
        )

    async def predict(self, request: ModelRequest) -> ModelResponse:
        """Call the model; again, as long as its failures are transient.

        Raises:
            SampleError: the request has no form for the model, or there was no answer.
        """
        response: ModelResponse = await self._called(request, self._answer)
        return response

    async def likelihoods(
        self, request: ModelRequest, continuations: Sequence[str]
    ) -> tuple[Likelihood, ...]:
        """How likely the model finds texts behind a request's prompt; tried again as `predict` does.

        Raises:
            SampleError: the request has no form for the model, or it tells no likelihoods.
        """

        async def weigh(asked: ModelRequest) -> _Called:
            if not isinstance(self._caller, LikelihoodCaller):
                raise SampleError(
                    f"model {self.name!r} tells no likelihoods of given texts",
                    stage=self._stage,
                    kind="NoLikelihoods",
                )
            found, exchange = await self._caller.likelihoods(asked, continuations, self._stage)
            return found, ModelResponse(raw_output=raw_output(found), items=[]), None, exchange

        found: tuple[Likelihood, ...] = await self._called(request, weigh)
        return found

    async def _answer(self, request: ModelRequest) -> _Called:
        answer, exchange = await self._caller.attempt(request, self._stage)
        response = answer.response()
        return response, response, tokens_of(answer.reply.usage), exchange

    async def _called(self, request: ModelRequest, call: Callable[[ModelRequest], Awaitable[_Called]]) -> Any:
        """What one kind of call gives, kept in the recording, within the limits."""
        record = current()
        if record is not None:
            record.check_limit(self._stage)
        for attempt in range(1, ATTEMPTS + 1):
            wait = 0.0
            await _take_place(self._limiter)
            started = time.time()
            try:
                result, response, tokens, exchange = await call(request)
            except AttemptError as failed:
                last = not failed.is_transient or attempt == ATTEMPTS
                if record is not None:
                    exchange_kept = failed.exchange if last else None
                    record.add(self.name, request, started, failed.error, None, exchange_kept)
                if last:
                    raise failed.error from failed
                wait = _wait(attempt, failed.retry_after)
                if (told := RETRIES.get()) is not None:
                    told(Retry(self.name, attempt, wait, redact(failed.error.message)))
            except anyio.get_cancelled_exc_class():
                # A limit has ended the sample: what was asked is evidence, too.
                if record is not None:
                    record.add(self.name, request, started, _unanswered(self._stage), None, None)
                raise
            else:
                if record is not None:
                    record.add(self.name, request, started, response, tokens, exchange)
                    record.check_limit(self._stage)
                return result
            finally:
                self._limiter.release()
            await anyio.sleep(wait)
        raise AssertionError("the last attempt returns or raises")


async def _take_place(limiter: anyio.CapacityLimiter) -> None:
    """Wait for one of a limiter's places.

    Its own `acquire` holds the place while others have their turn, so that most of them would have to be woken up again.
    """
    await checkpoint()
    try:
        limiter.acquire_nowait()
    except anyio.WouldBlock:
        await limiter.acquire()


def _unanswered(stage: Stage) -> SampleError:
    return SampleError("the call was cancelled before there was an answer", stage=stage, kind="Cancelled")


def load_caller(caller: Caller) -> None:
    """Load the model behind a caller, where it is one that runs in this process.

    Raises:
        UsageError: it cannot be loaded.
    """
    if isinstance(caller, LoadingCaller):
        caller.load()


def single_model(name: str) -> HostedModel:
    """A model for calls outside a run.

    Raises:
        UsageError: there is no such model.
    """
    caller = make_caller(name)
    load_caller(caller)
    return HostedModel(name, caller, anyio.CapacityLimiter(caller.max_concurrent))


def _wait(attempt: int, asked: float | None) -> float:
    if asked is not None:
        # Not all at once again.
        return min(asked, LONGEST_WAIT) + random.uniform(0, min(1.0, asked / 4))  # noqa: S311  # no secret
    return min(FIRST_WAIT * 2.0 ** (attempt - 1), LONGEST_WAIT) + random.uniform(0, FIRST_WAIT)  # noqa: S311  # no secret


class Models:
    """The other models of a task, by AI GO key.

    Raises:
        SampleError: (when called) no model was given for the key.
    """

    def __init__(self, callers: Mapping[str, tuple[Caller, anyio.CapacityLimiter]], stage: Stage):
        self._callers = callers
        self._stage: Stage = stage

    def __call__(self, key: str) -> HostedModel:
        """The model behind a key."""
        if key not in self._callers:
            raise SampleError(
                f"no model was given for {key!r}",
                stage=self._stage,
                hint=f"--model-map '{key}=PROVIDER/MODEL'",
                kind="MissingModel",
            )
        return HostedModel(key, *self._callers[key], self._stage)
