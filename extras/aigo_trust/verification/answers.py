"""Comparison of the evaluated model's answers with a recording that the auditor provides.

Every assistant message in a trial must be a recorded reply of that trial or a text in one of its requests.
Such texts are examples in a prompt and earlier turns. The last message must be a reply.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aigo_bridge.dtypes import TaskResultLog
from aigo_bridge.errors import EvidenceError
from aigo_bridge.results.counts import trials_of
from aigo_bridge.results.reading import FramePart, LogReader, SamplePart
from aigo_bridge.results.rows import items_of, outputs_of, text_of
from aigo_bridge.results.values import Json, mappings, member
from aigo_bridge.text.plurals import plural
from aigo_trust.recording.container import cassette_lines
from aigo_trust.verification.levels import Finding, Level, level

NO_RECORDING = "no recording of the run was given (--recording)"
_SHOWN = 60


@dataclass
class _RecordedTrial:
    """Solver calls in one trial, as hashes of texts."""

    replies: set[int] = field(default_factory=set)
    asked: set[int] = field(default_factory=set)
    """Hashes of the texts in requests."""


@dataclass
class _Recording:
    """Solver calls in a cassette."""

    digests: dict[str, str] = field(default_factory=dict)
    """Digest of each plan."""
    trials: dict[tuple[str, Any, Any], _RecordedTrial] = field(default_factory=dict)

    def tasks(self, frame: TaskResultLog, record: Mapping[str, Any] | None) -> list[str]:
        """Return the plans that may belong to a result: by digest, or else by task key."""
        planned = {} if record is None else record.get("plan")
        digest = planned.get("sha256") if isinstance(planned, Mapping) else None
        same = [name for name, recorded in self.digests.items() if recorded == digest]
        key = frame.specification.task.key
        return same or [name for name in self.digests if name.rpartition("/")[2].partition("#")[0] == key]


def check_answers(
    reader: LogReader, frame: TaskResultLog, recording: Path | None, record: Mapping[str, Any] | None
) -> Level:
    """Compare the answers of a result with a recording.

    Args:
        reader: reader of the result.
        frame: result without its samples.
        recording: path of the cassette; `None` if not provided.
        record: provenance of the result; `None` if not provided.
    """
    if recording is None:
        return level("answers", [], unchecked=NO_RECORDING)
    try:
        recorded = _recording(recording)
    except EvidenceError as error:
        return level("answers", [], unchecked=f"the recording cannot be read: {error}")
    tasks = recorded.tasks(frame, record)
    if not tasks:
        names = ", ".join(map(repr, recorded.digests)) or "nothing"
        return level(
            "answers", [], unchecked=f"{recording.name} lacks a run of this task; its runs are of {names}"
        )
    if _definition(frame).get("postprocessor") is not None:
        return level("answers", [], unchecked="a post-processor creates the samples of this task")
    return _compared(reader, recorded, tasks, recording.name, is_code=_has_code(frame))


def _recording(path: Path) -> _Recording:
    recording = _Recording()
    for line, _ in cassette_lines(path, lambda _issue: None):
        run, call = line.get("run"), line.get("call")
        if isinstance(run, Mapping):
            recording.digests[str(run.get("task"))] = str(run.get("digest"))
        # Another model of the solver may produce a turn of the conversation.
        if not isinstance(call, Mapping) or call.get("by") != "solver":
            continue
        place = str(call.get("task")), call.get("sample"), call.get("trial")
        trial = recording.trials.setdefault(place, _RecordedTrial())
        trial.replies.update(hash(text) for text in _texts(line.get("reply")))
        trial.asked.update(hash(text) for text in _texts(line.get("request")))
    return recording


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value.strip()
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


def _definition(frame: TaskResultLog) -> Mapping[str, Any]:
    solver = frame.specification.task.definition.model_dump().get("solver")
    return solver if isinstance(solver, Mapping) else {}


def _has_code(frame: TaskResultLog) -> bool:
    """Return whether the solver's own code builds answers from replies."""
    return any(name.endswith("snippet") and value for name, value in _definition(frame).items())


def _compared(
    reader: LogReader, recorded: _Recording, tasks: Sequence[str], file: str, *, is_code: bool
) -> Level:
    findings: list[Finding] = []
    unchecked: Counter[str] = Counter()
    num_answers = 0
    repeated: bool | None = None
    for part in reader.parts():
        if isinstance(part, FramePart):
            continue
        repeated = part.run is not None if repeated is None else repeated or part.run is not None
        if repeated and part.run is None:
            continue  # agreement between the runs of a repeated task
        for number, trial in enumerate(trials_of(part.value)):
            answers = list(_answers(trial))
            if not answers:
                continue
            known = _trial(recorded, tasks, part, trial)
            if known is None:
                unchecked["trials are not in the recording"] += 1
                continue
            wrong = [text for text in answers if hash(text) not in known.replies | known.asked]
            if not wrong and hash(answers[-1]) not in known.replies:
                wrong = [answers[-1]]
            if wrong and is_code:
                unchecked["trials have answers that the solver code created"] += 1
                continue
            num_answers += not wrong
            findings += [_finding(part, number, text, file) for text in wrong]
    notes = [f"answers of {plural(num_answers, 'trial')} are in {file}"]
    reasons = [f"{count} {reason}" for reason, count in unchecked.items()]
    if not num_answers and not findings and not reasons:
        reasons = ["the result lacks answers of a model"]
    intact = notes if num_answers else []
    return level("answers", findings, notes=notes, unchecked="; ".join(reasons) or None, intact=intact)


def _trial(
    recorded: _Recording, tasks: Sequence[str], part: SamplePart, trial: Json
) -> _RecordedTrial | None:
    """Return the recorded calls of a trial. For a repeated task, these are the calls of its run."""
    sample = trial.get("sample_id", part.value.get("sample_id"))
    own = [name for name in tasks if part.run is None or name.endswith(f"#{part.run + 1}")]
    places = [(name, sample, trial.get("index", 0)) for name in own]
    return next((recorded.trials[place] for place in places if place in recorded.trials), None)


def _answers(trial: Json) -> Iterator[str]:
    """Yield the assistant messages in a trial, without surrounding whitespace."""
    for output in outputs_of(trial):
        messages = [item for item in items_of(output) if item.get("role") == "assistant"]
        texts = [text for item in messages if (text := (text_of(item) or "").strip())]
        yield from texts
        if not texts:
            for choice in mappings(member(output, "output", "choices")):
                content = member(choice, "message", "content")
                if isinstance(content, str) and content.strip():
                    yield content.strip()


def _finding(part: SamplePart, number: int, text: str, file: str) -> Finding:
    shown = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
    sample = json.dumps(part.value.get("sample_id"), ensure_ascii=False, default=str)
    message = f"the answer {shown!r} was not recorded for this trial"
    return Finding(message, (*part.path, "trials", number, "solver"), sample, field="solver", file=file)
