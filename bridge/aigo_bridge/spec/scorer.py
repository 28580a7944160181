"""What all scorers of a task have in common, and what the rest of the bridge asks of one without looking at
its type.

A scorer's class says what its scores and templates are called, what it needs, and what is wrong with it. What
runs it stands in `scoring`, in a module and a row of `scoring.registry`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from aigo_bridge.errors import Issue
from aigo_bridge.spec.base import Key, Path, TypedSpec
from aigo_bridge.spec.metric import MetricSpec
from aigo_bridge.spec.metrics import Metric

Normalisation = Literal["none", "characters", "tokens", "choice_characters", "choice_bytes", "pmi"]
"""How likelihoods of texts of different length are made comparable."""


class ScorerSpec(TypedSpec):
    """What a task says of any scorer, and what is asked of it."""

    scores: ClassVar[frozenset[str] | None] = None
    """Names of its scores; `None`: only the run tells."""
    usual_metrics: ClassVar[tuple[MetricSpec, ...] | None] = None
    """Metrics of a scorer that lists none; `None`: the mean of every number and boolean that it gives."""
    templates: ClassVar[tuple[str, ...]] = ()
    """Fields that are rendered for each sample, in the order of their checks."""
    previewed: ClassVar[tuple[str, ...]] = ()
    """Those of them that a preview shows rendered."""
    truth: ClassVar[str | None] = None
    """Field with the template of the right answer."""
    compares_exactly: ClassVar[bool] = False
    """Whether an answer is right only if it equals that character for character."""
    answer: ClassVar[Literal["unread", "unless_value", "needed"]] = "unread"
    """Whether it looks at the model's answer by itself: never, where `value` is missing, or always."""
    right_or_wrong: ClassVar[frozenset[str]] = frozenset()
    """Scores that are 1 (right) or 0 (wrong) in every trial, so that their mean is a proportion."""
    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {}
    """Other scores with a lowest and a highest value."""
    labels: ClassVar[Mapping[str, str]] = {}
    """Scores that are labels → the field with those that are allowed."""
    takes_group: ClassVar[bool] = True
    """Whether it can score a group of answers."""
    snippet: ClassVar[str | None] = None
    """Field with the author's code."""
    sees_all_samples: ClassVar[bool] = False
    """Whether the author's code is called once, with the rows of the dataset."""
    runs_answers: ClassVar[bool] = False
    """Whether code that a model wrote is run, so that the engine has to have a sandbox."""

    is_extension: ClassVar[bool] = False
    """Whether it is ours, and AI GO has no such scorer."""
    extension_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that are ours, and AI GO's scorer of this type has not."""

    key: Key | None = None
    """Name of the scorer in the evidence and in action rules; `None`: its type."""
    display_name: str | None = None
    """Display name."""
    purpose: Literal["score", "qa"] = "score"
    """`score`: part of the result; `qa`: quality check of the sample or the output."""
    metrics: tuple[Metric, ...] | None = None
    """Metrics of this scorer; `None`: its usual metrics. An empty list computes no metrics."""

    @classmethod
    def scores_of(cls, document: Mapping[str, Any]) -> frozenset[str] | None:
        """Names of the scores that a scorer gives as it is written, of one trial; `None` where only the run
        tells.
        """
        return cls.scores

    @classmethod
    def check(cls, document: Mapping[str, Any], path: Path) -> Iterator[Issue]:
        """Contradictions in a scorer as it is written, which need not be valid."""
        yield from ()

    def problems(self) -> Iterator[tuple[Path, Issue]]:
        """Contradictions that are known once the config is bound, each with its place in the scorer."""
        yield from ()

    def rendered(self) -> Iterator[tuple[str, str]]:
        """Fields that are templates here, with their texts."""
        for name in self.templates:
            if isinstance(text := getattr(self, name), str):
                yield name, text

    @property
    def judge_key(self) -> str | None:
        """Key of the model that judges."""
        return None

    @property
    def asks_for_json(self) -> bool:
        """Whether that model is asked for JSON by schema."""
        return False

    @property
    def truth_template(self) -> str | None:
        """Template of the right answer."""
        return None if self.truth is None else str(getattr(self, self.truth))

    @property
    def answer_choices(self) -> str | tuple[str, ...] | None:
        """What the right answer is one of, a list or a template that gives it; `None`: it may be anything."""
        return None

    @property
    def answer_texts(self) -> str | tuple[str, ...] | None:
        """Texts that stand for the choices where likelihoods are compared; `None`: the choices themselves."""
        return None

    @property
    def truth_column(self) -> str | None:
        """Column with the right answer, where it is no template."""
        return None

    @property
    def compares_likelihoods(self) -> bool:
        """Whether the likelihoods of given texts are compared, and nothing that is generated."""
        return False

    @property
    def normalisation(self) -> Normalisation:
        """How these likelihoods are made comparable."""
        return "none"

    @property
    def weighs_unconditioned(self) -> bool:
        """Whether the likelihoods behind the unconditioned query are needed, too."""
        return self.normalisation == "pmi"


def default_keys(scorers: Sequence[tuple[str | None, str]]) -> tuple[str, ...]:
    """One key per scorer or metric, by its key and type: its own, else its type, with `_2`, `_3` … where that
    is taken.
    """
    taken = {key for key, _ in scorers if key is not None}
    keys: list[str] = []
    for written, kind in scorers:
        key = written
        if key is None:
            key, number = kind, 1
            while key in taken:
                number += 1
                key = f"{kind}_{number}"
            taken.add(key)
        keys.append(key)
    return tuple(keys)
