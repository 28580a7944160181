"""Removal of secrets from Inspect's input, output and logs, and clear errors for HTML pages in place of JSON.

Answers, raw responses and exceptions (with their causes) are redacted directly after a model call. Prompts,
tools and task code are redacted when a log is written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from weakref import WeakSet
from zipfile import BadZipFile, ZipFile

import httpx
from inspect_ai.log._samples import sample_active  # no public API
from inspect_ai.model import Model, ModelAPI, ModelCall, ModelOutput, RetryDecision
from pydantic_core import PydanticSerializationError, to_json

from aigo_bridge.models.connections.calls import HINT, CallError, page_message, unreadable
from aigo_bridge.models.gate import waiting
from aigo_bridge.redaction.secrets import (
    KNOWN,
    address_secrets,
    is_clean,
    is_credential,
    learn_environment,
    redact,
    redact_error,
    redact_json,
    redact_value,
)
from aigo_bridge.results.log_files import open_for_replacing

_GUARDED = "_aigo_bridge_guarded"

Generated = ModelOutput | tuple[ModelOutput | Exception, ModelCall]
"""Return value of a provider's `generate`."""


def guard(api: ModelAPI) -> None:
    """Redact everything that a provider returns and raises from now on, including its own API key."""
    if vars(api).get(_GUARDED):
        return
    # Inspect has already read the `.env` file at this point.
    learn_environment()
    _learn_key(api)
    generate = api.generate

    async def guarded(*args: Any, **kwargs: Any) -> Generated:
        watch_pages(api)
        _learn_key(api)  # some providers change their key during a run
        try:
            with waiting(api.model_name, _sample()):
                result: Generated = await generate(*args, **kwargs)
        except Exception as error:
            cleaned = unreadable_error(api, error) or page_error(error)
            redact_error(cleaned)
            if not is_clean(cleaned):
                raise ProviderError(redact(f"{type(cleaned).__name__}: {cleaned}")) from None
            if cleaned is not error:
                raise cleaned from None
            raise
        return _clean(result)

    retries = api.should_retry

    def should_retry(error: Exception) -> bool | RetryDecision:
        return RetryDecision.transient() if isinstance(error, DamagedReplyError) else retries(error)

    vars(api)["generate"] = guarded
    vars(api)["should_retry"] = should_retry
    vars(api)[_GUARDED] = True


def _sample() -> str | None:
    """Return the id of the running sample; `None` outside a run."""
    active = sample_active()
    return None if active is None or active.sample.id is None else str(active.sample.id)


def _learn_key(api: ModelAPI) -> None:
    """Register the current API key of a provider, and secrets in its URL, as known secrets."""
    if api.api_key is not None and is_credential(api.api_key):
        KNOWN.learn([api.api_key])
    if api.base_url:
        KNOWN.learn(address_secrets(api.base_url))


def _clean(result: Generated) -> Generated:
    if not isinstance(result, tuple):
        return _clean_output(result)
    output, call = result
    call.request = redact_value(call.request)
    if call.response is not None:
        call.response = redact_value(call.response)
    if not isinstance(output, Exception):
        clean = _clean_output(output)
        if clean is not output and call.response is not None:
            call.response = _without_tokens(call.response)
        return clean, call
    redact_error(output)
    return (output if is_clean(output) else ProviderError(redact(str(output)))), call


def _clean_output(output: ModelOutput) -> ModelOutput:
    try:
        data = to_json(output)
    except PydanticSerializationError:
        return output  # an answer with lone surrogates is redacted when the log is written
    clean = redact_json(data)
    if clean is data:
        return output
    cleaned = ModelOutput.model_validate_json(clean)
    for choice in cleaned.choices:
        choice.logprobs = None  # the tokens would spell out the secret
    return cleaned


def _without_tokens(value: Any) -> Any:
    """Return a raw response without log probabilities, because their tokens would spell out the secret."""
    if isinstance(value, dict):
        return {name: None if name == "logprobs" else _without_tokens(part) for name, part in value.items()}
    return list(map(_without_tokens, value)) if isinstance(value, list) else value


# Functions of Inspect that serialize logs and their temporary copies.
_WRITERS = (
    ("inspect_ai.log._recorders.eval", "to_json_safe"),
    ("inspect_ai.log._recorders.chunked.convert", "to_json_safe"),
    ("inspect_ai.log._recorders.buffer.filestore", "to_json_str_safe"),
    ("inspect_ai.log._recorders.buffer.database", "to_json_str_safe"),
    ("inspect_ai.log._file", "to_json_safe"),
)


@contextmanager
def logs_without_secrets() -> Iterator[None]:
    """Redact every log that Inspect writes in this block, and guard every model that is created in it."""
    undo = _clean_writers()
    models: Any = Model
    constructor = models.__init__

    def init(self: Model, api: ModelAPI, *args: Any, **kwargs: Any) -> None:
        constructor(self, api, *args, **kwargs)
        guard(api)

    learn_environment()
    models.__init__ = init
    try:
        yield
    finally:
        models.__init__ = constructor
        undo()


@cache
def clean_logs_from_now_on() -> None:
    """Redact every log that this process writes from now on. For Inspect's own command line."""
    learn_environment()
    _clean_writers()


def _clean_writers() -> Callable[[], None]:
    """Make Inspect's writers redact their output. Return a function that undoes the change."""
    originals: list[tuple[Any, str, Any]] = []
    for name, attribute in _WRITERS:
        module = import_module(name)
        originals.append((module, attribute, getattr(module, attribute)))
        setattr(module, attribute, _cleaning(getattr(module, attribute)))

    def undo() -> None:
        for module, attribute, writer in originals:
            setattr(module, attribute, writer)

    return undo


def _cleaning(writer: Callable[..., Any]) -> Callable[..., Any]:
    def clean(*args: Any, **kwargs: Any) -> Any:
        text = writer(*args, **kwargs)
        return redact_json(text) if isinstance(text, bytes) else redact_json(text.encode()).decode()

    return clean


def clean_log(path: Path) -> bool:
    """Rewrite a finished `.eval` log without secrets. Return whether it contained any.

    Raises:
        OSError: the log cannot be read or written.
    """
    # Imported late, because Inspect's Zstandard support for `zipfile` takes long to load.
    import inspect_ai._util.zipfile  # noqa: F401  # adds compression methods to zipfile

    try:
        with ZipFile(path) as log:
            if all(redact_json(data := log.read(name)) is data for name in log.namelist()):
                return False
            with open_for_replacing(path, clean=False) as file, ZipFile(file, "w") as clean:
                for info in log.infolist():
                    with log.open(info) as member:
                        clean.writestr(info, redact_json(member.read()), compress_type=info.compress_type)
    except (BadZipFile, NotImplementedError):
        return False  # the import recovers the log of a killed run, and redacts it
    return True


# HTML pages in place of JSON. Clients raise many different errors for them.


_PAGE: ContextVar[str | None] = ContextVar("page", default=None)
"""Error message for the HTML page in the last response of this call; `None` if it was not a page."""
_WATCHED: WeakSet[Any] = WeakSet()


class ProviderError(Exception):
    """Failure of a provider, described by aigo-bridge."""


class DamagedReplyError(ProviderError):
    """A reply with status 200 that is not an answer: truncated, damaged or of another type."""


_UNREADABLE = (json.JSONDecodeError, UnicodeDecodeError, httpx.DecodingError)
"""Errors that clients raise for such a reply."""


def unreadable_error(api: ModelAPI, error: Exception) -> DamagedReplyError | None:
    """Return the error to raise for a reply that a provider's client cannot read; `None` for other errors."""
    if _PAGE.get() is not None or isinstance(error, CallError):
        return None
    cause = next((each for each in causes(error) if isinstance(each, _UNREADABLE)), None)
    if cause is None and not _is_taken_for_text(error):
        return None
    problem = "the server sent text instead of JSON" if cause is None else f"{type(cause).__name__}: {cause}"
    return DamagedReplyError(f"model {api.model_name!r}: {unreadable(_server(api), None, problem)}")


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes."""
    seen: list[BaseException] = []
    while error not in seen:
        seen.append(error)
        yield error
        error = error.__cause__ or error.__context__ or error


def _is_taken_for_text(error: Exception) -> bool:
    """Return whether a client returned text in place of an object, because the type was not JSON."""
    return isinstance(error, AttributeError) and isinstance(error.obj, str)


def _server(api: ModelAPI) -> str:
    base_url = api.base_url or getattr(getattr(api, "client", None), "base_url", None)
    if base_url is None:
        return "the server"
    url = httpx.URL(str(base_url))
    return f"{url.host}:{url.port}" if url.port else url.host


def watch_pages(api: ModelAPI) -> None:
    """Watch the responses of a provider's client for HTML pages, if it is an HTTPX client."""
    _PAGE.set(None)
    client = getattr(api, "http_client", None)
    hooks = getattr(client, "event_hooks", None)
    if isinstance(hooks, dict) and "response" in hooks and client not in _WATCHED:
        _WATCHED.add(client)
        hooks["response"].append(_note)


async def _note(response: Any) -> None:
    _PAGE.set(None)
    if not response.headers.get("content-type", "").lower().startswith("text/html"):
        return
    await response.aread()
    url = response.request.url
    address = str(url.copy_with(username=None, password=None, query=None))
    _PAGE.set(page_message(response.text, response.status_code, address))


def page_error(error: Exception) -> Exception:
    """Return the error to raise for an HTML page. If the error has a status, only its message is replaced,
    because the status decides about a retry.
    """
    page = _PAGE.get()
    if page is None:
        return error
    message = f"{page} ({HINT})"
    if not isinstance(getattr(error, "status_code", None), int):
        return ProviderError(message)
    native: Any = error
    native.args = (message, *error.args[1:])
    if hasattr(native, "message"):
        native.message = message
    return error
