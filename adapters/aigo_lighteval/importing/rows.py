"""Rows of details from any reader, and their content: failures, conversation and correct answers.

This module does not import the packages that read details. lighteval's format does not store failures. Runs
of aigo-bridge store them in places that lighteval copies. For lighteval's own tasks, that is a separate
column. For exported tasks, it is the JSON text with the solver and scorer outcomes. For all other documents,
a missing score is the only sign.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from aigo_bridge.dtypes import TaskResultErrorStage
from aigo_bridge.importing.log_import import LossReport
from aigo_bridge.text.json_text import json_text

Json = dict[str, Any]


@dataclass(frozen=True)
class DocumentRow:
    """Document with one request type. Parts that could not be read are `None`."""

    number: int
    """Position in the file, from 0."""
    doc: Json | None
    response: Json | None
    metric: Json | None
    odd: bool
    """Whether the row may contain a number that is not finite."""
    failure: str | None = None
    """Failure of the document, as written by aigo-bridge; `None` if it did not fail or this is unknown."""


@dataclass(frozen=True)
class DocumentRows:
    """Document with all its rows."""

    sample_id: str
    """Document id, with a number added if another document has the same id."""
    rows: list[DocumentRow]
    """Rows of the document, one for each request type."""


# Failures in details


COLUMN = "aigo_failure"
"""Details column with a document's failure as JSON; null for other documents."""
CARRIER = "aigo"
"""Response field and metric name for the results of aigo-bridge tasks, one for each trial."""

_STAGES = frozenset(stage.value for stage in TaskResultErrorStage)


@dataclass(frozen=True)
class Failures:
    """Known failures of one document."""

    errors: tuple[tuple[int | None, Json], ...] = ()
    """Errors with their trial from 0; `None`: all trials."""
    failed: bool = False
    """Whether the document as a whole failed: a scorer failed in every trial."""


NONE = Failures()


def stored_failure(text: str | None) -> Failures:
    """Return the failure in the separate column."""
    error = None if text is None else _error(_parsed(text))
    return NONE if error is None else Failures(((0, error),), failed=True)


def carried_failures(response: Json, metric: Json) -> Failures:
    """Return the failures in the stored outcomes of an aigo-bridge task. Other texts are ignored."""
    texts = [part.get(CARRIER) for part in (response, metric)]
    if not any(isinstance(text, str) and '"failure"' in text for text in texts):
        return NONE
    solved, scored = (_trials(text) for text in texts)
    errors: list[tuple[int, Json]] = []
    heard: dict[tuple[str, str], bool] = {}
    """Whether a scorer and row have a result in any trial."""
    for index in range(max(len(solved), len(scored))):
        # If a backend generated the answers, the solver's failure is stored with the scores.
        of_solver = [
            _error(trials[index].get("failure")) for trials in (solved, scored) if index < len(trials)
        ]
        errors += [(index, error) for error in of_solver if error is not None]
        for scorer, row_id, result in _results(scored[index] if index < len(scored) else {}):
            where = f"scorer {scorer!r}" + ("" if row_id is None else f", row {row_id!r}")
            error = _error(result.get("failure"), where)
            key = (scorer, str(row_id))
            heard[key] = heard.get(key, False) or error is None
            if error is not None:
                errors.append((index, error))
    return Failures(tuple(errors), bool(errors) and not (heard and all(heard.values())))


def unscored(*, answered: bool) -> Failures:
    """Return the failure of a document without a score, whose reason is unknown."""
    what = "an answer but no score" if answered else "neither an answer nor a score"
    error = {"error_type": "UnscoredDocument", "message": f"lighteval stored {what} for the document"}
    return Failures(((None, error),), failed=True)


def _trials(text: Any) -> Sequence[Json]:
    trials = _parsed(text) if isinstance(text, str) else None
    return [trial if isinstance(trial, dict) else {} for trial in trials] if isinstance(trials, list) else []


def _results(scored: Json) -> Iterator[tuple[str, Any, Json]]:
    """Yield scorer, row id (`None`: the sample itself) and result."""
    for scorer, rows in scored.items():
        for row in rows if isinstance(rows, list) else []:
            if isinstance(row, list) and len(row) >= 2 and isinstance(row[1], dict):
                yield scorer, row[0], row[1]


def _error(raw: Any, where: str | None = None) -> Json | None:
    """Return a failure as evidence; `None` if it is not a failure."""
    if not isinstance(raw, dict) or not all(isinstance(raw.get(name), str) for name in ("kind", "message")):
        return None
    error = {
        "error_type": raw["kind"],
        "message": f"{where}: {raw['message']}" if where else raw["message"],
    }
    if isinstance(raw.get("stage"), str) and raw["stage"] in _STAGES:
        error["stage"] = raw["stage"]
    if isinstance(raw.get("hint"), str):
        error["hint"] = raw["hint"]
    return error


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


# The conversation


Item = dict[str, Any]
_ROLES = frozenset({"system", "user", "assistant", "developer"})


@dataclass(frozen=True)
class PromptSettings:
    """Prompt settings of a model, from its configuration."""

    system_prompt: str | None = None
    chat: bool = True
    """Whether prompts are chats. Otherwise they are one text. Models with a chat template use chats unless
    `override_chat_template` is false."""


def prompt_items(
    doc: Json, response: Json, prompting: PromptSettings, loss: LossReport
) -> tuple[list[Item], bool]:
    """Return the prompt as items, and whether it was reconstructed.

    lighteval's local servers store the prompt as text, API backends store messages, and transformers stores
    nothing. A missing prompt is reconstructed like in lighteval's `PromptManager`. The text after the chat
    template is unknown.

    Args:
        doc: the document.
        response: the model's response.
        prompting: prompt settings of the model.
        loss: report for changes.
    """
    prompt = response.get("input")
    images = [part for image in doc.get("images") or [] if (part := image_part(image)) is not None]
    if isinstance(prompt, str):
        return [_message(0, "user", [_text(prompt), *images])], False
    if isinstance(prompt, list) and prompt:
        items = [_given(number, message, loss) for number, message in enumerate(prompt)]
        if images and not any(_has_image(item) for item in items):
            last_question = next((item for item in reversed(items) if item.get("role") == "user"), None)
            if last_question is not None:
                last_question["content"] += images
        return items, False
    if prompt not in (None, []):
        loss.changed["prompt that is neither text nor messages: kept as custom message"] += 1
        return [{"type": "custom_task_input_message", "content": prompt}], False
    loss.changed["prompt that lighteval did not store: rebuilt from the document"] += 1
    return _rebuilt(doc, prompting, images), True


def _rebuilt(doc: Json, prompting: PromptSettings, images: list[Json]) -> list[Item]:
    instruction = doc.get("instruction")
    lead = instruction if isinstance(instruction, str) else None
    shots = [shot for shot in doc.get("fewshot_samples") or [] if isinstance(shot, dict)]
    answers = [next(iter(golds_of(shot)), "") for shot in shots]
    if not prompting.chat:
        texts = [text for text in (prompting.system_prompt, lead) if text is not None]
        texts += [f"{_query(shot)} {answer.strip()}" for shot, answer in zip(shots, answers, strict=True)]
        return [_message(0, "user", [_text("\n\n".join([*texts, _query(doc)])), *images])]
    spoken: list[tuple[str, str]] = []
    if prompting.system_prompt is not None:
        spoken.append(("system", prompting.system_prompt))
    for shot, answer in zip(shots, answers, strict=True):
        spoken += [("user", (lead or "") + _query(shot)), ("assistant", answer)]
        lead = None
    spoken.append(("user", (lead or "") + _query(doc)))
    items = [_message(number, role, [_part(role, text)]) for number, (role, text) in enumerate(spoken)]
    items[-1]["content"] += images
    return items


def _query(doc: Json) -> str:
    """Return a document's question without the instruction at its start."""
    query, instruction = _as_text(doc.get("query")), doc.get("instruction")
    if isinstance(instruction, str) and query.startswith(instruction):
        return query[len(instruction) :].strip()
    return query


def golds_of(doc: Json) -> list[str]:
    """Return the correct answers like lighteval's `Doc.get_golds`. Indexes out of range are skipped."""
    choices, index = doc.get("choices"), doc.get("gold_index")
    golds: list[str] = []
    for at in index if isinstance(index, list) else [index]:
        if (
            not isinstance(at, int)
            or not isinstance(choices, (list, str))
            or not -len(choices) <= at < len(choices)
        ):
            continue
        gold = choices[at]
        golds += map(_as_text, gold) if isinstance(gold, list) else [_as_text(gold)]
    return golds


def answer_items(number: int, text: str, reasoning: Any) -> list[Item]:
    """Return an answer as items. Reasoning is a separate message, so that it does not count as answer text.

    Args:
        number: position of the first item in the conversation.
        text: answer of the model.
        reasoning: reasoning, if it is separate from the answer.
    """
    items = []
    if reasoning is not None and reasoning != "":
        part = {"type": "reasoning_text", "text": _as_text(reasoning)}
        items.append(_message(number, "assistant", [part]))
    items.append(_message(number + len(items), "assistant", [_part("assistant", text)]))
    return items


def image_part(image: Any) -> Json | None:
    """Convert an image of a document, `{"bytes": …, "path": …}`. Bytes are a `data:` URL."""
    url = image
    if isinstance(image, dict):
        url = image.get("bytes") or image.get("path")
    return (
        {"type": "input_image", "image_url": url, "detail": "auto"} if isinstance(url, str) and url else None
    )


def _given(number: int, message: Any, loss: LossReport) -> Item:
    role = message.get("role") if isinstance(message, dict) else None
    if role not in _ROLES:
        loss.changed["message of unknown role: kept as custom message"] += 1
        return {"type": "custom_task_input_message", "content": message}
    content = message.get("content")
    if isinstance(content, list):
        parts = [_content_part(role, part, loss) for part in content if part is not None]
    else:
        parts = [] if content is None else [_part(role, _as_text(content))]
    item = _message(number, role, parts)
    if extra := {
        key: value for key, value in message.items() if key not in ("role", "content") and value is not None
    }:
        item["lighteval"] = extra
    return item


def _content_part(role: str, part: Any, loss: LossReport) -> Json:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text":
        return _part(role, _as_text(part.get("text")))
    if kind in ("image", "image_url"):
        image = part.get("image") or part.get("image_url")
        image_content = image_part(image.get("url") if isinstance(image, dict) and "url" in image else image)
        if image_content is not None:
            return image_content
    if isinstance(part, str):
        return _part(role, part)
    loss.changed["content of unknown type: kept as JSON text"] += 1
    return _part(role, json_text(part))


def _has_image(item: Item) -> bool:
    content = item.get("content")
    return isinstance(content, list) and any(
        isinstance(part, dict) and part.get("type") == "input_image" for part in content
    )


def _message(number: int, role: str, content: list[Json]) -> Item:
    return {
        "type": "message",
        "id": f"m{number}",
        "status": "completed",
        "role": role,
        "content": content,
    }


def _part(role: str, text: str) -> Json:
    if role == "assistant":
        return {"type": "output_text", "text": text, "annotations": []}
    return _text(text)


def _text(text: str) -> Json:
    return {"type": "input_text", "text": text}


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json_text(value)
