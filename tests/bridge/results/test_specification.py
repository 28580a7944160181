"""Entities of an import are plain JSON, equal to the objects of the rest of the project."""

import pytest

from aigo_bridge.dtypes import ModelProviderId, StoredDataset, StoredModel
from aigo_bridge.results.specification import (
    PROVIDERS,
    dataset_entity,
    model_entity,
    model_key,
    stored_dataset,
    stored_model,
)


def test_model_providers_match_ai_go() -> None:
    assert {provider.value for provider in ModelProviderId} == PROVIDERS


@pytest.mark.parametrize(
    "name",
    ["openai/gpt-4.1", "mockllm/model", "together/a/b", "no provider", "x" * 3000, "Ünï/cödé", "openai/"],
)
def test_model_entity_is_a_valid_stored_model(name: str) -> None:
    entity = model_entity(name, engine="inspect")
    assert StoredModel.model_validate(entity).model_dump(mode="json") == entity
    assert stored_model(name, engine="inspect").model_dump(mode="json") == entity
    assert entity["key"] == model_key(name)
    declared = model_entity(name, engine="inspect", key="a$b$c", display_name="Shown")
    assert (declared["key"], declared["display_name"]) == ("a-b-c", "Shown")


def test_dataset_entity_is_a_valid_stored_dataset() -> None:
    entity = dataset_entity("key", "name")
    assert StoredDataset.model_validate(entity).model_dump(mode="json") == entity
    assert stored_dataset("key", "name").model_dump(mode="json") == entity
