"""Stored entities of AI GO (model, data set) for things that live in no AI GO workspace, as objects."""

from __future__ import annotations

from aigo_bridge.dtypes import StoredDataset, StoredModel
from aigo_bridge.importing.entities import PROVIDERS, dataset_entity, model_entity, model_key, slug

__all__ = ["PROVIDERS", "model_key", "slug", "stored_dataset", "stored_model"]


def stored_model(
    name: str, *, engine: str, key: str | None = None, display_name: str | None = None
) -> StoredModel:
    """A model entity for an engine's model name; arguments as for `importing.entities.model_entity`."""
    entity = model_entity(name, engine=engine, key=key, display_name=display_name)
    return StoredModel.model_validate(entity)


def stored_dataset(key: str, display_name: str) -> StoredDataset:
    """A data set entity."""
    return StoredDataset.model_validate(dataset_entity(key, display_name))
