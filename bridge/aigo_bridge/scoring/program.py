"""From scorers' specifications to the functions that score one sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from aigo_bridge.dtypes import SolverOutput
from aigo_bridge.errors import UnsupportedPlanError
from aigo_bridge.models import Models
from aigo_bridge.plan import Sample
from aigo_bridge.scoring.bleu import Bleu
from aigo_bridge.scoring.code_exec import CodeExec, CodeRunner
from aigo_bridge.scoring.function_calls import FunctionCallCoverage
from aigo_bridge.scoring.judges import ClassifierJudge, LabelJudge, ScoreJudge
from aigo_bridge.scoring.keys import scorer_keys
from aigo_bridge.scoring.likelihoods import MostLikelyChoice
from aigo_bridge.scoring.outcome import Outcome
from aigo_bridge.scoring.python import PythonAllSamplesScores, PythonScores
from aigo_bridge.scoring.rag_checker import RagChecker
from aigo_bridge.scoring.strings import StringEquals, StringEqualsMCQA
from aigo_bridge.snippets import Snippet, SnippetHost
from aigo_bridge.spec import scorers as spec


class Score(Protocol):
    """Scores one sample."""

    async def __call__(self, sample: Sample, output: SolverOutput | None, models: Models) -> Outcome:
        """Score what a solver made of a sample (`None` in tasks without a solver).

        Raises:
            SampleError: the sample cannot be scored (stage `score`); other scorers and samples are not concerned.
        """
        ...


@dataclass(frozen=True)
class CompiledScorer:
    """A scorer, ready to run."""

    key: str
    """Unique among the task's scorers."""
    display_name: str | None
    purpose: Literal["score", "qa"]
    spec: spec.Scorer
    score: Score


def compile_scorers(
    scorers: Sequence[spec.Scorer],
    *,
    samples: Sequence[Sample],
    host: SnippetHost,
    code_runner: CodeRunner | None = None,
    snippet_place: Callable[[int], tuple[str, int] | None] = lambda number: None,
) -> tuple[CompiledScorer, ...]:
    """The scorers of a task, in order.

    Args:
        scorers: as specified, config bound.
        samples: all samples of the run, for scorers that see them together.
        host: where snippets run.
        code_runner: where code runs that a model wrote; `None`: nowhere.
        snippet_place: file and first line of the snippet of the scorer with that number, told in errors; `None`: not known.

    Raises:
        SpecError: a scorer's fields contradict each other.
        UnsupportedPlanError: a package that a scorer needs is not installed.
    """
    return tuple(
        CompiledScorer(
            key,
            scorer.display_name,
            scorer.purpose,
            scorer,
            _compile(scorer, samples, host, code_runner, snippet_place(number)),
        )
        for number, (key, scorer) in enumerate(zip(scorer_keys(scorers), scorers, strict=True))
    )


def _compile(
    scorer: spec.Scorer,
    samples: Sequence[Sample],
    host: SnippetHost,
    code_runner: CodeRunner | None,
    place: tuple[str, int] | None,
) -> Score:
    match scorer:
        case spec.StringEqualsScorer():
            return StringEquals(scorer)
        case spec.StringEqualsMCQAScorer(method="loglikelihood"):
            return MostLikelyChoice(scorer)
        case spec.StringEqualsMCQAScorer():
            return StringEqualsMCQA(scorer)
        case spec.ModelAsAJudgeClassifierScorer():
            return ClassifierJudge(scorer)
        case spec.ModelAsAJudgeScorer():
            return ScoreJudge(scorer)
        case spec.LabelerViaModelScorer():
            return LabelJudge(scorer)
        case spec.PythonScorer():
            return PythonScores(_snippet(scorer.compute_scores_snippet, place), host)
        case spec.PythonAllSamplesScorer():
            return PythonAllSamplesScores(_snippet(scorer.compute_scores_snippet, place), host, samples)
        case spec.BleuScorer():
            return Bleu(scorer)
        case spec.FunctionCallCoverageScorer():
            return FunctionCallCoverage(scorer)
        case spec.RagCheckerScorer():
            return RagChecker(scorer)
        case spec.CodeExecScorer():
            if code_runner is None:
                raise UnsupportedPlanError(
                    "code_exec: this engine has no sandbox for code that a model wrote"
                )
            return CodeExec(scorer, code_runner)


def _snippet(source: str, place: tuple[str, int] | None) -> Snippet:
    return Snippet(source, "compute_scores", "compute_scores_snippet").at(place)
