"""Stored outputs replace new ones in the same way on each engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.jobs import run_task

from aigo_bridge.dtypes import SolverTrace, Trace
from aigo_bridge.engine.registry import load_engine
from aigo_bridge.evaluation.task import plan, scored_again
from aigo_bridge.execution.codec import Replay
from aigo_bridge.execution.program import compile_program
from aigo_bridge.execution.solutions import SampleFailure, Solution
from aigo_bridge.plan.plan import PlanOrigin, Sample
from aigo_bridge.results.records import StoredRuns, TrialRecord

TASK = """key: t
display_name: T
description: ''
definition:
  dataset: {key: d}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
    postprocessor:
      type: python
      postprocess_snippet: |
        def postprocess(sample, solver_output):
            words = solver_output.output.choices[0].message.content.split()
            return [({**sample, "sample_id": word}, solver_output) for word in words]
  scorers:
    - {type: string_equals, ground_truth: x, value: x}
"""


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.jsonl").write_text('{"q": "some"}\n{"q": "none"}\n')
    (tmp_path / "t.yaml").write_text(TASK)
    (tmp_path / "m.jsonl").write_text(
        '{"match": {"contains": "some"}, "reply": "one two"}\n{"default": true, "reply": ""}\n'
    )
    return tmp_path / "t.yaml"


@pytest.mark.engine
@pytest.mark.parametrize(
    "engine", ["inspect", pytest.param("lighteval", marks=pytest.mark.xdist_group("lighteval"))]
)
def test_an_output_without_rows_is_not_scored(engine: str, task: Path, tmp_path: Path) -> None:
    chosen = load_engine(engine)
    made = plan(PlanOrigin(task=str(task)))
    first = run_task(chosen, made, tmp_path / "a", model="scripted/m.jsonl")

    assert first.result is not None
    stored = plan(scored_again(PlanOrigin(task=str(task)), first.result))
    again = run_task(chosen, stored, tmp_path / "b")

    assert [(row.value, row.num_scored) for row in first.metrics] == [(1.0, 2)]
    assert again.metrics == first.metrics
    assert again.num_failed == first.num_failed == 0


@pytest.fixture
def solution_of(task: Path) -> Callable[..., Solution | SampleFailure | None]:
    made = plan(PlanOrigin(task=str(task)))
    output = SolverTrace(trace=Trace.from_items([]), raw_outputs=[], direct_ios=[])
    stored = StoredRuns([TrialRecord("one", 0, {"q": "some"}, output, ())])

    def solution(
        sample_id: str, trial: int, *, complete: bool, made_rows: bool
    ) -> Solution | SampleFailure | None:
        replay = Replay(stored, complete=complete, made_rows=made_rows)
        return asyncio.run(replay.solution(compile_program(made), Sample(sample_id, {}), trial))

    return solution


def test_trial_that_is_not_stored_is_missing_absent_or_solved_again(
    solution_of: Callable[..., Solution | SampleFailure | None],
) -> None:
    """It is missing in a finished result, unless the sample is a row. In an unfinished run it is solved."""
    missing = solution_of("one", 1, complete=True, made_rows=False)
    assert isinstance(missing, SampleFailure)
    assert missing.kind == "MissingOutput"
    row = solution_of("one", 1, complete=True, made_rows=True)
    assert isinstance(row, Solution)
    assert (row.rows, row.absent) == ((), True)
    assert solution_of("one", 1, complete=False, made_rows=False) is None
