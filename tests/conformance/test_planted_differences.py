"""Tests of the conformance tests: a bug planted in one adapter must be detected.

Each plant is a realistic bug. It is added to the adapter of one engine at a time. The feature listed with it
must detect the bug, either by its expectation or by a difference between the engines.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, settings
from tests.conformance.carrying_out import faults
from tests.conformance.features import Feature, features, ready
from tests.conformance.random_plans import documents

from aigo_bridge.dtypes import ModelResponse, SolverTrace
from aigo_bridge.engine.protocol import Evidence
from aigo_bridge.errors import SampleError
from aigo_bridge.models.protocol import ModelRequest
from aigo_bridge.results.records import TrialRecord
from aigo_bridge.snippets import run_in_process

pytestmark = pytest.mark.xdist_group("conformance")

MODELS = {
    "inspect": ("aigo_inspect.models.models", "InspectModel"),
    "lighteval": ("aigo_lighteval.models.models", "HostedModel"),
}
ENGINES = {
    "inspect": ("aigo_inspect.engine", "InspectEngine"),
    "lighteval": ("aigo_lighteval.engine", "LightevalEngine"),
}

Predict = Callable[[Any, ModelRequest], Any]


def class_of(place: tuple[str, str]) -> Any:
    return getattr(importlib.import_module(place[0]), place[1])


# Bugs in model calls


async def stripped(predict: Predict, model: Any, request: ModelRequest) -> ModelResponse:
    """Strip whitespace around an answer."""
    response: ModelResponse = await predict(model, request)
    return _with_text(response, str.strip)


async def folded(predict: Predict, model: Any, request: ModelRequest) -> ModelResponse:
    """Convert answers to lowercase."""
    response: ModelResponse = await predict(model, request)
    return _with_text(response, str.lower)


async def swallowed(predict: Predict, model: Any, request: ModelRequest) -> ModelResponse:
    """Treat a failed model call as an empty answer."""
    try:
        response: ModelResponse = await predict(model, request)
    except SampleError:
        from aigo_bridge.dtypes import (
            ChatCompletionModelOutput,
            ChatCompletionModelOutputChoice,
            ChatCompletionOutputMessage,
        )
        from aigo_bridge.solving.conversation import output_items

        message = ChatCompletionOutputMessage(role="assistant", content="")
        output = ChatCompletionModelOutput(choices=[ChatCompletionModelOutputChoice(message=message)])
        response = ModelResponse(raw_output=output, items=output_items(output))
    return response


async def without_options(predict: Predict, model: Any, request: ModelRequest) -> Any:
    """Drop the options of a call."""
    return await predict(model, replace(request, options={}))


async def without_system(predict: Predict, model: Any, request: ModelRequest) -> Any:
    """Drop system messages."""
    kept = [message for message in request.input.messages if message.role != "system"]
    chat = request.input.model_copy(update={"messages": kept})
    return await predict(model, replace(request, input=chat))


def _with_text(response: ModelResponse, change: Callable[[str], str]) -> ModelResponse:
    for item in response.items:
        for part in getattr(item, "content", None) or []:
            if isinstance(getattr(part, "text", None), str):
                part.text = change(part.text)
    return response


# Bugs in reading the log


def zero_for_failed(records: Iterator[TrialRecord]) -> Iterator[TrialRecord]:
    """Score failed samples 0."""
    good: Any = None
    for record in records:
        good = record.scores or good
        if not record.scores and good:
            zero = tuple(
                score.model_copy(update={"values": dict.fromkeys(score.values, 0.0)}) for score in good
            )
            yield replace(record, scores=zero)
        else:
            yield record


def zero_for_nan(records: Iterator[TrialRecord]) -> Iterator[TrialRecord]:
    """Score missing values 0."""
    for record in records:
        scores = tuple(
            score.model_copy(
                update={
                    "values": {name: 0.0 if value is None else value for name, value in score.values.items()}
                }
            )
            for score in record.scores
        )
        yield replace(record, scores=scores)


def only_first_trial(records: Iterator[TrialRecord]) -> Iterator[TrialRecord]:
    """Drop all trials except the first."""
    return (record for record in records if record.index == 0)


def other_order(records: Iterator[TrialRecord]) -> Iterator[TrialRecord]:
    """Change the order of samples."""
    return iter(sorted(records, key=lambda record: str(record.sample_id), reverse=True))


def without_errors(records: Iterator[TrialRecord]) -> Iterator[TrialRecord]:
    """Drop error messages."""
    return (replace(record, errors=()) for record in records)


def ids_as_text(records: Iterator[TrialRecord]) -> Iterator[TrialRecord]:
    """Convert numeric ids to text."""
    return (replace(record, sample_id=str(record.sample_id)) for record in records)


def without_metadata(records: Iterator[TrialRecord]) -> Iterator[TrialRecord]:
    """Drop the metadata of scores, which Python metrics read."""
    for record in records:
        yield replace(
            record, scores=tuple(score.model_copy(update={"metadata": None}) for score in record.scores)
        )


def without_events(records: Iterator[TrialRecord]) -> Iterator[TrialRecord]:
    """Drop the model calls."""
    for record in records:
        solver = record.solver
        if isinstance(solver, SolverTrace):
            solver.trace.events = []
        yield replace(record, output=solver)


def missing_as_null(records: Iterator[TrialRecord]) -> Iterator[TrialRecord]:
    """Convert missing cells (NaN) to null."""
    for record in records:
        yield replace(
            record, data={name: None if value != value else value for name, value in record.data.items()}
        )


IN_THE_MODEL = [
    (stripped, "scorers: string_equals"),
    (folded, "scorers: string_equals"),
    (swallowed, "failures: failing models"),
    (without_options, "solvers: single turn, generic input"),
    (without_system, "solvers: single turn, chat"),
]
IN_THE_READING = [
    (zero_for_failed, "failures: failing models"),
    (zero_for_nan, "metrics: missing and non-finite scores"),
    (only_first_trial, "trials: mean, min, max, pass@k, pass^k"),
    (other_order, "rules: exclusion by columns, answers and scores"),
    (without_errors, "failures: template errors"),
    (ids_as_text, "data: numeric ids"),
    (without_metadata, "scorers: python"),
    (without_events, "judges: unreadable answer, asked again"),
    (missing_as_null, "data: missing columns, null and NaN"),
]
BY_ID = {feature.id: feature for feature in features()}


@pytest.fixture(autouse=True)
def in_this_process() -> Iterator[None]:
    run_in_process()
    yield
    run_in_process(False)


def found(feature: str, folder: Path) -> list[str]:
    each = BY_ID[feature]
    return faults(feature, lambda: ready(each, folder / "task"), folder, each.expect)


@pytest.mark.parametrize("engine", MODELS)
@pytest.mark.parametrize(
    ("plant", "feature"), IN_THE_MODEL, ids=lambda value: getattr(value, "__name__", None)
)
def test_bugs_in_model_calls_are_detected(
    engine: str, plant: Any, feature: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = class_of(MODELS[engine])
    predict = model.predict
    monkeypatch.setattr(model, "predict", lambda self, request: plant(predict, self, request))
    assert found(feature, tmp_path) != []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("plant", "feature"), IN_THE_READING, ids=lambda value: getattr(value, "__name__", None)
)
def test_bugs_in_log_reading_are_detected(
    engine: str, plant: Any, feature: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = class_of(ENGINES[engine])
    read = adapter.read

    def planted(self: Any, log: Path) -> Evidence:
        evidence: Evidence = read(self, log)
        return replace(evidence, trials=lambda: plant(evidence.trials()))

    monkeypatch.setattr(adapter, "read", planted)
    assert found(feature, tmp_path) != []


@pytest.mark.parametrize("engine", ENGINES)
def test_random_tasks_detect_a_planted_difference(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = class_of(MODELS[engine])
    predict = model.predict
    monkeypatch.setattr(model, "predict", lambda self, request: folded(predict, self, request))

    def differ(document: Any) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            made = ready(Feature("random", "random", document, {}), Path(folder) / "task")
            return faults("random", lambda: made, Path(folder)) != []

    few = settings(
        max_examples=60,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    assert differ(find(documents(), differ, settings=few))
