"""Perturbation of a stored answer, with the score change that its meaning implies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from aigo_trust.probing.final_answer import FinalAnswer, stated

Expectation = Literal["same", "worse", "not better", "told"]
"""Expected effect on the scores.

- `same`: the meaning is unchanged, so every score must stay the same.
- `worse`: the answer becomes incorrect, so its score must fall.
- `not better`: the added text is worthless, so the score must not rise.
- `told`: both outcomes are defensible, so the change is only reported.
"""

ActsOn = Literal["answer", "labels", "columns", "group"]
"""Input that a perturbation changes: the answer text, the label order in a judge's prompt, the compared
columns or the order of a group of answers.
"""


@dataclass(frozen=True)
class StoredAnswer:
    """Stored answer with the context that perturbations need."""

    text: str
    neighbours: tuple[str, ...] = ()
    """Answers of other samples in a seeded random order."""
    verdict: str | None = None
    """Best verdict in the judge's output format, for example `{"score": 10}`; `None` if unknown."""
    has_best: bool = False
    """Whether the answer already has the best verdict."""

    @cached_property
    def stated(self) -> FinalAnswer | None:
        """Answer that the text states."""
        return stated(self.text)


@dataclass(frozen=True)
class Inapplicable:
    """Reason why a perturbation cannot be applied to an answer."""

    reason: str


Change = Callable[[StoredAnswer], str | Inapplicable]


@dataclass(frozen=True)
class Perturbation:
    """Change of a scorer's input."""

    name: str
    does: str
    """Short description of the change."""
    expectation: Expectation
    change: Change
    """Function that changes the text, for perturbations of the answer."""
    judges_only: bool = False
    """Whether the perturbation applies to judges only."""
    acts_on: ActsOn = "answer"

    def text(self, answer: StoredAnswer) -> str | Inapplicable:
        """Return the changed answer. An unchanged answer is inapplicable, except for the control."""
        changed = self.change(answer)
        if changed == answer.text and self.acts_on == "answer" and self.change is not unchanged:
            return Inapplicable("it does not change the answer")
        return changed


def unchanged(answer: StoredAnswer) -> str:
    """Return the answer unchanged."""
    return answer.text
