"""Validation of result logs: JSON Schema, and a check of every error with its position and a fix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

import aigo_bridge.dtypes as dtypes
from aigo_bridge.dtypes import LFBaseModel, SampleEvidence, TaskResultLog
from aigo_bridge.dtypes.task_result import adapted, one_trial
from aigo_bridge.dtypes.validation import issues_of
from aigo_bridge.errors import EvidenceError, Issue
from aigo_bridge.results.reading import FramePart, LogReader, SamplePart, read_log
from aigo_bridge.spec.schema import description, unwrap


def validate_log(path: str | Path) -> list[Issue]:
    """Return the errors of a result log (`.json` or `.jsonl`, compressed or not); an empty list if it is
    valid.

    An unknown field that readers ignore is a warning. Memory is bounded by the largest sample and by the
    errors.

    Raises:
        UsageError: the file extension does not belong to a result log.
    """
    reader = read_log(path)
    issues: list[Issue] = []
    try:
        for part in reader.parts():
            issues += _faults(reader, part)
    except EvidenceError as error:
        issues += error.issues
    return issues


def _faults(reader: LogReader, part: SamplePart | FramePart) -> list[Issue]:
    if isinstance(part, FramePart):
        return _misfits(TaskResultLog, adapted(part.value), file=str(reader.path), path=())
    try:
        data = one_trial(part.value) if part.run is None else part.value
    except (ValidationError, TypeError):
        try:
            reader.typed_sample(part)
        except EvidenceError as error:
            return list(error.issues)
    return _misfits(SampleEvidence, data, file=str(reader.path), path=part.path)


def _misfits(model: type[LFBaseModel], data: Any, *, file: str, path: tuple[str | int, ...]) -> list[Issue]:
    """Return the errors of the data as written, without dropping unknown fields first.

    Dropping them can silently change the kind of a value: a model with an extra field is read as a
    dataset. Therefore, the fields are kept here.
    """
    try:
        model(**data)
    except ValidationError as error:
        return issues_of(error, data, file=file, path=path)
    return []


DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_for_log() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a result log for reading, with a description of each field.

    Unknown fields that readers ignore are forbidden, so that an editor reports misspelt names.
    """
    schema = TaskResultLog.model_json_schema(mode="validation")
    _describe(schema)
    for definition in schema["$defs"].values():
        _describe(definition)
    return {"$schema": DIALECT, **schema}


def _describe(definition: dict[str, Any]) -> None:
    unwrap(definition)
    title = definition["title"]
    model = getattr(dtypes, title) if title in dtypes.__all__ else None
    for key, field in definition.get("properties", {}).items():
        text = None if model is None else description(model, "schema_dict" if key == "schema" else key)
        if text is not None:
            field["description"] = text
