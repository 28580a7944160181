"""Snippet workers end with their run."""

from __future__ import annotations

import gc
from pathlib import Path

from aigo_bridge.engine.protocol import Job, RunSettings
from aigo_bridge.engine.registry import load_engine
from aigo_bridge.evaluation.task import plan
from aigo_bridge.plan.plan import PlanOrigin
from aigo_bridge.snippets.process import WorkerProcess

TASK = """key: asking
display_name: Asking
description: ''
definition:
  dataset: {key: rows}
  solver:
    type: python
    run_solver_snippet: |
      async def run_solver(sample, model, trace):
          trace.append_user_message(sample["question"])
          trace.add_model_response(await model.predict(trace.items))
  scorers:
    - {type: string_equals, ground_truth: "42"}
"""


def living() -> list[WorkerProcess]:
    return [each for each in gc.get_objects() if issubclass(type(each), WorkerProcess) and each.end.alive]


def test_snippet_workers_end_without_garbage_collection(tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text(TASK)
    (tmp_path / "rows.jsonl").write_text('{"question": "What is six times seven?"}\n')
    (tmp_path / "model.jsonl").write_text('{"default": true, "reply": "42"}\n')
    origin = PlanOrigin(task=str(tmp_path / "task.yaml"), datasets={"rows": str(tmp_path / "rows.jsonl")})
    job = Job(plan(origin), f"scripted/{tmp_path / 'model.jsonl'}")
    before = living()
    gc.disable()
    try:
        load_engine("inspect").run([job], RunSettings(out=tmp_path / "out"))
        assert [worker for worker in living() if worker not in before] == []
    finally:
        gc.enable()
