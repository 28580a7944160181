"""What the model was given and what it said, as the items of a conversation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aigo_bridge.importing.encoding import json_text
from aigo_bridge.importing.loss import LossReport

Json = dict[str, Any]
Item = dict[str, Any]
_ROLES = frozenset({"system", "user", "assistant", "developer"})


@dataclass(frozen=True)
class Prompting:
    """How a model was prompted, as far as its configuration tells."""

    system_prompt: str | None = None
    chat: bool = True
    """Whether as a chat; else as one text. Models with a chat template are, unless `override_chat_template` says otherwise."""


def prompt_items(
    doc: Json, response: Json, prompting: Prompting, loss: LossReport
) -> tuple[list[Item], bool]:
    """The prompt as items, and whether it had to be put together again.

    Backends that lighteval runs itself keep the prompt as one text, API backends as messages, and transformers none at all. Then it is put
    together as lighteval's `PromptManager` does: the text that a chat template made of it is not known.

    Args:
        doc: the document.
        response: the model's response.
        prompting: how the model was prompted.
        loss: where changes are counted.
    """
    given = response.get("input")
    images = [part for image in doc.get("images") or [] if (part := image_part(image)) is not None]
    if isinstance(given, str):
        return [_message(0, "user", [_text(given), *images])], False
    if isinstance(given, list) and given:
        items = [_given(number, message, loss) for number, message in enumerate(given)]
        if images and not any(_has_image(item) for item in items):
            last = next((item for item in reversed(items) if item.get("role") == "user"), None)
            if last is not None:
                last["content"] += images
        return items, False
    if given not in (None, []):
        loss.changed["prompt that is neither text nor messages: kept as custom message"] += 1
        return [{"type": "custom_task_input_message", "content": given}], False
    loss.changed["prompt that lighteval did not keep: put together from the document"] += 1
    return _rebuilt(doc, prompting, images), True


def _rebuilt(doc: Json, prompting: Prompting, images: list[Json]) -> list[Item]:
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
    """A document's question without the instruction in front of it."""
    query, instruction = _as_text(doc.get("query")), doc.get("instruction")
    if isinstance(instruction, str) and query.startswith(instruction):
        return query[len(instruction) :].strip()
    return query


def golds_of(doc: Json) -> list[str]:
    """The right answers, as lighteval's `Doc.get_golds` finds them; those that do not exist are left out."""
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
    """What the model said; its reasoning goes into a message of its own, or it would count as text of the answer.

    Args:
        number: position of the first item in the conversation.
        text: the answer as the model gave it.
        reasoning: its reasoning, if it was given apart from the answer.
    """
    items = []
    if reasoning is not None and reasoning != "":
        part = {"type": "reasoning_text", "text": _as_text(reasoning)}
        items.append(_message(number, "assistant", [part]))
    items.append(_message(number + len(items), "assistant", [_part("assistant", text)]))
    return items


def image_part(image: Any) -> Json | None:
    """An image of a document: `{"bytes": …, "path": …}`, the bytes as a `data:` URL."""
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
        found = image_part(image.get("url") if isinstance(image, dict) and "url" in image else image)
        if found is not None:
            return found
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
