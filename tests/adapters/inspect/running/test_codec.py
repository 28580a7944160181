"""Solver data in a log is read back, also from samples that Inspect recovered without their store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.commands import Run

from aigo_bridge.dtypes import CustomTaskInputMessage
from aigo_bridge.execution.solutions import ScorerRow, Solution
from aigo_bridge.importing.log_import import LossReport
from aigo_bridge.plan.plan import Sample
from aigo_bridge.solving.conversation import assistant_item, empty_trace, text_item
from aigo_inspect.logs.reader import open_log
from aigo_inspect.logs.shapes import HEADER_KEY
from aigo_inspect.mapping.traces import map_raw
from aigo_inspect.running.codec import dump_stored, load_stored, solution_of
from aigo_inspect.running.evidence import trial_records


def solution(*texts: str) -> Solution:
    output = empty_trace()
    output.extend([text_item("user", texts[0]), *(assistant_item(text) for text in texts[1:])])
    return Solution(output, (ScorerRow(Sample(7, {"q": texts[0]}), output),))


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_a_stored_solution_equals_the_original(texts: list[str]) -> None:
    stored = load_stored({"store": {"aigo_bridge": dump_stored(solution(*texts))}})
    back = solution_of(stored, Sample(7, {"q": texts[0]}))
    assert back == solution(*texts)


def test_an_item_without_content_is_restored() -> None:
    output = empty_trace()
    output.append(CustomTaskInputMessage(type="custom_task_input_message", content=None))
    sample = Sample(1, {})
    stored = load_stored(
        {"store": {"aigo_bridge": dump_stored(Solution(output, (ScorerRow(sample, output),)))}}
    )
    back = solution_of(stored, sample)
    assert back is not None
    assert back.output == output


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/output", {"model": "m", "metadata": {"a": 1, "aigo_bridge": "attachment://x"}}),
        ("/output/metadata", {"aigo_bridge": "attachment://x"}),
        ("/output/metadata/aigo_bridge", "attachment://x"),
    ],
)
def test_fields_missing_in_the_output_are_read_from_the_events(path: str, value: Any) -> None:
    dumped = dump_stored(solution("a", "b"))
    events = [
        {"event": "state", "changes": [{"op": "add", "path": path, "value": value}]},
        {"event": "state", "changes": [{"op": "replace", "path": "/output", "value": {"model": "m"}}]},
        {"event": "state", "changes": [{"op": "remove", "path": "/messages/0"}]},
    ]
    found = load_stored({"events": events, "attachments": {"x": dumped}})
    assert found == json.loads(dumped)


def test_the_output_takes_precedence_over_the_store_of_older_logs() -> None:
    new, old = dump_stored(solution("a", "b")), dump_stored(solution("a", "c"))
    sample = {"output": {"metadata": {"aigo_bridge": new}}, "store": {"aigo_bridge": old}}
    assert load_stored(sample) == json.loads(new)
    assert load_stored({"output": {"metadata": None}, "store": {"aigo_bridge": old}}) == json.loads(old)


def test_an_empty_store_is_rebuilt_from_the_events() -> None:
    """The last change counts, and its text may be an attachment."""
    first, last = dump_stored(solution("a", "b")), dump_stored(solution("a", "c"))
    events: list[dict[str, Any]] = [
        {"event": "store", "changes": [{"op": "add", "path": "/aigo_bridge", "value": first}]},
        {"event": "store", "changes": [{"op": "add", "path": "/other", "value": 1}]},
        {"event": "store", "changes": [{"op": "replace", "path": "/aigo_bridge", "value": "attachment://x"}]},
    ]
    found = load_stored({"store": {}, "events": events, "attachments": {"x": last}})
    assert found == json.loads(last)
    assert load_stored({"store": {}, "events": events[1:2]}) == {}
    assert load_stored({}) == {}


@pytest.fixture
def log(aigo: Run, tmp_path: Path, tasks: Path) -> Path:
    folder = tasks / "singleturn-generic-input"
    aigo(
        "run",
        "aigo_tasks/singleturn-generic-input",
        "--model",
        f"scripted/{folder / 'answers.jsonl'}",
        "-n",
        2,
        "-o",
        "out",
    )
    (found,) = (tmp_path / "out").glob("*.eval")
    return found


def test_a_sample_without_solver_output_is_an_error(log: Path) -> None:
    """The scores are in the log, but the scored output is unknown."""
    from aigo_bridge.plan.logged_plan import logged_plan

    with open_log(log) as reader:
        header = reader.header
        plan = logged_plan(header["eval"]["metadata"][HEADER_KEY])
        whole, bare = reader.samples()
        del bare.data["output"]["metadata"]
        bare.data["events"] = [event for event in bare.data["events"] if event["event"] != "state"]
        del whole.data["output"]["metadata"]
        stored = [load_stored(raw.data) for raw in (whole, bare)]
        (complete,), (record,) = (
            trial_records(map_raw(raw, LossReport(), header=header), result, plan.outline)
            for raw, result in zip((whole, bare), stored, strict=True)
        )

    assert (len(complete.scores), complete.errors) == (1, ())
    assert record.scores == ()
    (error,) = record.errors
    assert (error.error_type, error.stage and error.stage.value) == ("MissingOutput", "solver")


def test_the_solver_output_is_in_the_evidence_once(log: Path) -> None:
    """The text that transports it is an implementation detail and not part of the evidence."""
    result = next(log.parent.glob("*.tasklog.json")).read_text("utf-8")
    assert '"aigo_bridge":' not in result
    assert "raw_outputs" in result
