"""Small sharded runs on the smallest engine."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from tests.support.plugin.aigo_bridge_words.echo import EchoEngine
from tests.support.recipes import single_turn

from aigo_bridge.engine.protocol import RunSettings
from aigo_bridge.evaluation.models import ModelChoice
from aigo_bridge.evaluation.running import EvaluationOutcome, ReadyEvaluation, prepare, run_evaluation
from aigo_bridge.evaluation.task import evaluations_of
from aigo_bridge.plan.plan import PlanOrigin
from aigo_bridge.plan.shards import Shard
from aigo_scale.sharding.running import ShardOutcome, run_shard

ENGINE = EchoEngine()
EQUALS = {"type": "string_equals", "ground_truth": "{{ sample.answer }}"}


def write_task(folder: Path, *scorers: dict[str, Any], rows: int = 7, **parts: Any) -> PlanOrigin:
    """Write a task whose model repeats the question, which is right for every second row."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [{"text": f"t{number}", "answer": f"t{number}" if number % 2 else "?"} for number in range(rows)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    task = single_turn(*(scorers or (EQUALS,)))
    task["definition"] |= parts
    (folder / "task.yaml").write_text(yaml.safe_dump(task))
    return PlanOrigin(str(folder / "task.yaml"))


def prepared(
    origin: PlanOrigin, shard: Shard | None = None, *, model: str = "echo", resume: bool = False
) -> list[ReadyEvaluation]:
    """Return the evaluation, or the part of a shard, ready to run."""
    own = origin if shard is None else replace(origin, shard=str(shard))
    return prepare(evaluations_of(own, cache=None), [ENGINE], ModelChoice(model), resume=resume)


def run_part(
    origin: PlanOrigin, out: Path, number: int, of: int, *, model: str = "echo", resume: bool = False
) -> ShardOutcome:
    """Run one shard."""
    shard = Shard(number, of)
    evaluations = prepared(origin, shard, model=model, resume=resume)
    return run_shard(evaluations, ENGINE, RunSettings(out), shard, resume=resume)


def run_parts(origin: PlanOrigin, out: Path, of: int) -> Path:
    """Run all shards and return their folder."""
    for number in range(1, of + 1):
        run_part(origin, out, number, of)
    return out


def run_whole(origin: PlanOrigin, out: Path) -> EvaluationOutcome:
    """Run all rows at once."""
    (evaluation,) = prepared(origin)
    return run_evaluation(evaluation, ENGINE, RunSettings(out))
