"""Conversion of the parts of messages and tool results: text, media, documents and citations.

AI GO does not support audio, and supports video only in messages. Such parts become files, with their
original type in the extra key `inspect`. Parts of an unknown type are kept as JSON text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aigo_bridge.importing.log_import import LossReport
from aigo_bridge.text.json_text import json_text
from aigo_bridge.text.plurals import plural

Part = dict[str, Any]


def text_of(value: Any) -> str:
    """Return a text unchanged, and other values as JSON."""
    return value if isinstance(value, str) else json_text(value)


def add_rest(part: dict[str, Any], native: dict[str, Any], fields: frozenset[str]) -> None:
    """Keep the other fields of Inspect's part in the key `inspect` of the converted part."""
    if fields.issuperset(native):
        return
    remainder = {key: value for key, value in native.items() if key not in fields and value is not None}
    if remainder:
        part["inspect"] = {**part.get("inspect", {}), **remainder}


def check_parts(parts: list[Any]) -> list[Any]:
    """Return the `parts` of a message or tool result unchanged. Raise `ValueError` if there are many parts of
    implausibly small size.

    An empty text takes a few bytes of JSON, but a hundred times as much as a part of the evidence.
    """
    count = len(parts)
    if count > _MANY:
        size = len(json_text(parts))
        if size < count * _SMALLEST or (count > _VERY_MANY and size < count * _SMALLEST_OF_MANY):
            raise ValueError(f"{plural(count, 'part', form=',')} in {size:,} bytes")
    return parts


_MANY, _SMALLEST = 1_000, 24
_VERY_MANY, _SMALLEST_OF_MANY = 10_000, 64
"""Above this number of parts, the minimum average size of a part in JSON bytes. An empty text has 25
bytes."""


# Input parts


def input_part(part: Any, loss: LossReport) -> Part:
    """Convert one part of a user, system or tool message."""
    kind = _kind(part)
    if kind == "text":
        aigo_part: Part = {"type": "input_text", "text": text_of(part.get("text", ""))}
        add_rest(aigo_part, part, _TEXT_FIELDS)
        return aigo_part
    mapper = _MAPPERS.get(kind)
    if mapper is not None:
        aigo_part = mapper(part, loss)
        add_rest(aigo_part, part, _FIELDS[kind])
        return aigo_part
    loss.changed[f"content of type {kind or type(part).__name__}: kept as JSON text"] += 1
    return {"type": "input_text", "text": json_text(part)}


def _kind(part: Any) -> str:
    """Return the type of a part; `""` if it is not a part or its type is not a text."""
    kind = part.get("type") if isinstance(part, dict) else None
    return kind if isinstance(kind, str) else ""


def _image(part: Part, loss: LossReport) -> Part:
    detail = part.get("detail", "auto")
    if detail not in ("low", "high", "auto"):
        loss.changed[f"image detail {detail!r}: written as 'high'"] += 1
        detail = "high"
    return {"type": "input_image", "image_url": text_of(part.get("image", "")), "detail": detail}


def _media_file(part: Part, kind: str, usual_format: str) -> Part:
    media_format = part.get("format") or usual_format
    return {
        "type": "input_file",
        "filename": f"{kind}.{media_format}",
        "file_url": text_of(part.get(kind, "")),
        "inspect": {"type": kind, "format": media_format},
    }


def _audio(part: Part, loss: LossReport) -> Part:
    loss.changed["audio: written as input_file"] += 1
    return _media_file(part, "audio", "wav")


def _video(part: Part, loss: LossReport) -> Part:
    file: Part = {"type": "input_video", "video_url": text_of(part.get("video", ""))}
    if part.get("format"):
        file["inspect"] = {"format": part["format"]}
    return file


def _video_file(part: Part, loss: LossReport) -> Part:
    """Convert a video to a file, because tool results cannot contain videos."""
    loss.changed["video in a tool result: written as input_file"] += 1
    return _media_file(part, "video", "mp4")


def _document(part: Part, loss: LossReport) -> Part:
    file: Part = {"type": "input_file", "file_url": text_of(part.get("document", ""))}
    name = part.get("filename")
    if name is not None and name != "":
        if not isinstance(name, str):
            loss.changed["file name that is not text: written as JSON"] += 1
        file["filename"] = text_of(name)
    if part.get("mime_type"):
        file["inspect"] = {"mime_type": part["mime_type"]}
    return file


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
"""Part type → converted fields."""


# Tool results


def tool_result(result: Any, loss: LossReport) -> str | list[Part]:
    """Return a tool result as text, or as parts if it contains more than text. Numbers and booleans are
    formatted as in Python.
    """
    if isinstance(result, str):
        return result
    if isinstance(result, dict) and "type" in result:
        result = [result]
    if isinstance(result, list):
        return [_output_part(part, loss) for part in check_parts(result)]
    return "" if result is None else str(result)


def _output_part(part: Any, loss: LossReport) -> Part:
    if isinstance(part, dict) and part.get("type") == "video":
        file = _video_file(part, loss)
        add_rest(file, part, _FIELDS["video"])
        return file
    return input_part(part, loss)


# Answer parts


def answer_part(part: Any, loss: LossReport, logprobs: list[dict[str, Any]] | None) -> Part:
    """Convert one part of an assistant message, except reasoning and provider-side tools."""
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
        loss.changed["citations that are not a list: converted to one citation"] += 1
        citations = [citations]
    annotations = [_citation(citation, text, loss) for citation in check_parts(citations)]
    aigo_part = {"type": "output_text", "text": text, "annotations": annotations}
    if logprobs:
        aigo_part["logprobs"] = logprobs
    add_rest(aigo_part, part, _ANSWER_FIELDS)
    return aigo_part


_MEDIA = frozenset({"image", "audio", "video", "document"})
_REFUSAL_FIELDS = frozenset({"type", "text", "refusal"})
_ANSWER_FIELDS = _REFUSAL_FIELDS | {"citations"}


def _json_file(part: Any, kind: str, loss: LossReport) -> Part:
    """Convert a part of an answer that is neither text nor media to a file. As text it would change the
    answer, and Inspect also leaves it out.
    """
    # Imported late, because few logs contain such parts.
    from urllib.parse import quote

    loss.changed[f"content of type {kind or type(part).__name__} in an answer: written as input_file"] += 1
    value = part.get("data") if kind == "data" else part
    file: Part = {
        "type": "input_file",
        "filename": "data.json",
        "file_url": "data:application/json," + quote(json_text(value)),
    }
    if kind == "data":
        file["inspect"] = {"type": "data"}
        add_rest(file, part, _FIELDS["data"])
    return file


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
        annotation: Part = {
            "type": "url_citation",
            "url": url,
            "start_index": start,
            "end_index": end,
            "title": text_of(title or url),
        }
        if isinstance(cited, str):
            annotation["cited_text"] = cited
        add_rest(
            annotation,
            citation,
            _URL_FIELDS if _is_range(cited) or isinstance(cited, str) else _URL_FIELDS - {"cited_text"},
        )
        return annotation
    fields = (
        _CITATION_FIELDS if citation.get("type") in ("document", "content") else _CITATION_FIELDS - {"type"}
    )
    if isinstance(cited, list):
        fields -= {"cited_text"}
        cited = text[cited[0] : cited[1]] if _is_range(cited) else None
    annotation = {"type": "text_citation", "content": text_of(cited or title or "")}
    annotation |= {key: citation[key] for key in ("title", "range") if citation.get(key)}
    add_rest(annotation, citation, fields)
    return annotation


def _is_range(cited: Any) -> bool:
    return isinstance(cited, list) and len(cited) == 2 and all(type(number) is int for number in cited)


_URL_FIELDS = frozenset({"type", "url", "title", "cited_text"})
_CITATION_FIELDS = frozenset({"type", "title", "cited_text", "range"})
