"""JSONL task record format: one task per line, closed vocabularies, strict validation, conversion to AI GO
and back.

Validation and rendering need only light imports; metrics import their libraries on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aigo_bridge.jsonl_spec.checking import schema_for_record, validate_task
    from aigo_bridge.jsonl_spec.conversion import Converted, Recovered, from_aigo, to_aigo, write_aigo
    from aigo_bridge.jsonl_spec.files import load_tasks, read_records, validate_file, write_records
    from aigo_bridge.jsonl_spec.post_processing import post_process
    from aigo_bridge.jsonl_spec.records import (
        CATEGORIES,
        LEGAL,
        METRIC_NAMES,
        POST_PROCESS_RULES,
        FewShotExample,
        RecordError,
        Rule,
        TaskSpec,
        few_shot_block,
        no_records,
        render,
    )
    from aigo_bridge.jsonl_spec.scores import metric_score
    from aigo_bridge.jsonl_spec.task_files import (
        TaskFile,
        fixture_file,
        is_like_log,
        is_record_file,
        load_fixtures,
        other_content,
        read_task_file,
    )

__all__ = [
    "CATEGORIES",
    "LEGAL",
    "METRIC_NAMES",
    "POST_PROCESS_RULES",
    "Converted",
    "FewShotExample",
    "RecordError",
    "Recovered",
    "Rule",
    "TaskFile",
    "TaskSpec",
    "few_shot_block",
    "fixture_file",
    "from_aigo",
    "is_like_log",
    "is_record_file",
    "load_fixtures",
    "load_tasks",
    "metric_score",
    "no_records",
    "other_content",
    "post_process",
    "read_records",
    "read_task_file",
    "render",
    "schema_for_record",
    "to_aigo",
    "validate_file",
    "validate_task",
    "write_aigo",
    "write_records",
]

_HOMES = {
    "CATEGORIES": "records",
    "Converted": "conversion",
    "FewShotExample": "records",
    "LEGAL": "records",
    "METRIC_NAMES": "records",
    "POST_PROCESS_RULES": "records",
    "RecordError": "records",
    "Recovered": "conversion",
    "Rule": "records",
    "TaskFile": "task_files",
    "TaskSpec": "records",
    "few_shot_block": "records",
    "fixture_file": "task_files",
    "from_aigo": "conversion",
    "is_like_log": "task_files",
    "is_record_file": "task_files",
    "load_fixtures": "task_files",
    "load_tasks": "files",
    "metric_score": "scores",
    "no_records": "records",
    "other_content": "task_files",
    "post_process": "post_processing",
    "read_records": "files",
    "read_task_file": "task_files",
    "render": "records",
    "schema_for_record": "checking",
    "to_aigo": "conversion",
    "validate_file": "files",
    "validate_task": "checking",
    "write_aigo": "conversion",
    "write_records": "files",
}
"""Name → module that defines it; loaded when the name is first used."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
