"""Coverage of 95 % intervals in simulated evaluations with a known true value, compared with naive intervals.

    python benchmarks/coverage.py [--evaluations 2000] [--only TEXT] [--page benchmarks/coverage.md]

The naive interval is the mean ± 1.96 standard errors over all numbers, as if all samples and trials were
independent.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from aigo_stats.comparison.comparing import influences
from aigo_stats.comparison.labels import LabelPairs, class_ratio, macro_average
from aigo_stats.comparison.sources import std_dev_of
from aigo_stats.statistics.intervals import Estimate, Interval, wilson
from aigo_stats.statistics.paired_differences import linearised, mean_difference, right_or_wrong
from aigo_stats.statistics.prediction import corrected_interval
from aigo_stats.statistics.ratios import FRACTION, RIGHT_OR_WRONG, UNDECLARED, Ratio, Scale, ratio_interval
from aigo_stats.statistics.smooth import Smooth, smooth_interval

Numbers = NDArray[np.float64]

HEADING = "| evaluation | ours | naive |\n|---|--:|--:|"

PROMISED = (0.935, 0.965)
"""Required coverage of a 95 % interval."""


@dataclass(frozen=True)
class Evaluation:
    """One simulated evaluation."""

    truth: float
    estimate: Estimate
    naive: tuple[float, float]


@dataclass(frozen=True)
class Scenario:
    """A kind of evaluation."""

    name: str
    draw: Callable[[Generator], Evaluation]
    promised: bool = True
    """Whether coverage is promised. Otherwise the page describes the expected coverage."""


@dataclass(frozen=True)
class Coverage:
    """Proportion of intervals that contain the true value."""

    ours: float
    naive: float
    without: float
    """Proportion of evaluations with a reason instead of an interval."""


def coverage(scenario: Scenario, evaluations: int, seed: int = 20261122) -> Coverage:
    """Simulate evaluations. Evaluations without an interval count for neither method."""
    random = np.random.default_rng(seed)
    ours = naive = counted = 0
    for _ in range(evaluations):
        one = scenario.draw(random)
        if not isinstance(one.estimate, Interval):
            continue
        counted += 1
        ours += one.estimate.low <= one.truth <= one.estimate.high
        naive += one.naive[0] <= one.truth <= one.naive[1]
    return Coverage(ours / counted, naive / counted, 1 - counted / evaluations)


def naive_interval(values: Numbers) -> tuple[float, float]:
    """Return the mean ± 1.96 standard errors."""
    half = 1.959963984540054 * float(values.std(ddof=1)) / math.sqrt(values.size)
    return float(values.mean()) - half, float(values.mean()) + half


def share(low: float, high: float, count: int) -> Scenario:
    """Right or wrong scores. Each evaluation draws a new true value, because a fixed value allows only a few
    coverages."""

    def draw(random: Generator) -> Evaluation:
        truth = random.uniform(low, high)
        values = (random.random(count) < truth).astype(float)
        return Evaluation(truth, ratio_interval(Ratio.mean(values, RIGHT_OR_WRONG)), naive_interval(values))

    return Scenario(f"share {low} to {high}, {count} samples", draw)


def scores(
    name: str,
    draw_scores: Callable[[Generator, int], NDArray[Any]],
    truth: float,
    count: int,
    *,
    scale: Scale = UNDECLARED,
    promised: bool = True,
) -> Scenario:
    """Scores of a distribution; `scale`: the range that their scorer declares."""

    def draw(random: Generator) -> Evaluation:
        values = np.asarray(draw_scores(random, count), dtype=float)
        return Evaluation(truth, ratio_interval(Ratio.mean(values, scale)), naive_interval(values))

    return Scenario(f"{name}, {count} samples", draw, promised)


def clusters(name: str, alpha: float, beta: float, groups: int, *, promised: bool = True) -> Scenario:
    """Ten right or wrong samples in each group. The groups differ widely in their proportion of right
    samples."""

    def draw(random: Generator) -> Evaluation:
        shares = random.beta(alpha, beta, groups)
        values = (random.random((groups, 10)) < shares[:, None]).astype(float).ravel()
        numbers = np.repeat(np.arange(groups), 10)
        return Evaluation(
            alpha / (alpha + beta),
            ratio_interval(Ratio.mean(values, RIGHT_OR_WRONG), numbers),
            naive_interval(values),
        )

    return Scenario(f"{groups} groups of 10, {name}", draw, promised)


def score_clusters(groups: int) -> Scenario:
    """Ten scores in each group, which share most of their skewed variation."""

    def draw(random: Generator) -> Evaluation:
        values = (
            random.exponential(size=groups)[:, None] + 0.3 * random.exponential(size=(groups, 10))
        ).ravel()
        numbers = np.repeat(np.arange(groups), 10)
        return Evaluation(1.3, ratio_interval(Ratio.mean(values), numbers), naive_interval(values))

    return Scenario(f"{groups} groups of 10, skewed scores", draw)


def trials(name: str, alpha: float, beta: float, count: int) -> Scenario:
    """Five trials of each sample. Some samples are easier than others."""

    def draw(random: Generator) -> Evaluation:
        shares = random.beta(alpha, beta, count)
        right = (random.random((count, 5)) < shares[:, None]).astype(float)
        return Evaluation(
            alpha / (alpha + beta),
            ratio_interval(Ratio.mean(right.mean(axis=1), RIGHT_OR_WRONG)),
            naive_interval(right.ravel()),
        )

    return Scenario(f"5 trials, {name}, {count} samples", draw)


def of_labels(name: str, matrix: list[list[float]], kind: str, count: int) -> Scenario:
    """True and predicted labels with the probabilities of a confusion matrix."""
    cells = np.array(matrix).ravel() / np.sum(matrix)
    classes = tuple(f"class-{number}" for number in range(len(matrix)))

    def draw(random: Generator) -> Evaluation:
        drawn = random.choice(len(cells), count, p=cells)
        pairs = LabelPairs(np.arange(count), drawn // len(classes), drawn % len(classes), classes)
        hits = (pairs.truth == pairs.predicted).astype(float)
        if kind == "macro":
            average = macro_average(pairs, "f1_score")
            assert isinstance(average, Smooth)
            return Evaluation(truth, smooth_interval(average), naive_interval(hits))
        ratio = class_ratio(pairs, classes[0], kind)
        assert isinstance(ratio, Ratio)
        return Evaluation(truth, ratio_interval(ratio), naive_interval(hits))

    probabilities = np.array(matrix) / np.sum(matrix)
    hits, true, called = np.diag(probabilities), probabilities.sum(1), probabilities.sum(0)
    f1 = 2 * hits / (true + called)
    truth = float({"macro": f1.mean(), "f1_score": f1[0], "precision": (hits / called)[0]}[kind])
    return Scenario(f"{name}, {count} samples", draw)


def spread(
    name: str, draw_scores: Callable[[Generator, int], NDArray[Any]], truth: float, count: int
) -> Scenario:
    """The standard deviation of scores."""

    def draw(random: Generator) -> Evaluation:
        values = np.asarray(draw_scores(random, count), dtype=float)
        deviation = float(values.std(ddof=1))
        half = 1.959963984540054 * deviation / math.sqrt(2 * (count - 1))
        content = std_dev_of(values)
        assert isinstance(content, Smooth)
        return Evaluation(truth, smooth_interval(content), (deviation - half, deviation + half))

    return Scenario(f"std_dev of {name}, {count} samples", draw)


def corrected(
    name: str, share: float, errors: tuple[float, float], labels: int, count: int, *, promised: bool = True
) -> Scenario:
    """A judge's proportion of right samples, corrected by labels. `errors`: how often the judge rates a wrong
    sample as right, and a right sample as wrong. The naive interval uses the judge's scores.
    """

    def draw(random: Generator) -> Evaluation:
        right = random.random(labels + count) < share
        wrong = random.random(labels + count)
        judged = np.where(right, wrong >= errors[1], wrong < errors[0]).astype(float)
        truth = right[:labels].astype(float)
        estimate = corrected_interval(judged[labels:], judged[:labels], truth, scale=RIGHT_OR_WRONG)
        return Evaluation(share, estimate, naive_interval(judged))

    return Scenario(f"judge corrected by {labels} labels, {name}, {count} samples", draw, promised)


def corrected_in_range(labels: int, count: int) -> Scenario:
    """Like `corrected`, with a new error rate of the judge for each evaluation. Fixed rates with few errors
    allow only a few coverages.
    """

    def draw(random: Generator) -> Evaluation:
        errors = random.uniform(0, 0.3), random.uniform(0, 0.1)
        return corrected("", random.uniform(0.6, 0.9), errors, labels, count).draw(random)

    return Scenario(f"judge corrected by {labels} labels, wrong in 0 to 18 %, {count} samples", draw)


def corrected_marks(labels: int, count: int) -> Scenario:
    """Grades from 1 to 5 of a judge that is more generous than people."""

    def draw(random: Generator) -> Evaluation:
        truth = 1 + random.choice(5, labels + count, p=[0.1, 0.2, 0.3, 0.25, 0.15]).astype(float)
        judged = np.clip(truth + random.choice([-1, 0, 1], labels + count, p=[0.05, 0.6, 0.35]), 1, 5)
        estimate = corrected_interval(
            judged[labels:], judged[:labels], truth[:labels], scale=Scale((1.0, 5.0))
        )
        return Evaluation(3.15, estimate, naive_interval(judged))

    return Scenario(f"judge grades corrected by {labels} labels, {count} samples", draw)


MARKS = np.array([0.02, 0.03, 0.05, 0.2, 0.7])
"""Grades of a judge that usually gives the best of five."""
GOOD = [[0.40, 0.03, 0.02], [0.04, 0.26, 0.02], [0.02, 0.03, 0.18]]
MIXED = [[0.30, 0.05, 0.05], [0.05, 0.20, 0.05], [0.02, 0.08, 0.20]]


def scenarios() -> Iterator[Scenario]:
    """Return all cases of the page's table."""
    for count in (30, 1000):
        for low, high in ((0.01, 0.1), (0.3, 0.7), (0.9, 0.99)):
            yield share(low, high, count)
    for count in (30, 1000):
        yield scores("normal scores", lambda random, n: random.normal(size=n), 0.0, count)
        yield scores("skewed scores (exponential)", lambda random, n: random.exponential(size=n), 1.0, count)
        yield scores(
            "skewed scores in [0, 1] (beta 0.5, 5)",
            lambda random, n: random.beta(0.5, 5, n),
            1 / 11,
            count,
            scale=FRACTION,
        )
        yield scores(
            "scores mostly 1 (beta 2, 0.3)",
            lambda random, n: random.beta(2, 0.3, n),
            2 / 2.3,
            count,
            scale=FRACTION,
        )
        yield scores("scores mostly 0 (70 %)", _mostly_zero, 0.15, count, scale=FRACTION)
        yield scores(
            "grades 1 to 5, mostly 5",
            lambda random, n: 1 + random.choice(5, n, p=MARKS),
            4.53,
            count,
            scale=Scale((1.0, 5.0)),
        )
    yield from counts()
    for groups in (30, 100):
        yield clusters("right half of the time", 0.25, 0.25, groups)
        yield clusters("right a quarter of the time", 0.1, 0.3, groups)
        yield score_clusters(groups)
    for count in (30, 1000):
        yield trials("samples of every difficulty", 1.0, 1.0, count)
        yield trials("most right in every trial", 3.0, 0.3, count)
        yield trials("most wrong in every trial", 0.3, 3.0, count)
    for count in (100, 1000):
        yield of_labels("precision of a class", GOOD, "precision", count)
        yield of_labels("F1 of a class", GOOD, "f1_score", count)
        yield of_labels("macro F1", MIXED, "macro", count)
        yield spread("normal scores", lambda random, n: random.normal(size=n), 1.0, count)
        yield spread(
            "skewed scores", lambda random, n: random.beta(0.5, 5, n), math.sqrt(2.5 / 5.5**2 / 6.5), count
        )
    for labels, count in ((50, 1000), (200, 2000)):
        yield corrected("wrong called right in 30 %", 0.7, (0.3, 0.05), labels, count)
        yield corrected("seldom wrong", 0.8, (0.1, 0.02), labels, count, promised=labels > 50)
        yield corrected_in_range(labels, count)
        yield corrected_marks(labels, count)
    yield from differences()
    heavy = math.exp(0.5)
    yield scores(
        "heavy tail (log-normal)", lambda random, n: random.lognormal(size=n), heavy, 30, promised=False
    )
    yield clusters("right once in eleven times", 0.05, 0.5, 30, promised=False)


def counts() -> Iterator[Scenario]:
    """Counts and grades whose largest value is rarely observed. Only the last case has a declared scale."""
    for count in (20, 30):
        yield scores(
            "counts mostly 1, 2 in 4 %",
            lambda random, n: 1 + (random.random(n) < 0.04),
            1.04,
            count,
            promised=False,
        )
        yield scores(
            "counts mostly 0 (Poisson 0.1)",
            lambda random, n: random.poisson(0.1, n),
            0.1,
            count,
            promised=False,
        )
    yield scores("counts mostly 0, others about 4", _rare_counts, 0.4, 30, promised=False)
    yield scores("counts (Poisson 0.7)", lambda random, n: random.poisson(0.7, n), 0.7, 30)
    yield scores(
        "grades 1, 3, 5, 10, the top one in 3 %",
        lambda random, n: random.choice([1, 3, 5, 10], n, p=[0.47, 0.3, 0.2, 0.03]),
        2.67,
        30,
    )
    yield scores(
        "grades 1 to 5, the top one in 2 %",
        lambda random, n: 1 + random.choice(5, n, p=[0.6, 0.25, 0.1, 0.03, 0.02]),
        1.62,
        30,
        scale=Scale((1.0, 5.0)),
    )


def differences() -> Iterator[Scenario]:
    """Difference of two models on the same samples. The naive interval treats them as independent."""
    for count in (30, 1000):
        yield difference_of_shares(count)
        yield difference_of_scores("normal", lambda random, n: random.normal(size=n), 0.0, count)
        yield difference_of_scores(
            "skewed", lambda random, n: random.exponential(size=n), 1.0, count, promised=count > 30
        )
    for groups in (30, 100):
        yield difference_in_groups(groups)
    for count in (100, 1000):
        yield difference_of_f1(count)


def _apart(base: Numbers, new: Numbers) -> tuple[float, float]:
    half = 1.959963984540054 * math.sqrt((base.var(ddof=1) + new.var(ddof=1)) / base.size)
    value = float(new.mean() - base.mean())
    return value - half, value + half


def difference_of_shares(count: int) -> Scenario:
    """Right or wrong scores. Each evaluation draws a new rate at which only one model is right."""

    def draw(random: Generator) -> Evaluation:
        gained, lost = random.uniform(0.02, 0.3), random.uniform(0.02, 0.3)
        cells = random.choice(4, count, p=[gained, lost, 0.3, 0.7 - gained - lost])
        base, new = np.isin(cells, (1, 2)).astype(float), np.isin(cells, (0, 2)).astype(float)
        return Evaluation(gained - lost, right_or_wrong(base, new).estimate, _apart(base, new))

    return Scenario(f"difference of two shares, {count} samples", draw)


def difference_of_scores(
    name: str,
    draw_scores: Callable[[Generator, int], NDArray[Any]],
    truth: float,
    count: int,
    *,
    promised: bool = True,
) -> Scenario:
    """Scores that depend on the sample for both models, plus a gain of the second model."""

    def draw(random: Generator) -> Evaluation:
        base = random.normal(0, 2, count)
        new = base + draw_scores(random, count)
        return Evaluation(truth, mean_difference(new - base), _apart(base, new))

    return Scenario(f"difference of scores, {name}, {count} samples", draw, promised)


def difference_in_groups(groups: int) -> Scenario:
    """Ten samples in each group, which share most of their difference."""

    def draw(random: Generator) -> Evaluation:
        numbers = np.repeat(np.arange(groups), 10)
        base = random.normal(size=groups * 10)
        new = base + np.repeat(random.normal(size=groups), 10) + 0.3 * random.normal(size=groups * 10)
        return Evaluation(0.0, mean_difference(new - base, numbers), _apart(base, new))

    return Scenario(f"difference of scores, {groups} groups of 10", draw)


def difference_of_f1(count: int) -> Scenario:
    """Linearized F1 of a class, for a model and a model that repeats four of five of its labels."""
    cells = np.array(GOOD).ravel() / np.sum(GOOD)
    table = cells.reshape(3, 3)
    truth_of = np.arange(9) // 3
    chance = 0.8 * table[0, 0] + 0.2 * table[0].sum() * table[:, 0].sum()
    second = 2 * chance / (table[0].sum() + table[:, 0].sum())
    first = 2 * table[0, 0] / (table[0].sum() + table[:, 0].sum())

    def draw(random: Generator) -> Evaluation:
        drawn = random.choice(9, count, p=cells)
        repeated = random.random(count) < 0.8
        said = np.where(repeated, drawn % 3, random.choice(3, count, p=table.sum(axis=0)))
        parts = []
        for predicted in (drawn % 3, said):
            pairs = LabelPairs(np.arange(count), truth_of[drawn], predicted, ("a", "b", "c"))
            ratio = class_ratio(pairs, "a", "f1_score")
            assert isinstance(ratio, Ratio)
            parts.append(influences(ratio, np.arange(count)))
        (base, base_parts), (new, new_parts) = parts
        estimate = linearised(new - base, new_parts - base_parts).estimate
        hits = (drawn % 3 == truth_of[drawn]).astype(float), (said == truth_of[drawn]).astype(float)
        return Evaluation(float(second - first), estimate, _apart(*hits))

    return Scenario(f"difference of F1 of a class, {count} samples", draw)


def _mostly_zero(random: Generator, count: int) -> Numbers:
    return np.where(random.random(count) < 0.7, 0.0, random.beta(2, 2, count))


def _rare_counts(random: Generator, count: int) -> Numbers:
    return np.where(random.random(count) < 0.9, 0, 1 + random.poisson(3, count)).astype(float)


def exact_coverage(truth: float, count: int) -> float:
    """Coverage of Wilson's interval at one proportion, as the sum of the probabilities of all results."""
    total = 0.0
    for successes in range(count + 1):
        interval = wilson(successes, count)
        if interval.low <= truth <= interval.high:
            total += math.comb(count, successes) * truth**successes * (1 - truth) ** (count - successes)
    return total


def replace_table(page: Path, rows: list[str]) -> None:
    """Replace the table in a page."""
    text = page.read_text("utf-8")
    start = text.index(HEADING)
    end = text.index("\n\n", start)
    page.write_text(text[:start] + "\n".join([HEADING, *rows]) + text[end:], "utf-8")


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluations", type=int, default=2000)
    parser.add_argument("--only", default="", help="scenarios whose names contain this")
    parser.add_argument("--page", type=Path, help="page whose table is replaced; needs all scenarios")
    options = parser.parse_args()
    if options.page and options.only:
        parser.error("--page needs all scenarios; leave --only away")
    print(HEADING)
    rows = []
    for scenario in scenarios():
        if options.only in scenario.name:
            result = coverage(scenario, options.evaluations)
            note = f" ({result.without:.1%} without an interval)" if result.without else ""
            mark = "" if scenario.promised else r" \*"
            rows.append(f"| {scenario.name}{mark}{note} | {result.ours:.1%} | {result.naive:.1%} |")
            print(rows[-1], flush=True)
    if options.page:
        replace_table(options.page, rows)


if __name__ == "__main__":
    main()
