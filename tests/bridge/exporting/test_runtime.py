"""The code in native exports computes the same values as a run."""

from __future__ import annotations

import ast
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from aigo_bridge.exporting import native, runtime
from aigo_bridge.exporting.python_code import _runtime
from aigo_bridge.metrics.trials import aggregate_trials, aggregated_name
from aigo_bridge.scoring.strings import SETTINGS
from aigo_bridge.spec.trials import ScoreOfTrials

ASKED: list[dict[str, Any]] = [
    {"score_name": "n", "aggregator": {"function": "mean", "score_name": "m"}},
    {"score_name": "n", "aggregator": {"function": "min"}},
    {"score_name": "n", "aggregator": {"function": "max"}},
    {"score_name": "passed", "aggregator": {"function": "pass@k", "k": 5}},
    {"score_name": "passed", "aggregator": {"function": "pass^k", "k": 3, "score_name": "all"}},
]
AGGREGATORS = [TypeAdapter(ScoreOfTrials).validate_python(entry) for entry in ASKED]


@pytest.mark.parametrize("module", ["aigo_bridge", "aigo_inspect", "aigo_lighteval"])
def test_runtime_does_not_import_aigo_bridge(module: str) -> None:
    """The only exception is the runtime that is copied with it."""
    _, tree = _runtime(f"{module}.exporting.runtime")

    imported = {
        getattr(node, "module", None) or name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }

    packages = {name.partition(".")[0] for name in imported - {"aigo_bridge.exporting.runtime"}}
    assert packages - sys.stdlib_module_names <= {"inspect_ai", "lighteval", "sacrebleu"}


def test_every_native_form_is_a_runtime_function() -> None:
    forms = {name: form for name, form in native.SCORERS.items() if form.code}

    assert {name: getattr(runtime, form.code).__name__ for name, form in forms.items()} == {
        name: name for name in ("string_equals", "string_equals_mcqa", "bleu")
    }
    assert set(runtime.METHODS) == native.METHODS
    formulas = {name for name, form in native.METRICS.items() if form.code}
    assert {*runtime.FORMULAS, "frequency"} == formulas


@pytest.mark.parametrize(
    ("formula", "value"),
    [("mean", 7 / 3), ("min", 1.0), ("max", 4.0), ("std_dev", 1.5275252316519468)],
)
def test_formula_computes_the_known_value(formula: str, value: float) -> None:
    assert runtime.FORMULAS[formula]([1.0, 2.0, 4.0]) == value


def test_sample_value_is_compared_instead_of_the_answer() -> None:
    assert runtime.compared_text(" A\n", {}, ["trim", "lower"]) == "a"
    assert runtime.compared_text(" A\n", {"value": " B"}, []) == " B"


def test_choices_are_recognized_by_the_first_character() -> None:
    scores, metadata = runtime.string_equals_mcqa("Ax", {"ground_truth": "A", "choices": ["A", "B"]})

    assert scores == {"is_correct": 1.0}
    assert metadata["completion_validity"] == "valid"


def test_bleu_is_at_most_one() -> None:
    scores, metadata = runtime.bleu("the cat sat", {"ground_truth": "the cat sat"}, **SETTINGS)

    assert scores == {"bleu_score": 1.0}
    assert "tok:13a" in metadata["signature"]


def test_frequencies_are_proportions_of_scored_samples() -> None:
    scores = [{"n": 1.0}, {"n": 0.0}, {"n": 1.0}, {"other": 3.0}]
    wanted = [
        {"type": "frequency", "field": "n", "name": "n_"},
        {"type": "std_dev", "field": "other", "name": "spread"},
        {"type": "mean", "field": "missing", "name": "none"},
    ]

    values = runtime.metric_values(scores, wanted)

    assert values == {"n_1.0": 2 / 3, "n_0.0": 1 / 3, "spread": 0.0}


numbers = st.floats(-1e6, 1e6).map(lambda number: round(number, 3))


@settings(deadline=None)
@given(
    trials=st.lists(st.fixed_dictionaries({"n": numbers, "passed": st.sampled_from([0.0, 1.0])}), min_size=2)
)
def test_trials_are_aggregated_as_in_a_run(trials: list[dict[str, float]]) -> None:
    about = [
        {
            "field": entry.score_name,
            "name": aggregated_name(entry),
            "function": entry.aggregator.function,
            "k": getattr(entry.aggregator, "k", 1),
        }
        for entry in AGGREGATORS
    ]

    assert runtime.over_trials(trials, about) == dict(aggregate_trials(trials, AGGREGATORS).values)
