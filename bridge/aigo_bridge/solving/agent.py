"""Solver `agent_solver`: the model works with tools in a sandbox until it answers without a tool call.

The core runs no tools. An engine provides an `AgentRunner` with a sandbox. Its result is the conversation,
the last answer and the files that scorers need. Therefore scorers need no sandbox, and score stored outputs
in the same way as the run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import SolverTrace, TraceMetadata
from aigo_bridge.errors import SampleError, UnsupportedPlanError
from aigo_bridge.models.protocol import Model, Models
from aigo_bridge.solving.conversation import compile_input, empty_trace, render
from aigo_bridge.solving.solver import Agent, AgentRunner, AgentTask, SolverType
from aigo_bridge.spec.solvers import AgentSolver
from aigo_bridge.templates import SampleTemplate


class AgentRun:
    """Run of one agent and the agents that it may hand over to."""

    def __init__(self, spec: AgentSolver, runner: AgentRunner | None):
        self._spec = spec
        self._runner = runner
        self._build = compile_input(spec.input_builder)
        self._prompts = [SampleTemplate(agent.prompt) for agent in spec.agents]
        files, names = spec.files, spec.output_files
        self._files = SampleTemplate(files) if files is not None and "{{" in files else None
        self._names = SampleTemplate(names) if isinstance(names, str) else None

    async def __call__(self, sample: Mapping[str, Any], model: Model, models: Models) -> SolverTrace:
        if self._runner is None:
            raise UnsupportedPlanError(
                "agent_solver: this engine lacks a sandbox for the tools of agents", code=Code.ENGINE_GAP
            )
        spec = self._spec
        task = AgentTask(
            agent=Agent(spec.name, spec.tools),
            others=[
                Agent(agent.name, agent.tools, agent.description, render(prompt, sample))
                for agent, prompt in zip(spec.agents, self._prompts, strict=True)
            ],
            request=self._build(sample),
            files=self._first_files(sample),
            output_files=self._wanted_files(sample),
            message_limit=int(spec.message_limit),
        )
        result = await self._runner.run(task, model)
        trace = empty_trace()
        trace.extend(result.items)
        trace.raw_outputs.extend([] if result.output is None else [result.output])
        trace.trace.metadata = TraceMetadata(extra={"ended": result.ended, "files": dict(result.files)})
        return trace

    def _first_files(self, sample: Mapping[str, Any]) -> dict[str, str]:
        column = self._spec.files
        if column is None:
            return {}
        if self._files is not None:
            files = _json(self._files, sample, "files")
        elif column in sample:
            files = sample[column]
        else:
            raise SampleError(f"no column {column!r}", stage="solver", kind="MissingColumn")
        if not isinstance(files, dict) or not all(isinstance(text, str) for text in files.values()):
            raise _invalid("files", files, "a mapping from names to texts")
        return files

    def _wanted_files(self, sample: Mapping[str, Any]) -> list[str]:
        if self._names is None:
            return list(self._spec.output_files)
        names = _json(self._names, sample, "output_files")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise _invalid("output_files", names, "a list of names")
        return names


def _json(template: SampleTemplate, sample: Mapping[str, Any], field: str) -> Any:
    text = render(template, sample)
    try:
        return json.loads(text)
    except ValueError as error:
        raise SampleError(
            f"{field}: the template returned invalid JSON: {error}",
            stage="solver",
            hint="end it with `| tojson`",
            kind="InvalidFiles",
        ) from error


def _invalid(field: str, value: object, expected: str) -> SampleError:
    return SampleError(
        f"{field}: found {value!r:.80}, expected {expected}", stage="solver", kind="InvalidFiles"
    )


AGENT = SolverType(
    AgentSolver,
    lambda spec, context: AgentRun(spec, context.agent_runner),
    lambda spec: compile_input(spec.input_builder),
)
