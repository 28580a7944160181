"""Comparison page: content of the comparison, and no execution of texts in results."""

from __future__ import annotations

import re
from html import unescape
from itertools import combinations
from pathlib import Path

import pytest
from tests.extras.stats.comparison.logs import MEAN, log, sample
from tests.support.hostile_texts import HOSTILE

from aigo_bridge.text.plurals import plural
from aigo_report.page.comparisons import comparison_fragment, comparison_page
from aigo_stats.comparison.columns import ResultColumns, read_columns
from aigo_stats.comparison.comparing import adjusted_together, compare
from aigo_stats.comparison.ranking import rankings
from aigo_stats.comparison.texts import change_interval_text
from aigo_stats.statistics.paired_differences import tango

SCORE = {"type": "mean", "field": "score", "name": "score", "key": "score"}
LARGEST = {"type": "max", "field": "score", "name": "largest", "key": "largest"}


def result(path: Path, right: int, *, count: int = 40, answer: str = "answer") -> ResultColumns:
    """Write a result whose first samples are right."""
    rows = [{"question": f"q{number}", "topic": "ab"[number % 2]} for number in range(count)]
    samples = [
        sample(
            number,
            {"right": float(number < right), "score": number * right / 100},
            row,
            answer=f"{answer} {number}",
        )
        for number, row in enumerate(rows)
    ]
    mean = sum(number * right / 100 for number in range(count)) / count
    metrics = [
        (MEAN, {"accuracy": right / count}),
        (SCORE, {"score": mean}),
        (LARGEST, {"largest": (count - 1) * right / 100}),
    ]
    return read_columns(log(path, samples, metrics), ["topic"])


def words(page: str) -> str:
    """Return the text of a page with normalized whitespace."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def test_comparison_page_lists_all_differences_before_the_metrics(tmp_path: Path) -> None:
    base = result(tmp_path / "a.tasklog.json", 30, answer="old")
    new = result(tmp_path / "b.tasklog.json", 20, count=38, answer="new")
    comparisons = adjusted_together([compare(base, new, by="topic")])

    shown = words(comparison_fragment(comparisons, [], num_flips=3))

    parts = (
        "a.tasklog.json",
        "38 samples are in both.",
        "only in base 2 38, 39",
        "accuracy judge on the pairs: 78.95 % → 52.63 % 75 % 52.63 % -26.32 pp",
        "McNemar, exact 0.0020",
        "largest judge not compared: the max of these samples does not generalize to other samples",
        "accuracy for each value of topic",
        "10 right → wrong, 0 wrong → right; the same verdict in 73.68 % (Cohen's kappa 0.4571).",
        "20 right → wrong old 20 new 20",
        "7 more; --flips N lists more.",
        "Meaning of the columns",
    )
    places = [shown.find(part) for part in parts]
    assert -1 not in places, dict(zip(parts, places, strict=True))
    assert places == sorted(places)


def test_other_differences_are_displayed_before_the_metrics(tmp_path: Path) -> None:
    base = result(tmp_path / "a.tasklog.json", 30)
    samples = [sample(number, {"right": 1.0}) for number in range(40)]
    path = log(tmp_path / "b.tasklog.json", samples, [(MEAN, {"accuracy": 1.0})], app_version="0.0.9")

    shown = words(comparison_fragment([compare(base, read_columns(path))], [], num_flips=0))

    assert "app_version bridge version" in shown
    assert 0 < shown.find("What else differs") < shown.find("Numbers")
    same = words(comparison_fragment([compare(base, base)], [], num_flips=0))
    assert "Nothing else differs" in same
    assert "no pair differs" in same


def test_comparison_page_ranks_several_results(tmp_path: Path) -> None:
    results = {
        name: result(tmp_path / f"{name}.tasklog.json", right)
        for name, right in (("x", 10), ("y", 30), ("z", 31))
    }
    pairs = {pair: compare(results[pair[0]], results[pair[1]]) for pair in combinations(results, 2)}

    shown = words(comparison_fragment([], rankings(list(results), pairs), num_flips=0))

    assert "A z 77.5 % 1–2 +2.5 pp +52.5 pp*" in shown
    assert "C x 25 % 3 -52.5 pp* -50 pp*" in shown
    interval = change_interval_text(tango(21, 0, 40), (0, 1))
    assert f"A over C +52.5 pp {interval} 40 < 0.0001 < 0.0001" in shown
    assert "Not ranked: x and y: the max of these samples does not generalize to other samples." in shown


@pytest.mark.parametrize(
    ("count", "reason"),
    [
        (0, "not compared: the result does not contain samples"),
        (1, "-79.35 to +79.35 pp 1 – odds ratio McNemar, exact 1.0000"),
    ],
)
def test_results_without_samples_have_a_comparison_page(tmp_path: Path, count: int, reason: str) -> None:
    empty = read_columns(
        log(tmp_path / "a.tasklog.json", [sample(0, {"right": 1.0})][:count], [(MEAN, {"accuracy": 1.0})])
    )

    shown = words(comparison_page([compare(empty, empty)], [], 5).decode())

    assert plural(count, "sample is in both.", "samples are in both.") in shown
    assert reason in shown


def test_hostile_texts_are_harmless_in_the_comparison_page(tmp_path: Path) -> None:
    written = [text for text in HOSTILE if text.isascii()]
    rows = [{"question": str(number), "topic": text} for number, text in enumerate(written)]
    paths = [
        log(
            tmp_path / f"{name}.tasklog.json",
            [
                sample(text, {"right": float(right)}, row, answer=text)
                for text, row in zip(written, rows, strict=True)
            ],
            [({**MEAN, "key": HOSTILE[right]}, {HOSTILE[0]: float(right)})],
            app_version=HOSTILE[right],
        )
        for name, right in (("a", 0), ("b", 1))
    ]
    base, new = (read_columns(path, ["topic"]) for path in paths)

    page = comparison_page([compare(base, new)], [], len(written)).decode()

    assert (
        page.count("<script") == page.count("<style") - 1 == page.count("<iframe") == page.count("<img") == 0
    )
    assert "default-src 'none'" in page
    assert "unsafe" not in page[: page.index("<style>")]
    assert "script-src" not in page
