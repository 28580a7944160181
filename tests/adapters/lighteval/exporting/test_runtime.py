"""Runtime code of native exports: answers, likelihoods and scores as seen by lighteval."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from aigo_bridge.exporting.runtime import string_equals
from aigo_bridge.jsonl_spec.conversion import scorer_snippet

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc

TASK: dict[str, Any] = {
    "export": "abc",
    "trials": 2,
    "stop": ["END"],
    "examples": 0,
    "asks": "GENERATIVE",
    "scorers": [
        {
            "key": "same",
            "methods": ["trim"],
            "settings": {},
            "metrics": [{"type": "mean", "field": "is_correct", "name": "same.accuracy"}],
        }
    ],
    "aggregators": [{"field": "is_correct", "name": "all", "function": "pass^k", "k": 2}],
}


@pytest.fixture
def runtime() -> Any:
    from aigo_lighteval.exporting import runtime

    return runtime


def doc(*, excluded: bool = False) -> Doc:
    from lighteval.tasks.requests import Doc

    expected = {"excluded": excluded, "scorers": {"same": {"ground_truth": "x"}}}
    return Doc("q", ["a", "bb"], 0, id="7", specific={"expected": json.dumps(expected)})


def test_answers_are_cut_before_a_stop_sequence(runtime: Any) -> None:
    from lighteval.models.model_output import ModelResponse

    metric = runtime.scored(TASK, 0, runtime.answers, string_equals)
    scores = metric.sample_level_fn.compute(doc(), ModelResponse(text=[" x END and on", "y"]))

    assert scores == {"is_correct": 0.5, "all": 0.25}
    assert metric.corpus_level_fn([scores, None]) == {"same.accuracy": 0.5}
    assert str(metric.sample_level_fn) == "same of abc"


def test_an_excluded_sample_has_no_score(runtime: Any) -> None:
    from lighteval.models.model_output import ModelResponse

    metric = runtime.scored(TASK, 0, runtime.answers, string_equals)

    assert metric.sample_level_fn.compute(doc(excluded=True), ModelResponse(text=[])) is None


def test_too_few_answers_and_changed_examples_are_refused(runtime: Any) -> None:
    from lighteval.models.model_output import ModelResponse

    metric = runtime.scored(TASK, 0, runtime.answers, string_equals)
    with pytest.raises(ValueError, match="document 7 has 1 answers"):
        metric.sample_level_fn.compute(doc(), ModelResponse(text=["x"]))

    shown = runtime.scored({**TASK, "examples": 2}, 0, runtime.answers, string_equals)
    with pytest.raises(ValueError, match=r"add \|2 to its name"):
        shown.sample_level_fn.compute(doc(), ModelResponse(text=["x", "x"]))


@pytest.mark.parametrize(("by_length", "right"), [(False, 0), (True, 1)])
def test_the_most_likely_choice_is_selected(runtime: Any, by_length: bool, right: int) -> None:
    from lighteval.models.model_output import ModelResponse

    (weights, _) = runtime.likelihoods(doc(), ModelResponse(logprobs=[-1.0, -1.5]), TASK)

    scores, _ = runtime.most_likely(weights, {"right": right}, by_length)

    assert scores == {"is_correct": 1.0}


def test_missing_likelihoods_are_refused(runtime: Any) -> None:
    from lighteval.models.model_output import ModelResponse

    with pytest.raises(ValueError, match="document 7 has the likelihoods"):
        runtime.likelihoods(doc(), ModelResponse(logprobs=[-1.0]), TASK)


def test_records_are_scored_with_their_own_rule(runtime: Any, tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(scorer_snippet())
    expected = {"metric_name": "exact_match", "post_process": "strip_whitespace", "targets": ["x"]}

    scores, _ = runtime.record_score(tmp_path / "code.py")(" x\n", expected)

    assert scores == {"exact_match": 1.0}


def test_rows_from_another_export_are_refused(runtime: Any, tmp_path: Path) -> None:
    (tmp_path / "samples.jsonl").write_text('{"query": "q", "choices": [], "gold_index": 0}\n')
    prompt = runtime.prompts(tmp_path, TASK)

    assert prompt({"export": "abc", "sample": 0, "__few_shots": False}).query == "q"
    with pytest.raises(ValueError, match="clear HF_DATASETS_CACHE"):
        prompt({"export": "other", "sample": 0, "__few_shots": False})


def test_every_native_form_has_runtime_code_or_a_reason() -> None:
    from aigo_lighteval.exporting import native

    for form in native.SCORERS.values():
        assert bool(form.code) != bool(form.reason)
