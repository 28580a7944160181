"""Comparisons of results as terminal output and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from aigo_bridge.cli.tables import print_cells
from aigo_bridge.cli.terminal import name_of, note, one_line, printable, short_path
from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.hooks import load_hook
from aigo_bridge.results.log_files import open_for_replacing
from aigo_bridge.results.sources import ResultSource, names_several, one_result
from aigo_bridge.text.numbers import ABSENT, Scale, shown_change, shown_number
from aigo_bridge.text.plurals import plural
from aigo_stats.comparison.as_json import comparison_json
from aigo_stats.comparison.comparing import Comparison, Flips, MetricComparison
from aigo_stats.comparison.flipped_samples import flipped_samples
from aigo_stats.comparison.ranking import Ranking
from aigo_stats.comparison.texts import change_interval_text, flips_text, level_text, metric_notes, p_text
from aigo_stats.statistics.intervals import Interval, NoInterval
from aigo_stats.statistics.paired_differences import PairedDifference
from aigo_stats.terminal.statistics import chosen, console

if TYPE_CHECKING:
    from rich.console import Console

_MAX_DIVERGENCES = 20


def result_sets(locations: Sequence[Path]) -> list[tuple[ResultSource, ...]]:
    """Return the results to compare with each other: the given results, or results with the same name in
    folders and run files.

    Raises:
        UsageError: folders and files are mixed, or the folders do not share a result name.
    """
    folders = [names_several(location) for location in locations]
    if not any(folders):
        if len(set(locations)) < len(locations):
            raise UsageError(
                "a result is named twice; name different results", code=Code.INCOMPARABLE_RESULTS
            )
        return [tuple(map(one_result, locations))]
    if not all(folders):
        raise UsageError(
            "found both single results and folders, expected one kind; name one result of a run file as"
            " run.yaml#KEY",
            code=Code.INCOMPARABLE_RESULTS,
        )
    sets = [{source.key: source for source in chosen([location])} for location in locations]
    common = sorted(set.intersection(*map(set, sets)))
    if not common:
        names = ", ".join(sorted(set.union(*map(set, sets)))[:5]) or "none"
        raise UsageError(
            f"no result has the same name in all folders (found: {names}); name the files one by one",
            code=Code.INCOMPARABLE_RESULTS,
        )
    for location, results in zip(locations, sets, strict=True):
        if alone := sorted(results.keys() - set(common)):
            note(
                f"note: {short_path(location)}: not compared, because not in all folders: {', '.join(alone)}"
            )
    return [tuple(results[name] for results in sets) for name in common]


LEVEL = 0.95
"""Default confidence level of intervals."""
FLIPS = 10
"""Default number of changed samples to list."""


@dataclass(frozen=True)
class ComparisonPage:
    """Hook `comparison page`."""

    render: Callable[[Sequence[Comparison], Sequence[Ranking], int], bytes]
    """Called with comparisons, rankings and the number of changed samples to list."""


@dataclass(frozen=True)
class ComparedResults:
    """Compared results. All are compared with the first. Three or more are also compared with each other and
    ranked.
    """

    comparisons: list[Comparison]
    """Comparisons with p-values corrected over all of them."""
    rankings: list[Ranking]

    def show(self, flips: int = FLIPS) -> None:
        """Print the comparison."""
        for comparison in self.comparisons:
            show_comparison(comparison, flips)
        show_rankings(self.rankings)

    def to_json(self, level: float = LEVEL, flips: int = FLIPS) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
        return {
            "level": level,
            "comparisons": [comparison_json(comparison, flips) for comparison in self.comparisons],
            "rankings": [ranking.to_json() for ranking in self.rankings],
        }


def compare_results(
    locations: Sequence[Path],
    *,
    cluster: str | None = None,
    by: str | None = None,
    by_id: bool = False,
    level: float = LEVEL,
) -> ComparedResults:
    """Compare results.

    Args:
        locations: result logs, or folders or run files with several results. The first one is the baseline.
        cluster: column whose values define clusters of samples.
        by: column for a breakdown of the differences.
        by_id: whether to pair samples by ID only.
        level: confidence level of the intervals.

    Raises:
        BridgeError: the results cannot be read or compared.
    """
    from aigo_stats.comparison.comparing import adjusted_together, compare
    from aigo_stats.comparison.ranking import rankings
    from aigo_stats.terminal.statistics import read_result

    names = [column for column in (cluster, by) if column]
    comparisons: list[Comparison] = []
    ranks: list[Ranking] = []
    several = len(locations) > 2  # one and another
    for sources in result_sets(locations):
        columns = {source.label: read_result(source, names) for source in sources}
        first = sources[0].label
        pairs = list(combinations(columns, 2)) if several else [(first, sources[1].label)]
        by_pair = {
            pair: compare(
                columns[pair[0]], columns[pair[1]], by_id=by_id, cluster=cluster, by=by, level=level
            )
            for pair in pairs
        }
        comparisons += [by_pair[pair] for pair in pairs if pair[0] == first]
        if several:
            ranks += rankings(list(columns), by_pair)
    return ComparedResults(adjusted_together(comparisons), ranks)


def refuse_other_reports(path: Path) -> None:
    """Check that a comparison can be written to a file with this extension.

    Raises:
        UsageError: the file extension is neither JSON nor HTML.
    """
    if path.suffix not in (".json", ".html"):
        raise UsageError(
            f"--report: found {str(path)!r}, expected a name that ends in .json or .html",
            code=Code.WRONG_OPTION,
        )


def write_comparison(path: Path, compared: ComparedResults, content: dict[str, Any], num_flips: int) -> None:
    """Write the comparison as a page or as JSON, depending on the file extension."""
    if path.suffix == ".html":
        page = load_hook("comparison page", ComparisonPage)
        data = page.render(compared.comparisons, compared.rankings, num_flips)
    else:
        data = orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_for_replacing(path) as file:
        file.write(data)


def show_comparison(comparison: Comparison, num_flips: int) -> None:
    """Print a comparison on standard output."""
    from rich.text import Text

    screen = console()
    screen.print(Text(f"\n{name_of(comparison.base.frame.specification.display_name)}", style="bold"))
    sides = {"base": comparison.base, "new": comparison.new}
    for side, columns in sides.items():
        counted = "" if columns.counts.is_plain else f": {columns.counts.text()}"
        screen.print(f"{side:5} {short_path(columns.label)}{counted}", markup=False)
    _show_divergences(comparison, screen)
    _show_pairing(comparison, screen)
    _show_metrics(comparison.metrics, screen, comparison.level)
    for name, difference in comparison.usage:
        unit = "tokens" if name == "total_tokens" else "seconds"
        text = f"{unit} per sample: {shown_change(difference.value)}"
        if isinstance(difference.estimate, Interval):
            text = f"{text} ({change_interval_text(difference.estimate)})"
        screen.print(text, markup=False)
    for metric in comparison.metrics:
        if metric.flips is not None:
            _show_flips(comparison, metric, metric.flips, num_flips, screen)


def _show_divergences(comparison: Comparison, screen: Console) -> None:
    from rich.text import Text

    if not comparison.divergences:
        screen.print(
            "no other differences: task, prompt, scorers, config, model, engine and version are the same"
        )
        return
    screen.print(Text("what else differs", style="bold"))
    for divergence in comparison.divergences[:_MAX_DIVERGENCES]:
        text = f"  {divergence.kind}: {divergence.place}: {divergence.base} → {divergence.new}"
        screen.print(Text(printable(text), style="yellow"))
    more = len(comparison.divergences) - _MAX_DIVERGENCES
    if more > 0:
        screen.print(Text(f"  … and {more} more; --json has all", style="dim"))


def _show_pairing(comparison: Comparison, screen: Console) -> None:
    from rich.text import Text

    pairing = comparison.pairing
    renumbered = (
        f", {pairing.num_renumbered} of them by their rows (other ids)" if pairing.num_renumbered else ""
    )
    screen.print(f"{plural(len(pairing.base), 'sample is', 'samples are')} in both{renumbered}")
    for lost in pairing.lost:
        examples = ", ".join(map(str, lost.examples)) + (", …" if lost.count > len(lost.examples) else "")
        screen.print(Text(f"  {lost.count} {lost.reason}: {name_of(examples)}", style="yellow"))
    if pairing.num_changed:
        samples = "sample has" if pairing.num_changed == 1 else "samples have"
        hint = f"  {pairing.num_changed} {samples} the same id and another row; --by-id pairs them by id"
        screen.print(Text(hint, style="yellow"))


def _show_metrics(metrics: Sequence[MetricComparison], screen: Console, level: float) -> None:
    from rich.text import Text

    rows: list[tuple[str, ...]] = []
    for metric in metrics:
        cells = _cells(metric.values, metric.difference, metric.adjusted_p, metric.scale)
        rows.append((name_of(metric.label), *cells))
        for (value, part), numbers in zip(metric.parts, metric.part_values, strict=True):
            rows.append((f"  {name_of(str(value))}", *_cells(numbers, part, None, metric.scale)))
    interval = f"{level_text(level)} interval"
    names = ("metric", "base", "new", "difference", interval, "p", "p (Holm)", "effect", "pairs")
    print_cells(screen, names, ((row, None) for row in rows), slice(1, None))
    for metric in metrics:
        for reason in metric_notes(metric):
            screen.print(Text(f"  {name_of(metric.label)}: {reason}", style="yellow"))


def _cells(
    values: tuple[float | None, float | None],
    difference: PairedDifference | NoInterval,
    adjusted: float | None,
    scale: Scale,
) -> Iterator[str]:
    yield from (shown_number(value, scale) for value in values)
    if isinstance(difference, NoInterval):
        yield from (ABSENT,) * 6
        return
    yield shown_change(difference.value, scale)
    yield change_interval_text(difference.estimate, scale)
    yield p_text(difference.p_value)
    yield p_text(adjusted)
    yield shown_number(difference.effect)
    yield shown_number(difference.num_pairs)


def _show_flips(
    comparison: Comparison, metric: MetricComparison, flips: Flips, count: int, screen: Console
) -> None:
    from rich.text import Text

    screen.print(Text(f"{name_of(metric.label)}: {flips_text(flips)}", style="bold"))
    for sample in flipped_samples(comparison, flips, count):
        arrow = "wrong → right" if sample.is_gain else "right → wrong"
        screen.print(f"  {arrow}: sample {name_of(str(sample.base_id))}", markup=False)
        for side, answer in (("base", sample.base_answer), ("new", sample.new_answer)):
            screen.print(
                f"    {side:5}{'no answer to show' if answer is None else one_line(answer, 100)}",
                markup=False,
            )
    more = len(flips.lost) + len(flips.gained) - count
    if more > 0:
        screen.print(Text(f"  … and {more} more; --flips lists more", style="dim"))


def show_rankings(rankings: Sequence[Ranking]) -> None:
    """Print the matrix of several results: value, possible ranks, and the difference to each other result."""
    from rich.text import Text

    screen = console()
    for ranking in rankings:
        screen.print(Text(f"\n{name_of(ranking.label)}: ranks; 1 is the highest value", style="bold"))
        if ranking.reason is not None:
            screen.print(Text(f"  not ranked: {name_of(ranking.reason)}", style="yellow"))
            continue
        names = sorted(ranking.values, key=lambda name: -(ranking.values[name] or 0.0))
        letters = [chr(ord("A") + place % 26) for place in range(len(names))]
        rows = []
        for letter, name in zip(letters, names, strict=True):
            low, high = ranking.ranks[name]
            rank = str(low) if low == high else f"{low}–{high}"
            cells = [_cell(ranking, base, name) for base in names]
            value = shown_number(ranking.values[name], ranking.scale)
            rows.append((letter, short_path(name), value, rank, *cells))
        headers = ("", "result", "value", "rank", *letters)
        print_cells(screen, headers, ((row, None) for row in rows), slice(2, None))


def _cell(ranking: Ranking, base: str, new: str) -> str:
    """Return how far a result is above another, e.g. `+5 pp*`; the star marks a significant difference."""
    sign = 1 if (base, new) in ranking.cells else -1
    cell = ranking.cells.get((base, new) if sign == 1 else (new, base))
    if cell is None or isinstance(cell.difference, NoInterval):
        return ""
    sure = "*" if cell.adjusted_p is not None and cell.adjusted_p <= 0.05 else ""
    return f"{shown_change(sign * cell.difference.value, cell.scale)}{sure}"
