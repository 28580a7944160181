"""Parts of messages and of tool results: text, media, documents, citations.

AI GO has no audio, and videos only in messages: such parts become files, and what kind they were stands under the extra
key `inspect`. Parts of a kind this version has never heard of are kept as JSON text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aigo_bridge.importing.encoding import json_text
from aigo_bridge.importing.loss import LossReport

Part = dict[str, Any]


def text_of(value: Any) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json_text(value)


def add_rest(found: dict[str, Any], given: dict[str, Any], known: frozenset[str]) -> None:
    """Keep the fields of `given` that are not known under the key `inspect` of what was made of it."""
    rest = {key: value for key, value in given.items() if key not in known and value is not None}
    if rest:
        found["inspect"] = {**found.get("inspect", {}), **rest}


def check_parts(parts: list[Any]) -> list[Any]:
    """`parts` of a message or a tool's result, as they are; a `ValueError` when they are too many and too small to be any.

    An empty text is a few bytes of JSON and a hundred times as many as a part of evidence.
    """
    count = len(parts)
    if count > _MANY:
        size = len(json_text(parts))
        if size < count * _SMALLEST or (count > _VERY_MANY and size < count * _SMALLEST_OF_MANY):
            raise ValueError(f"{count:,} parts in {size:,} bytes")
    return parts


_MANY, _SMALLEST = 1_000, 24
_VERY_MANY, _SMALLEST_OF_MANY = 10_000, 64
"""Beyond so many parts, the bytes of JSON that one has on average at least: an empty text has 25."""


# Parts of the input


def input_part(part: Any, loss: LossReport) -> Part:
    """One part of a user, system or tool message."""
    kind = _kind(part)
    if kind == "text":
        found: Part = {"type": "input_text", "text": text_of(part.get("text", ""))}
        add_rest(found, part, _TEXT_FIELDS)
        return found
    mapper = _MAPPERS.get(kind)
    if mapper is not None:
        found = mapper(part, loss)
        add_rest(found, part, _FIELDS[kind])
        return found
    loss.changed[f"content of type {kind or type(part).__name__}: kept as JSON text"] += 1
    return {"type": "input_text", "text": json_text(part)}


def _kind(part: Any) -> str:
    """The type that a part says it has; `""` for what is no part, or has no usable type."""
    kind = part.get("type") if isinstance(part, dict) else None
    return kind if isinstance(kind, str) else ""


def _image(part: Part, loss: LossReport) -> Part:
    detail = part.get("detail", "auto")
    if detail not in ("low", "high", "auto"):
        loss.changed[f"image detail {detail!r}: written as 'high'"] += 1
        detail = "high"
    return {"type": "input_image", "image_url": text_of(part.get("image", "")), "detail": detail}


def _audio(part: Part, loss: LossReport) -> Part:
    loss.changed["audio: written as input_file"] += 1
    audio_format = part.get("format") or "wav"
    return {
        "type": "input_file",
        "filename": f"audio.{audio_format}",
        "file_url": text_of(part.get("audio", "")),
        "inspect": {"type": "audio", "format": audio_format},
    }


def _video(part: Part, loss: LossReport) -> Part:
    found: Part = {"type": "input_video", "video_url": text_of(part.get("video", ""))}
    if part.get("format"):
        found["inspect"] = {"format": part["format"]}
    return found


def _video_file(part: Part, loss: LossReport) -> Part:
    """Tool results have no video type."""
    loss.changed["video in a tool result: written as input_file"] += 1
    video_format = part.get("format") or "mp4"
    return {
        "type": "input_file",
        "filename": f"video.{video_format}",
        "file_url": text_of(part.get("video", "")),
        "inspect": {"type": "video", "format": video_format},
    }


def _document(part: Part, loss: LossReport) -> Part:
    found: Part = {"type": "input_file", "file_url": text_of(part.get("document", ""))}
    name = part.get("filename")
    if name is not None and name != "":
        if not isinstance(name, str):
            loss.changed["file name that is no text: written as JSON"] += 1
        found["filename"] = text_of(name)
    if part.get("mime_type"):
        found["inspect"] = {"mime_type": part["mime_type"]}
    return found


def _data(part: Part, loss: LossReport) -> Part:
    loss.changed["content of type data: kept as JSON text"] += 1
    return {"type": "input_text", "text": json_text(part.get("data"))}


def _reasoning_in_input(part: Part, loss: LossReport) -> Part:
    return {"type": "input_text", "text": text_of(part.get("reasoning", ""))}


_MAPPERS: dict[str, Callable[[Part, LossReport], Part]] = {
    "image": _image,
    "audio": _audio,
    "video": _video,
    "document": _document,
    "data": _data,
    "reasoning": _reasoning_in_input,
}
_TEXT_FIELDS = frozenset({"type", "text"})
_FIELDS: dict[str, frozenset[str]] = {
    "image": frozenset({"type", "image", "detail"}),
    "audio": frozenset({"type", "audio", "format"}),
    "video": frozenset({"type", "video", "format"}),
    "document": frozenset({"type", "document", "filename", "mime_type"}),
    "data": frozenset({"type", "data"}),
    "reasoning": frozenset({"type", "reasoning"}),
}
"""Kind of part → its fields that have a place."""


# Tool results


def tool_result(result: Any, loss: LossReport) -> str | list[Part]:
    """A tool's result: text, or parts when there is more than text. Numbers and booleans as Python prints them."""
    if isinstance(result, str):
        return result
    if isinstance(result, dict) and "type" in result:
        result = [result]
    if isinstance(result, list):
        return [_output_part(part, loss) for part in check_parts(result)]
    return "" if result is None else str(result)


def _output_part(part: Any, loss: LossReport) -> Part:
    if isinstance(part, dict) and part.get("type") == "video":
        found = _video_file(part, loss)
        add_rest(found, part, _FIELDS["video"])
        return found
    return input_part(part, loss)


# Parts of an answer


def answer_part(part: Any, loss: LossReport, logprobs: list[dict[str, Any]] | None) -> Part:
    """One part of an assistant's message that is neither reasoning nor a tool on the provider's side."""
    kind = _kind(part)
    if kind != "text":
        return input_part(part, loss) if kind in _MEDIA else _json_file(part, kind, loss)
    text = text_of(part.get("text", ""))
    if part.get("refusal"):
        refusal: Part = {"type": "refusal", "refusal": text}
        add_rest(refusal, part, _REFUSAL_FIELDS if part["refusal"] is True else _TEXT_FIELDS)
        return refusal
    citations = part.get("citations") or []
    if not isinstance(citations, list):
        loss.changed["citations that are no list: taken for one citation"] += 1
        citations = [citations]
    annotations = [_citation(citation, text, loss) for citation in check_parts(citations)]
    found = {"type": "output_text", "text": text, "annotations": annotations}
    if logprobs:
        found["logprobs"] = logprobs
    add_rest(found, part, _ANSWER_FIELDS)
    return found


_MEDIA = frozenset({"image", "audio", "video", "document"})
_REFUSAL_FIELDS = frozenset({"type", "text", "refusal"})
_ANSWER_FIELDS = _REFUSAL_FIELDS | {"citations"}


def _json_file(part: Any, kind: str, loss: LossReport) -> Part:
    """What a model said that is neither text nor media. As text it would change the answer: Inspect leaves it out as well."""
    # Late: hardly any log has such parts.
    from urllib.parse import quote

    loss.changed[f"content of type {kind or type(part).__name__} in an answer: written as input_file"] += 1
    value = part.get("data") if kind == "data" else part
    found: Part = {
        "type": "input_file",
        "filename": "data.json",
        "file_url": "data:application/json," + quote(json_text(value)),
    }
    if kind == "data":
        found["inspect"] = {"type": "data"}
        add_rest(found, part, _FIELDS["data"])
    return found


def _citation(citation: Any, text: str, loss: LossReport) -> Part:
    if not isinstance(citation, dict):
        return {"type": "text_citation", "content": text_of(citation)}
    cited = citation.get("cited_text")
    title = citation.get("title")
    if citation.get("type") == "url":
        start, end = 0, 0
        if isinstance(cited, list) and _is_range(cited):
            start, end = cited
        elif isinstance(cited, str) and cited and (at := text.find(cited)) >= 0:
            start, end = at, at + len(cited)
        else:
            loss.changed["citation without a place in the text: indices are 0"] += 1
        url = text_of(citation.get("url") or "")
        found: Part = {
            "type": "url_citation",
            "url": url,
            "start_index": start,
            "end_index": end,
            "title": text_of(title or url),
        }
        if isinstance(cited, str):
            found["cited_text"] = cited
        add_rest(
            found,
            citation,
            _URL_FIELDS if _is_range(cited) or isinstance(cited, str) else _URL_FIELDS - {"cited_text"},
        )
        return found
    known = (
        _CITATION_FIELDS if citation.get("type") in ("document", "content") else _CITATION_FIELDS - {"type"}
    )
    if isinstance(cited, list):
        known -= {"cited_text"}
        cited = text[cited[0] : cited[1]] if _is_range(cited) else None
    found = {"type": "text_citation", "content": text_of(cited or title or "")}
    found |= {key: citation[key] for key in ("title", "range") if citation.get(key)}
    add_rest(found, citation, known)
    return found


def _is_range(cited: Any) -> bool:
    return isinstance(cited, list) and len(cited) == 2 and all(type(number) is int for number in cited)


_URL_FIELDS = frozenset({"type", "url", "title", "cited_text"})
_CITATION_FIELDS = frozenset({"type", "title", "cited_text", "range"})
