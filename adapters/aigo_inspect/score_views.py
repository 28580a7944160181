"""What Inspect's views show beside a score: the answer that was scored, and why the score is what it is.

Evidence is read from a score's value and metadata, never from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from aigo_bridge.dtypes import ChatCompletionModelOutput, RAGCompletionOutput, SingleSolverOutput, SolverTrace
from aigo_bridge.metrics.numbers import short
from aigo_bridge.scoring.outcome import Outcome

_ANSWERS = ("answer_pred", "predicted_choice")
"""Keys of metadata under which scorers keep what they compared."""


def answer_text(output: Any) -> str | None:
    """The last answer of a solver's output; `None` where there is no text."""
    if not isinstance(output, SingleSolverOutput | SolverTrace):
        return None
    answer = output.output
    if isinstance(answer, ChatCompletionModelOutput | RAGCompletionOutput) and answer.choices:
        return answer.choices[0].message.content
    return answer if isinstance(answer, str) else None


def answer_of(outcome: Outcome, answer: str | None) -> str | None:
    """What was scored: as the scorer says, else the last answer."""
    found = outcome.metadata
    # A judge's prediction is what it says of the answer.
    keys = _ANSWERS if "judge_calls" in found else (*_ANSWERS, "prediction")
    own = next((found[key] for key in keys if key in found), answer)
    return own if isinstance(own, str) else answer


def explanation_of(outcome: Outcome) -> str:
    """Why, in a sentence."""
    found = outcome.metadata
    reasoning = found.get("reasoning")
    if "model_key" in found and "judge_calls" in found:
        return _of_judge({**outcome.values, **found}, reasoning)
    if isinstance(reasoning, str):
        return reasoning
    if "answer_gt" in found:
        same = found.get("answer_gt") == found.get("answer_pred")
        return f"{'equals' if same else 'differs from'} the ground truth, {short(found['answer_gt'])}"
    if "ground_truth_correct_choice" in found:
        return f"right: {short(found['ground_truth_correct_choice'])} of {_listed(found['ground_truth_choices'])}"
    if "unmatched_calls" in found:
        return f"called: {_listed(found['called'])}; required and not called: {_listed(found['unmatched_calls'])}"
    if isinstance(found.get("failure"), str):
        return str(found["failure"])
    values = {**outcome.values, **{name: value for name, value in found.items() if _is_plain(value)}}
    return ", ".join(f"{name}: {short(value)}" for name, value in values.items()) or "no score"


def _of_judge(found: Mapping[str, Any], reasoning: Any) -> str:
    verdict = next((found[key] for key in ("prediction", "raw_score", "label") if key in found), None)
    said = [] if verdict is None else [f"{found['model_key']}: {verdict}"]
    if found.get("unexpected_label") is True:
        said.append("which is none of the labels")
    return "; ".join([*said, *([reasoning] if isinstance(reasoning, str) else [])]) or str(found["model_key"])


def _listed(values: Any) -> str:
    return ", ".join(map(str, values)) if isinstance(values, Iterable) and values else "none"


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float)
