"""Every shipped task gives the same evidence on every engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conformance.carrying_out import faults
from tests.conformance.features import Ready
from tests.support.commands import TASKS

from aigo_bridge.evaluation.task import plan
from aigo_bridge.plan.plan import PlanOrigin

CONFIG = {"uniqueness-task": {"field": "email"}}
"""Values for parameters without a default."""

DATA = {"uniqueness-task": {"contacts": str(TASKS / "uniqueness-task" / "contacts.csv")}}

NAMES = sorted(folder.name for folder in TASKS.iterdir() if (folder / "task.yaml").is_file())

SUBMITTED = ("governance-controls", "hp-trivia", "piqa", "simpleqa", "wmt14")
"""Tasks that a submission compares: without a model, with a judge, groups of calls, labels, and metrics of all samples."""


def shipped(name: str) -> Ready:
    """Return a shipped task with the answers next to it."""
    folder = TASKS / name
    made = plan(PlanOrigin(str(folder), CONFIG.get(name, {}), DATA.get(name, {})))
    model = f"scripted/{folder / 'answers.jsonl'}" if made.calls_model else None
    judges = dict.fromkeys(made.model_keys, f"scripted/{folder / 'judge.jsonl'}")
    assert made.entity == "system" or made.samples
    return Ready(made, {"model": model, "model_map": judges, "max_connections": 1})


@pytest.mark.xdist_group("conformance")
@pytest.mark.parametrize(
    "name",
    # The metrics of the other tasks are tested in `tests/tasks/test_shipped_benchmarks.py`, and their
    # features in `test_features.py`.
    [pytest.param(name, marks=() if name in SUBMITTED else pytest.mark.nightly) for name in NAMES],
)
def test_shipped_tasks_have_the_same_evidence_on_every_engine(name: str, tmp_path: Path) -> None:
    made = shipped(name)
    assert faults(f"task: {name}", lambda: made, tmp_path) == []
