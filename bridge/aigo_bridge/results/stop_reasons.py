"""Stop reason of a trial's final model call: why the model stopped generating its answer.

Engines record it in the metadata of model call events, with the term of the provider or of Inspect. A
content filter or a token limit ends an answer early, so that its score does not describe the model well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SAME = {
    "length": "max_tokens",
    "end_turn": "stop",
    "eos": "stop",
    "tool_use": "tool_calls",
    "safety": "content_filter",
}
"""Provider term → displayed term."""
NORMAL = frozenset({"stop", "tool_calls", "stop_sequence", "unknown"})
"""Stop reasons of complete answers."""
_TEXTS = {
    "content_filter": "stopped by the content filter",
    "refusal": "refused",
    "max_tokens": "truncated at the token limit",
    "model_length": "truncated at the model's context length",
}
_SCORING = frozenset({"scorers", "scorer"})


def stop_reason_of(trial: Any) -> str | None:
    """Return the stop reason of a trial's final answer, excluding judges; `None` if it is not recorded. A
    refusal in the model's answer is `refusal` for every provider. A failed call has no answer.
    """
    outputs = outputs_of(trial)
    if not outputs:
        return None
    trace = member(outputs[-1], "trace")
    reason = None
    items: Any = None
    for event in member(trace, "events") or ():
        kind = member(event, "type")
        if kind == "span_begin" and (
            member(event, "span_type") in _SCORING or member(event, "name") == "scorers"
        ):
            break
        if kind == "model_call_event" and (member(event, "output_items") or not member(event, "error")):
            reason, items = _recorded(member(event, "metadata")), member(event, "output_items")
    if any(_is_refusal(part) for item in items or () for part in _parts(item)):
        return "refusal"
    return reason


def incomplete_texts(reasons: Mapping[str, int]) -> list[str]:
    """Return display texts about incomplete answers, such as `2 answers stopped by the content filter` and `1
    truncated at the token limit`.
    """
    texts: list[str] = []
    for reason, number in sorted(reasons.items()):
        if number and reason not in NORMAL:
            noun = "" if texts else " answer" if number == 1 else " answers"
            texts.append(f"{number}{noun} {_TEXTS.get(reason, f'stopped with {reason!r:.40}')}")
    return texts


def outputs_of(trial: Any) -> list[Any]:
    """Return the solver output of a trial, or the outputs of a group."""
    output = member(member(trial, "solver"), "output")
    several = member(output, "solver_outputs")
    if several is None:
        return [] if output is None else [output]
    return list(several.values() if isinstance(several, dict) else several)


def _recorded(metadata: Any) -> str | None:
    for notes in metadata.values() if isinstance(metadata, dict) else ():
        reason = member(notes, "stop_reason") or member(notes, "finish_reason")
        if isinstance(reason, str) and reason:
            return _SAME.get(reason.lower(), reason.lower())
    return None


def _parts(item: Any) -> list[Any]:
    content = member(item, "content")
    return content if isinstance(content, list) else []


def _is_refusal(part: Any) -> bool:
    return bool(member(part, "type") == "refusal")


def member(value: Any, name: str) -> Any:
    """Return a member of plain data, or of an object of AI GO's types."""
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)
