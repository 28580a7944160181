"""Small logs written by older Inspect versions (tests/golden/make_inspect_log.py) in all layouts, with one
expectation."""

from pathlib import Path

import pytest

from aigo_bridge.dtypes import FunctionCallEvent, ModelCallEvent, SolverTrace
from aigo_bridge.importing.log_import import LossReport
from aigo_inspect.importing.api import import_log

GOLDEN = sorted((Path(__file__).parents[3] / "golden" / "inspect").iterdir())


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name)
def test_an_old_log_is_imported_completely(path: Path) -> None:
    loss = LossReport()
    log = import_log(path, keep="all", loss=loss)
    assert (log.status, log.errors) == ("success", [])
    assert log.evidence is not None
    assert log.evidence.samples is not None
    assert [sample.sample_id for sample in log.evidence.samples] == ["first", 2]
    assert {
        m.metric_key: m.values["accuracy"] for m in log.evidence.metrics or [] if m.metric_key == "accuracy"
    } == {"accuracy": 0.5}
    for sample, value in zip(log.evidence.samples, ("C", "I"), strict=True):
        (trial,) = sample.trials
        assert [score.values for score in trial.scores or []] == [{"includes": value}]
        assert trial.solver is not None
        assert isinstance(trial.solver.output, SolverTrace)
        trace = trial.solver.output.trace
        calls = [event for event in trace.events or [] if isinstance(event, ModelCallEvent)]
        assert [len(call.input_context) for call in calls] == [2, 5]
        tools = [event for event in trace.events or [] if isinstance(event, FunctionCallEvent)]
        assert [(tool.function, tool.arguments) for tool in tools] == [
            ("add", '{"x":3,"y":4}'),
            ("submit", '{"answer":"7"}'),
        ]
        assert isinstance(tools[0].result, str)
        assert tools[0].result.startswith("7 a text of more than")
        assert [item.type for item in trace.items] == [
            *("message", "message", "message", "function_call", "function_call_output"),
            *(
                "message",
                "function_call",
                "message" if trace.items[7].type == "message" else "function_call_output",
            ),
        ]
        ids = [event.id for event in trace.events or [] if event.type != "span_end"]
        assert len(set(ids)) == len(ids)
    assert loss.lost == sum(n for kind, n in loss.dropped.items() if kind.startswith("sample."))
    assert "attachment://" not in log.model_dump_json()


def test_generated_ids_for_old_events_are_deterministic() -> None:
    path = next(path for path in GOLDEN if path.name == "0.3.50.eval")
    assert import_log(path).model_dump_json() == import_log(path).model_dump_json()
