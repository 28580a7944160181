"""What lighteval's own models are asked by an exported task, and why some tasks cannot be given to them.

lighteval takes a question from a document; examples from a split of their own, the same for all documents; the system prompt and settings
of the generation from the model's configuration; length and stop sequences from the task. What a task asks is exact where it is just that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from aigo_bridge.errors import SampleError
from aigo_bridge.plan import TaskPlan
from aigo_bridge.scoring.likelihoods import by_likelihood, is_weighed_alone
from aigo_lighteval.turns import Asked, Turn, asker

SETTINGS = ("temperature", "top_p")
"""Generation options that a model's configuration has under the same name; others reach only some of the backends."""


@dataclass(frozen=True)
class Shared:
    """What is the same for all rows."""

    system: str | None = None
    """System prompt."""
    examples: tuple[tuple[Turn, Turn], ...] = ()
    """Questions with their answers, in front of every question."""
    size: int | None = None
    """Most tokens of an answer."""
    stop: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Other options, of `SETTINGS`."""

    @property
    def is_of_model(self) -> bool:
        """Whether the model's configuration has to say some of it."""
        return self.system is not None or bool(self.settings)


def question_text(asked: Asked) -> str:
    """The message that the examples lead to."""
    if not asked.is_one_text:
        return asked.turns[-1].text if asked.turns else ""
    *shots, prompt = [turn.text for turn in asked.turns]
    pairs = zip(shots[::2], shots[1::2], strict=True)
    return "".join(f"{query} {answer}\n\n" for query, answer in pairs) + prompt


def shared_question(plan: TaskPlan) -> tuple[Shared, list[str]]:
    """What all rows share, and why lighteval's own models cannot be asked what the plan asks (nothing, if they can).

    Rows that cannot be rendered are not looked at: they fail whoever is asked.
    """
    solver = None if plan.entity == "system" else plan.benchmark.solver
    if solver is None or not plan.calls_model:
        return Shared(), ["the task asks no model, and lighteval's backends always do"]
    ask = asker(plan)
    if ask is None:
        return Shared(), ["a document is one question with one answer"]
    found: Shared | None = None
    problems: dict[str, None] = {}
    if any(map(is_weighed_alone, by_likelihood(plan.benchmark.scorers))):
        problems["it weighs choices against an unconditioned query, which lighteval 0.13 asks no model"] = (
            None
        )
    for sample in plan.samples:
        try:
            asked = ask(sample.data)
        except SampleError:
            continue
        problems |= dict.fromkeys(_problems(asked))
        shared = _shared(asked)
        if found is None:
            found = shared
        elif shared != found:
            problems |= dict.fromkeys(_differences(found, shared))
    return found or Shared(), list(problems)


def _problems(asked: Asked) -> Iterator[str]:
    roles = [turn.role for turn in asked.turns]
    spoken = roles[1:] if roles[:1] == ["system"] else roles
    turns = ["user" if place % 2 == 0 else "assistant" for place in range(len(spoken))]
    if not spoken or spoken != turns or spoken[-1] != "user":
        yield "its messages are not examples and a question"
    others = sorted(set(asked.options) - {"max_tokens", "stop", *SETTINGS})
    if others or asked.is_structured:
        yield f"lighteval has no word for {', '.join([*others, *['response_format'] * asked.is_structured])}"
    if any(turn.images for turn in asked.turns):
        yield "only some of lighteval's backends see images"
    elif any(turn.problem for turn in asked.turns):
        yield "its messages have more than texts"


def _shared(asked: Asked) -> Shared:
    turns = list(asked.turns)
    system = turns.pop(0).text if turns and turns[0].role == "system" else None
    examples = () if asked.is_one_text else tuple(zip(turns[:-1:2], turns[1::2], strict=False))
    stop = asked.options.get("stop") or ()
    size = asked.options.get("max_tokens")
    return Shared(
        system,
        examples,
        size if isinstance(size, int) else None,
        (stop,) if isinstance(stop, str) else tuple(stop),
        {name: asked.options[name] for name in SETTINGS if asked.options.get(name) is not None},
    )


def _differences(one: Shared, other: Shared) -> Iterator[str]:
    if one.system != other.system:
        yield "its system message depends on the row, and lighteval has one per model"
    if one.examples != other.examples:
        yield "its examples depend on the row, and lighteval has the same for all"
    if (one.size, one.stop, one.settings) != (other.size, other.stop, other.settings):
        yield "its generation options depend on the row, and lighteval has the same for all"
