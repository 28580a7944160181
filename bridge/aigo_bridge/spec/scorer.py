"""Base class of scorer specifications: everything that other code needs without knowing the type.

A class defines the names of scores and templates, the requirements of the scorer, and its checks. The
implementation is a module in `scoring`, with a row in `scoring.registry`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from aigo_bridge.errors import Issue
from aigo_bridge.spec.base import Key, Path, TypedSpec
from aigo_bridge.spec.metric import MetricSpec
from aigo_bridge.spec.metrics import Metric

Normalisation = Literal["none", "characters", "tokens", "choice_characters", "choice_bytes", "pmi"]
"""Normalization of likelihoods for texts of different length."""


class ScorerSpec(TypedSpec):
    """Base class of scorer specifications."""

    scores: ClassVar[frozenset[str] | None] = None
    """Names of the scores; `None`: unknown before the run."""
    usual_metrics: ClassVar[tuple[MetricSpec, ...] | None] = None
    """Default metrics; `None`: the mean of every number and boolean."""
    templates: ClassVar[tuple[str, ...]] = ()
    """Fields that are rendered for each sample, in the order of their checks."""
    previewed: ClassVar[tuple[str, ...]] = ()
    """Template fields that previews show."""
    truth: ClassVar[str | None] = None
    """Field that contains the template of the correct answer."""
    compares_exactly: ClassVar[bool] = False
    """Whether a correct answer must be identical to the ground truth."""
    answer: ClassVar[Literal["unread", "unless_value", "needed"]] = "unread"
    """Whether the scorer reads the model's answer: never, only without `value`, or always."""
    right_or_wrong: ClassVar[frozenset[str]] = frozenset()
    """Scores that are 1 (correct) or 0 (wrong) in every trial, so that their mean is a proportion."""
    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {}
    """Minimum and maximum of other scores."""
    labels: ClassVar[Mapping[str, str]] = {}
    """Score with labels → field that contains the allowed labels."""
    takes_group: ClassVar[bool] = True
    """Whether the scorer supports a group of answers."""
    snippet: ClassVar[str | None] = None
    """Field that contains task code."""
    sees_all_samples: ClassVar[bool] = False
    """Whether task code is called once with all rows."""
    runs_answers: ClassVar[bool] = False
    """Whether the scorer runs code from a model, so that the engine needs a sandbox."""

    is_extension: ClassVar[bool] = False
    """Whether the scorer is an extension that AI GO does not have."""
    extension_fields: ClassVar[tuple[str, ...]] = ()
    """Extension fields that AI GO's scorer of this type does not have."""

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
        """Return the names of the scores of one trial; `None` if they are unknown before the run."""
        return cls.scores

    @classmethod
    def check(cls, document: Mapping[str, Any], path: Path) -> Iterator[Issue]:
        """Yield contradictions in a scorer as written, which may also be invalid otherwise."""
        yield from ()

    def problems(self) -> Iterator[tuple[Path, Issue]]:
        """Yield contradictions that are known after the config is bound, with their paths in the scorer."""
        yield from ()

    def rendered(self) -> Iterator[tuple[str, str]]:
        """Yield the template fields that are set, with their texts."""
        for name in self.templates:
            if isinstance(text := getattr(self, name), str):
                yield name, text

    @property
    def judge_key(self) -> str | None:
        """Return the key of the judge model."""
        return None

    @property
    def asks_for_json(self) -> bool:
        """Return whether the judge is asked for JSON with a schema."""
        return False

    @property
    def truth_template(self) -> str | None:
        """Return the template of the correct answer."""
        return None if self.truth is None else str(getattr(self, self.truth))

    @property
    def answer_choices(self) -> str | tuple[str, ...] | None:
        """Return the possible answers, as a list or a template of one; `None`: any answer is possible."""
        return None

    @property
    def answer_texts(self) -> str | tuple[str, ...] | None:
        """Return the texts whose likelihoods are compared instead of the choices; `None`: the choices
        themselves.
        """
        return None

    @property
    def truth_column(self) -> str | None:
        """Return the column that contains the correct answer, for scorers without a template for it."""
        return None

    @property
    def compares_likelihoods(self) -> bool:
        """Return whether the scorer compares likelihoods of given texts instead of a generated answer."""
        return False

    @property
    def normalisation(self) -> Normalisation:
        """Return the normalization of likelihoods."""
        return "none"

    @property
    def weighs_unconditioned(self) -> bool:
        """Return whether likelihoods after the unconditioned query are also needed."""
        return self.normalisation == "pmi"


def default_keys(scorers: Sequence[tuple[str | None, str]]) -> tuple[str, ...]:
    """Return one key per scorer or metric: its own, otherwise its type, with `_2`, `_3` … if taken."""
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
