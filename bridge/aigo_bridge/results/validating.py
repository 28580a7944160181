"""What a result log has to be: its JSON Schema, and every fault of one at once, each with its place and what
to do about it.
"""

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
    """Faults of a result log: `.json` or `.jsonl`, compressed or not; an empty list when there are none.

    An unknown field that readers drop is a warning. Memory is bounded by the largest sample and by the
    faults.

    Raises:
        UsageError: The suffix is not that of a result log.
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
    """What is wrong with the data as it stands, unknown fields not dropped first.

    Dropping them can turn a value into another kind of value, silently: a model with a field too many is read
    as a dataset. So their absence is not taken as given here.
    """
    try:
        model(**data)
    except ValidationError as error:
        return issues_of(error, data, file=file, path=path)
    return []


DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_for_log() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a result log as it is read, with what each field means.

    Unknown fields are not allowed where readers drop them: for an editor they are misspelt names.
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
