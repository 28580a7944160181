"""Parsing of a judge model's reply: JSON, fenced JSON, JSON within prose, or the bare label or number."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Numbers outside words (`gpt-4`) and outside longer tokens (`1,000`, `1.2.3`).
_NUMBER = re.compile(r"(?<![\w.,-])[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?(?!\w|[.,]\d)", re.ASCII)
_DIGIT = re.compile(r"\d")
_QUOTES = "\"'`*_ \t\r\n"

MAX_WASTED = 100_000_000
"""Maximum characters that may be read without success while searching for JSON in a reply."""


class UnreadableReplyError(ValueError):
    """Judge reply without a verdict; the message names the missing part."""


@dataclass(frozen=True)
class JudgeReply:
    """Parsed reply of a judge."""

    value: str | float
    """Label as the judge wrote it, or the number."""
    reasoning: str | None = None
    confidence: float | None = None
    """Confidence in [0, 1]; `None` if it is missing or out of range."""


def read_label(reply: str, labels: Sequence[str]) -> JudgeReply:
    """Return the label in a reply.

    JSON may contain any label. Bare text must be one of `labels`; without known labels, the whole text
    is the label. A reply with two different labels is unreadable.

    Raises:
        UnreadableReplyError: the reply contains no label, or several.
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
    """Return the number in a reply: `score` of its JSON, otherwise the only number in its text.

    If the text contains several numbers (`4 out of 5`, `0,8`), it is unreadable: the first one may be the
    scale, the year, or half of the score. Truncated JSON is also unreadable, because its number may belong to
    the reasoning.

    Raises:
        UnreadableReplyError: the reply contains no number, or several.
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
    """Return whether a text without a readable verdict looks like incomplete JSON."""
    return "{" in text


def canonical(label: str, labels: Sequence[str]) -> str | None:
    """Return the matching label: the same text, otherwise the same without case and surrounding
    whitespace.
    """
    if label in labels:
        return label
    folded = label.strip().casefold()
    return next((candidate for candidate in labels if candidate.strip().casefold() == folded), None)


def json_with(reply: str, keys: Sequence[str]) -> list[dict[str, object]]:
    """Return the outermost JSON objects in the text that have one of the keys."""
    decoder = json.JSONDecoder()
    objects: list[dict[str, object]] = []
    wasted = 0
    position = reply.find("{")
    while position >= 0 and wasted < MAX_WASTED:
        following = position + 1
        try:
            value, end = decoder.raw_decode(reply, position)
        except json.JSONDecodeError as error:
            wasted += error.pos  # To report the position, the decoder counts lines from the start.
        except RecursionError:
            wasted += MAX_WASTED // 100
        except ValueError:  # A number with more digits than Python converts.
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
    if isinstance(value, str) and "_" in value:  # `1_000` is Python notation and not a judge's score.
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
