"""The JSONL task record format: one task per line, closed vocabularies, strict validation, conversion to AI GO and back.

Validation and rendering need nothing heavy; metrics import their libraries when they are used.
"""

from aigo_bridge.jsonl_spec.checking import validate_task
from aigo_bridge.jsonl_spec.few_shot import few_shot_block, render
from aigo_bridge.jsonl_spec.files import load_tasks, read_records, validate_file, write_records
from aigo_bridge.jsonl_spec.fixtures import fixture_file, load_fixtures
from aigo_bridge.jsonl_spec.from_aigo import Recovered, from_aigo
from aigo_bridge.jsonl_spec.post_processing import post_process
from aigo_bridge.jsonl_spec.recognising import is_like_log, is_record_file, other_content
from aigo_bridge.jsonl_spec.records import FewShotExample, RecordError, Rule, TaskSpec
from aigo_bridge.jsonl_spec.schema import schema_for_record
from aigo_bridge.jsonl_spec.scores import metric_score
from aigo_bridge.jsonl_spec.task_files import TaskFile, no_records, read_task_file
from aigo_bridge.jsonl_spec.to_aigo import Converted, to_aigo, write_aigo
from aigo_bridge.jsonl_spec.vocabulary import CATEGORIES, LEGAL, METRIC_NAMES, POST_PROCESS_RULES

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
