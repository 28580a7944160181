"""Random tasks have the same outcome on every engine.

`AIGO_CONFORMANCE_EXAMPLES` sets the number of tasks (`make conformance` uses 1,000). Without it, a few fixed
tasks are tested.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, event, given, reject, settings
from tests.conformance.carrying_out import faults
from tests.conformance.features import Feature, ready
from tests.conformance.random_plans import documents

from aigo_bridge.errors import SpecError
from aigo_bridge.snippets import run_in_process

EXAMPLES = int(os.environ.get("AIGO_CONFORMANCE_EXAMPLES", "8"))
FEW = "AIGO_CONFORMANCE_EXAMPLES" not in os.environ


@pytest.fixture
def in_this_process() -> Iterator[None]:
    run_in_process()
    yield
    run_in_process(False)


@pytest.mark.xdist_group("conformance")
@pytest.mark.timeout(0 if not FEW else 180)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=FEW,
    print_blob=True,
    # The explain phase is left out, because it traces every line, including the engines.
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.function_scoped_fixture,
        HealthCheck.data_too_large,
    ],
)
@given(document=documents())
def test_random_tasks_have_the_same_outcome_on_every_engine(
    in_this_process: None, document: dict[str, Any]
) -> None:
    solver = document["definition"].get("solver")
    event(f"solver: {None if solver is None else solver['type']}")
    for scorer in document["definition"]["scorers"]:
        event(f"scorer: {scorer['type']}")
    with tempfile.TemporaryDirectory() as folder:
        try:
            made = ready(Feature("random", "random", document, {}), Path(folder) / "task")
        except SpecError:
            # An invalid task cannot show a difference between engines. Too many of them fail the test.
            reject()
        assert faults("random", lambda: made, Path(folder)) == []
