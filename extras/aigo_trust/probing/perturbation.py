"""What a perturbation is: a change of a stored answer with an expectation that follows from its meaning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from aigo_trust.probing.stated import Stated, stated

Expectation = Literal["same", "worse", "not better", "told"]
"""`same`: the answer means what it did, so every score stays. `worse`: it is no right answer any more, so it
must score lower than it did. `not better`: nothing was added that is worth a point. `told`: both are
defensible, so it is reported only.
"""

ActsOn = Literal["answer", "labels", "columns", "group"]
"""The text of the answer; the order in which a judge is shown its labels; columns of the row that a judge
compares; the order of a group of answers.
"""


@dataclass(frozen=True)
class Answer:
    """A stored answer, and what a perturbation may take from elsewhere."""

    text: str
    neighbours: tuple[str, ...] = ()
    """Answers of other samples, in an order of the seed."""
    verdict: str | None = None
    """The best verdict of the judge as it would write it, e.g. `{"score": 10}`; `None`: there is none to ask
    for."""
    has_best: bool = False
    """Whether the answer has that verdict."""

    @cached_property
    def stated(self) -> Stated | None:
        """What the text states as its answer."""
        return stated(self.text)


@dataclass(frozen=True)
class Inapplicable:
    """That a perturbation makes no sense of an answer."""

    reason: str


Change = Callable[[Answer], str | Inapplicable]


@dataclass(frozen=True)
class Perturbation:
    """One way to change what a scorer sees."""

    name: str
    does: str
    """What it does, in a few words."""
    expectation: Expectation
    change: Change
    """The changed text, for those that act on the answer."""
    judges_only: bool = False
    """Whether it is tried on judges alone."""
    acts_on: ActsOn = "answer"

    def text(self, answer: Answer) -> str | Inapplicable:
        """The changed answer; one that is not changed is no trial of anything, but for the control."""
        changed = self.change(answer)
        if changed == answer.text and self.acts_on == "answer" and self.change is not unchanged:
            return Inapplicable("it does not change the answer")
        return changed


def unchanged(answer: Answer) -> str:
    """The answer as it is."""
    return answer.text
