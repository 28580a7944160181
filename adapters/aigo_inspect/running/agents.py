"""Agents in Inspect's sandboxes: implementation of the core's `AgentRunner` with Inspect's `react` and
`handoff`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from inspect_ai.agent import Agent as NativeAgent
from inspect_ai.agent import AgentPrompt, AgentState, handoff, react, run
from inspect_ai.model import ChatMessageAssistant
from inspect_ai.tool import Tool, bash, python
from inspect_ai.util import Limit, OutputLimitExceededError, message_limit, sandbox
from pydantic import TypeAdapter

from aigo_bridge.dtypes import TraceItem
from aigo_bridge.errors import SampleError
from aigo_bridge.models.protocol import Model
from aigo_bridge.solving.solver import Agent, AgentResult, AgentTask
from aigo_inspect.mapping.messages import items_from_message
from aigo_inspect.models.models import InspectModel, chat_output, model_failures
from aigo_inspect.models.requests import native_messages
from aigo_inspect.sandbox.editor import text_editor

SECONDS = 60
"""Maximum time for one command of a tool, in seconds."""

TOOLS: Mapping[str, Callable[[], Tool]] = {
    "bash": lambda: bash(timeout=SECONDS),
    "python": lambda: python(timeout=SECONDS),
    "text_editor": text_editor,
}
"""Tool type → factory."""

_ITEMS: TypeAdapter[list[TraceItem]] = TypeAdapter(list[TraceItem])

_COLLECT = """
import json, os, sys
files, size = {}, 0
for name in json.load(sys.stdin):
    try:
        text = open(name, encoding="utf-8").read() if os.path.isfile(name) else None
    except (OSError, UnicodeDecodeError):
        continue
    size += len(json.dumps(text))
    if text is not None and size < 900_000:
        files[name] = text
print(json.dumps(files))
"""
"""Script that prints the content of the named text files, up to the size limit for output."""


class SandboxAgentRunner:
    """Agent runner that uses the sandbox of the running sample; see `AgentRunner`."""

    async def run(self, task: AgentTask, model: Model) -> AgentResult:
        """Run the agent. If the message limit ends it, the result contains its work until then."""
        messages = native_messages(task.request, "solver")
        for name, text in task.files.items():
            await _write(name, text)
        handoffs = [handoff(_native(agent, (), _prompt(agent))) for agent in task.others]
        limits: list[Limit] = [message_limit(task.message_limit)]
        with model_failures("solver"):
            state, limit = await run(_native(task.agent, handoffs, None), messages, limits=limits)
        if isinstance(model, InspectModel) and state.output.choices:
            model.answered(state.output)
        return AgentResult(
            items=_items(state),
            output=chat_output(state.output) if state.output.choices else None,
            files=await _files(task.output_files),
            ended="answer" if limit is None else "message_limit",
        )


def _native(agent: Agent, others: Sequence[Tool], prompt: AgentPrompt | None) -> NativeAgent:
    return react(
        name=agent.name,
        description=agent.description or None,
        prompt=prompt,
        tools=[*(TOOLS[name]() for name in agent.tools), *others],
        submit=False,
        on_continue=_unless_answered,
    )


async def _unless_answered(state: AgentState) -> AgentState | bool:
    """Continue until the last message is an answer. After a handoff, Inspect's default would also stop at the
    answer of the other agent.
    """
    message = state.messages[-1]
    return False if isinstance(message, ChatMessageAssistant) and not message.tool_calls else state


def _prompt(agent: Agent) -> AgentPrompt:
    """Return only the prompt of the task, without Inspect's additions."""
    return AgentPrompt(
        instructions=agent.prompt, handoff_prompt=None, assistant_prompt=None, submit_prompt=None
    )


def _items(state: AgentState) -> list[TraceItem]:
    messages = [message.model_dump(mode="json", exclude_none=True) for message in state.messages]
    return _ITEMS.validate_python([item for message in messages for item in items_from_message(message)])


async def _write(name: str, text: str) -> None:
    try:
        await sandbox().write_file(name, text)
    except (OSError, RuntimeError, LookupError) as error:
        raise _failed(f"the file {name!r} cannot be written: {error}") from error


async def _files(names: Sequence[str]) -> dict[str, str]:
    if not names:
        return {}
    try:
        result = await sandbox().exec(
            ["python3", "-I", "-S", "-c", _COLLECT],
            input=json.dumps(list(names)),
            timeout=SECONDS,
            timeout_retry=False,
        )
        if not result.success:
            raise _failed(f"the agent's files cannot be read: {result.stderr.strip()[-200:]}")
        files: dict[str, str] = json.loads(result.stdout)
    except (OSError, RuntimeError, ValueError, OutputLimitExceededError) as error:
        raise _failed(f"the agent's files cannot be read: {error}") from error
    return files


def _failed(message: str) -> SampleError:
    return SampleError(message, stage="solver", kind="SandboxError")
