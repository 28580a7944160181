"""The Model protocol: how the sample program talks to a model, whichever engine carries the call.

A request is AI GO's own model input; a response is AI GO's `ModelResponse` and, where the engine keeps it,
the raw endpoint traffic. Adapters implement `Model` on top of their framework's model objects, so that
concurrency, retries, caching and logging stay the framework's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from aigo_bridge.dtypes import ChatCompletionInput, ModelResponse, TraceItem
from aigo_bridge.spec.base import MLTask

GENERATION_OPTIONS = frozenset({
    "temperature", "top_p", "max_tokens", "stop", "seed", "presence_penalty", "frequency_penalty", "logprobs",
    "top_logprobs",
})  # fmt: skip
"""Options that a request may carry beside its messages, under their usual chat completion names."""


@dataclass(frozen=True)
class ModelRequest:
    """One call of a model."""

    input: ChatCompletionInput
    """Messages and, for structured outputs, the response format."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Generation options by name, a subset of `GENERATION_OPTIONS`."""
    items: tuple[TraceItem, ...] | None = None
    """The conversation as items of a trace, for what chat messages cannot say: function calls and their
    outputs, images, files. Stands in place of `input.messages`, which is empty then; `None` for a plain chat.
    The input of a model that is not for chat is one `CustomTaskInputMessage`: any JSON, for embeddings a list
    of texts."""


class Model(Protocol):
    """A model that can be called."""

    @property
    def key(self) -> str:
        """The AI GO key under which the task knows the model; `""` for the evaluated model."""
        ...

    @property
    def name(self) -> str:
        """The engine's name of the model that answers, e.g. `openai/gpt-4.1-nano`."""
        ...

    async def predict(self, request: ModelRequest) -> ModelResponse:
        """Call the model once (retries of transient failures are the engine's).

        Raises:
            SampleError: the model failed, or its answer is not one.
        """
        ...


def task_of(model: Model) -> MLTask:
    """What a model is for; one that does not say is for chat."""
    task: MLTask = getattr(model, "task", "chat_completion")
    return task


class Models(Protocol):
    """Look-up of the models that a task names by key (judges, other speakers)."""

    def __call__(self, key: str) -> Model:
        """The model behind an AI GO key.

        Raises:
            SampleError: no model was given for the key.
        """
        ...
