"""Results of shipped tasks without an engine: their rows, answered by scripted models."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
from tests.support.results import Json, result, sample, trial, write_result

from aigo_bridge.dtypes import (
    ChatCompletionModelOutput,
    ChatCompletionModelOutputChoice,
    ChatCompletionOutputMessage,
    ModelResponse,
    SolverOutput,
)
from aigo_bridge.dtypes.base import make_explicit
from aigo_bridge.dtypes.conversion import assistant_message
from aigo_bridge.errors import SampleError
from aigo_bridge.evaluation.task import plan
from aigo_bridge.execution.permissions import snippet_host
from aigo_bridge.execution.program import compile_program
from aigo_bridge.execution.solutions import Solution
from aigo_bridge.models.protocol import ModelRequest
from aigo_bridge.models.scripted import Script, load_script
from aigo_bridge.plan.plan import PlanOrigin


class ScriptedModel:
    """Rule-based model without an engine."""

    def __init__(self, script: Script):
        self._script = script
        self.key = self.name = "scripted"

    @staticmethod
    def of_rules(rules: Sequence[Mapping[str, Any]], folder: Path) -> ScriptedModel:
        """Return a model of rules, which are written to a file in the folder."""
        file = folder / "rules.jsonl"
        file.write_text("".join(json.dumps(rule) + "\n" for rule in rules))
        return ScriptedModel(load_script(file))

    async def predict(self, request: ModelRequest) -> ModelResponse:
        """The reply of the first rule that matches."""
        reply = self._script.reply([(each.role, str(each.content)) for each in request.input.messages])
        if reply.error is not None:
            raise SampleError(reply.error, stage="score", kind="Offline")
        said = ChatCompletionOutputMessage(role="assistant", content=reply.text)
        output = ChatCompletionModelOutput(choices=[ChatCompletionModelOutputChoice(message=said)])
        return ModelResponse(raw_output=output, items=[assistant_message(reply.text)])


def scripted_result(folder: Path, file: Path) -> Path:
    """Return a result of a task folder, answered by its scripted model, without scores."""
    origin = PlanOrigin(task=str(folder / "task.yaml"))
    task_plan = plan(origin)
    model = ScriptedModel(load_script(folder / "answers.jsonl"))

    async def solved() -> list[Json]:
        with closing(snippet_host(task_plan)) as host:
            program = compile_program(task_plan, host)
            samples = []
            for row in task_plan.samples:
                solution = await program.solve(row, model, lambda key: model)
                assert isinstance(solution, Solution), solution
                stored = trial(row.id, [], data=dict(row.data))
                stored["solver"]["output"] = _dumped(solution.output)
                samples.append(sample(stored))
            return samples

    log = result(anyio.run(solved))
    log["specification"]["task"]["key"] = task_plan.task.key
    return write_result(file, log)


def _dumped(output: SolverOutput) -> Any:
    return make_explicit(output).model_dump(mode="json")
