"""Model protocol: how the sample program calls a model, whichever engine makes the call.

A request contains AI GO's own model input. A response is AI GO's `ModelResponse` and, if the engine keeps it,
the raw endpoint traffic. Adapters implement `Model` with their framework's model objects. Concurrency,
retries, caching and logging therefore stay with the framework.
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
"""Options that a request may contain in addition to messages, under their usual chat completion names."""


@dataclass(frozen=True)
class ModelRequest:
    """One model call."""

    input: ChatCompletionInput
    """Messages and, for structured outputs, the response format."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Generation options by name, a subset of `GENERATION_OPTIONS`."""
    items: tuple[TraceItem, ...] | None = None
    """Conversation as trace items, for content that chat messages cannot express: function calls and their
    outputs, images, files. `None` for a plain chat; otherwise `input.messages` is empty.

    The input of a model that is not a chat model is one `CustomTaskInputMessage`. It contains any JSON; for
    embeddings, a list of texts.
    """


class Model(Protocol):
    """A model that can be called."""

    @property
    def key(self) -> str:
        """AI GO key of the model in the task; `""` for the evaluated model."""
        ...

    @property
    def name(self) -> str:
        """Engine's name of the model that answers, e.g. `openai/gpt-4.1-nano`."""
        ...

    async def predict(self, request: ModelRequest) -> ModelResponse:
        """Call the model once. The engine retries transient failures.

        Raises:
            SampleError: the model failed, or its answer is invalid.
        """
        ...


def task_of(model: Model) -> MLTask:
    """Return the ML task of a model; `chat_completion` if the model does not define one."""
    task: MLTask = getattr(model, "task", "chat_completion")
    return task


class Models(Protocol):
    """Look-up of models that a task names by key (judges, other speakers)."""

    def __call__(self, key: str) -> Model:
        """Return the model with an AI GO key.

        Raises:
            SampleError: no model was given for the key.
        """
        ...
