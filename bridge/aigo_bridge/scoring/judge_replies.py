"""Reading what a judge model answers: JSON, fenced JSON, JSON among prose, or the bare label or number."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Not inside a word (`gpt-4`), not part of something longer (`1,000`, `1.2.3`).
_NUMBER = re.compile(r"(?<![\w.,-])[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?(?!\w|[.,]\d)", re.ASCII)
_DIGIT = re.compile(r"\d")
_QUOTES = "\"'`*_ \t\r\n"

MAX_WASTED = 100_000_000
"""Characters that are read in vain while looking for JSON in a reply."""


class UnreadableReplyError(ValueError):
    """The judge's reply holds no verdict; the message says what was missing."""


@dataclass(frozen=True)
class JudgeReply:
    """A judge's reply, read."""

    value: str | float
    """The label as the judge wrote it, or the number."""
    reasoning: str | None = None
    confidence: float | None = None
    """In [0, 1]; `None` when the judge gave none, or one that is not a share."""


def read_label(reply: str, labels: Sequence[str]) -> JudgeReply:
    """The label in a reply.

    In JSON any label is taken; bare text must be one of `known` (unless nothing is known, then the whole text
    is the label). A reply that says two different things says nothing.

    Raises:
        UnreadableReplyError: no label was found, or several.
    """
    objects = json_with(reply, ("prediction", "label"))
    if objects:
        verdicts = [JudgeReply(_label(content), *_explanation(content)) for content in objects]
        meant = {canonical(str(verdict.value), labels) or verdict.value for verdict in verdicts}
        if len(meant) > 1:
            raise UnreadableReplyError(f"it contains several verdicts: {_listed(meant)}")
        return verdicts[-1]
    bare = reply.strip()
    if not labels and bare and not _is_broken_json(bare):
        return JudgeReply(bare)
    trimmed = bare.strip(_QUOTES).rstrip(".!").strip(_QUOTES)
    for candidate in (bare, trimmed):
        if canonical(candidate, labels) is not None:
            return JudgeReply(candidate)
    if not bare:
        raise UnreadableReplyError("it is empty")
    one_of = f" nor one of {', '.join(map(repr, labels))}" if labels else " nor a bare label"
    raise UnreadableReplyError(f"it is neither JSON with a prediction{one_of}")


def read_number(reply: str) -> JudgeReply:
    """The number in a reply: `score` of its JSON, else the only number in its text.

    Of several numbers (`4 out of 5`, `0,8`) none is taken: the first one may be the scale, the year, or half
    of the score. Nor is one taken out of JSON that was cut off: it would come from the reasoning.

    Raises:
        UnreadableReplyError: there is none, or several.
    """
    objects = json_with(reply, ("score",))
    if objects:
        verdicts = [JudgeReply(_score(content), *_explanation(content)) for content in objects]
        if len({verdict.value for verdict in verdicts}) > 1:
            raise UnreadableReplyError(
                f"it contains several scores: {_listed(verdict.value for verdict in verdicts)}"
            )
        return verdicts[-1]
    if not reply.strip():
        raise UnreadableReplyError("it is empty")
    if _is_broken_json(reply) or not _DIGIT.search(reply):
        raise UnreadableReplyError("it is neither JSON with a score nor does it contain a number")
    number = _only_number(reply)
    if number is None:
        raise UnreadableReplyError("its text does not contain exactly one number")
    return JudgeReply(number)


def _only_number(text: str) -> float | None:
    """The number in a text in which every digit belongs to that number."""
    matches = list(itertools.islice(_NUMBER.finditer(text), 2))
    if len(matches) != 1:
        return None
    (match,) = matches
    remainder = text[: match.start()] + text[match.end() :]
    return None if _DIGIT.search(remainder) else _finite(match.group())


def _label(content: dict[str, object]) -> str:
    label = content.get("prediction", content.get("label"))
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    if isinstance(label, bool | int | float):
        label = json.dumps(label)
    if not isinstance(label, str) or not label.strip():
        raise UnreadableReplyError(f"its prediction is {_shown(label)}, expected a label")
    return label


def _score(content: dict[str, object]) -> float:
    number = _finite(content["score"])
    if number is None:
        raise UnreadableReplyError(f"its score is {_shown(content['score'])}, expected a number")
    return number


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"


def _listed(values: Iterable[object]) -> str:
    texts = list(dict.fromkeys(_shown(value) for value in values))
    return ", ".join(texts[:3]) + (", …" if len(texts) > 3 else "")


def _is_broken_json(text: str) -> bool:
    """Whether a text without a readable verdict tried to be JSON."""
    return "{" in text


def canonical(label: str, labels: Sequence[str]) -> str | None:
    """The label of `labels` that is meant: the same text, else the same apart from case and outer blanks."""
    if label in labels:
        return label
    folded = label.strip().casefold()
    return next((candidate for candidate in labels if candidate.strip().casefold() == folded), None)


def json_with(reply: str, keys: Sequence[str]) -> list[dict[str, object]]:
    """The JSON objects in the text that have one of the keys, none of them inside another."""
    decoder = json.JSONDecoder()
    objects: list[dict[str, object]] = []
    wasted = 0
    position = reply.find("{")
    while position >= 0 and wasted < MAX_WASTED:
        following = position + 1
        try:
            value, end = decoder.raw_decode(reply, position)
        except json.JSONDecodeError as error:
            wasted += error.pos  # to say where it is, the decoder counts lines from the start
        except RecursionError:
            wasted += MAX_WASTED // 100
        except ValueError:  # a number with more digits than Python converts
            wasted += len(reply) - position
        else:
            if isinstance(value, dict) and any(key in value for key in keys):
                objects.append(value)
                following = end
            else:
                wasted += end - position
        position = reply.find("{", following)
    return objects


def _explanation(content: dict[str, object]) -> tuple[str | None, float | None]:
    reasoning = content.get("reasoning")
    confidence = _finite(content.get("confidence"))
    if confidence is not None and not 0 <= confidence <= 1:
        confidence = None
    return (reasoning if isinstance(reasoning, str) else None), confidence


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and "_" in value:  # `1_000` is Python's spelling, nobody's score
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
