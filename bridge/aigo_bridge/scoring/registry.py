"""Scorer types by name, and the compilation of a task's scorers.

To add a scorer, write a module that ends with its `ScorerType`, and add a row here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from aigo_bridge import plugins
from aigo_bridge.plan.plan import Sample
from aigo_bridge.scoring.code_exec import CODE_EXEC
from aigo_bridge.scoring.function_calls import FUNCTION_CALL_COVERAGE
from aigo_bridge.scoring.judges import CLASSIFIER_JUDGE, LABEL_JUDGE, SCORE_JUDGE
from aigo_bridge.scoring.python import PYTHON, PYTHON_ALL_SAMPLES
from aigo_bridge.scoring.rag_checker import RAG_CHECKER
from aigo_bridge.scoring.scorer import CodeRunner, RunContext, ScoreFunction, ScorerType
from aigo_bridge.scoring.strings import SENTENCE_BLEU, STRING_EQUALS, STRING_EQUALS_MCQA
from aigo_bridge.spec import task
from aigo_bridge.spec.scorer import ScorerSpec, default_keys
from aigo_bridge.spec.scorers import SCORERS

if TYPE_CHECKING:
    from aigo_bridge.snippets import SnippetHost

SCORER_TYPES: dict[type[ScorerSpec], ScorerType[Any]] = {}
"""Specification class → scorer type."""


def register(scorer_type: ScorerType[Any]) -> None:
    """Register a scorer type for use in tasks."""
    spec = scorer_type.spec
    SCORER_TYPES[spec] = scorer_type
    if spec.type_name() not in SCORERS:
        SCORERS[spec.type_name()] = spec
        task.rebuild()


for row in (
    STRING_EQUALS,
    STRING_EQUALS_MCQA,
    SENTENCE_BLEU,
    CLASSIFIER_JUDGE,
    SCORE_JUDGE,
    LABEL_JUDGE,
    PYTHON,
    PYTHON_ALL_SAMPLES,
    RAG_CHECKER,
    FUNCTION_CALL_COVERAGE,
    CODE_EXEC,
):
    register(row)


def scorer_type(scorer: ScorerSpec) -> ScorerType[Any]:
    """Return the type of a scorer.

    Raises:
        PluginError: the plug-in that defines the type cannot be loaded.
    """
    if type(scorer) not in SCORER_TYPES:
        SCORER_TYPES[type(scorer)] = plugins.load("scorers", scorer.type, ScorerType)
    return SCORER_TYPES[type(scorer)]


@dataclass(frozen=True)
class CompiledScorer:
    """Scorer that is ready to run."""

    key: str
    """Key, unique among the task's scorers."""
    display_name: str | None
    purpose: Literal["score", "qa"]
    spec: ScorerSpec
    score: ScoreFunction


def scorer_keys(scorers: Sequence[ScorerSpec]) -> tuple[str, ...]:
    """Return one key per scorer: its own, otherwise its type, with the suffix `_2`, `_3` … if that key is
    taken.
    """
    return default_keys([(scorer.key, scorer.type) for scorer in scorers])


def compile_scorers(
    scorers: Sequence[ScorerSpec],
    *,
    samples: Sequence[Sample],
    host: SnippetHost,
    code_runner: CodeRunner | None = None,
    snippet_place: Callable[[int], tuple[str, int] | None] = lambda number: None,
) -> tuple[CompiledScorer, ...]:
    """Compile the scorers of a task, in order.

    Args:
        scorers: scorers with config bound.
        samples: all samples of the run, for scorers that see them together.
        host: worker host for snippets.
        code_runner: runner for code that a model wrote; `None`: such code cannot run.
        snippet_place: function that returns file and first line of a scorer's snippet by the scorer's
            number, for errors;
            `None` if unknown.

    Raises:
        SpecError: a scorer's fields contradict each other.
        UnsupportedPlanError: a requirement of a scorer is missing.
    """
    return tuple(
        CompiledScorer(
            key,
            scorer.display_name,
            scorer.purpose,
            scorer,
            scorer_type(scorer).compile(
                scorer, RunContext(samples, host, code_runner, snippet_place(number))
            ),
        )
        for number, (key, scorer) in enumerate(zip(scorer_keys(scorers), scorers, strict=True))
    )
