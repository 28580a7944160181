"""Result logs of an export to AI GO: uncompressed JSON with full contexts, and without secrets."""

from __future__ import annotations

import base64
import binascii
import hashlib
import mimetypes
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aigo_bridge.dtypes import RunEvidence, TaskResultLog
from aigo_bridge.errors import Issue
from aigo_bridge.exporting.evidence.options import AttachmentChoice, EventChoice
from aigo_bridge.redaction.redactor import Redactor
from aigo_bridge.results.log_files import open_for_replacing
from aigo_bridge.results.reading import LogReader, SamplePart
from aigo_bridge.results.validating import validate_log
from aigo_bridge.results.writing import encoded_frame, encoded_sample, write_log
from aigo_bridge.text.json_text import dumps, read_json, sha256_of

_DATA_ADDRESS = re.compile(
    r"data:(?P<type>[\w.+-]+/[\w.+-]+)?(?:;[\w.+-]+=[^;,]*)*;base64,(?P<content>[A-Za-z0-9+/=\s]+)"
)
ATTACHMENTS = "attachments"
"""Folder of the attachments in the export."""


@dataclass
class WrittenLog:
    """Result log in the folder, with facts about its samples."""

    frame: TaskResultLog
    """Log without its samples."""
    identity: str
    """Digest of the result."""
    rows: Path
    """File with the rows of the dataset."""
    rows_digest: str
    num_rows: int
    num_samples: int
    num_trials: int
    """Maximum number of trials of a sample."""
    scorers: tuple[str, ...]
    """Keys of scorers with scores in the samples."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Parts that were left out: kind → count."""


def faults_of(path: Path) -> tuple[list[Issue], list[Issue]]:
    """Return the errors of a result log, and the fields that AI GO does not support."""
    issues = validate_log(path)
    errors = [issue for issue in issues if issue.severity == "error"]
    return errors, [issue for issue in issues if issue.severity != "error"]


def write_evidence(
    path: Path,
    target: Path,
    rows: Path,
    events: EventChoice,
    redaction: Redactor,
    attachments: Attachments | None = None,
) -> WrittenLog:
    """Write a result log in the form that AI GO accepts, and the rows of its dataset.

    Args:
        path: result log without errors.
        target: new log.
        rows: new file of rows, as JSON Lines.
        events: events to keep in the traces.
        redaction: removes secrets and counts them.
        attachments: replaces attachments of the samples; `None` to keep them.

    Raises:
        EvidenceError: the log cannot be read.
    """
    reader = LogReader(path)
    frame = TaskResultLog.model_validate(read_json(redaction.json(encoded_frame(reader.frame()))))
    with open_for_replacing(rows) as file:
        work = _Samples(reader, events, redaction, file, attachments)
        runs = frame.evidence.runs if frame.evidence is not None else None
        if runs:
            write_log(
                target,
                work.samples(None),
                finish=frame,
                runs=[(run.index, work.samples(number), _finished(run)) for number, run in enumerate(runs)],
            )
        else:
            write_log(target, work.samples(None), finish=frame)
    return WrittenLog(
        frame,
        sha256_of([_deciding(frame), work.content.hexdigest()]),
        rows,
        work.row_digest.hexdigest(),
        work.num_rows,
        work.num_samples,
        work.num_trials,
        tuple(work.scorers),
        work.dropped,
    )


def _finished(run: RunEvidence) -> Any:
    return lambda: run


def _deciding(frame: TaskResultLog) -> Any:
    """Return the content of the frame that identifies a result. The aigo-bridge release is left out."""
    return frame.model_dump(mode="json", exclude={"app_version"})


class _Samples:
    """Stream of the samples in a log that collects facts about them."""

    def __init__(
        self,
        reader: LogReader,
        events: EventChoice,
        redaction: Redactor,
        rows: Any,
        attachments: Attachments | None,
    ):
        self._reader = reader
        self._events = events
        self._redaction = redaction
        self._rows = rows
        self._attachments = attachments
        self.content = hashlib.sha256()
        self.row_digest = hashlib.sha256()
        self.num_rows = self.num_samples = 0
        self.num_trials = 1
        self.scorers: dict[str, None] = {}
        self.dropped: Counter[str] = Counter()
        self._run_of_rows: int | None = -1

    def samples(self, run: int | None) -> Iterator[bytes]:
        """Yield the samples of a run as JSON texts."""
        for part in self._reader.parts():
            if isinstance(part, SamplePart) and part.run == run:
                yield self._written(part)

    def _written(self, part: SamplePart) -> bytes:
        if self._events == "main":
            self._drop_events(part.value)
        data = self._redaction.json(encoded_sample(self._reader.typed_sample(part)))
        value = read_json(data)
        trials = value.get("trials") or []
        self._add_row(part.run, trials)
        self.num_samples += 1
        self.num_trials = max(self.num_trials, len(trials))
        scores = [score for one in (value, *trials) for score in one.get("scores") or ()]
        self.scorers.update((score["scorer_key"], None) for score in scores if score.get("scorer_key"))
        self._digest(part.run, value, trials)
        if self._attachments is not None:
            data = dumps(self._attachments.replaced(read_json(data), self.dropped))
        return data

    def _digest(self, run: int | None, sample: Mapping[str, Any], trials: list[Any]) -> None:
        """Add a sample to the digest of the result, without events and the location of its log. The same
        result therefore has the same key, wherever it was imported and with any choice of events.
        """
        for part in (sample, *trials):
            output = (part.get("solver") or {}).get("output")
            trace = output.get("trace") if isinstance(output, dict) else None
            if isinstance(trace, dict):
                trace.pop("events", None)
                (trace.get("metadata") or {}).pop("source_uri", None)
        self.content.update(dumps([run, sample]))

    def _add_row(self, run: int | None, trials: list[Mapping[str, Any]]) -> None:
        """Write the row of a sample. For a repeated task, only the first run counts."""
        row = next((trial["sample"].get("data") for trial in trials if trial.get("sample")), None)
        if row is None:
            return
        if self._run_of_rows == -1:
            self._run_of_rows = run
        if run == self._run_of_rows:
            line = dumps(row) + b"\n"
            self.row_digest.update(line)
            self.num_rows += 1
            self._rows.write(line)

    def _drop_events(self, sample: Mapping[str, Any]) -> None:
        for trial in sample.get("trials") or (sample,):
            output = (trial.get("solver") or {}).get("output")
            trace = output.get("trace") if isinstance(output, dict) else None
            if isinstance(trace, dict) and trace.get("events"):
                self.dropped.update(f"event {event.get('type')} (--events main)" for event in trace["events"])
                trace["events"] = []


class Attachments:
    """Replacement of attachments by a file reference or a description, with counts."""

    def __init__(self, choice: AttachmentChoice, folder: Path):
        """Choose how to replace attachments: `files` writes each one to `attachments/`, `drop` does not."""
        self._choice = choice
        self._folder = folder / ATTACHMENTS

    def replaced(self, value: Any, counts: Counter[str]) -> Any:
        """Return a JSON value without its attachments; `counts` is updated with their kinds."""
        if isinstance(value, str):
            return self._text(value, counts)
        if isinstance(value, list):
            return [self.replaced(item, counts) for item in value]
        if isinstance(value, dict):
            return {key: self.replaced(item, counts) for key, item in value.items()}
        return value

    def _text(self, text: str, counts: Counter[str]) -> str:
        match = _DATA_ADDRESS.fullmatch(text) if text.startswith("data:") else None
        if match is None:
            return text
        try:
            content = base64.b64decode(re.sub(r"\s", "", match["content"]), validate=True)
        except binascii.Error:
            return text
        media_type = match["type"] or "application/octet-stream"
        digest = hashlib.sha256(content).hexdigest()
        counts[f"attachment {media_type} (--attachments {self._choice})"] += 1
        if self._choice == "drop":
            return f"omitted: {media_type}, {len(content)} bytes, sha256 {digest}"
        name = f"{digest}{mimetypes.guess_extension(media_type) or '.bin'}"
        self._folder.mkdir(exist_ok=True)
        file = self._folder / name
        if not file.exists():
            file.write_bytes(content)
        return f"{ATTACHMENTS}/{name}"
