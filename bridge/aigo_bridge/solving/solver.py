"""Interfaces of solvers: solver types, solvers, their opening conversation and their inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from aigo_bridge.dtypes import ChatCompletionModelOutput, GroupedSolverTrace, SolverTrace, TraceItem
from aigo_bridge.models.protocol import Model, ModelRequest, Models
from aigo_bridge.spec.solvers import SolverSpec

if TYPE_CHECKING:
    from aigo_bridge.snippets import SnippetHost

Solved = SolverTrace | GroupedSolverTrace
"""Output for one sample: one conversation, or a group of them."""

Opening = Callable[[Mapping[str, Any]], ModelRequest]
"""Row → the conversation before the first answer; raises `SampleError` like the solver."""


Place = tuple[str, int]
"""File and first line of a snippet, for errors."""


class Solver(Protocol):
    """Solver of samples, compiled once per run."""

    async def __call__(self, sample: Mapping[str, Any], model: Model, models: Models) -> Solved:
        """Solve one sample.

        Args:
            sample: column → value.
            model: evaluated model.
            models: other models, by their keys in the task.

        Raises:
            SampleError: the sample failed (stage `solver`).
        """
        ...


@dataclass(frozen=True)
class Agent:
    """Agent with its tools."""

    name: str
    tools: Sequence[str] = ()
    """Tool types of `spec.solvers.Tool`."""
    description: str = ""
    """Description for the agent that may hand over to this agent."""
    prompt: str = ""
    """System message of an agent that gets a handover."""


@dataclass(frozen=True)
class AgentTask:
    """Task of an agent."""

    agent: Agent
    others: Sequence[Agent]
    """Agents to which it may hand over."""
    request: ModelRequest
    """Messages at the start."""
    files: Mapping[str, str]
    """Initial files of the sandbox."""
    output_files: Sequence[str]
    """Paths of files to return at the end."""
    message_limit: int


@dataclass(frozen=True)
class AgentResult:
    """Result of an agent's work."""

    items: Sequence[TraceItem]
    """Conversation of the agent."""
    output: ChatCompletionModelOutput | None
    """Last answer of the model; `None` without an answer."""
    files: Mapping[str, str]
    """Existing files among the requested ones."""
    ended: Literal["answer", "message_limit"]
    """Reason for the end."""


class AgentRunner(Protocol):
    """Runner of agents; an engine with a sandbox provides one."""

    async def run(self, task: AgentTask, model: Model) -> AgentResult:
        """Run the evaluated model until it answers without a tool call.

        Raises:
            SampleError: the model or the sandbox failed (stage `solver`).
        """
        ...


@dataclass(frozen=True)
class SolverContext:
    """Inputs that a solver may need in addition to its specification."""

    host: SnippetHost
    """Worker host for the author's code."""
    snippet_place: Place | None = None
    """Position of that code; `None` if unknown."""
    agent_runner: AgentRunner | None = None
    """Runner of agents; `None`: the engine has no sandbox for them."""


S = TypeVar("S", bound=SolverSpec)


@dataclass(frozen=True)
class SolverType(Generic[S]):
    """Solver type: its specification (see `SolverSpec`) and its implementation."""

    spec: type[S]
    """Specification of the solver type."""
    compile: Callable[[S, SolverContext], Solver]
    """Function that creates the solver.

    Raises:
        UnsupportedPlanError: the specification contains something without a meaning.
    """
    opening: Callable[[S], Opening | None] = lambda spec: None
    """Function that returns the opening from the plan alone; `None` if only the run creates it, or if
    there are several conversations.
    """
