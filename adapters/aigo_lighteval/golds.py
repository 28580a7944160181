"""Right answers of a plan's rows, as a document has them: choices, and which of them are right.

They inform lighteval's own metrics and viewers. Our scorers read the row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aigo_bridge.errors import TemplateError
from aigo_bridge.jsonl_spec.snippet import scorer_snippet
from aigo_bridge.plan import TaskPlan
from aigo_bridge.spec import scorers as scorer_spec
from aigo_bridge.templates import SampleTemplate, as_list

Row = Mapping[str, Any]
Golds = Callable[[Row], tuple[list[str], list[int]]]
"""Row → choices, and places of the right ones among them; both empty where the row tells none."""


def golds_of(plan: TaskPlan) -> Golds:
    """From the first scorer that has a right answer in the row."""
    for scorer in () if plan.entity == "system" else plan.benchmark.scorers:
        match scorer:
            case scorer_spec.StringEqualsMCQAScorer():
                return _choice(scorer)
            case scorer_spec.StringEqualsScorer() | scorer_spec.BleuScorer():
                return _ground_truth(scorer.ground_truth)
            case scorer_spec.PythonScorer() if is_of_records(scorer):
                return _targets
    return lambda row: ([], [])


def has_several(plan: TaskPlan, golds: Golds) -> bool:
    """Whether some row of a plan has other than one right answer; only task records can."""
    return golds is _targets and any(len(golds(sample.data)[1]) > 1 for sample in plan.samples)


def is_of_records(scorer: scorer_spec.Scorer) -> bool:
    """Whether a scorer is that of task records (post-process rule, then metric), whose code is ours."""
    return isinstance(scorer, scorer_spec.PythonScorer) and scorer.compute_scores_snippet == scorer_snippet()


def storable(text: str) -> str:
    """A text that can be encoded: half surrogate pairs become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _ground_truth(template: str) -> Golds:
    compiled = SampleTemplate(template)

    def golds(row: Row) -> tuple[list[str], list[int]]:
        text = _rendered(compiled, row)
        return ([], []) if text is None else ([text], [0])

    return golds


def _targets(row: Row) -> tuple[list[str], list[int]]:
    """Every target of a task record is right."""
    targets = row.get("targets")
    found = [storable(str(target)) for target in targets] if isinstance(targets, list | tuple) else []
    return found, list(range(len(found)))


def _choice(scorer: scorer_spec.StringEqualsMCQAScorer) -> Golds:
    """Choices and the right one; in their place what the model weighs, where likelihoods are compared."""
    right = SampleTemplate(scorer.ground_truth_choice)
    listed = _listed(scorer.choices)
    weighed = listed if scorer.continuations is None else _listed(scorer.continuations)

    def golds(row: Row) -> tuple[list[str], list[int]]:
        choices, shown, gold = listed(row), weighed(row), _rendered(right, row)
        if len(shown) != len(choices):
            return [], []
        return shown, [choices.index(gold)] if gold in choices else []

    return golds


def _listed(given: str | Sequence[str]) -> Callable[[Row], list[str]]:
    if not isinstance(given, str):
        return lambda _: list(given)
    template = SampleTemplate(given)

    def texts(row: Row) -> list[str]:
        try:
            return [storable(str(text)) for text in as_list(template.evaluate(sample=row))]
        except TemplateError:
            return []

    return texts


def _rendered(template: SampleTemplate, row: Row) -> str | None:
    try:
        return storable(template.render(sample=row))
    except TemplateError:
        return None
