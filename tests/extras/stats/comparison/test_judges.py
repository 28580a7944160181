"""Scores compared with human labels: agreement, confusion and hand-computed corrected mean."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from tests.extras.stats.comparison.logs import log, sample

from aigo_stats.comparison.columns import read_columns
from aigo_stats.comparison.judges import Agreement, JudgeQuality, judge_quality
from aigo_stats.statistics.intervals import Interval, NoInterval, wilson
from aigo_stats.statistics.prediction import error_limits


def quality(path: Path, rows: list[tuple[Any, Any]]) -> JudgeQuality:
    """Return the judge quality of samples with a score and a label. A sample without a score failed."""
    samples = [
        sample(number, None if score is None else {"right": score}, {"q": number, "human": label})
        for number, (score, label) in enumerate(rows)
    ]
    (only,) = judge_quality(read_columns(log(path / "a.json", samples, []), ["human"]), "human")
    return only


def test_judge_quality_of_right_wrong_labels_equals_hand_computation(tmp_path: Path) -> None:
    """Of 40 labeled samples, the judge has 4 false positives and 1 false negative. 60 samples have no label."""
    labelled = [(1.0, 1)] * 20 + [(1.0, 0)] * 4 + [(0.0, 1)] + [(0.0, 0)] * 15
    rows = [*labelled, *[(1.0, None)] * 45, *[(0.0, "")] * 15, (None, 1)]

    judge = quality(tmp_path, rows)

    assert (judge.num_labelled, judge.num_unlabelled, judge.num_unscored) == (40, 60, 1)
    assert isinstance(judge.agreement, Agreement)
    assert judge.agreement.confusion == ((15, 4), (1, 20))
    assert judge.agreement.same == 35 / 40
    chance = (19 * 16 + 21 * 24) / 40**2
    assert judge.agreement.kappa == pytest.approx((35 / 40 - chance) / (1 - chance))
    assert judge.judged_mean == pytest.approx(69 / 100)
    assert judge.labelled_mean == 21 / 40
    assert judge.corrected_mean == pytest.approx(45 / 60 - 3 / 40)
    share, (_, high) = wilson(45, 60), error_limits(4, 1, 40)
    assert isinstance(judge.estimate, Interval)
    assert judge.estimate.low == pytest.approx(0.675 - math.hypot(0.75 - share.low, high - 3 / 40))


def test_text_labels_of_csv_files_are_converted_to_numbers(tmp_path: Path) -> None:
    judge = quality(tmp_path, [(1.0, "true"), (0.0, "False"), (1.0, "1"), (0.0, " 0.0 ")] * 5 + [(1.0, None)])

    assert isinstance(judge.agreement, Agreement)
    assert (judge.agreement.same, judge.agreement.kappa, judge.agreement.alpha) == (1.0, 1.0, 1.0)
    assert judge.corrected_mean == 1.0


def test_text_labels_have_agreement_but_no_mean(tmp_path: Path) -> None:
    judge = quality(tmp_path, [("good", "good"), ("bad", "good"), ("bad", "bad"), ("fair", "fair")])

    assert isinstance(judge.agreement, Agreement)
    assert judge.agreement.classes == ("bad", "fair", "good")
    assert judge.agreement.confusion == ((1, 0, 0), (0, 1, 0), (1, 0, 1))
    assert judge.estimate == NoInterval("the mean of text labels or scores is undefined")


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([(1.0, "good"), (0.0, "bad")], "the labels are text, the scores numbers: expected both of one kind"),
        ([("good", 1), ("bad", 0)], "the labels are numbers, the scores text: expected both of one kind"),
        ([(1.0, None), (None, 1)], "no sample with this score has a label"),
        ([(1.0, "inf"), (0.0, 1)], "the labels are text, the scores numbers: expected both of one kind"),
    ],
)
def test_incomparable_scores_and_labels_give_a_reason(
    tmp_path: Path, rows: list[tuple[Any, Any]], reason: str
) -> None:
    judge = quality(tmp_path, rows)

    assert judge.agreement == NoInterval(reason)
    assert judge.corrected_mean is None
    assert isinstance(judge.estimate, NoInterval)


def test_fully_labelled_samples_need_no_corrected_mean(tmp_path: Path) -> None:
    judge = quality(tmp_path, [(1.0, 1), (1.0, 0)] * 10)

    assert judge.corrected_mean == judge.labelled_mean == 0.5
    assert judge.estimate == NoInterval("every sample has a label: their mean needs no correction")
