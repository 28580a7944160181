"""Secrets kept out of what Inspect is told, and out of what it writes.

Where a model is called, everything that comes back (answers, raw responses, exceptions with all they came from) is cleaned before Inspect,
or anybody else, sees it. What comes another way (prompts, tools, a task's own code) is cleaned as a log is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from inspect_ai.log._recorders import eval as eval_log  # the one place where logs become bytes
from inspect_ai.model import Model, ModelAPI, ModelCall, ModelOutput
from pydantic_core import PydanticSerializationError, to_json

from aigo_bridge.secrets import (
    KNOWN,
    is_clean,
    learn_environment,
    may_be_secret,
    redact,
    redact_error,
    redact_json,
    redact_value,
)
from aigo_inspect.pages import ProviderError, page_error, watch_pages

_GUARDED = "_aigo_bridge_guarded"

Generated = ModelOutput | tuple[ModelOutput | Exception, ModelCall]
"""What a provider gives for one call."""


def guard(api: ModelAPI) -> None:
    """Clean what a provider gives and raises, from now on; the key it was given is a secret."""
    if vars(api).get(_GUARDED):
        return
    # Inspect has read the `.env` file by now.
    learn_environment()
    if api.api_key is not None and may_be_secret(api.api_key):
        KNOWN.learn([api.api_key])
    generate = api.generate

    async def guarded(*args: Any, **kwargs: Any) -> Generated:
        watch_pages(api)
        try:
            result: Generated = await generate(*args, **kwargs)
        except Exception as error:
            told = page_error(error)
            redact_error(told)
            if not is_clean(told):
                raise ProviderError(redact(f"{type(told).__name__}: {told}")) from None
            if told is not error:
                raise told from None
            raise
        return _clean(result)

    vars(api)["generate"] = guarded
    vars(api)[_GUARDED] = True


def _clean(result: Generated) -> Generated:
    if not isinstance(result, tuple):
        return _clean_output(result)
    output, call = result
    if call.response is not None:
        call.response = redact_value(call.response)
    if not isinstance(output, Exception):
        return _clean_output(output), call
    redact_error(output)
    return (output if is_clean(output) else ProviderError(redact(str(output)))), call


def _clean_output(output: ModelOutput) -> ModelOutput:
    try:
        data = to_json(output)
    except PydanticSerializationError:
        return output  # lone surrogates: such an answer is cleaned as it is written
    clean = redact_json(data)
    return output if clean is data else ModelOutput.model_validate_json(clean)


@contextmanager
def logs_without_secrets() -> Iterator[None]:
    """Clean every log that Inspect writes in this block, and guard every model that is made in it."""
    logs: Any = eval_log
    models: Any = Model
    written, made = logs.to_json_safe, models.__init__

    def to_json_safe(*args: Any, **kwargs: Any) -> bytes:
        return redact_json(written(*args, **kwargs))

    def init(self: Model, api: ModelAPI, *args: Any, **kwargs: Any) -> None:
        made(self, api, *args, **kwargs)
        guard(api)

    learn_environment()
    logs.to_json_safe, models.__init__ = to_json_safe, init
    try:
        yield
    finally:
        logs.to_json_safe, models.__init__ = written, made
