"""Repetitions of a task in results, runs and trials, with hand-computed variances."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.extras.stats.comparison.logs import MEAN, log, repeated, sample

from aigo_bridge.errors import EvidenceError, UsageError
from aigo_stats.comparison.repetitions import Repeatability, repeatability


def result(path: Path, scores: list[float], answers: list[str], **options: Any) -> Path:
    samples = [
        sample(number, {"right": score}, answer=answer)
        for number, (score, answer) in enumerate(zip(scores, answers, strict=True))
    ]
    return log(path, samples, [(MEAN, {"accuracy": sum(scores) / len(scores)})], **options)


def only(results: list[Path]) -> Repeatability:
    (number,), _ = repeatability(results)
    return number


def test_different_answers_determine_the_model_and_judge_variance(tmp_path: Path) -> None:
    """Scores 0 and 1, 1 and 1, 0 and 0: the mean square within samples is 0.5 / 3, and between samples 2 · 0.25."""
    results = [
        result(tmp_path / "a.json", [0.0, 1.0, 0.0], ["a", "b", "c"]),
        result(tmp_path / "b.json", [1.0, 1.0, 0.0], ["d", "e", "f"]),
    ]

    number = only(results)

    assert number.means == (1 / 3, 2 / 3)
    assert number.components is not None
    assert number.components.within == pytest.approx(1 / 6)
    assert number.components.sampling == pytest.approx((0.5 - 1 / 6) / 2)
    assert (number.components.model, number.components.judge) == (None, None)
    assert number.standard_error == pytest.approx(((1 / 6 + 1 / 6) / 3) ** 0.5)
    assert [(sample.sample_id, sample.scores) for sample in number.flaky] == [(0, (0.0, 1.0))]


def test_rescored_results_determine_the_judge_variance(tmp_path: Path) -> None:
    """The second result rescores the answers of the first. The third has new answers."""
    answers = ["a", "b", "c", "d"]
    results = [
        result(tmp_path / "a.json", [0.0, 1.0, 0.0, 1.0], answers),
        result(tmp_path / "b.json", [1.0, 1.0, 0.0, 1.0], answers),
        result(tmp_path / "c.json", [1.0, 1.0, 1.0, 1.0], ["e", "f", "g", "h"]),
    ]

    again, anew = only(results[:2]), only(results)

    assert again.components is not None
    assert (again.components.judge, again.components.model) == (0.125, None)
    assert anew.components is not None
    assert anew.components.judge == 0.125
    # Answers: squares 2 · (1/2 - 2/3)² + (1 - 2/3)² of the first sample, 2 · (1/3)² + (2/3)² of the third; 4/3 scores each.
    assert anew.components.model == pytest.approx(((1 / 6 + 2 / 3) / 4 - 0.125) / (4 / 3))


def test_runs_of_a_repeatability_result_are_repetitions(tmp_path: Path) -> None:
    path = result(tmp_path / "a.json", [0.0, 1.0], ["a", "b"])
    content = orjson.loads(path.read_bytes())
    runs = []
    for scores, answers in (([0.0, 1.0], "ab"), ([1.0, 1.0], "cd")):
        other = orjson.loads(result(tmp_path / "x.json", scores, list(answers)).read_bytes())
        runs.append({"samples": other["evidence"]["samples"], "metrics": other["evidence"]["metrics"]})
    content["evidence"] = {"samples": [], "metrics": [], "runs": runs}
    path.write_bytes(orjson.dumps(content))

    number = only([path])

    assert number.means == (0.5, 1.0)
    assert [sample.scores for sample in number.flaky] == [(0.0, 1.0)]


def test_trials_are_repetitions_without_failed_ones(tmp_path: Path) -> None:
    samples = [repeated(0, [1.0, None, 0.0]), repeated(1, [1.0, 1.0, 1.0]), repeated(2, [None, None, 1.0])]

    number = only([log(tmp_path / "a.json", samples, [])])

    assert number.num_samples == 2
    assert [sample.scores for sample in number.flaky] == [(1.0, 0.0)]


def test_ambiguous_sample_ids_are_excluded_and_counted(tmp_path: Path) -> None:
    first = [sample(number, {"right": 1.0}, {"q": number}) for number in range(4)]
    second = [
        sample(number, {"right": 0.0}, {"q": "new" if number == 3 else number}) for number in (0, 0, 1, 3)
    ]
    results = [log(tmp_path / "a.json", first, []), log(tmp_path / "b.json", second, [])]

    (number,), num_odd = repeatability(results)

    assert num_odd == 2
    assert [sample.sample_id for sample in number.flaky] == [1]
    assert number.reason == "fewer than two samples were scored more than once"


def test_text_scores_have_no_variance_components_with_a_reason(tmp_path: Path) -> None:
    results = [log(tmp_path / f"{name}.json", [sample(0, {"right": "C"})], []) for name in "ab"]

    assert only(results).reason == "the score 'C' is not a number"


def test_results_of_different_tasks_are_not_repetitions(tmp_path: Path) -> None:
    results = [
        result(tmp_path / "a.json", [1.0], ["a"]),
        result(tmp_path / "b.json", [1.0], ["a"], task={"solver": {"type": "x"}}),
    ]

    with pytest.raises(UsageError, match="different definitions, expected repetitions of one; show"):
        repeatability(results)


def test_damaged_repetition_sample_is_reported_with_its_position(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match=r"evidence\.samples\[0\]"):
        repeatability([log(tmp_path / "a.json", [{**sample(0, None), "trials": [3]}], [])])
