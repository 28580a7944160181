"""Any bytes give evidence or an `EvidenceError`, and never a file that AI GO cannot read."""

import io
import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from aigo_bridge.dtypes import TaskResultLog
from aigo_bridge.errors import EvidenceError
from aigo_inspect.importing.api import import_log
from aigo_inspect.importing.importing import ImportOptions, import_file

EXAMPLES = int(os.environ.get("AIGO_FUZZ_EXAMPLES", "10"))
"""Number of examples; long runs set the variable."""
GOLDEN = sorted((Path(__file__).parents[1] / "golden" / "inspect").iterdir())

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=6), children, max_size=3)
    ),
    max_leaves=8,
)
KEYS = [
    *(
        "event",
        "id",
        "span_id",
        "uuid",
        "timestamp",
        "parent_id",
        "name",
        "type",
        "model",
        "input",
        "input_refs",
    ),
    *(
        "output",
        "choices",
        "message",
        "content",
        "role",
        "tools",
        "tool_calls",
        "function",
        "arguments",
        "result",
    ),
    *(
        "error",
        "message",
        "events",
        "action",
        "usage",
        "call",
        "request",
        "call_refs",
        "metadata",
        "completed",
    ),
]
KINDS = [
    "model",
    "tool",
    "span_begin",
    "span_end",
    "step",
    "subtask",
    "compaction",
    "error",
    "logger",
    "sample_init",
]
odd_events = st.dictionaries(st.sampled_from(KEYS), json_values, max_size=8).flatmap(
    lambda found: st.sampled_from(KINDS).map(lambda kind: {**found, "event": kind})
)
odd_samples = st.dictionaries(
    st.sampled_from(
        [
            *(
                "input",
                "target",
                "messages",
                "output",
                "scores",
                "error",
                "attachments",
                "events_data",
                "limit",
            ),
            *(
                "model_usage",
                "error_retries",
                "invalidation",
                "transcript",
                "score",
                "message_pool",
                "started_at",
            ),
        ]
    ),
    json_values,
    max_size=6,
)
odd_headers = st.dictionaries(
    st.sampled_from(["status", "eval", "plan", "results", "stats", "error", "tags", "invalidated"]),
    json_values
    | st.fixed_dictionaries(
        {
            "task": json_values,
            "dataset": json_values,
            "config": json_values,
            "model": json_values,
            "tags": json_values,
        }
    )
    | st.fixed_dictionaries(
        {"scores": st.lists(st.dictionaries(st.sampled_from(["name", "scorer", "metrics"]), json_values))}
    ),
    max_size=6,
)


def outcome(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.eval"
        path.write_bytes(data)
        result = import_file(path, Path(folder) / "r", ImportOptions(redact=False))
        if result.output is None:
            assert result.exit_code == 3
            return
        read = TaskResultLog.model_validate_json(result.output.read_bytes())
        assert read.evidence is not None
        try:
            typed = import_log(path)
        except EvidenceError:
            return
        assert typed.evidence is not None
        assert len(typed.evidence.samples or []) == len(read.evidence.samples or [])


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.binary(max_size=300) | st.binary(max_size=200).map(lambda data: b"PK\x03\x04" + data))
def test_any_bytes_give_a_log_or_an_error(data: bytes) -> None:
    outcome(data)


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.sampled_from(GOLDEN),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=6),
)
def test_a_log_with_changed_bytes_gives_a_log_or_an_error(
    path: Path, changes: list[tuple[float, int]]
) -> None:
    data = bytearray(path.read_bytes())
    for place, value in changes:
        data[int(place * len(data))] = value
    outcome(bytes(data))


@settings(max_examples=EXAMPLES * 2, deadline=None)
@given(odd_headers, odd_samples, st.lists(odd_events, max_size=6), json_values)
def test_any_json_in_the_expected_places_gives_a_log_or_an_error(
    header: dict[str, Any], sample: dict[str, Any], events: list[Any], odd: Any
) -> None:
    full = {"id": 1, "epoch": 1, **sample, "events": [*events, odd]}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("header.json", json.dumps(header))
        archive.writestr("samples/1_epoch_1.json", json.dumps(full))
    outcome(buffer.getvalue())
