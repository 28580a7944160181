"""Stored entities of AI GO (model, data set) for things that live in no AI GO workspace.

Ids and adapters are required there; what we write is derived from names, so it is the same in every run.
"""

from __future__ import annotations

import re

from aigo_bridge.dtypes import (
    MLTask,
    ModelCustomConnectionConfig,
    ModelProviderConnectionConfig,
    ModelProviderId,
    StoredDataset,
    StoredModel,
)

PROVIDERS = {provider.value for provider in ModelProviderId}

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


def stored_model(
    name: str, *, engine: str, key: str | None = None, display_name: str | None = None
) -> StoredModel:
    """A model entity for an engine's model name.

    Args:
        name: the engine's name, e.g. `openai/gpt-4.1-nano`.
        engine: the engine that reached the model; stands in the URL of models of no known provider.
        key: AI GO key of the model, where it is declared under one; `None`: made from the name.
        display_name: its shown name; `None`: the name.
    """
    key = _stored_key(key) if key else model_key(name)
    provider, _, model = name.partition("/")
    config: ModelProviderConnectionConfig | ModelCustomConnectionConfig
    if model and provider in PROVIDERS:
        config = ModelProviderConnectionConfig(
            connection_type="provider_connection", provider_id=ModelProviderId(provider), model_key=model
        )
    else:
        config = ModelCustomConnectionConfig(
            connection_type="custom_connection", adapter_id=engine, url=f"{engine}://{name}", model_key=name
        )
    return StoredModel(
        id=key,
        display_name=display_name or name,
        key=key,
        task=MLTask.chat_completion,
        config=config,
        adapter_id=engine,
    )


def stored_dataset(key: str, display_name: str) -> StoredDataset:
    """A data set entity."""
    return StoredDataset(id=key, display_name=display_name, key=key)
