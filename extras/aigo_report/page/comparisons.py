"""Comparison page: the content of `aigo-bridge compare`, readable without JavaScript and printable."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from html import escape
from itertools import combinations
from typing import Any

from aigo_bridge.text.numbers import ABSENT, Scale, shown_change, shown_number
from aigo_bridge.text.plurals import plural
from aigo_bridge.version import __version__
from aigo_report.page.markup import NOTHING, Html, element, joined, note, table, text
from aigo_report.page.pages import STYLE, asset
from aigo_stats.comparison.columns import ResultColumns
from aigo_stats.comparison.comparing import Comparison, Flips, MetricComparison
from aigo_stats.comparison.flipped_samples import FlippedSample, flipped_samples
from aigo_stats.comparison.ranking import ALPHA, Ranking
from aigo_stats.comparison.texts import (
    change_interval_text,
    flips_text,
    level_text,
    metric_notes,
    p_text,
)
from aigo_stats.statistics.intervals import Interval, NoInterval
from aigo_stats.statistics.paired_differences import PairedDifference
from aigo_stats.terminal.comparisons import ComparisonPage

MOST_DIVERGENCES = 500
"""Maximum number of differing fields to list on a page."""
FLIPS_OF_PAGE = 1_000
"""Minimum limit of changed samples to list for each metric."""
MOST_CHARACTERS = 2_000
"""Maximum number of characters of an answer."""

_UNITS = {"total_tokens": "tokens per sample", "total_time": "seconds per sample"}


def comparison_page(comparisons: Sequence[Comparison], rankings: Sequence[Ranking], num_flips: int) -> bytes:
    """Return a page without scripts or external files. The arguments are the same as in
    `comparison_fragment`.
    """
    style = asset(STYLE)
    digest = base64.b64encode(hashlib.sha256(style).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    content = comparison_fragment(comparisons, rankings, num_flips=max(num_flips, FLIPS_OF_PAGE))
    return b"".join(
        (
            _HEAD.replace("{policy}", policy).encode(),
            b"<style>" + style + b"</style>\n</head>\n<body>\n<header><h1>Comparison</h1></header>\n<main>\n",
            content.encode(),
            b"</main>\n<footer><p>Written by aigo-bridge " + __version__.encode(),
            b". The page loads nothing from anywhere.</p></footer>\n</body>\n</html>\n",
        )
    )


_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>Comparison</title>
"""


def comparison_fragment(
    comparisons: Sequence[Comparison], rankings: Sequence[Ranking], *, num_flips: int
) -> Html:
    """Return the content between the header and the footer of a page, without a style or script.

    The elements use the CSS classes of the page style.

    Args:
        comparisons: comparisons, one section each. Their p-values are already adjusted together.
        rankings: rankings of several results.
        num_flips: maximum number of changed samples to list for each metric.

    Raises:
        EvidenceError: a result has changed since it was compared.
    """
    sections = [element("section", *_section(one, num_flips), kind="result") for one in comparisons]
    if rankings:
        ranks = joined(part for ranking in rankings for part in _ranking(ranking))
        sections.append(element("section", ranks, kind="result"))
    return joined([*sections, _explanations(comparisons)])


def _section(comparison: Comparison, num_flips: int) -> Iterator[Html]:
    """Yield one comparison. Other differences between the runs come before the metrics."""
    title = comparison.base.frame.specification.display_name
    yield element("h2", Html("<small>task</small> "), text(title))
    yield _results(comparison)
    yield _divergences(comparison)
    yield _pairs(comparison)
    yield _metrics(comparison)
    for metric in comparison.metrics:
        if metric.parts:
            yield _parts(metric, comparison)
    if comparison.usage:
        yield _usage(comparison)
    for metric in comparison.metrics:
        if metric.flips is not None:
            yield from _flips(comparison, metric, metric.flips, num_flips)


def _results(comparison: Comparison) -> Html:
    columns = ("", "file", "evaluated", "#samples", "#trials")
    sides = (("base", comparison.base), ("new", comparison.new))
    shown = table("Results", columns, ((text(name), *_result(result)) for name, result in sides))
    counts = (note(f"{name}: {result.counts.text()}") for name, result in sides if not result.counts.is_plain)
    return joined((shown, *counts))


def _result(result: ResultColumns) -> Iterator[Html]:
    entity = result.specification.get("evaluated_entity")
    name = entity.get("display_name") if isinstance(entity, dict) else None
    yield text(result.label)
    yield text(ABSENT if name is None else name)
    yield text(len(result))
    yield text(result.num_trials)


def _divergences(comparison: Comparison) -> Html:
    differing = comparison.divergences
    if not differing:
        return note(
            "Nothing else differs: task, prompt, scorers, config, model, engine and version are the same."
        )
    rows = (
        tuple(map(text, (one.place, one.kind, one.base, one.new))) for one in differing[:MOST_DIVERGENCES]
    )
    shown = table("What else differs", ("field", "about", "base", "new"), rows)
    more = len(differing) - MOST_DIVERGENCES
    return joined(
        (
            shown,
            note(f"{more} more differences; the JSON comparison contains all of them.")
            if more > 0
            else NOTHING,
        )
    )


def _pairs(comparison: Comparison) -> Html:
    pairing = comparison.pairing
    renumbered = (
        f", {pairing.num_renumbered} of them found by their rows, under other ids"
        if pairing.num_renumbered
        else ""
    )
    counted = note(f"{plural(len(pairing.base), 'sample is', 'samples are')} in both{renumbered}.")
    if not pairing.lost:
        return counted
    rows = (
        (
            text(lost.reason),
            text(lost.count),
            text(", ".join(map(str, lost.examples)) + (", …" if lost.count > len(lost.examples) else "")),
        )
        for lost in pairing.lost
    )
    lost = table("Samples without a partner", ("reason", "#samples", "ids"), rows)
    hint = note(f"{pairing.num_changed} have the same id but another row; --by-id pairs them by id.")
    return joined((counted, lost, hint if pairing.num_changed else NOTHING))


def _metrics(comparison: Comparison) -> Html:
    columns = ("metric", "#base", "#new", *_difference_columns(comparison), "#p (Holm)")
    rows = (
        (
            _metric_name(metric),
            *(_number(value, metric.scale) for value in metric.values),
            *_difference(metric.difference, metric.scale),
            text(p_text(metric.adjusted_p)),
        )
        for metric in comparison.metrics
    )
    return table("Numbers", columns, rows, kind="metrics")


def _metric_name(metric: MetricComparison) -> Html:
    """Return the name of a metric with its scorer and remarks."""
    notes = list(metric_notes(metric))
    if metric.paired_values is not None and metric.paired_values != metric.values:
        notes.append(
            f"on the pairs: {' → '.join(shown_number(value, metric.scale) for value in metric.paired_values)}"
        )
    scorer = NOTHING if metric.scorer is None else element("small", Html(" "), text(metric.scorer))
    return joined((text(metric.label), scorer, *(element("div", text(note), kind="note") for note in notes)))


def _difference_columns(comparison: Comparison) -> tuple[str, ...]:
    return ("#difference", f"#{level_text(comparison.level)} interval", "", "#pairs", "#effect", "test", "#p")


def _number(value: float | None, scale: Scale) -> Html:
    """Return a number, in percent if its declared scale is 0 to 1, with all digits on hover."""
    if value is None or scale != (0, 1):
        return text(shown_number(value))
    return Html(f'<span title="{escape(repr(value))}">{_unbroken(shown_number(value, scale))}</span>')


def _unbroken(shown: str) -> str:
    return shown.replace(" ", "\u00a0")


def _difference(difference: PairedDifference | NoInterval, scale: Scale = None) -> tuple[Html, ...]:
    """Return the cells of a difference, one for each column."""
    if isinstance(difference, NoInterval):
        return (text(ABSENT), text(ABSENT), NOTHING, text(ABSENT), text(ABSENT), NOTHING, text(ABSENT))
    name = difference.effect_name
    estimate = difference.estimate
    return (
        text(_unbroken(shown_change(difference.value, scale))),
        text(change_interval_text(estimate, scale).replace(" pp", "\u00a0pp")),
        _drawn(difference),
        text(difference.num_pairs),
        joined(
            (
                text(shown_number(difference.effect)),
                element("div", element("small", text(name))) if name else NOTHING,
            )
        ),
        text(difference.test or ABSENT),
        text(p_text(difference.p_value)),
    )


def _drawn(difference: PairedDifference) -> Html:
    """Return a line that shows the interval around the difference. The middle marks no difference.

    The numbers are displayed next to the line.
    """
    estimate = difference.estimate
    if not isinstance(estimate, Interval):
        return NOTHING
    reach = max(abs(estimate.low), abs(estimate.high), abs(difference.value))
    if not reach:
        return NOTHING
    low, value, high = (
        f"{60 + 56 * end / reach:.1f}" for end in (estimate.low, difference.value, estimate.high)
    )
    return Html(
        '<svg width="120" height="16" viewBox="0 0 120 16" aria-hidden="true" stroke="currentColor">'
        '<line x1="60" y1="0" x2="60" y2="16" stroke-dasharray="2 2" stroke-opacity="0.6"/>'
        f'<line x1="{low}" y1="8" x2="{high}" y2="8" stroke-width="2"/>'
        f'<circle cx="{value}" cy="8" r="3.5" fill="currentColor"/></svg>'
    )


def _parts(metric: MetricComparison, comparison: Comparison) -> Html:
    rows = (
        (
            text(value),
            *(_number(number, metric.scale) for number in numbers),
            *_difference(part, metric.scale),
        )
        for (value, part), numbers in zip(metric.parts, metric.part_values, strict=True)
    )
    caption = f"{metric.label} for each value of {comparison.by}"
    return table(caption, ("value", "#base", "#new", *_difference_columns(comparison)), rows)


def _usage(comparison: Comparison) -> Html:
    rows = ((text(_UNITS.get(name, name)), *_difference(difference)) for name, difference in comparison.usage)
    return table("Cost", ("", *_difference_columns(comparison)), rows)


def _flips(comparison: Comparison, metric: MetricComparison, flips: Flips, count: int) -> Iterator[Html]:
    yield element("h3", text(f"{metric.label}: samples that changed"))
    yield note(f"{flips_text(flips)}.")
    samples = flipped_samples(comparison, flips, count)
    if samples:
        yield table(
            f"{metric.label}: answers that changed",
            ("sample", "change", "answer in base", "answer in new"),
            map(_flipped, samples),
        )
    more = len(flips.lost) + len(flips.gained) - len(samples)
    if more:
        yield note(f"{more} more; --flips N lists more.")


def _flipped(sample: FlippedSample) -> tuple[Html, ...]:
    ids = [str(sample.base_id)]
    if sample.new_id != sample.base_id:
        ids.append(str(sample.new_id))
    change = ("wrong → right", "good") if sample.is_gain else ("right → wrong", "bad")
    return (
        text(" → ".join(ids)),
        element("span", text(change[0]), kind=f"status {change[1]}"),
        _answer(sample.base_answer),
        _answer(sample.new_answer),
    )


def _answer(answer: str | None) -> Html:
    if answer is None:
        return element("small", text("no answer to show"))
    return element("div", text(answer, MOST_CHARACTERS), kind="long")


def _ranking(ranking: Ranking) -> Iterator[Html]:
    """Yield the values, the ranks, the difference to each other result, and all pairs with their
    intervals.
    """
    yield element("h2", Html("<small>ranks</small> "), text(ranking.label))
    if ranking.reason is not None:
        yield note(f"Not ranked: {ranking.reason}.")
        return
    names = sorted(ranking.values, key=lambda name: -(ranking.values[name] or 0.0))
    letters = {name: _letter(number) for number, name in enumerate(names)}
    rows = (
        (
            joined((element("b", text(letters[name])), Html(" "), text(name))),
            text(shown_number(ranking.values[name], ranking.scale)),
            text(_rank(*ranking.ranks[name])),
            *(text(_cell(ranking, column, name)) for column in names),
        )
        for name in names
    )
    columns = ("result", "#value", "#rank", *(f"#over {letters[name]}" for name in names))
    yield table(f"{ranking.label}: ranks; 1 is the highest value", columns, rows)
    pairs = [pair if pair in ranking.cells else pair[::-1] for pair in combinations(names, 2)]
    yield table(
        f"{ranking.label}: every pair",
        ("pair", "#difference", "#interval", "", "#pairs", "#p", "#p (Holm, all pairs)"),
        (_pair(letters, pair, ranking.cells[pair]) for pair in pairs),
    )


def _letter(number: int) -> str:
    """Return a column letter: A, B, …, Z, AA, AB, …"""
    return (_letter(number // 26 - 1) if number >= 26 else "") + chr(ord("A") + number % 26)


def _rank(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}–{high}"


def _cell(ranking: Ranking, base: str, new: str) -> str:
    sign = 1 if (base, new) in ranking.cells else -1
    cell = ranking.cells.get((base, new) if sign == 1 else (new, base))
    if cell is None or isinstance(cell.difference, NoInterval):
        return ""
    sure = "*" if cell.adjusted_p is not None and cell.adjusted_p <= ALPHA else ""
    return f"{shown_change(sign * cell.difference.value, cell.scale)}{sure}"


def _pair(letters: dict[str, str], pair: tuple[str, str], cell: MetricComparison) -> tuple[Html, ...]:
    *shown, _, _, p_value = _difference(cell.difference, cell.scale)
    return (
        text(f"{letters[pair[1]]} over {letters[pair[0]]}"),
        *shown,
        p_value,
        text(p_text(cell.adjusted_p)),
    )


def _explanations(comparisons: Sequence[Comparison]) -> Html:
    """Return an explanation of each column as a question."""
    level = level_text(comparisons[0].level) if comparisons else level_text(0.95)
    return element(
        "section",
        element("h2", text("Meaning of the columns")),
        *(
            element("p", element("b", text(name)), Html(" "), text(meaning))
            for name, meaning in _columns(level)
        ),
        kind="result",
    )


def _columns(level: str) -> tuple[tuple[str, Any], ...]:
    return (
        ("difference", "New minus base, on the samples that both results have for this metric."),
        (
            f"{level} interval",
            (
                "Confidence intervals of the differences: the uncertainty from the choice of "
                "samples. The dashed line marks no difference. Each row has its own scale."
            ),
        ),
        ("p", "Probability of such a difference if the results are equal."),
        (
            "p (Holm)",
            "The same probability, corrected for all metrics compared together, without breakdowns.",
        ),
        (
            "effect",
            (
                "Right and wrong: the odds ratio of gains to losses. Scores: Cohen's d of paired samples. "
                f"{ABSENT}: not known."
            ),
        ),
        (
            "rank",
            "Range of possible ranks with joint 95 % confidence. A star: the corrected p is at most 0.05.",
        ),
    )


COMPARISON_PAGE = ComparisonPage(comparison_page)
