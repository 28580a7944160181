"""Tasks that `agent_solver` gives to an engine's agents, and conversion of their results."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import ValidationError

from aigo_bridge.dtypes import SolverTrace
from aigo_bridge.errors import SampleError, UnsupportedPlanError
from aigo_bridge.models.protocol import Model
from aigo_bridge.solving.agent import AgentRun
from aigo_bridge.solving.conversation import assistant_item, chat_output
from aigo_bridge.solving.solver import Agent, AgentResult, AgentTask
from aigo_bridge.spec.solvers import AgentSolver

INPUT = {"type": "chat_completion", "input_messages": [{"role": "user", "content": "{{ sample.q }}"}]}


@dataclass
class Runner:
    """Runner that only records its tasks."""

    result: AgentResult
    tasks: list[AgentTask] = field(default_factory=list)

    async def run(self, task: AgentTask, model: Model) -> AgentResult:
        self.tasks.append(task)
        return self.result


def worked(
    sample: dict[str, Any], result: AgentResult | None = None, **fields: Any
) -> tuple[AgentTask, SolverTrace]:
    spec = AgentSolver.model_validate({"type": "agent_solver", "input_builder": INPUT, **fields})
    runner = Runner(result or AgentResult([], None, {}, "answer"))
    output = asyncio.run(AgentRun(spec, runner)(sample, None, None))  # type: ignore[arg-type]  # an agent asks no model itself
    return runner.tasks[0], output


def test_agent_task_has_messages_tools_and_files() -> None:
    task, _ = worked(
        {"q": "Why?", "files": {"a": "1"}, "role": "a clerk"},
        name="chief",
        tools=["bash"],
        agents=[
            {
                "name": "clerk",
                "description": "Reads.",
                "prompt": "You are {{ sample.role }}.",
                "tools": ["python"],
            }
        ],
        files="files",
        output_files=["a", "b"],
        message_limit=9,
    )
    assert task.agent == Agent("chief", ("bash",))
    assert task.others == [Agent("clerk", ("python",), "Reads.", "You are a clerk.")]
    assert [message.content for message in task.request.input.messages] == ["Why?"]
    assert (task.files, task.output_files, task.message_limit) == ({"a": "1"}, ["a", "b"], 9)


def test_agent_files_can_be_templates() -> None:
    task, _ = worked(
        {"q": "", "name": "x.py", "text": 'say "hi"\n'},
        files="{{ {sample.name: sample.text} | tojson }}",
        output_files="{{ [sample.name] | tojson }}",
    )
    assert (task.files, task.output_files) == ({"x.py": 'say "hi"\n'}, ["x.py"])


def test_agent_result_becomes_the_output() -> None:
    result = AgentResult([assistant_item("42")], chat_output("42"), {"a": "2"}, "message_limit")
    _, output = worked({"q": ""}, result)
    assert output.trace.get_last_assistant_text() is None  # no user message was returned
    assert output.output is result.output
    assert [item.content[0].text for item in output.trace.items] == ["42"]  # type: ignore[union-attr]  # a text
    assert output.trace.metadata is not None
    assert output.trace.metadata.extra == {"ended": "message_limit", "files": {"a": "2"}}


@pytest.mark.parametrize(
    ("fields", "sample", "problem"),
    [
        ({"files": "f"}, {}, "no column 'f'"),
        ({"files": "f"}, {"f": ["a"]}, r"files: found \['a'\], expected a mapping from names to texts"),
        ({"files": "f"}, {"f": {"a": 1}}, "expected a mapping from names to texts"),
        ({"files": "{{ sample.q }}"}, {}, "files: the template returned invalid JSON"),
        ({"output_files": "{{ sample.q }}"}, {}, "output_files: the template returned invalid JSON"),
        ({"output_files": "{{ sample.f }}"}, {"f": "{}"}, "output_files: found {}, expected a list of names"),
    ],
)
def test_invalid_files_fail_the_sample(fields: dict[str, Any], sample: dict[str, Any], problem: str) -> None:
    with pytest.raises(SampleError, match=problem) as caught:
        worked({"q": "Why?", **sample}, **fields)
    assert caught.value.stage == "solver"


def test_agents_are_rejected_without_a_sandbox() -> None:
    spec = AgentSolver.model_validate({"type": "agent_solver", "input_builder": INPUT})
    with pytest.raises(UnsupportedPlanError, match="a sandbox for the tools of agents"):
        asyncio.run(AgentRun(spec, None)({"q": ""}, None, None))  # type: ignore[arg-type]  # nor here


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": ["browser"]},
        {"name": "No"},
        {"message_limit": 1},
        {"agents": [{"name": "a", "prompt": "b"}]},
    ],
)
def test_unknown_agent_fields_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        AgentSolver.model_validate({"type": "agent_solver", "input_builder": INPUT, **fields})
