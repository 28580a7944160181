"""Real logs for the import tests, made by Inspect with scripted models, offline and in about a second each."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from inspect_ai import Task
from inspect_ai import eval as run_eval
from inspect_ai.agent import Agent, AgentState, agent, as_tool, handoff, react
from inspect_ai.approval import ApprovalPolicy, auto_approver
from inspect_ai.dataset import Sample
from inspect_ai.event import CompactionEvent
from inspect_ai.log import EvalLog, ProvenanceData, edit_score, read_eval_log, transcript, write_eval_log
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ContentAudio,
    ContentData,
    ContentDocument,
    ContentImage,
    ContentReasoning,
    ContentText,
    ContentToolUse,
    ContentVideo,
    Logprob,
    Logprobs,
    ModelOutput,
    ModelUsage,
    TopLogprob,
    get_model,
)
from inspect_ai.model._model_output import StopReason
from inspect_ai.scorer import Score, ScoreEdit, Scorer, Target, accuracy, includes, mean, scorer
from inspect_ai.solver import Generate, Solver, TaskState, chain, generate, solver, system_message
from inspect_ai.tool import Tool, ToolCall, ToolError, tool
from inspect_ai.util import sandbox, span, store

USAGE = ModelUsage(
    input_tokens=11,
    output_tokens=7,
    total_tokens=23,
    input_tokens_cache_read=3,
    input_tokens_cache_write=2,
    reasoning_tokens=4,
)
LONG = (
    "a long text that Inspect takes out of the events because it has more than one hundred characters. " * 3
)
PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def answer(
    text: str | list[Any] = "", *calls: tuple[str, dict[str, Any]], stop: StopReason | None = None
) -> ModelOutput:
    message = ChatMessageAssistant(
        content=text,
        source="generate",
        tool_calls=[
            ToolCall(id=f"call-{name}-{i}", function=name, arguments=a) for i, (name, a) in enumerate(calls)
        ]
        or None,
    )
    reason: StopReason = stop or ("tool_calls" if calls else "stop")
    return ModelOutput(
        model="mockllm/model",
        choices=[ChatCompletionChoice(message=message, stop_reason=reason)],
        usage=USAGE,
    )


def turn_of(messages: list[Any]) -> int:
    return sum(message.role == "assistant" for message in messages)


@tool
def add() -> Tool:
    async def execute(x: int, y: int) -> int:
        """Add two numbers, with a description that is long enough to be taken out of the log as an attachment, really.

        Args:
            x: the first number
            y: the second number
        """
        return x + y

    return execute


@tool
def picture() -> Tool:
    async def execute() -> list[Any]:
        """Give a picture."""
        return [ContentText(text="here"), ContentImage(image=PIXEL, detail="low")]

    return execute


@tool
def broken() -> Tool:
    async def execute() -> str:
        """Fail politely."""
        raise ToolError("no such file")

    return execute


@agent
def helper() -> Agent:
    async def execute(state: AgentState) -> AgentState:
        """Help with something."""
        state.output = await get_model().generate(state.messages)
        state.messages.append(state.output.message)
        return state

    return execute


@agent
def colleague() -> Agent:
    async def execute(state: AgentState) -> AgentState:
        """Take over."""
        state.output = await get_model().generate(state.messages)
        state.messages.append(state.output.message)
        return state

    return execute


def agents() -> Task:
    tools = [add(), picture(), broken(), as_tool(helper(), description="helps"), handoff(colleague())]
    return Task(
        name="agents",
        dataset=[
            Sample(input="What is 3+4? " + LONG, target="7", id="a/b"),
            Sample(input="Was ist 3+4? 🙂", target="8", id=7),
        ],
        solver=react(tools=tools),
        scorer=[includes(), lengths()],
        epochs=2,
        metadata={"owner": "tests"},
        tags=["agentic"],
        approval=[ApprovalPolicy(auto_approver(), "*")],
    )


def agents_script(messages: list[Any], tools: list[Any], choice: Any, config: Any) -> ModelOutput:
    if not any(t.name == "submit" for t in tools):
        return answer("the helper says: " + LONG)
    script = [
        answer("I add. " + LONG, ("add", {"x": 1, "y": 2}), ("add", {"x": 3, "y": 4}), ("broken", {})),
        answer([ContentReasoning(reasoning="think"), ContentText(text="let me look")], ("picture", {})),
        answer("", ("helper", {"input": LONG})),
        answer("", ("transfer_to_colleague", {})),
    ]
    turn = turn_of(messages)
    return script[turn] if turn < len(script) else answer("", ("submit", {"answer": "7"}))


@scorer(metrics={"chars": [mean()], "words": [mean()]})
def lengths() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        text = state.output.completion
        return Score(
            value={"chars": len(text), "words": len(text.split())},
            answer=text,
            metadata={"nested": {"a": [1]}},
        )

    return score


@scorer(metrics=[accuracy()])
def odd_scores() -> Scorer:
    """Return a score of another type for each sample."""
    values: dict[Any, Any] = {1: float("nan"), 2: "C", 3: [1, 2.5], 4: True, 5: None}

    async def score(state: TaskState, target: Target) -> Score | None:
        value = values[state.sample_id]
        return None if value is None else Score(value=value, explanation="because", answer="x")

    return score


@solver
def media() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.messages = [
            ChatMessageSystem(content="Be kind."),
            ChatMessageUser(
                content=[
                    ContentText(text="look at these"),
                    ContentImage(image=PIXEL, detail="high"),
                    ContentAudio(audio="data:audio/wav;base64,UklGRg==", format="wav"),
                    ContentVideo(video="data:video/mp4;base64,AAAAIGZ0eXA=", format="mp4"),
                    ContentDocument(
                        document="data:text/plain;base64,aGk=", filename="hi.txt", mime_type="text/plain"
                    ),
                    ContentData(data={"k": [1, 2]}),
                ]
            ),
            ChatMessageUser(content="Continue"),
            ChatMessageAssistant(content="ok"),
            ChatMessageUser(content="Continue"),
        ]
        return await generate(state)

    return solve


def media_script(messages: list[Any], tools: list[Any], choice: Any, config: Any) -> ModelOutput:
    from inspect_ai.model import UrlCitation

    text = "Paris is the capital."
    output = answer(
        [
            ContentReasoning(reasoning="hidden thoughts", summary="a summary", signature="sig"),
            ContentToolUse(
                tool_type="web_search", id="ws1", name="web_search", arguments='{"q": "x"}', result="found"
            ),
            ContentText(
                text=text, citations=[UrlCitation(url="https://example.com", title="E", cited_text="capital")]
            ),
            ContentReasoning(reasoning="ENCRYPTED", summary="redacted one", redacted=True),
        ]
    )
    output.choices[0].logprobs = Logprobs(
        content=[
            Logprob(token="Paris", logprob=-0.5, top_logprobs=[TopLogprob(token="London", logprob=-2.0)])
        ]
    )
    output.choices.append(
        ChatCompletionChoice(message=ChatMessageAssistant(content="second"), stop_reason="stop")
    )
    return output


@solver
def fragile() -> Solver:
    """Fail in a different way for each sample."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state = await generate(state)
        if state.sample_id == "solver fails":
            raise ValueError("the solver broke")
        return state

    return solve


@scorer(metrics=[accuracy()])
def fragile_scorer() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        if state.sample_id == "scorer fails":
            raise RuntimeError("the scorer broke")
        judged = await get_model(role="grader").generate("is it right?")
        return Score(value="C", explanation=judged.completion)

    return score


@solver
def noisy() -> Solver:
    """Emit events that only some solvers emit."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        import logging

        transcript().info({"note": LONG}, source="tests")
        store().set("count", 1)
        logging.getLogger("noisy").warning("careful")
        async with span("research", type="agent"):
            await get_model().generate("side question")
            await sandbox().exec(["echo", "hi"])
        return await generate(state)

    return solve


@solver
def compacting(strategy: str) -> Solver:
    """Run a conversation whose context is shortened halfway."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        model = get_model()
        system = ChatMessageSystem(content="Be brief.")
        talk: list[Any] = [system]
        for turn in range(3):
            talk.append(ChatMessageUser(content=f"question {turn}"))
            talk.append((await model.generate(talk)).message)
        transcript()._event(CompactionEvent(type=strategy, tokens_before=100, tokens_after=40))
        state.messages = list(talk)
        kept: list[Any] = (
            [system, *talk[-2:]]
            if strategy == "trim"
            else [system, ChatMessageUser(content="summary of it all")]
        )
        kept.append(ChatMessageUser(content="question 3"))
        output = await model.generate(kept)
        state.messages += [kept[-1], output.message] if strategy == "trim" else [*kept[1:], output.message]
        state.output = output
        return state

    return solve


def counting_script(messages: list[Any], tools: list[Any], choice: Any, config: Any) -> ModelOutput:
    return answer(f"answer after {len(messages)} messages: {messages[-1].text}")


def limited_script(messages: list[Any], tools: list[Any], choice: Any, config: Any) -> ModelOutput:
    return answer("more", ("add", {"x": 1, "y": 1}))


TASKS: dict[str, tuple[Callable[[], Task], Callable[..., ModelOutput], dict[str, Any]]] = {
    "agents": (agents, agents_script, {}),
    "plain": (
        lambda: Task(
            name="plain",
            dataset=[Sample(input="say hi", target="hi", choices=None, metadata={"row": 1})],
            solver=chain(system_message("Be kind."), generate()),
            scorer=includes(),
        ),
        counting_script,
        {},
    ),
    "media": (lambda: Task(name="media", dataset=[Sample(input="x", target="Paris")], solver=media(), scorer=includes()), media_script, {}),
    "scores": (
        lambda: Task(name="scores", dataset=[Sample(input=f"q{i}", id=i) for i in range(1, 6)], solver=generate(), scorer=odd_scores()),
        counting_script,
        {},
    ),
    "errors": (
        lambda: Task(
            name="errors",
            dataset=[Sample(input="q", id=i) for i in ("fine", "solver fails", "scorer fails")],
            solver=fragile(),
            scorer=fragile_scorer(),
        ),
        counting_script,
        {"fail_on_error": False},
    ),
    "noisy": (lambda: Task(name="noisy", dataset=[Sample(input="q", target="q")], solver=noisy(), scorer=includes(), sandbox="local"), counting_script, {}),
    "trim": (lambda: Task(name="trim", dataset=[Sample(input="q", target="q")], solver=compacting("trim"), scorer=includes()), counting_script, {}),
    "summary": (lambda: Task(name="summary", dataset=[Sample(input="q", target="q")], solver=compacting("summary"), scorer=includes()), counting_script, {}),
    "edit": (lambda: Task(name="edit", dataset=[Sample(input="q", target="q")], solver=compacting("edit"), scorer=includes()), counting_script, {}),
    "limit": (
        lambda: Task(name="limit", dataset=[Sample(input="q", target="q")], solver=react(tools=[add()]), scorer=includes(), message_limit=6),
        limited_script,
        {},
    ),
    "unscored": (lambda: Task(name="unscored", dataset=[Sample(input="q")], solver=generate()), counting_script, {}),
    "cached": (lambda: Task(name="cached", dataset=[Sample(input="q", target="q")], solver=generate(cache=False), scorer=includes()), counting_script, {"log_model_api": True}),
}  # fmt: skip


Scenario = tuple[Callable[[], Task], Callable[..., ModelOutput], dict[str, Any]]


def run(name: str, folder: Path, **options: Any) -> EvalLog:
    return run_scenario(TASKS[name], folder, **options)


def run_scenario(scenario: Scenario, folder: Path, provider: str = "mockllm", **options: Any) -> EvalLog:
    make, script, settings = scenario
    model = get_model(f"{provider}/model", custom_outputs=script, memoize=False)
    grader = get_model("mockllm/grader", custom_outputs=counting_script, memoize=False)
    (log,) = run_eval(
        make(),
        model=model,
        model_roles={"grader": grader},
        log_dir=str(folder),
        display="none",
        log_realtime=False,
        **{**settings, **options},
    )
    return log


def edited(log: EvalLog, folder: Path) -> Path:
    """Return the log with one edited score, like `inspect score edit`."""
    full = read_eval_log(log.location)
    assert full.samples
    provenance = ProvenanceData(author="auditor", reason="it was right")
    edit_score(full, full.samples[0].id, "includes", ScoreEdit(value="I", provenance=provenance))
    path = folder / "edited.eval"
    write_eval_log(full, str(path))
    return path
