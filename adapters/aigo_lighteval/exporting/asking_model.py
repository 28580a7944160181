"""The model of lighteval that has answered, seen from our metric: whether it was set as the task needs it, and was asked whole prompts.

lighteval tells metrics nothing of the model, cuts the beginning of prompts that are too long, and says nothing of that either.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc, SamplingMethod

from aigo_lighteval.backends import BACKENDS
from aigo_lighteval.exporting.questions import Shared


def asking_model() -> Any:
    """The model of the pipeline that is calling; `None` where there is none."""
    from lighteval.pipeline import Pipeline

    frame = inspect.currentframe()
    while frame is not None:
        caller = frame.f_locals.get("self")
        if isinstance(caller, Pipeline):
            return caller.model
        frame = frame.f_back
    return None


def model_problems(model: Any, shared: Shared) -> Iterator[str]:
    """How a model's configuration differs from what the task asks."""
    if not hasattr(getattr(model, "config", None), "generation_parameters"):
        return
    config = model.config
    if (config.system_prompt or None) != shared.system:
        wanted = "no system_prompt" if shared.system is None else f"system_prompt {shared.system!r}"
        yield f"the model has the system_prompt {config.system_prompt!r}, and the task asks with {wanted}"
    own = config.generation_parameters
    for name, value in shared.settings.items():
        if getattr(own, name, None) != value:
            yield f"the model has {name} {getattr(own, name, None)}, and the task asks with {value}"
    if shared.size is not None and own.max_new_tokens not in (None, shared.size):
        yield f"the model has max_new_tokens {own.max_new_tokens}, and the task asks with {shared.size}"


def prompt_problem(model: Any, doc: Doc, response: ModelResponse) -> str | None:
    """Why a prompt was not asked whole; `None`: it was, or the backend sends it to a server, which refuses what is too long."""
    tokenizer, limit = _tokenizer(model), getattr(model, "max_length", None)
    if tokenizer is None or limit is None:
        return None
    prompt = model.prompt_manager.prepare_prompt(doc)
    length = len(tokenizer(prompt, add_special_tokens=bool(model.add_special_tokens))["input_ids"])
    if SamplingMethod.LOGPROBS in doc.sampling_methods:
        longest = max(weighed_tokens(model, doc) or [0])
        return _too_long(length + longest, limit) if length + longest > limit else None
    asked = len(response.input_tokens) - int(response.padded_tokens_count)
    return _too_long(length, limit) if response.input_tokens and asked < length else None


def hides_failures(model: Any) -> bool:
    """Whether an empty answer of this model can be a call that failed."""
    name = type(model).__name__
    return any(backend.hides_failures and backend.model == name for backend in BACKENDS.values())


def weighed_tokens(model: Any, doc: Doc) -> list[int]:
    """Numbers of tokens of a document's choices; none where nobody knows. Those in responses are filled up, or missing."""
    tokenizer = _tokenizer(model)
    if tokenizer is None:
        return []
    return [len(tokenizer(choice, add_special_tokens=False)["input_ids"]) for choice in doc.choices]


def _tokenizer(model: Any) -> Any:
    # The model itself has been given up by now, and its tokenizer with it.
    tokenizer = getattr(getattr(model, "prompt_manager", None), "tokenizer", None)
    return tokenizer if callable(tokenizer) else None


def _too_long(length: int, limit: int) -> str:
    return f"the backend cut the beginning of the prompt: {length} tokens with what is weighed; the model takes {limit}, less the answer"
