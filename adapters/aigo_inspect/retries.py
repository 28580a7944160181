"""Calls of models that Inspect makes again, told to whoever watches the run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from inspect_ai.model import (
    _model as model_module,  # a hook would do, but each one makes Inspect print a banner
)
from tenacity import RetryCallState

from aigo_bridge.counting import ProgressCounter
from aigo_bridge.engine import Retry
from aigo_bridge.secrets import redact


@contextmanager
def retries_told(counter: ProgressCounter) -> Iterator[None]:
    """Tell a counter of calls that will be made again, in this block; Inspect logs them as before."""
    module: Any = model_module
    logged = module.log_model_retry

    async def told(model_name: str, state: RetryCallState, *args: Any, **kwargs: Any) -> None:
        counter.retrying(Retry(model_name, state.attempt_number, state.upcoming_sleep, _reason(state)))
        await logged(model_name, state, *args, **kwargs)

    module.log_model_retry = told
    try:
        yield
    finally:
        module.log_model_retry = logged


def _reason(state: RetryCallState) -> str:
    """What the attempt met; where that came from something more telling, with it (`Connection error.`)."""
    error = state.outcome.exception() if state.outcome is not None else None
    if error is None:
        return "the call failed"
    said = str(error).strip() or type(error).__name__
    cause = str(error.__cause__ or "").strip()
    return redact(f"{said} ({cause})" if cause and cause not in said else said)
