"""Model requests and answers of a document in the samples.

Since release 0.4.3 the harness writes answers as text (`"-0.59"`, `"False"`). Earlier releases write JSON
values.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from aigo_bridge.importing.log_import import LossReport
from aigo_bridge.text.json_text import json_text

Json = dict[str, Any]
Item = dict[str, Any]
_ROLES = frozenset({"system", "user", "assistant", "developer"})


@dataclass(frozen=True)
class Request:
    """Request to the model, with its answers."""

    context: Any
    """Prompt: a text, or messages."""
    asked: Any
    """Generation settings, or the text whose likelihood is requested; `None`: likelihood of the context
    itself."""
    more: tuple[Any, ...]
    """Further arguments, such as images."""
    answers: tuple[Any, ...]
    """Answers, one for each repeat."""
    filtered: Any
    """Answers after the filter."""

    @property
    def is_generation(self) -> bool:
        """Return whether the model generates an answer."""
        return isinstance(self.asked, dict)


def requests_of(row: Json) -> list[Request]:
    """Return the requests of a samples line, in order.

    Raises:
        TypeError, ValueError: the line is malformed.
    """
    arguments = _arguments(row.get("arguments"))
    answers, filtered = row.get("resps"), row.get("filtered_resps")
    if not isinstance(answers, list):
        raise TypeError(f"'resps' is {type(answers).__name__}, expected a list")
    if len(answers) != len(arguments):
        raise ValueError(f"{len(arguments)} requests have {len(answers)} lists of answers")
    remains = (
        filtered
        if isinstance(filtered, list) and len(filtered) == len(arguments)
        else [None] * len(arguments)
    )
    return [
        Request(
            context=parts[0] if parts else "",
            asked=parts[1] if len(parts) > 1 else None,
            more=tuple(parts[2:]),
            answers=tuple(texts) if isinstance(texts, list) else (texts,),
            filtered=remain,
        )
        for parts, texts, remain in zip(arguments, answers, remains, strict=True)
    ]


def _arguments(value: Any) -> list[list[Any]]:
    if isinstance(value, dict):
        # Newer releases store objects for tables: {"gen_args_0": {"arg_0": prompt, "arg_1": …}}.
        return [
            list(_numbered(parts, "arg_")) if isinstance(parts, dict) else [parts]
            for parts in _numbered(value, "gen_args_")
        ]
    if isinstance(value, list):
        return [parts if isinstance(parts, list) else [parts] for parts in value]
    raise TypeError(f"'arguments' is {type(value).__name__}, expected an object or a list")


def _numbered(value: Json, prefix: str) -> Iterator[Any]:
    numbers = {
        int(number): part for key, part in value.items() if (number := key.removeprefix(prefix)).isdecimal()
    }
    if len(numbers) != len(value):
        raise ValueError(f"found {', '.join(sorted(value))}, expected {prefix}0, {prefix}1 …")
    yield from (numbers[number] for number in sorted(numbers))


def likelihood_of(answer: Any) -> tuple[float, bool | None]:
    """Return a log-likelihood, and whether greedy decoding would produce the text; `None` if unknown.

    Raises:
        TypeError, ValueError: the answer is not a log-likelihood.
    """
    if isinstance(answer, list) and len(answer) == 1:
        answer = answer[0]
    number, greedy = answer if isinstance(answer, list) and len(answer) == 2 else (answer, None)
    if isinstance(number, bool) or not isinstance(number, (int, float, str)):
        raise TypeError(f"found {json_text(answer)[:80]} as a log likelihood")
    if isinstance(number, str) and number.startswith("(") and number.endswith(")"):
        # Tuple as text.
        number, _, second = number[1:-1].partition(",")
        greedy = second.strip() or greedy
    if isinstance(greedy, str):
        greedy = {"True": True, "False": False}.get(greedy)
    return float(number), greedy if isinstance(greedy, bool) else None


def plain_likelihoods(requests: list[Request], repeat: int) -> Json:
    """Return a likelihood answer in the form that other imports also use.

    Raises:
        TypeError, ValueError, IndexError: an answer is not a likelihood.
    """
    values = [likelihood_of(request.answers[repeat]) for request in requests]
    content: Json = {}
    if all(isinstance(request.asked, str) for request in requests):
        content["choices"] = [request.asked for request in requests]
    content["logprobs"] = [value if math.isfinite(value) else None for value, _ in values]
    if any(greedy is not None for _, greedy in values):
        content["argmax_logits_eq_gold"] = [greedy for _, greedy in values]
    return content


# The conversation


def prompt_items(context: Any, loss: LossReport) -> list[Item]:
    """Return a prompt as items. A text becomes a user message."""
    messages = _messages(context)
    if messages is not None:
        return [
            message_item(number, message["role"], _spoken(message["content"]))
            for number, message in enumerate(messages)
        ]
    if isinstance(context, str):
        return [message_item(0, "user", context)]
    loss.changed["prompt that is neither text nor messages: kept as custom message"] += 1
    return [{"type": "custom_task_input_message", "content": context}]


def _messages(context: Any) -> list[Json] | None:
    """Return the messages of a chat; `None` if the prompt is not a chat. For APIs the harness stores them as
    JSON text.
    """
    if isinstance(context, list) and len(context) == 1 and isinstance(context[0], str):
        context = context[0]
        if not context.startswith("[{"):
            return None
        try:
            context = json.loads(context)
        except (ValueError, RecursionError):
            return None
    if (
        isinstance(context, list)
        and context
        and all(
            isinstance(message, dict) and message.get("role") in _ROLES and "content" in message
            and set(message) <= {"role", "content", "type"}
            for message in context
        )
    ):  # fmt: skip
        return context
    return None


def _spoken(content: Any) -> str:
    return content if isinstance(content, str) else json_text(content)


def message_item(number: int, role: str, text: str) -> Item:
    """Return a message item."""
    part: Json = {"type": "input_text", "text": text}
    if role == "assistant":
        part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": f"m{number}", "status": "completed", "role": role, "content": [part]}
