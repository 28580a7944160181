"""The JSONL task record format: one task per line, closed vocabularies, strict validation, conversion to AI
GO and back.

Validation and rendering need nothing heavy; metrics import their libraries when they are used.
"""

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
    render,
)
from aigo_bridge.jsonl_spec.scores import metric_score
from aigo_bridge.jsonl_spec.task_files import (
    TaskFile,
    fixture_file,
    is_like_log,
    is_record_file,
    load_fixtures,
    no_records,
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
