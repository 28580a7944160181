"""A type of solver: what solves a sample, what it says before it first asks, and what it may need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar

from aigo_bridge.dtypes import ChatCompletionModelOutput, GroupedSolverTrace, SolverTrace, TraceItem
from aigo_bridge.models.protocol import Model, ModelRequest, Models
from aigo_bridge.snippets import SnippetHost
from aigo_bridge.spec.solvers import SolverSpec

Solved = SolverTrace | GroupedSolverTrace
"""The output for one sample: one conversation, or a group of them."""

Opening = Callable[[Mapping[str, Any]], ModelRequest]
"""Row → the conversation before the first answer; raises `SampleError` where the solver would."""


Place = tuple[str, int]
"""File and first line of a snippet, told in errors."""


class Solver(Protocol):
    """Solves samples; compiled once per run."""

    async def __call__(self, sample: Mapping[str, Any], model: Model, models: Models) -> Solved:
        """Solve one sample.

        Args:
            sample: column → value.
            model: the model under evaluation.
            models: other models, by the keys that the task uses.

        Raises:
            SampleError: the sample failed (stage `solver`).
        """
        ...


@dataclass(frozen=True)
class Agent:
    """An agent with its tools."""

    name: str
    tools: Sequence[str] = ()
    """Types of `spec.solvers.Tool`."""
    description: str = ""
    """What it is for, as the agent is told that may hand over to it."""
    prompt: str = ""
    """Its system message, of an agent that is handed over to."""


@dataclass(frozen=True)
class AgentTask:
    """What an agent is to do."""

    agent: Agent
    others: Sequence[Agent]
    """Agents that it may hand over to."""
    request: ModelRequest
    """The messages that it begins with."""
    files: Mapping[str, str]
    """Files that the sandbox has at first."""
    output_files: Sequence[str]
    """Files whose texts are wanted when it has ended."""
    message_limit: int


@dataclass(frozen=True)
class AgentResult:
    """What an agent has done."""

    items: Sequence[TraceItem]
    """Its conversation."""
    output: ChatCompletionModelOutput | None
    """The last answer of the model; `None`: it gave none."""
    files: Mapping[str, str]
    """Those of the wanted files that there are."""
    ended: Literal["answer", "message_limit"]
    """How it ended."""


class AgentRunner(Protocol):
    """Lets agents work; an engine lends one that has a sandbox."""

    async def run(self, task: AgentTask, model: Model) -> AgentResult:
        """Let the model under evaluation work until it answers without calling a tool.

        Raises:
            SampleError: the model or the sandbox failed (stage `solver`).
        """
        ...


@dataclass(frozen=True)
class SolverContext:
    """What a solver may need beside its specification."""

    host: SnippetHost
    """Runs the author's code."""
    snippet_place: Place | None = None
    """Where that code stands; `None`: not known."""
    agent_runner: AgentRunner | None = None
    """Lets agents work; `None`: the engine has no sandbox for them."""


S = TypeVar("S", bound=SolverSpec)


@dataclass(frozen=True)
class SolverType(Generic[S]):
    """A type of solver: what may be written (see `SolverSpec`), and what runs it."""

    spec: type[S]
    """Its specification."""
    compile: Callable[[S, SolverContext], Solver]
    """Makes what solves the samples.

    Raises:
        UnsupportedPlanError: the specification asks for something without a meaning.
    """
    opening: Callable[[S], Opening | None] = lambda spec: None
    """Known from the plan alone; `None` where only the run makes it, or there are several conversations."""
