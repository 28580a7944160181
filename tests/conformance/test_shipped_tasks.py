"""Every shipped task gives the same evidence on both engines."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conformance.comparing import differences, outcome_on
from tests.support.commands import TASKS

from aigo_bridge.engines import load_engine
from aigo_bridge.evaluate import plan
from aigo_bridge.plan import PlanOrigin

CONFIG = {"uniqueness-task": {"field": "email"}}
"""Values for parameters that have no default."""

DATA = {"uniqueness-task": {"contacts": str(TASKS / "uniqueness-task" / "contacts.csv")}}

ONLY_INSPECT = {"humaneval", "mbpp"}
"""Tasks that need a sandbox, which lighteval has not; it refuses them."""

NAMES = sorted(
    folder.name
    for folder in TASKS.iterdir()
    if (folder / "task.yaml").is_file() and folder.name not in ONLY_INSPECT
)


@pytest.mark.xdist_group("lighteval")
@pytest.mark.parametrize("name", NAMES)
def test_the_same_evidence(name: str, tmp_path: Path) -> None:
    folder = TASKS / name
    made = plan(PlanOrigin(str(folder), CONFIG.get(name, {}), DATA.get(name, {})))
    model = f"scripted/{folder / 'answers.jsonl'}" if made.calls_model else None
    judges = dict.fromkeys(made.model_keys, f"scripted/{folder / 'judge.jsonl'}")

    settings = {"model": model, "model_map": judges, "max_connections": 1}
    left = outcome_on("inspect", made, tmp_path, **settings)
    right = outcome_on("lighteval", made, tmp_path, **settings)

    assert left["trials"]
    assert differences(left, right) == []


@pytest.mark.parametrize("name", sorted(ONLY_INSPECT))
def test_what_lighteval_cannot_run_is_refused(name: str) -> None:
    (gap,) = load_engine("lighteval").gaps(plan(PlanOrigin(str(TASKS / name))))
    assert gap.part == "scorers (code_exec)"
