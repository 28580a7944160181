"""Every feature of the format gives the expected outcome, with the same details on every engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.conformance.carrying_out import faults
from tests.conformance.features import Feature, features, ready

from aigo_bridge.snippets import run_in_process
from aigo_bridge.spec import metric, scorers, solvers, task, trials
from aigo_bridge.spec.base import SpecModel

FEATURES = features()


@pytest.mark.xdist_group("conformance")
@pytest.mark.parametrize("feature", FEATURES, ids=[each.id for each in FEATURES])
def test_a_feature_has_the_expected_outcome_on_every_engine(feature: Feature, tmp_path: Path) -> None:
    with surroundings(feature, f"scripted/{tmp_path / 'task' / 'model.rules'}"):
        assert faults(feature.id, lambda: ready(feature, tmp_path / "task"), tmp_path, feature.expect) == []


@pytest.mark.parametrize(
    ("part", "of_it"),
    [
        (solvers.SOLVERS, "type"),
        (solvers.MessageBuilder, "type"),
        (solvers.InputBuilder, "type"),
        (scorers.SCORERS, "type"),
        (metric.METRICS, "type"),
        (trials.Aggregator, "function"),
        (task.Definition, "type"),
    ],
    ids=["solver", "message builder", "input builder", "scorer", "metric", "aggregator", "definition"],
)
def test_every_component_type_is_used_by_a_feature(part: Any, of_it: str) -> None:
    """A new type in the format needs a feature here."""
    used = {value for feature in FEATURES for value in named(feature.document, of_it)} | {"benchmark_task"}
    assert set(kinds(part, of_it)) - used == set()


def named(value: Any, key: str) -> Iterator[Any]:
    """Yield every value of a key, at any depth."""
    if isinstance(value, dict):
        if "ask" in value:
            yield from ("single_turn_solver", "chat_completion")
        if isinstance(value.get(key), str):
            yield value[key]
        for each in value.values():
            yield from named(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from named(each, key)


def kinds(part: Any, of_it: str) -> Iterator[str]:
    """Yield the discriminator values of a union."""
    for member in part.values() if isinstance(part, dict) else get_args(part):
        if isinstance(member, type) and issubclass(member, SpecModel):
            yield from get_args(member.model_fields[of_it].annotation)
        else:
            yield from kinds(member, of_it)


@contextmanager
def surroundings(feature: Feature, model: str) -> Iterator[None]:
    """Set where the author's Python runs, and set a model price of one currency unit per million tokens in
    Inspect.
    """
    from inspect_ai.model import ModelCost, ModelInfo, set_model_info
    from inspect_ai.model._model_info import clear_model_info_cache

    run_in_process(feature.document.get("snippets") != "worker")
    if feature.document.get("prices"):
        cost = ModelCost(input=1.0, output=1.0, input_cache_write=0.0, input_cache_read=0.0)
        set_model_info(model, ModelInfo(cost=cost))
    try:
        yield
    finally:
        run_in_process(False)
        clear_model_info_cache()
