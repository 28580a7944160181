"""What a type of scorer consists of, what its scorers are given, and what they say about a sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar

from aigo_bridge.dtypes import ChatCompletionInput, SolverOutput
from aigo_bridge.models.protocol import Models
from aigo_bridge.plan.plan import Sample
from aigo_bridge.sandbox.judging import Judging
from aigo_bridge.snippets import SnippetHost
from aigo_bridge.spec.scorer import ScorerSpec

TIME_LIMIT = 30.0
"""Seconds that code which a model wrote and its tests may take together."""


@dataclass(frozen=True)
class Score:
    """Scores and what explains them."""

    values: Mapping[str, Any]
    """Score name → value; numbers, booleans and texts go into metrics, anything else is kept as it is."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Kept beside the scores; never aggregated."""


class ScoreFunction(Protocol):
    """Scores one sample."""

    async def __call__(self, sample: Sample, output: SolverOutput | None, models: Models) -> Score:
        """Score what a solver made of a sample (`None` in tasks without a solver).

        Raises:
            SampleError: the sample cannot be scored (stage `score`); other scorers and samples are not
                concerned.
        """
        ...


@dataclass(frozen=True)
class CodeResult:
    """How the two programs that judge some code ended."""

    ended: Literal["exit", "time", "memory", "output"]
    """By themselves, or by the limit that ended them."""
    exit_code: int | None
    """Of the judge; `None` when a limit ended it."""
    stdout: str
    """Of the judge."""
    stderr: str
    answer_exit: int | None = None
    """Exit code of the process of the answer's code, where it is known."""


class CodeRunner(Protocol):
    """Runs the two programs in a sandbox."""

    async def run(self, programs: Judging, *, time_limit: float = TIME_LIMIT) -> CodeResult:
        """Run them: no network, nothing of the runner's files or environment, limits on everything.

        Raises:
            SampleError: the sandbox itself failed (stage `score`); this says nothing about the code.
        """
        ...


@dataclass(frozen=True)
class RunContext:
    """What a scorer may need beside its specification."""

    samples: Sequence[Sample]
    """All samples of the run, for scorers that see them together."""
    host: SnippetHost
    """Where snippets run."""
    code_runner: CodeRunner | None = None
    """Where code runs that a model wrote; `None`: nowhere."""
    snippet_place: tuple[str, int] | None = None
    """File and first line of the scorer's snippet, for errors; `None`: not known."""


S = TypeVar("S", bound=ScorerSpec)


@dataclass(frozen=True)
class ScorerType(Generic[S]):
    """A type of scorer: what may be written (see `ScorerSpec`), and what runs it."""

    spec: type[S]
    """Its specification."""
    compile: Callable[[S, RunContext], ScoreFunction]
    """Makes what scores the samples.

    Raises:
        SpecError: its fields contradict each other.
        UnsupportedPlanError: something that it needs is not there.
    """
    first_input: Callable[[S, Sample, SolverOutput | None], ChatCompletionInput] | None = None
    """What a judge is asked first; `None`: no judge is shown the templates as its messages.

    Raises:
        SampleError: a prompt cannot be rendered.
    """
    preview: Callable[[S, Mapping[str, Any]], Mapping[str, str]] = lambda scorer, row: {}
    """What a preview of a row shows beside the rendered fields.

    Raises:
        SampleError: it will fail in the run.
    """
