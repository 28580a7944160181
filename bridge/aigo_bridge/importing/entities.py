"""Entities of AI GO (model, data set) as JSON, for things that live in no AI GO workspace.

Ids and adapters are required there; what we write is derived from names, so it is the same in every run. Plain
dictionaries, because an import builds no objects and should not wait for their classes; `results.entities` has the same as objects.
"""

from __future__ import annotations

import re
from typing import Any

PROVIDERS = frozenset(
    {"anthropic", "fireworks", "gemini", "latticeflow", "novita", "openai", "sambanova", "together"}
)
"""The providers that AI GO knows (`dtypes.ModelProviderId`)."""

_OTHER = re.compile(r"[^a-z0-9_]+")


def slug(text: str) -> str:
    """A text as (part of) an AI GO key: lower case, runs of other characters as one `-`; `x` if nothing is left."""
    return _OTHER.sub("-", text.lower()).strip("-")[:200] or "x"


def model_key(name: str) -> str:
    """The AI GO key of a model by its engine name: `openai/gpt-4.1-nano` → `openai$gpt-4-1-nano`.

    Providers that AI GO does not know become part of the key: `scripted/answers.jsonl` → `scripted-answers-jsonl`.
    """
    provider, _, model = name.partition("/")
    if model and provider in PROVIDERS:
        return f"{provider}${slug(model)}"
    return slug(name)


def _stored_key(key: str) -> str:
    """A key as stored models may have it: `$` stands behind a known provider only."""
    provider, dollar, rest = key.partition("$")
    if not dollar or (provider in PROVIDERS and "$" not in rest):
        return key
    return key.replace("$", "-")


def model_entity(
    name: str, *, engine: str, key: str | None = None, display_name: str | None = None
) -> dict[str, Any]:
    """A model entity for an engine's model name.

    Args:
        name: the engine's name, e.g. `openai/gpt-4.1-nano`.
        engine: the engine that reached the model; stands in the URL of models of no known provider.
        key: AI GO key of the model, where it is declared under one; `None`: made from the name.
        display_name: its shown name; `None`: the name.
    """
    key = _stored_key(key) if key else model_key(name)
    provider, _, model = name.partition("/")
    if model and provider in PROVIDERS:
        config = {"connection_type": "provider_connection", "provider_id": provider, "model_key": model}
    else:
        config = {
            "connection_type": "custom_connection",
            "adapter_id": engine,
            "url": f"{engine}://{name}",
            "model_key": name,
        }
    return {
        "id": key,
        "display_name": display_name or name,
        "key": key,
        "task": "chat_completion",
        "config": config,
        "adapter_id": engine,
    }


def dataset_entity(key: str, display_name: str) -> dict[str, Any]:
    """A data set entity."""
    return {"display_name": display_name, "key": key, "id": key}
