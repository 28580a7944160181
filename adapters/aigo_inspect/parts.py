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


# Parts of the input


def input_part(part: Any, loss: LossReport) -> Part:
    """One part of a user, system or tool message."""
    kind = _kind(part)
    if kind == "text":
        return {"type": "input_text", "text": text_of(part.get("text", ""))}
    mapper = _MAPPERS.get(kind)
    if mapper is not None:
        return mapper(part, loss)
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


# Tool results


def tool_result(result: Any, loss: LossReport) -> str | list[Part]:
    """A tool's result: text, or parts when there is more than text. Numbers and booleans as Python prints them."""
    if isinstance(result, str):
        return result
    if isinstance(result, dict) and "type" in result:
        result = [result]
    if isinstance(result, list):
        return [_output_part(part, loss) for part in result]
    return "" if result is None else str(result)


def _output_part(part: Any, loss: LossReport) -> Part:
    if isinstance(part, dict) and part.get("type") == "video":
        return _video_file(part, loss)
    return input_part(part, loss)


# Parts of an answer


def answer_part(part: Any, loss: LossReport, logprobs: list[dict[str, Any]] | None) -> Part:
    """One part of an assistant's message that is neither reasoning nor a tool on the provider's side."""
    if _kind(part) != "text":
        found = input_part(part, loss)
        # Texts of an answer are never input.
        return {**found, "type": "text"} if found["type"] == "input_text" else found
    text = text_of(part.get("text", ""))
    if part.get("refusal"):
        return {"type": "refusal", "refusal": text}
    citations = part.get("citations") or []
    if not isinstance(citations, list):
        loss.changed["citations that are no list: taken for one citation"] += 1
        citations = [citations]
    annotations = [_citation(citation, text, loss) for citation in citations]
    found = {"type": "output_text", "text": text, "annotations": annotations}
    if logprobs:
        found["logprobs"] = logprobs
    return found


def _citation(citation: Any, text: str, loss: LossReport) -> Part:
    if not isinstance(citation, dict):
        return {"type": "text_citation", "content": text_of(citation)}
    cited = citation.get("cited_text")
    title = citation.get("title")
    if citation.get("type") == "url":
        start, end = 0, 0
        if isinstance(cited, list) and len(cited) == 2 and all(isinstance(n, int) for n in cited):
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
        return found
    if isinstance(cited, list):
        cited = (
            text[cited[0] : cited[1]] if len(cited) == 2 and all(isinstance(n, int) for n in cited) else None
        )
    found = {"type": "text_citation", "content": text_of(cited or title or "")}
    found |= {key: citation[key] for key in ("title", "range") if citation.get(key)}
    return found
