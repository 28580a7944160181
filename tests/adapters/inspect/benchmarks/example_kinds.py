"""One Inspect task of each kind that its users write: plain, judged, with tools, agents, approval, sandbox, limits, several scorers."""

from inspect_ai import Epochs, Task, task
from inspect_ai.agent import Agent, AgentState, agent, handoff, react
from inspect_ai.approval import ApprovalPolicy, auto_approver
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageUser, get_model
from inspect_ai.scorer import (
    Score,
    Scorer,
    Target,
    accuracy,
    choice,
    exact,
    grouped,
    includes,
    match,
    mean,
    model_graded_fact,
    model_graded_qa,
    scorer,
    stderr,
)
from inspect_ai.solver import (
    Generate,
    Solver,
    TaskState,
    chain_of_thought,
    generate,
    multiple_choice,
    self_critique,
    solver,
    system_message,
    use_tools,
)
from inspect_ai.tool import Tool, ToolError, tool
from inspect_ai.util import sandbox, store


@task
def hello() -> Task:
    """The smallest task."""
    return Task([Sample("Say only: hello", target="hello"), Sample("Say ñ", target="ñ")], scorer=exact())


@task
def beliefs() -> Task:
    """Where somebody looks for a thing: reasons, an answer, a second look, a judge in a role."""
    rows = [
        Sample(id="ball", input="Ada hid a ball; Ben moved it. Where does Ada look?", target="the box"),
        Sample(id="key", input="Ada hid a key; nobody moved it. Where does Ada look?", target="the drawer"),
    ]
    return Task(rows, solver=[chain_of_thought(), generate(), self_critique()], scorer=model_graded_fact())


@task
def self_judged() -> Task:
    """A judge without a role of its own."""
    return Task([Sample(id="own", input="Judge yourself.", target="well")], scorer=model_graded_qa())


@task
def liking() -> Task:
    """Statements with which a person agrees or not."""
    rows = MemoryDataset(
        [
            Sample(id=f"p{n}", input=f"Opinion {n}: I like crowds.", target=" Yes" if n % 2 else " No")
            for n in range(4)
        ]
    )
    return Task(rows, solver=[system_message("Answer Yes or No."), generate()], scorer=match(location="any"))


@task
def lettered() -> Task:
    """Letters, several trials."""
    rows = [Sample(id=n, input=f"Pick {n}.", choices=["x", "y", "z"], target="AB"[n % 2]) for n in range(3)]
    return Task(rows, solver=multiple_choice(), scorer=choice(), epochs=Epochs(2, "max"))


@tool
def add() -> Tool:
    """A tool."""

    async def execute(x: int, y: int) -> int:
        """Add two numbers.

        Args:
            x: first
            y: second
        """
        if x < 0:
            raise ToolError("too small")
        return x + y

    return execute


@task
def tools() -> Task:
    """A tool that is called, and one call that fails."""
    rows = [
        Sample(id="sum", input="Tool: what is 1 + 2?", target="3"),
        Sample(id="err", input="Tool: -1 + 2?", target="1"),
    ]
    return Task(rows, solver=[use_tools(add()), generate()], scorer=includes())


@task
def approved() -> Task:
    """Calls of tools are rejected."""
    policy = [ApprovalPolicy(auto_approver(decision="reject"), "*")]
    rows = [Sample(id="no", input="Approval: what is 5 + 5?", target="10")]
    return Task(rows, solver=[use_tools(add()), generate()], scorer=includes(), approval=policy)


@task
def acting() -> Task:
    """An agent that submits."""
    rows = [Sample(id="act", input="Agent: what is 2 + 2?", target="4")]
    return Task(rows, solver=react(tools=[add()]), scorer=includes(), message_limit=12)


@agent
def helper() -> Agent:
    """An agent for others."""

    async def execute(state: AgentState) -> AgentState:
        """Help."""
        state.messages.append(ChatMessageUser(content="Helper: go on."))
        state.output = await get_model().generate(state.messages[-1:])
        state.messages.append(state.output.message)
        return state

    return execute


@task
def handing() -> Task:
    """An agent that hands over to another."""
    rows = [Sample(id="hand", input="Handoff: who helps?", target="helped")]
    boss = react(tools=[handoff(helper(), description="Helps.")])
    return Task(rows, solver=boss, scorer=includes(), message_limit=14)


@solver
def writes_a_file() -> Solver:
    """Uses the sandbox."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        await sandbox().write_file("out.txt", state.input_text)
        done = await sandbox().exec(["cat", "out.txt", "given.txt"])
        store().set("seen", done.stdout)
        return await generate(state)

    return solve


@scorer(metrics=[accuracy(), stderr()])
def file_is_there() -> Scorer:
    """Looks into the sandbox."""

    async def score(state: TaskState, target: Target) -> Score:
        text = await sandbox().read_file("out.txt")
        right = text == state.input_text and state.store.get("seen") == text + "given"
        return Score(value="C" if right else "I", answer=text)

    return score


@task
def boxed() -> Task:
    """A sandbox on this machine."""
    rows = [Sample(id="box", input="Sandbox: write ñ.", target="", files={"given.txt": "given"})]
    return Task(rows, solver=writes_a_file(), scorer=file_is_there(), sandbox="local")


@scorer(metrics={"length": [mean()], "polite": [mean(), stderr()]})
def two_values() -> Scorer:
    """A score with two values."""

    async def score(state: TaskState, target: Target) -> Score:
        text = state.output.completion
        return Score(value={"length": len(text), "polite": float("yes" in text)})

    return score


@task
def bias() -> Task:
    """Values by key, by group, several scorers."""
    rows = [
        Sample(id=f"b{n}", input=f"Opinion {n}: again.", target="Yes", metadata={"who": "ab"[n % 2]})
        for n in range(4)
    ]
    return Task(rows, scorer=[two_values(), includes()])


@task
def groups() -> Task:
    """Metrics by group."""
    rows = [
        Sample(id=f"g{n}", input=f"Opinion {n}: again.", target="Yes", metadata={"who": "ab"[n % 2]})
        for n in range(4)
    ]
    return Task(rows, scorer=includes(), metrics=[grouped(accuracy(), "who")])


@task
def limited() -> Task:
    """A limit that ends one sample."""
    rows = [
        Sample(id="short", input="Say only: hello", target="hello"),
        Sample(id="long", input="Agent: loop", target="x"),
    ]
    return Task(rows, solver=react(tools=[add()], submit=False), scorer=includes(), message_limit=8)


@task
def flaky() -> Task:
    """One sample whose model call fails as long as the file `broken` stands in the current folder."""
    from pathlib import Path

    @solver
    def careful() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            if state.sample_id == "f2" and Path("broken").exists():
                raise RuntimeError("broken")
            state = await generate(state)
            Path(f"solved-{state.sample_id}").touch()
            return state

        return solve

    rows = [Sample(id=f"f{n}", input=f"Opinion {n}: flaky.", target="Yes") for n in range(4)]
    return Task(rows, solver=careful(), scorer=includes())
