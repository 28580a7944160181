"""Logs with rare events: limits, retries, cache hits, human approval, compaction, and later changes to a log."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inspect_ai import Task, score
from inspect_ai.agent import as_tool, handoff, react
from inspect_ai.approval import Approval, ApprovalPolicy, approver
from inspect_ai.approval._approver import Approver
from inspect_ai.dataset import Sample
from inspect_ai.event import (
    AnchorEvent,
    BranchEvent,
    InputEvent,
    InterruptEvent,
    ReviewEvent,
    SentinelEvent,
)
from inspect_ai.log import (
    EvalLog,
    ProvenanceData,
    invalidate_samples,
    read_eval_log,
    transcript,
    write_eval_log,
)
from inspect_ai.model import (
    CachePolicy,
    CompactionEdit,
    CompactionSummary,
    CompactionTrim,
    ModelCost,
    ModelInfo,
    ModelOutput,
    ModelUsage,
    modelapi,
    set_model_info,
)
from inspect_ai.model._providers.mockllm import MockLLM
from inspect_ai.scorer import exact, includes
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver
from inspect_ai.tool import Tool, ToolCall, ToolError, tool
from inspect_ai.util import sandbox, span
from tests.support.inspect_logs.scripted import (
    LONG,
    Scenario,
    add,
    answer,
    colleague,
    counting_script,
    helper,
    limited_script,
    run_scenario,
    turn_of,
)


@modelapi(name="flaky")
def flaky() -> type[MockLLM]:
    class Flaky(MockLLM):
        """Error that is retried."""

        def should_retry(self, ex: BaseException) -> bool:
            return isinstance(ex, ConnectionError)

        async def count_text_tokens(self, text: str) -> int:
            # The default asks the network for a vocabulary.
            return len(text) // 4

    return Flaky


def failing_first() -> Callable[..., ModelOutput]:
    calls = 0

    def script(messages: list[Any], tools: list[Any], choice: Any, config: Any) -> ModelOutput:
        nonlocal calls
        calls += 1
        if calls < 3:
            raise ConnectionError("the connection broke")
        return answer("at last")

    return script


@tool
def slow(name: str) -> Tool:
    async def execute(steps: int) -> str:
        """Take several steps.

        Args:
            steps: how many
        """
        for step in range(steps):
            await asyncio.sleep(0)
            await sandbox().write_file(f"{name}-{step}.txt", LONG)
        if steps == 3:
            raise ToolError("three is too many")
        return f"{name} took {await sandbox().read_file(f'{name}-0.txt')}"

    return execute


def side_by_side(messages: list[Any], tools: list[Any], choice: Any, config: Any) -> ModelOutput:
    if not any(t.name == "submit" for t in tools):
        return answer("from below: " + LONG)
    if turn_of(messages) == 0:
        calls: list[tuple[str, dict[str, Any]]] = [
            ("one", {"steps": 2}),
            ("two", {"steps": 1}),
            ("three", {"steps": 3}),
            ("helper", {"input": "both"}),
        ]
        return answer("all at once", *calls)
    if turn_of(messages) == 1:
        return answer("again", ("helper", {"input": "a"}), ("helper", {"input": "b"}))
    return answer("", ("submit", {"answer": "done"}))


@tool
def lookup() -> Tool:
    async def execute(x: int) -> str:
        """Look something up.

        Args:
            x: what
        """
        return f"page {x}: " + "found " * 100

    return execute


@approver
def human() -> Approver:
    """Change the first call, reject the second, and approve the others."""

    async def decide(message: str, call: ToolCall, view: Any, history: list[Any]) -> Approval:
        if call.arguments == {"x": 1, "y": 1}:
            changed = ToolCall(id=call.id, function=call.function, arguments={"x": 5, "y": 5})
            return Approval(decision="modify", modified=changed, explanation="better so")
        if call.arguments == {"x": 2, "y": 2}:
            return Approval(decision="reject", explanation="not that")
        return Approval(decision="approve")

    return decide


def asking(messages: list[Any], tools: list[Any], choice: Any, config: Any) -> ModelOutput:
    turn = turn_of(messages)
    if turn < 3:
        return answer("", ("add", {"x": turn + 1, "y": turn + 1}))
    return answer("", ("submit", {"answer": "done"}))


def long_winded(messages: list[Any], tools: list[Any], choice: Any, config: Any) -> ModelOutput:
    if not tools:
        return answer("a summary of what was said")
    turn = len({m.id for m in messages if m.role == "assistant"})
    if sum(len(m.text) for m in messages) > 100_000 or COUNT.more() > 12:
        return answer("", ("submit", {"answer": "done"}))
    output = answer(f"turn {turn} " + "word " * 20, ("lookup", {"x": turn}))
    tokens = sum(len(m.text) for m in messages) // 4
    output.usage = ModelUsage(input_tokens=tokens, output_tokens=150, total_tokens=tokens + 150)
    return output


class Count:
    def __init__(self) -> None:
        self.value = 0

    def more(self) -> int:
        self.value += 1
        return self.value


COUNT = Count()


def compacted(strategy: Any) -> Task:
    COUNT.value = 0
    return Task(name="compacted", dataset=[Sample(input="q", target="q")], solver=react(tools=[lookup()], compaction=strategy), scorer=includes())  # fmt: skip


@solver
def every_kind() -> Solver:
    """Emit events that few solvers emit."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        call = ToolCall(id="c", function="f", arguments={"a": LONG})
        emit = transcript()._event
        emit(InputEvent(input="the human says", input_ansi="\x1b[1mthe human says", message="say something"))
        emit(InterruptEvent(source="user_cancel", interrupted="generate"))
        emit(ReviewEvent(message="m", call=call, reviewer="r", decision="continue", explanation=LONG))
        emit(AnchorEvent(anchor_id="a1", source="tests"))
        emit(BranchEvent(from_anchor="a1"))
        emit(SentinelEvent(factory="f", path="p", step_id="s", conversation="main", stage="model_output", kind="observation", status="reported", suspicion=0.5,
                function="f"))  # fmt: skip
        transcript().info([1, {"deep": [LONG]}])
        logging.getLogger("kinds").error("an error is said")
        async with span("empty"), span("inner", type="branch"):
            pass
        return await generate(state)

    return solve


@solver
def patient() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state = await generate(state)
        await asyncio.sleep(30)
        return state

    return solve


def two(**settings: Any) -> Callable[[], Task]:
    return lambda: Task(name="two", dataset=[Sample(input="q", target="q")], solver=react(tools=[add()]), scorer=includes(), **settings)  # fmt: skip


def of(solving: Callable[[], Solver], **settings: Any) -> Callable[[], Task]:
    return lambda: Task(name="one", dataset=[Sample(input="q", target="answer")], solver=solving(), scorer=includes(), **settings)  # fmt: skip


def priced() -> Task:
    price = ModelCost(input=1000, output=1000, input_cache_read=0, input_cache_write=0)
    for model in ("flaky/model", "mockllm/grader"):
        set_model_info(model, ModelInfo(cost=price))
    return two(cost_limit=0.03)()


RARE: dict[str, Scenario] = {
    "cache hits": (of(lambda: generate(cache=CachePolicy(per_epoch=False)), epochs=2), counting_script, {"max_samples": 1}),
    "API retries": (of(generate), failing_first(), {}),
    "token limit": (two(token_limit=60), limited_script, {}),
    "time limit": (of(patient, time_limit=1), counting_script, {}),
    "working limit": (of(patient, working_limit=1, time_limit=2), counting_script, {}),
    "cost limit": (priced, limited_script, {}),
    "turn limit": (two(turn_limit=2), limited_script, {}),
    "human approval": (two(approval=[ApprovalPolicy(human(), "*")]), asking, {}),
    "parallel tools": (
        lambda: Task(
            name="parallel", dataset=[Sample(input="q", target="done")], scorer=includes(), sandbox="local",
            solver=react(tools=[slow_named("one"), slow_named("two"), slow_named("three"), as_tool(helper(), description="h"), handoff(colleague())]),
        ),
        side_by_side,
        {},
    ),
    "every kind": (of(every_kind), counting_script, {}),
    "trimmed": (lambda: compacted(CompactionTrim(threshold=1200, memory=False, preserve=0.5)), long_winded, {}),
    "summarised": (lambda: compacted(CompactionSummary(threshold=1200, memory=False)), long_winded, {}),
    "tool results cleared": (lambda: compacted(CompactionEdit(threshold=1200, memory=False, keep_tool_uses=1)), long_winded, {}),
    "raw calls": (of(lambda: generate(temperature=0.5)), counting_script, {"log_model_api": True}),
}  # fmt: skip


def slow_named(name: str) -> Tool:
    from inspect_ai.tool import ToolDef

    return ToolDef(slow(name), name=name).as_tool()


def run(name: str, folder: Path) -> EvalLog:
    return run_scenario(RARE[name], folder, provider="flaky")


def scored_again(log: EvalLog, folder: Path) -> Path:
    """Return the log with scores of a second scorer, like `inspect score`."""
    path = folder / "scored again.eval"
    write_eval_log(score(read_eval_log(log.location), exact(), action="append", display="none"), str(path))
    return path


def invalidated(log: EvalLog, folder: Path) -> Path:
    """Return the log with its first sample marked invalid."""
    full = read_eval_log(log.location)
    assert full.samples
    provenance = ProvenanceData(author="auditor", reason="the machine was reset")
    path = folder / "invalidated.eval"
    write_eval_log(invalidate_samples(full, [full.samples[0].uuid or ""], provenance), str(path))
    return path
