"""`aigo-bridge power`: estimates the samples and trials needed to detect a difference."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aigo_bridge.cli.options import VERB, verb_command
from aigo_bridge.cli.tables import print_cells
from aigo_bridge.cli.terminal import name_of, print_json
from aigo_bridge.codes import Code
from aigo_bridge.text.numbers import ABSENT, shown_number
from aigo_bridge.text.plurals import plural

if TYPE_CHECKING:
    from aigo_stats.statistics.intervals import NoInterval
    from aigo_stats.statistics.planning import Spread

app = typer.Typer(**VERB)

_TRIALS = (1, 2, 3, 5, 10)


@app.command(
    "power",
    cls=verb_command(
        "aigo-bridge power old.tasklog.json new.tasklog.json --difference 0.01",
        "aigo-bridge power --rates 0.80,0.83",
        exit_codes={"0": "the estimate was shown", "2": "wrong arguments"},
    ),
)
def power(
    results: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RESULT [NEW]]",
            help="One past result, or two results of the same task. Omit with --rates.",
        ),
    ] = None,
    rates: Annotated[
        str | None,
        typer.Option(
            "--rates", metavar="BASE,NEW", help="Assumed proportions of correct samples, e.g. 0.80,0.83."
        ),
    ] = None,
    correlation: Annotated[
        float,
        typer.Option(
            "--correlation",
            metavar="R",
            min=-1.0,
            max=1.0,
            help="Correlation between the verdicts of both models on a sample, for --rates.",
        ),
    ] = 0.0,
    difference: Annotated[
        float,
        typer.Option("--difference", "-d", metavar="X", min=1e-9, help="Difference to detect, e.g. 0.02."),
    ] = 0.02,
    samples: Annotated[
        int | None,
        typer.Option("--samples", metavar="N", min=2, help="Number of available samples, for --rates."),
    ] = None,
    chance: Annotated[
        float,
        typer.Option(
            "--power", metavar="P", min=0.05, max=0.999, help="Probability of detecting the difference."
        ),
    ] = 0.8,
    alpha: Annotated[
        float,
        typer.Option(
            "--alpha",
            metavar="P",
            min=0.0001,
            max=0.5,
            help="Probability of detecting a difference that does not exist.",
        ),
    ] = 0.05,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Estimate how many samples and trials you need to detect a difference between two models.

    The output also contains the smallest difference that your samples can detect. Two results provide the
    variance of their difference. With one result, the second model is assumed to be equally good and
    independent.
    """
    from aigo_bridge.errors import UsageError

    if bool(results) == (rates is not None):
        raise UsageError("expected either past results or --rates BASE,NEW", code=Code.MISSING_ARGUMENT)
    spreads = (
        _from_rates(str(rates), correlation, samples) if rates is not None else _from_results(results or [])
    )
    plans = [
        _plan(name, spread, difference, chance, alpha, from_trials) for name, spread, from_trials in spreads
    ]
    if as_json:
        print_json(plans)
        return
    for plan in plans:
        _show(plan, difference, chance, alpha)


_Known = tuple["Spread", int | None]
"""Spread and number of available samples."""

_Spreads = list[tuple[str, "_Known | NoInterval", bool]]
"""Metric name, its spread or the reason why it is unknown, and whether trials show their variance."""


def _from_rates(text: str, correlation: float, samples: int | None) -> _Spreads:
    from aigo_bridge.errors import UsageError
    from aigo_stats.statistics.planning import spread_of_shares
    from aigo_stats.statistics.quantiles import require_scipy

    require_scipy()
    try:
        base, new = (float(part) for part in text.split(","))
    except ValueError as error:
        raise UsageError(
            f"--rates: found {text!r}, expected two shares, e.g. 0.80,0.83", code=Code.WRONG_OPTION
        ) from error
    if not (0 <= base <= 1 and 0 <= new <= 1):
        raise UsageError(f"--rates: found {text!r}, expected shares between 0 and 1", code=Code.WRONG_OPTION)
    try:
        spread = spread_of_shares(base, new, correlation)
    except ValueError as error:
        raise UsageError(
            f"--correlation: with shares of {base:g} and {new:g}: {error}", code=Code.WRONG_OPTION
        ) from error
    if not spread.total(1):
        raise UsageError(
            f"--rates: with {text!r} the difference is the same in every sample;"
            " a plan needs differences that vary",
            code=Code.WRONG_OPTION,
        )
    return [("assumed shares", (spread, samples), False)]


def _from_results(results: list[Path]) -> _Spreads:
    from aigo_bridge.errors import UsageError
    from aigo_bridge.metrics.names import metric_labels
    from aigo_stats.comparison.numbers import identity_of
    from aigo_stats.comparison.spreads import means, spread_of_one, spread_of_two
    from aigo_stats.terminal.statistics import chosen, read_result

    sources = chosen(results)
    if not 0 < len(sources) <= 2:
        raise UsageError(
            f"found {plural(len(sources), 'result')}, expected one, or two of the same task",
            code=Code.INCOMPARABLE_RESULTS,
        )
    read = [read_result(source) for source in sources]
    quantities = means(read[0])
    if not quantities:
        raise UsageError(
            f"{sources[0].label}: no metric is a mean over samples; power is only known for means",
            code=Code.INCOMPARABLE_RESULTS,
        )
    labels = metric_labels([identity_of(mean) for mean in quantities])
    from_trials = all(columns.num_trials > 1 for columns in read)
    if len(read) == 1:
        return [
            (label, spread_of_one(read[0], mean), from_trials)
            for label, mean in zip(labels, quantities, strict=True)
        ]
    return [
        (label, spread_of_two(read[0], read[1], mean.key), from_trials)
        for label, mean in zip(labels, quantities, strict=True)
    ]


def _plan(
    name: str, known: _Known | NoInterval, difference: float, chance: float, alpha: float, from_trials: bool
) -> dict[str, Any]:
    from aigo_bridge.errors import UsageError
    from aigo_stats.statistics.intervals import NoInterval
    from aigo_stats.statistics.planning import power_of, samples_needed, smallest_difference

    if isinstance(known, NoInterval):
        return {"metric": name, "difference": difference, "reason": known.reason, "plan": []}
    spread, count = known
    if spread.is_share and difference > 1:
        raise UsageError(
            f"--difference: found {difference:g}, but {name_of(name)} is a proportion; expected a difference"
            " between 0 and 1, e.g. 0.05",
            code=Code.WRONG_OPTION,
        )
    rows = [
        {
            "trials": trials,
            "samples_needed": samples_needed(difference, spread, trials, alpha, chance),
            "smallest_difference": count and smallest_difference(count, spread, trials, alpha, chance),
            "power": count and power_of(difference, count, spread, trials, alpha),
        }
        for trials in (_TRIALS if from_trials else (1,))
    ]
    return {
        "metric": name,
        "samples": count,
        "difference": difference,
        "variance_between_samples": spread.between,
        "variance_between_trials": spread.within,
        "reason": None,
        "plan": rows,
    }


def _show(plan: dict[str, Any], difference: float, chance: float, alpha: float) -> None:
    from rich.text import Text

    from aigo_stats.terminal.statistics import console

    screen = console()
    if plan["reason"] is not None:
        screen.print(Text(f"\n{name_of(plan['metric'])}", style="bold"))
        screen.print(Text(f"  no plan: {name_of(plan['reason'])}", style="yellow"))
        return
    at_hand = "" if plan["samples"] is None else f", {plural(plan['samples'], 'sample', form=',')} at hand"
    screen.print(Text(f"\n{name_of(plan['metric'])}{at_hand}", style="bold"))
    screen.print(
        f"to find a difference of {difference:g} in {chance:.0%} of comparisons, with p <= {alpha:g}",
        markup=False,
    )
    headers = ("trials", "samples needed", "smallest difference at hand", "found at hand")
    rows = []
    for row in plan["plan"]:
        power = ABSENT if row["power"] is None else f"{row['power']:.0%}"
        needed = "more than 1e9" if row["samples_needed"] is None else shown_number(row["samples_needed"])
        rows.append((str(row["trials"]), needed, shown_number(row["smallest_difference"]), power))
    print_cells(screen, headers, ((row, None) for row in rows), slice(None))
    if len(plan["plan"]) == 1:
        screen.print(
            "To see the effect of more trials per sample, use results with several trials.", style="dim"
        )
