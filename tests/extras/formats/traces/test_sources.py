"""All trace sources, compared with golden outputs and checked for trace invariants."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from aigo_bridge.dtypes import FunctionCall, FunctionCallOutput, MessageEvent, ModelCallEvent, Trace
from aigo_bridge.errors import EvidenceError
from aigo_bridge.redaction.redactor import Redactor
from aigo_bridge.redaction.rules import redaction
from aigo_formats.traces.documents import ReadContext
from aigo_formats.traces.sources import SOURCES, TraceQuery, read_traces, row_of, source_of

GOLDEN = Path(__file__).parents[3] / "golden" / "traces"
CASES = sorted(path.parent for path in GOLDEN.glob("*/*/files"))


REDACTION = redaction(environment={})


def reading() -> ReadContext:
    return ReadContext(redaction=Redactor(rules=REDACTION.rules))


def result_of(case: Path) -> dict[str, Any]:
    """Return the traces and losses of a case with relative file paths."""
    notes = reading()
    files = case / "files"
    traces = list(read_traces(files, case.parent.name, notes))
    damage = [[Path(d.member).relative_to(files).as_posix(), d.offset, d.reason] for d in notes.damage]
    for trace in traces:
        place = Path(trace["metadata"]["source_uri"])
        trace["metadata"]["source_uri"] = place.relative_to(files).as_posix()
    return {
        "traces": traces,
        "loss": notes.loss.as_dict(),
        "redacted": dict(notes.redaction.found),
        "damage": damage,
    }


def shortened(result: dict[str, Any], base: Path) -> dict[str, Any]:
    """Return a result with the name of a case in place of equal traces, which differ in their file names only."""
    traces = result["traces"]
    uris = [trace["metadata"]["source_uri"] for trace in traces]
    same = result_of(base)["traces"]
    for trace, uri in zip(same, uris, strict=False):
        trace["metadata"]["source_uri"] = uri
    assert json.dumps(same) == json.dumps(traces), f"the traces differ from those of {base.name}"
    return {**result, "traces": {"as in": base.name, "source_uri": uris}}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_traces_match_the_golden_output(case: Path) -> None:
    """Layouts of one trace have equal evidence: one of them has it in its golden file, and the others name it there."""
    golden = case / "expected.json"
    result = result_of(case)
    written = json.loads(golden.read_text("utf-8"))["traces"] if golden.exists() else []
    if isinstance(written, dict):
        result = shortened(result, case.parent / written["as in"])
    text = json.dumps(result, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    if os.environ.get("AIGO_GOLDEN") == "update":
        golden.write_text(text, encoding="utf-8", newline="\n")
    assert golden.read_text(encoding="utf-8") == text


def test_each_source_has_at_least_20_cases() -> None:
    assert {
        name: len([c for c in CASES if c.parent.name == name]) >= 20 for name in SOURCES
    } == dict.fromkeys(SOURCES, True)


def all_traces() -> Iterator[tuple[str, dict[str, Any]]]:
    for case in CASES:
        for trace in read_traces(case / "files", case.parent.name, reading()):
            yield f"{case.parent.name}/{case.name}", trace


def bare(item: Any) -> Any:
    """Return an item without the random id that `from_events` creates."""
    data = item.model_dump(mode="json", exclude_unset=False)
    if isinstance(item, FunctionCall | FunctionCallOutput):
        data.pop("id")
    return data


def test_every_trace_is_a_valid_ai_go_trace() -> None:
    for name, data in all_traces():
        trace = Trace.model_validate(data)
        assert json.loads(trace.model_dump_json()) == json.loads(json.dumps(data).replace(".000000Z", "Z")), (
            name
        )
        again = Trace.from_events(trace.events or [], span_id=trace.span_id)
        assert [e.id for e in again.events or []] == [e.id for e in trace.events or []], name
        ids = [event.id for event in trace.events or []]
        assert len(set(ids)) == len(ids), name
        if any(isinstance(event, MessageEvent) for event in trace.events or []):
            assert [bare(item) for item in again.items] == [bare(item) for item in trace.items], name


def test_trace_totals_equal_the_sums_over_model_calls() -> None:
    for name, data in all_traces():
        trace = Trace.model_validate(data)
        calls = [
            event for event in trace.events or [] if isinstance(event, ModelCallEvent) and not event.error
        ]
        used = [
            None if c.usage is None or None in (c.usage.num_prompt_tokens, c.usage.num_completion_tokens)
            else (c.usage.num_prompt_tokens or 0) + (c.usage.num_completion_tokens or 0)
            for c in calls
        ]  # fmt: skip
        expected = None if None in used or not used else sum(value for value in used if value is not None)
        assert trace.metadata is not None
        if not any(isinstance(e, ModelCallEvent) and e.error and e.usage for e in trace.events or []):
            assert trace.metadata.total_tokens == expected, name


def test_reading_the_same_files_twice_results_in_equal_rows(tmp_path: Path) -> None:
    case = GOLDEN / "claude_code" / "sub-agent" / "files"
    one, other = ([row_of(t, case) for t in read_traces(case, "claude_code", reading())] for _ in range(2))
    assert one == other
    (row,) = one
    assert row["sample_id"] == row["trace"]["metadata"]["trace_id"]
    assert (row["input"], row["output"]) == ("Find the bug.", "The bug is in main.py.")
    assert not Path(row["source_uri"]).is_absolute()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_source_of_each_file_is_detected(case: Path) -> None:
    files = [
        p
        for p in (case / "files").rglob("*")
        if p.is_file() and p.suffix != ".parquet" and ".meta." not in p.name
    ]
    for file in files:
        source = source_of(file)
        assert source is not None
        assert source.name == case.parent.name, file.name


def test_unknown_sources_and_missing_files_are_reported(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="expected one of claude_code, opentelemetry"):
        list(read_traces(tmp_path, "langfuse"))
    for source in SOURCES:
        with pytest.raises(EvidenceError, match="contains no "):
            list(read_traces(tmp_path, source))
        with pytest.raises(EvidenceError, match="does not exist"):
            list(read_traces(tmp_path / "gone", source))
    other = tmp_path / "x.json"
    other.write_text('{"a": 1}')
    assert source_of(other) is None


def trace(**metadata: Any) -> dict[str, Any]:
    extra = metadata.pop("extra", {})
    about = {
        "trace_id": "t",
        "source_type": "phoenix",
        "created_at": "2026-03-01T10:00:00.000000Z",
        **metadata,
    }
    return {"items": [], "events": [], "metadata": {**about, "extra": {"phoenix": extra}}}


@pytest.mark.parametrize(
    ("wanted", "is_wanted"),
    [
        (TraceQuery(), True),
        (TraceQuery(ids=("t", "u")), True),
        (TraceQuery(ids=("u",)), False),
        (TraceQuery(start=date(2026, 3, 1), end=date(2026, 3, 2)), True),
        (TraceQuery(end=datetime(2026, 3, 1, 10, tzinfo=UTC)), False),
        (TraceQuery(start=datetime(2026, 3, 1, 10)), True),  # noqa: DTZ001  # YAML has such times
        (TraceQuery(tags=("a",)), True),
        (TraceQuery(tags=("a", "b")), False),
        (TraceQuery(sessions=("s",)), True),
        (TraceQuery(sessions=("r",)), False),
        (TraceQuery(metadata={"k": "1"}), True),
        (TraceQuery(metadata={"k": "2"}), False),
        (TraceQuery(project="p"), True),
        (TraceQuery(project="q"), False),
    ],
)
def test_trace_filters_select_matching_traces(wanted: TraceQuery, is_wanted: bool) -> None:
    extra = {"session.id": "s", "metadata": '{"k": 1}', "resource": {"openinference.project.name": "p"}}
    assert wanted(trace(tags=["a"], extra=extra)) is is_wanted


def test_time_filter_on_a_trace_without_time_is_rejected() -> None:
    with pytest.raises(EvidenceError, match="its time is missing"):
        TraceQuery(start=date(2026, 1, 1))(trace(created_at=None))
