"""Interfaces of scorers: scorer types, their inputs and their results for a sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from aigo_bridge.spec.scorer import ScorerSpec

if TYPE_CHECKING:
    from aigo_bridge.dtypes import ChatCompletionInput, SolverOutput
    from aigo_bridge.models.protocol import Models
    from aigo_bridge.plan.plan import Sample
    from aigo_bridge.sandbox.judging import JudgingProgram
    from aigo_bridge.snippets import SnippetHost

SYSTEM_SCORER = "compute_evidence"
"""Scorer name in engine logs for the metrics of a system task."""

UNEXPECTED_LABEL = "unexpected_label"
"""Metadata key of a score; true if the label of a judge is neither correct nor incorrect."""

NO_CHOICE = "ground_truth_is_choice"
"""Metadata key of a score; false if the correct choice is missing, so that every answer is wrong."""

TIME_LIMIT = 30.0
"""Maximum total seconds for code that a model wrote and its tests."""


@dataclass(frozen=True)
class Score:
    """Scores and their metadata."""

    values: Mapping[str, Any]
    """Score name → value. Numbers, booleans and texts are used in metrics; other values are kept
    unchanged.
    """
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Metadata stored with the scores; never aggregated."""


class ScoreFunction(Protocol):
    """Function that scores one sample."""

    async def __call__(self, sample: Sample, output: SolverOutput | None, models: Models) -> Score:
        """Score the solver's output for a sample (`None` in tasks without a solver).

        Raises:
            SampleError: the sample cannot be scored (stage `score`); other scorers and samples are not
                affected.
        """
        ...


@dataclass(frozen=True)
class CodeResult:
    """Result of the program that runs code and its tests."""

    ended: Literal["exit", "time", "memory", "output"]
    """End of the program: a normal exit, or the limit that was exceeded."""
    exit_code: int | None
    """Exit code of the program, more than 128 for a signal; `None` if a limit ended it."""
    stdout: str
    stderr: str


class CodeRunner(Protocol):
    """Runner of code and its tests in a sandbox."""

    async def run(self, program: JudgingProgram, *, time_limit: float = TIME_LIMIT) -> CodeResult:
        """Run the program without network and without access to the runner's files or environment, under
        limits.

        Raises:
            SampleError: the sandbox itself failed (stage `score`); the quality of the code remains
                unknown.
        """
        ...


@dataclass(frozen=True)
class RunContext:
    """Inputs that a scorer may need in addition to its specification."""

    samples: Sequence[Sample]
    """All samples of the run, for scorers that see them together."""
    host: SnippetHost
    """Worker host for snippets."""
    code_runner: CodeRunner | None = None
    """Runner for code that a model wrote; `None`: such code cannot run."""
    snippet_place: tuple[str, int] | None = None
    """File and first line of the scorer's snippet, for errors; `None` if unknown."""


S = TypeVar("S", bound=ScorerSpec)


@dataclass(frozen=True)
class ScorerType(Generic[S]):
    """Scorer type: its specification (see `ScorerSpec`) and its implementation."""

    spec: type[S]
    """Specification of the scorer type."""
    compile: Callable[[S, RunContext], ScoreFunction]
    """Function that creates the scoring function.

    Raises:
        SpecError: the fields contradict each other.
        UnsupportedPlanError: a requirement is missing.
    """
    first_input: Callable[[S, Sample, SolverOutput | None], ChatCompletionInput] | None = None
    """Function that returns the first input of a judge; `None`: the scorer is not a judge, or its messages
    cannot be previewed.

    Raises:
        SampleError: a prompt cannot be rendered.
    """
    preview: Callable[[S, Mapping[str, Any]], Mapping[str, str]] = lambda scorer, row: {}
    """Function that returns further preview fields of a row, in addition to the rendered fields.

    Raises:
        SampleError: the sample will fail in the run.
    """
