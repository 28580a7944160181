"""`aigo-bridge stats`: prints the metrics of results with intervals and sample counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aigo_bridge.cli.options import VERB, verb_command
from aigo_bridge.cli.result_arguments import RESULTS_HELP
from aigo_bridge.cli.tables import print_metrics
from aigo_bridge.cli.terminal import name_of, print_json, printable

if TYPE_CHECKING:
    from aigo_stats.comparison.columns import ResultColumns
    from aigo_stats.comparison.estimates import MetricEstimate, MissingNumber

app = typer.Typer(**VERB)

ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="COLUMN",
        help="Dataset column that groups related samples, e.g. document_id. Samples with "
        "the same value count as one cluster.",
    ),
]
LevelOption = Annotated[
    float,
    typer.Option(
        "--level", min=0.5, max=0.999, metavar="0.x", help="Confidence level of the intervals, e.g. 0.9."
    ),
]


@app.command(
    "stats",
    cls=verb_command(
        "aigo-bridge stats out/capitals.tasklog.json",
        "aigo-bridge stats out --labels human_label",
        "aigo-bridge stats out --repeatability",
        exit_codes={"0": "the metrics were shown, with or without intervals", "2": "wrong arguments"},
    ),
)
def stats(
    results: Annotated[list[Path], typer.Argument(metavar="RESULT…", help=RESULTS_HELP)],
    cluster: ClusterOption = None,
    level: LevelOption = 0.95,
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            metavar="COLUMN",
            help="Dataset column with human labels of some samples. Shows the agreement with "
            "each score, and a mean corrected by the labels.",
        ),
    ] = None,
    repeatability: Annotated[
        bool,
        typer.Option(
            "--repeatability",
            help="Treat the results, runs and trials as repetitions of one task. Shows the "
            "sources of variance and the samples with unstable scores.",
        ),
    ] = False,
    flaky: Annotated[
        int,
        typer.Option("--flaky", min=0, metavar="N", help="Number of samples with unstable scores to list."),
    ] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Show each metric with its standard error, confidence interval and sample counts.

    Intervals express the uncertainty from the choice of samples. If a metric has no interval, the output says
    why.
    """
    from aigo_stats.comparison.estimates import estimates, missing_numbers
    from aigo_stats.terminal.statistics import chosen, read_result

    if repeatability:
        _repeatability(results, flaky, as_json=as_json)
        return
    summaries: list[dict[str, Any]] = []
    for source in chosen(results):
        columns = read_result(source, [name for name in (cluster, labels) if name])
        metrics = estimates(columns, cluster=cluster, level=level)
        missing = missing_numbers(columns)
        summaries.append(
            {
                "result": source.label,
                "level": level,
                "errors": columns.errors,
                "samples": columns.counts.to_json(),
                "metrics": [metric.to_json() for metric in metrics],
                "without_value": [metric.to_json() for metric in missing],
            }
        )
        if not as_json:
            _show(columns, metrics, missing, level)
        if labels is not None:
            judges = _judges(columns, labels, cluster, level, as_json=as_json)
            summaries[-1]["judges"] = judges
    if as_json:
        print_json(summaries)


def _judges(
    columns: ResultColumns, labels: str, cluster: str | None, level: float, *, as_json: bool
) -> list[dict[str, Any]]:
    """Print the comparison of every score with human labels, and return it as plain data."""
    from aigo_stats.comparison.judges import judge_quality
    from aigo_stats.terminal.judges import show_judges

    qualities = judge_quality(columns, labels, cluster=cluster, level=level)
    if not as_json:
        show_judges(qualities, labels, level)
    return [quality.to_json() for quality in qualities]


def _repeatability(results: list[Path], flaky: int, *, as_json: bool) -> None:
    """Print the repeatability of results that are repetitions of one task."""
    from aigo_stats.comparison.repetitions import repeatability
    from aigo_stats.terminal.judges import show_repetitions
    from aigo_stats.terminal.statistics import chosen

    sources = chosen(results)
    numbers, num_odd = repeatability([source.path for source in sources if source.path is not None])
    if as_json:
        scores = [number.to_json(flaky) for number in numbers]
        print_json({"results": [source.label for source in sources], "left_out": num_odd, "scores": scores})
        return
    show_repetitions(numbers, num_odd, flaky)


def _show(
    columns: ResultColumns, metrics: list[MetricEstimate], missing: list[MissingNumber], level: float
) -> None:
    from rich.text import Text

    from aigo_stats.comparison.texts import level_text
    from aigo_stats.terminal.statistics import console, heading, metric_line

    screen = console()
    heading(screen, columns)
    print_metrics(screen, list(map(metric_line, metrics)), level_text(level))
    for metric in metrics:
        for note in _notes(metric):
            screen.print(Text(f"  {name_of(metric.label)}: {printable(note)}", style="yellow"))
    for number in missing:
        text = f"  {name_of(number.metric)}: no value: {printable(number.reason)}"
        screen.print(Text(text, style="yellow"))


def _notes(metric: MetricEstimate) -> Iterator[str]:
    """Yield the reason for a missing interval, and the samples that are not included in the metric."""
    from aigo_stats.comparison.texts import bounds_text, missing_trials_text
    from aigo_stats.statistics.intervals import NoInterval

    if isinstance(metric.estimate, NoInterval):
        yield f"no interval: {metric.estimate.reason}"
    counts = metric.denominator
    if counts is None:
        return
    reasons = (
        (counts.failed, "failed"),
        (counts.unfinished, "not finished"),
        (counts.excluded, "excluded by a rule"),
        (counts.no_aggregate, "without an aggregate over their trials"),
        (counts.no_value, "without a value"),
    )
    absent = ", ".join(f"{number:,} {reason}" for number, reason in reasons if number)
    if absent:
        yield f"not in the metric: {absent}"
    if counts.missing_trials:
        yield missing_trials_text(counts)
    if (text := bounds_text(metric)) is not None:
        yield text
