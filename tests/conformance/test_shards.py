"""A run in shards gives the same evidence as a single run, identical to the byte except for ids and times.

The runs have 1, 2, 7 and more shards than rows. With `AIGO_CONFORMANCE_EXAMPLES` (`make conformance`), every
engine is tested. Without it, the smallest engine is tested, and a few features in two shards on the others.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, reject, settings
from tests.conformance.comparing import ENGINES
from tests.conformance.features import Feature, features, ready
from tests.conformance.ledger import known_gap
from tests.conformance.random_plans import documents
from tests.conformance.sharding import is_stateless, origin_of, shard_faults
from tests.conformance.test_echo_engine import BASIC
from tests.conformance.test_features import surroundings
from tests.support.plugin.aigo_bridge_words.echo import EchoEngine

from aigo_bridge.engine.registry import load_engine
from aigo_bridge.errors import SpecError, UnsupportedPlanError
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.snippets import run_in_process

FEW = "AIGO_CONFORMANCE_EXAMPLES" not in os.environ
EXAMPLES = 5 if FEW else max(1, int(os.environ["AIGO_CONFORMANCE_EXAMPLES"]) // 10)

SOME = frozenset(
    {
        "scorers: python_all_samples",
        "trials: mean, min, max, pass@k, pass^k",
        "rules: rules for post-processor rows",
    }
)
"""Features that are tested on both engines at every change, because their merges have special cases."""

FEATURES = [
    feature for feature in features() if is_stateless(feature.document) and "again" not in feature.document
]
ON_ENGINES = [feature for feature in FEATURES if not FEW or feature.id in SOME]
ON_ECHO = [feature for feature in FEATURES if feature in BASIC]


@pytest.fixture
def in_this_process() -> Iterator[None]:
    run_in_process()
    yield
    run_in_process(False)


def counts_of(plan: TaskPlan) -> list[int]:
    """Return the numbers of shards to test: one, some, and more than rows."""
    return list(dict.fromkeys([1, 2, 7, len(plan.samples) + 2]))


def test_enough_features_are_tested_in_shards() -> None:
    assert len(FEATURES) >= 60
    assert {feature.id for feature in ON_ENGINES} >= SOME


@pytest.mark.parametrize("feature", ON_ECHO, ids=[each.id for each in ON_ECHO])
def test_a_feature_in_shards_equals_a_single_run(
    feature: Feature, in_this_process: None, tmp_path: Path
) -> None:
    """The smallest engine is fast enough to test all numbers of shards at every change."""
    made = ready(feature, tmp_path / "task")
    counts = counts_of(made.plan)
    assert shard_faults(EchoEngine(), origin_of(made), made.settings, tmp_path, counts) == []


@pytest.mark.xdist_group("conformance")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("feature", ON_ENGINES, ids=[each.id for each in ON_ENGINES])
def test_a_feature_in_shards_equals_a_single_run_on_each_engine(
    feature: Feature, engine: str, tmp_path: Path
) -> None:
    if known_gap(engine, feature.id) is not None:
        return  # rejected, as in a single run
    with surroundings(feature, f"scripted/{tmp_path / 'task' / 'model.rules'}"):
        made = ready(feature, tmp_path / "task")
        counts = [2] if FEW else counts_of(made.plan)
        assert shard_faults(load_engine(engine), origin_of(made), made.settings, tmp_path, counts) == []


@pytest.mark.xdist_group("conformance")
@pytest.mark.timeout(0 if not FEW else 180)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=FEW,
    print_blob=True,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.function_scoped_fixture,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
    ],
)
@given(document=documents())
def test_random_tasks_in_shards_equal_a_single_run(in_this_process: None, document: dict[str, Any]) -> None:
    """At every change, only the smallest engine is tested. `make conformance` tests all engines."""
    if not is_stateless(document):
        reject()
    with tempfile.TemporaryDirectory() as folder:
        try:
            made = ready(Feature("random", "random", document, {}), Path(folder) / "task")
        except SpecError:
            reject()
        for engine in [EchoEngine(), *([] if FEW else map(load_engine, ENGINES))]:
            try:
                counts, out = counts_of(made.plan), Path(folder) / engine.name
                faults = shard_faults(engine, origin_of(made), made.settings, out, counts)
            except UnsupportedPlanError:
                continue
            assert faults == []
