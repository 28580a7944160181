"""Specifications of repeated trials, and of the scores that are computed from them."""

from typing import Annotated, Literal

from pydantic import Field

from aigo_bridge.spec.base import SpecModel, Templated


class _Aggregator(SpecModel):
    score_name: str | None = None
    """Name of the aggregated score; `None`: `SCORE.FUNCTION`."""


class MeanOfTrials(_Aggregator):
    """Mean over trials."""

    function: Literal["mean"]


class MinOfTrials(_Aggregator):
    """Smallest value over trials."""

    function: Literal["min"]


class MaxOfTrials(_Aggregator):
    """Largest value over trials."""

    function: Literal["max"]


class PassAtK(_Aggregator):
    """Chance that at least one of k tries succeeds: 1 - (1 - p)^k with p the share of true trials."""

    function: Literal["pass@k"]
    k: int = Field(ge=1)
    """Number of attempts."""


class PassHatK(_Aggregator):
    """Chance that all of k tries succeed: p^k with p the share of true trials."""

    function: Literal["pass^k"]
    k: int = Field(ge=1)
    """Number of attempts."""


Aggregator = Annotated[
    MeanOfTrials | MinOfTrials | MaxOfTrials | PassAtK | PassHatK,
    Field(discriminator="function"),
]


class ScoreOfTrials(SpecModel):
    """How one score of the trials becomes one score of the sample."""

    score_name: str
    """Score to read in each trial."""
    aggregator: Aggregator
    """Function to compute."""


class Trials(SpecModel):
    """Each sample is solved and scored several times."""

    num_trials: Templated[Annotated[int, Field(ge=1)]]
    """Number of trials per sample."""
    score_aggregators: tuple[ScoreOfTrials, ...] | None = None
    """Additional aggregates; numbers and booleans always get the mean."""
