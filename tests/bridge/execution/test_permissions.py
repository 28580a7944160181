"""Network access of task code is allowed for one task and its config only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import aigo_bridge
from aigo_bridge.errors import UsageError
from aigo_bridge.execution.permissions import (
    allow,
    is_allowed,
    require_allowed,
    resolve_permissions,
    snippet_host,
)
from aigo_bridge.plan.plan import TaskPlan

TASK = """key: t
display_name: T
description: ""
needs: network
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers:
    - type: python
      compute_scores_snippet: |
        def compute_scores(sample, solver_output):
            return {"score": 1.0}
"""


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TaskPlan]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "task.yaml").write_text(TASK, encoding="utf-8")
    yield aigo_bridge.plan_task(tmp_path / "task.yaml", datasets={"rows": [{"q": "?"}]})
    allow([])


def test_network_permission_applies_to_one_task_and_config(plan: TaskPlan) -> None:
    with pytest.raises(UsageError, match="the code needs the network"):
        require_allowed([plan])
    allow(["network"])
    resolve_permissions(plan)
    allow([])
    assert is_allowed(plan)
    others = (
        replace(plan, config={"address": "http://elsewhere"}),
        replace(plan, task=plan.task.model_copy(update={"description": "another"})),
    )
    for other in others:
        assert not is_allowed(other)
        assert not snippet_host(other).limits.network
        with pytest.raises(UsageError, match="the code needs the network"):
            resolve_permissions(other)
