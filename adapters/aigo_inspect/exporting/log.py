"""Conversion of an AI GO result to an Inspect log with conversation, transcript, scores and metrics for
`inspect view`.

The archive is written sample by sample. It also contains the evidence itself in members below `_aigo/`, which
Inspect's reader ignores, so that an import of the log restores it exactly.

The evidence is only restored if it agrees with the rest of the log. For this check, all members that Inspect
reads are created again from the evidence and compared. After an edit of either part, for example a changed
score, the log is imported like any other log, and the contradiction is reported.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import TaskResultLog
from aigo_bridge.errors import EvidenceError
from aigo_bridge.redaction.secrets import redact, redact_json, redact_value
from aigo_bridge.results.log_files import open_for_reading, open_for_replacing
from aigo_bridge.results.reading import read_log
from aigo_bridge.text.json_text import dumps, json_text
from aigo_inspect.exporting.log_scores import (
    Reductions,
    has_odd_numbers,
    is_from_inspect,
    results_of,
    score_of,
)
from aigo_inspect.logs.index import name_of
from aigo_inspect.logs.parsing import parse_json
from aigo_inspect.logs.reader import InspectLogReader
from aigo_inspect.logs.shapes import FRAME, INDEX, MALFORMED, SAMPLES
from aigo_inspect.mapping.traces import sample_key
from aigo_inspect.models.messages import error_of, events_of, messages_of

Native = dict[str, Any]


def export_log(result: str | os.PathLike[str], target: str | os.PathLike[str]) -> Path:
    """Write a result log as an Inspect log.

    Args:
        result: path of a result log, `.json` or `.jsonl`, optionally compressed.
        target: an `.eval` file, or a folder. In a folder, the log gets Inspect's usual file name.

    Returns:
        Path of the written log.

    Raises:
        EvidenceError: the result cannot be read, or contains several runs instead of samples.
    """
    reader = read_log(Path(result))
    frame = reader.frame()
    if frame.evidence is not None and frame.evidence.runs:
        raise EvidenceError(
            f"{os.fspath(result)!r} has several runs, an Inspect log holds one", code=Code.UNFIT_RESULT
        )
    path = Path(target)
    if path.suffix != ".eval":
        path.mkdir(parents=True, exist_ok=True)
        path /= _file_name(frame, Path(result))
    write_inspect_log(path, frame, reader.raw_samples())
    return path


def write_inspect_log(path: Path, frame: TaskResultLog, samples: Iterable[Native]) -> None:
    """Write an Inspect log from a result without samples and from its samples as plain data.

    Memory use is bounded by the largest sample and the scores of all samples. The file appears when it is
    complete.
    """
    checksums: dict[str, int] = {}
    with (
        open_for_replacing(path, clean=False) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        # Redacted first, so that members created again from the embedded evidence are identical.
        clean = redact_value(frame.model_dump(mode="json"))
        for plain_name, plain_data in members_of(clean, map(redact_value, samples)):
            name, data = redact(plain_name), redact_json(plain_data)
            if not name.startswith("_aigo/"):
                checksums[name] = zlib.crc32(data)
            archive.writestr(name, data)
        archive.writestr(INDEX, dumps({"checksums": checksums}))


def members_of(plain: Native, samples: Iterable[Native]) -> Iterator[tuple[str, bytes]]:
    """Yield the members of the log, Inspect's and aigo-bridge's, except the index.

    Args:
        plain: the result without its samples.
        samples: samples of the result.
    """
    summaries: list[Native] = []
    ids: dict[str | int, None] = {}
    foreign = is_from_inspect(plain)
    reductions = Reductions()
    for position, sample in enumerate(samples):
        for native in _native_samples(sample, plain):
            ids.setdefault(native["id"])
            # The sample contains the real id, even if it is not valid in a zip archive.
            name = f"samples/{name_of(native['id'])}_epoch_{native['epoch']}.json"
            yield name, _json(native, native["scores"])
            summaries.append(_summary(native))
        yield f"{SAMPLES}{position}.json", dumps(sample)
        if foreign:
            reductions.add(sample["sample_id"], sample.get("scores") or [])
    header = _header(plain, list(ids), summaries)
    yield "_journal/start.json", dumps({key: header[key] for key in ("version", "eval", "plan")})
    yield "summaries.json", _json(summaries, [summary.get("scores") for summary in summaries])
    if reduced := reductions.native():
        yield "reductions.json", _json(reduced, reduced)
    yield "header.json", _json(header, header["results"])
    yield FRAME, dumps(plain)


def _json(value: Any, scores: Any) -> bytes:
    """Return the JSON text of an object with these scores. NaN and infinity are written as Inspect writes
    them.
    """
    if not has_odd_numbers(scores):
        return dumps(value)
    return json.dumps(value, separators=(",", ":")).encode()


def _file_name(frame: TaskResultLog, result: Path) -> str:
    """Return Inspect's usual file name for a log. The id is a checksum of the content, because several
    results of one task may have started in the same second.
    """
    digest = hashlib.sha256()
    with open_for_reading(result) as file:
        while part := file.read(1 << 20):
            digest.update(part)
    started = datetime.fromtimestamp(frame.execution.started_at, UTC)
    task = frame.specification.task.key
    content_id = _id(frame.specification.task.id, digest.hexdigest())
    return f"{started:%Y-%m-%dT%H-%M-%S}-00-00_{task}_{content_id}.eval"


def _id(*parts: object) -> str:
    """Return an id with 22 characters like Inspect's. The same parts give the same id."""
    text = json_text([str(part) for part in parts])
    return hashlib.blake2b(text.encode("utf-8", "backslashreplace"), digest_size=11).hexdigest()


def _time(seconds: object) -> str:
    return datetime.fromtimestamp(seconds if isinstance(seconds, int) else 0, UTC).isoformat()


# Samples


def _native_samples(sample: Native, frame: Native) -> Iterator[Native]:
    """Yield one `EvalSample` for each trial."""
    foreign = is_from_inspect(frame)
    for trial in sample.get("trials") or [{**sample, "index": 0}]:
        sample_id = trial.get("sample_id", sample.get("sample_id"))
        sample_id = sample_id if sample_id is not None else "sample"
        data = (trial.get("sample") or {}).get("data") or {}
        output = (trial.get("solver") or {}).get("output") or {}
        trace = output.get("trace") or {}
        messages = messages_of(trace.get("items") or []) or _old_messages(output.get("messages") or [])
        events = events_of(trace.get("events") or [])
        metadata = trace.get("metadata") or {}
        answer = next((message for message in reversed(messages) if message["role"] == "assistant"), None)
        model = _model_name(frame)
        native: Native = {
            "id": sample_id,
            "epoch": trial.get("index", 0) + 1,
            "input": data["input"] if _is_input(data.get("input")) else _first_text(messages, data),
            "target": data["target"]
            if isinstance(data.get("target"), (str, list))
            else json_text(data.get("target", "")),
            "messages": messages,
            "output": {
                "model": model,
                "choices": [{"message": answer, "stop_reason": "stop"}] if answer else [],
            },
            "scores": {
                score.get("scorer_name") or score["scorer_key"]: score_of(score, from_inspect=foreign)
                for score in trial.get("scores") or []
            },
            "metadata": data["metadata"] if isinstance(data.get("metadata"), dict) else data,
            "events": events or _events_for(messages, model, frame, sample_id),
            "uuid": str(
                metadata.get("trace_id")
                or _id(frame["specification"]["task"]["id"], sample_id, trial.get("index"))
            ),
        }
        if isinstance(metadata.get("total_time"), (int, float)):
            native["total_time"] = metadata["total_time"]
        for error in (trial.get("errors") or [])[:1]:
            native["error"] = error_of(f"{error['error_type']}: {error['message']}")
        yield native


def _is_input(value: object) -> bool:
    if isinstance(value, str):
        return True
    return isinstance(value, list) and all(isinstance(part, dict) and "role" in part for part in value)


def _first_text(messages: list[Native], data: Native) -> str:
    for message in messages:
        if message["role"] == "user" and isinstance(message["content"], str):
            return str(message["content"])
    return json_text(data)


def _old_messages(messages: list[Any]) -> list[Native]:
    """Return the messages of a `SingleSolverOutput`."""
    native = []
    for message in messages:
        if isinstance(message, dict) and message.get("role") in ("user", "assistant", "system"):
            content = message.get("content")
            native.append(
                {
                    "role": message["role"],
                    "content": content if isinstance(content, str) else json_text(content),
                }
            )
    return native


def _events_for(messages: list[Native], model: str, frame: Native, sample_id: object) -> list[Native]:
    """Return the transcript of a trace without events: one model call with the conversation before the last
    answer.
    """
    answer_at = next((i for i in reversed(range(len(messages))) if messages[i]["role"] == "assistant"), None)
    if answer_at is None:
        return []
    return [
        {
            "event": "model",
            "uuid": sample_key(frame["specification"]["task"]["id"], sample_id, "model"),
            "timestamp": _time(frame["execution"]["started_at"]),
            "working_start": 0.0,
            "model": model,
            "input": messages[:answer_at],
            "tools": [],
            "tool_choice": "auto",
            "config": {},
            "output": {"model": model, "choices": [{"message": messages[answer_at], "stop_reason": "stop"}]},
        }
    ]


def _summary(native: Native) -> Native:
    fields: Native = {
        key: native[key] for key in ("id", "epoch", "target", "scores", "uuid") if key in native
    }
    text = native["input"] if isinstance(native["input"], str) else json_text(native["input"])
    summary: Native = {
        **fields,
        "input": text[:5120],
        "metadata": {},
        "completed": True,
        "message_count": len(native["messages"]),
    }
    if "error" in native:
        summary["error"] = native["error"]["message"]
    return summary


# Header


def _model_name(frame: Native) -> str:
    entity = frame["specification"].get("evaluated_entity") or {}
    return str(entity.get("display_name") or "none/none") if "adapter_id" in entity else "none/none"


def _header(frame: Native, ids: list[str | int], summaries: list[Native]) -> Native:
    specification = frame["specification"]
    task = specification["task"]
    epochs = max((summary["epoch"] for summary in summaries), default=1)
    started, ended = _time(frame["execution"]["started_at"]), _time(frame["execution"]["ended_at"])
    errors = frame.get("errors") or []
    header: Native = {
        "version": 2,
        "status": "success" if frame["status"] == "success" else "error",
        "eval": {
            "eval_id": _id(task["id"], started, "eval"),
            "run_id": _id(task["id"], started, "run"),
            "task_id": _id(task["id"]),
            "created": started,
            "task": task["key"],
            "task_display_name": task["display_name"],
            "task_args": {k: v for k, v in specification["config"].items() if k != "inspect"},
            "dataset": {"name": _dataset_name(task), "samples": len(ids), "sample_ids": ids},
            "model": _model_name(frame),
            "config": {"epochs": epochs},
            "packages": {},
            "metadata": {
                "aigo": {
                    **{name: frame[name] for name in ("app_version", "status")},
                    "failures": (frame.get("evidence") or {}).get("failures"),
                }
            },
        },
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": {
            "total_samples": len(summaries),
            "completed_samples": sum("error" not in summary for summary in summaries),
            "scores": results_of(frame),
        },
        "stats": {"started_at": started, "completed_at": ended, "model_usage": {}},
    }
    if frame["status"] != "success" and errors:
        header["error"] = error_of(f"{errors[0]['error_type']}: {errors[0]['message']}")
    return header


def _dataset_name(task: Native) -> str:
    dataset = task["definition"].get("dataset") or {}
    return str(dataset.get("id") or task["key"])


# Embedded evidence


def carries_evidence(log: InspectLogReader) -> bool:
    """Return whether the log contains evidence that agrees with it. A contradiction is added to the damage of
    the log.
    """
    if FRAME not in log.members() or log.damage:
        return False
    try:
        contradiction = _contradiction(log)
    except MALFORMED as error:
        contradiction = (
            f"{type(error).__name__}: {error}" if not isinstance(error, EvidenceError) else str(error)
        )
    if contradiction is None:
        return True
    if not log.damage:
        reason = f"the evidence in the log contradicts the log ({contradiction}); the log was used"
        log.note(FRAME, EvidenceError(reason, code=Code.UNFIT_RESULT))
    return False


def _contradiction(log: InspectLogReader) -> str | None:
    """Return the first difference between the log and its embedded evidence; `None` if they agree."""
    names = {name for name in log.members() if name != INDEX}
    for name, data in members_of(_raw(log, FRAME), (_raw(log, name) for name in _sample_members(log))):
        if name not in names:
            return f"{name!r} is missing"
        names.remove(name)
        if log.read_raw(name) != data:
            return f"{name!r} is different"
    return f"{min(names)!r} was added" if names else None


def _raw(log: InspectLogReader, name: str) -> Any:
    """Return a member without redaction, because the comparison needs the written data."""
    data = log.read_raw(name)
    if data is None:
        raise EvidenceError(f"{name!r} cannot be read", code=Code.UNREADABLE_LOG)
    log.bounds.check_document(name, data)
    return parse_json(data, name).value


def carried_frame(log: InspectLogReader) -> dict[str, Any]:
    """Return the embedded `TaskResultLog` without samples."""
    frame: dict[str, Any] = log.read_member(FRAME)
    return frame


def carried_samples(log: InspectLogReader) -> Iterator[dict[str, Any]]:
    """Yield the embedded `SampleEvidence` objects in order."""
    for name in _sample_members(log):
        yield log.read_member(name)


def _sample_members(log: InspectLogReader) -> list[str]:
    names = [name for name in log.members() if name.startswith(SAMPLES)]
    return sorted(names, key=lambda name: int(name.removeprefix(SAMPLES).removesuffix(".json")))
