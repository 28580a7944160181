"""Comparisons of the results on a page: metrics with paired intervals, and the pairs of samples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from aigo_bridge.errors import BridgeError
from aigo_bridge.results.sources import ResultSource
from aigo_bridge.results.superseded_results import STATUS
from aigo_bridge.results.values import Json
from aigo_stats.comparison.as_json import comparison_json
from aigo_stats.comparison.columns import ResultColumns, read_columns
from aigo_stats.comparison.comparing import Comparison, compare
from aigo_stats.statistics.quantiles import MissingScipyError, special_functions

if TYPE_CHECKING:
    from aigo_stats.comparison.comparing import Flips
    from aigo_stats.comparison.pairing import Pairing

MOST_COMPARISONS = 60
"""Maximum number of comparisons on a page. Comparisons with the first result of a task come first."""


def comparison_content(comparison: Comparison) -> Json:
    """Return a comparison as a page shows it, without the names of its results."""
    content = comparison_json(comparison, 0)
    content["pairing"] = np.stack([comparison.pairing.base, comparison.pairing.new], axis=1).tolist()
    for row, metric in zip(content["metrics"], comparison.metrics, strict=True):
        row["scale"] = metric.scale
        row["verdicts"] = _verdicts(metric.flips, comparison.pairing)
    del content["base"], content["new"]
    return content


def _verdicts(flips: Flips | None, pairing: Pairing) -> str | None:
    """Return a letter for each pair: `l` lost, `g` gained, `r` both right, `w` both wrong, `-` not scored."""
    if flips is None:
        return None
    letters = ["-"] * len(pairing.base)
    places = {position: place for place, position in enumerate(pairing.base.tolist())}
    for letter, pairs in (("l", flips.lost), ("g", flips.gained), ("r", flips.right), ("w", flips.wrong)):
        for position, _ in pairs.tolist():
            letters[places[position]] = letter
    return "".join(letters)


def page_comparisons(
    sources: Sequence[ResultSource], results: Sequence[Json]
) -> Iterator[tuple[int, int, Json]]:
    """Yield the comparisons of results of the same task, with the positions of both results.

    Nothing is compared if scipy is not installed.

    Args:
        sources: results.
        results: output of `read_result` for each result.
    """
    tasks = defaultdict(list)
    for number, result in enumerate(results):
        if result.get("counts") and result["status"] != STATUS:
            tasks[result["task"]].append(number)
    pairs = sorted(pair for numbers in tasks.values() for pair in combinations(numbers, 2))
    try:
        special_functions()
    except MissingScipyError:
        return
    columns: dict[int, ResultColumns] = {}
    for base, new in pairs[:MOST_COMPARISONS]:
        try:
            for number in (base, new):
                path = sources[number].path
                if number not in columns and path is not None:
                    columns[number] = read_columns(path)
            content: Json = comparison_content(compare(columns[base], columns[new]))
        except BridgeError:
            continue  # the page shows the results without this comparison
        sides: dict[str, Any] = {
            label: {
                "position": number,
                **{name: results[number][name] for name in ("name", "title", "model")},
            }
            for label, number in (("base", base), ("new", new))
        }
        yield base, new, {**content, **sides}
