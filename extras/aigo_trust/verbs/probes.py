"""Terminal output of a probe."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from aigo_bridge.cli.terminal import name_of, one_line, printable, short_path
from aigo_bridge.text.plurals import plural
from aigo_trust.probing.evidence import Probe, Total

EXPECTED = {
    "same": "same score",
    "worse": "lower score",
    "not better": "no higher score",
    "told": "either",
}
"""Expected effect on the scores, as displayed."""
_CELL = 70


def show_probe(probe: Probe) -> None:
    """Print a table with a row for each scorer and perturbation, then the scorers that were not probed."""
    source = probe.source
    typer.echo(
        printable(
            f"{name_of(source.task)}: {plural(len(probe.trials), 'answer')} of {short_path(source.result)},"
            f" {len(probe.cases)} changed answers scored"
        )
    )
    totals = probe.totals()
    if any(total.num_probed for total in totals):
        _table([total for total in totals if total.num_probed])
    idle = [total for total in totals if not total.num_probed]
    for scorer in dict.fromkeys(total.scorer for total in idle):
        names = ", ".join(total.perturbation for total in idle if total.scorer == scorer)
        typer.echo(f"{name_of(scorer)}: no answer to apply these to: {names}")
    settings = {scorer.key: scorer.setting for scorer in probe.scorers}
    for scorer in dict.fromkeys(total.scorer for total in totals if total.counts.get("explained")):
        typer.echo(f"{name_of(scorer)}: explained: {printable(str(settings[scorer]))}")
    for item in probe.scorers:
        if item.unprobed is not None:
            typer.echo(f"{name_of(item.key)} ({item.type}): not probed: {printable(item.unprobed)}")
    typer.echo(_verdict(probe, totals))


def _verdict(probe: Probe, totals: Sequence[Total]) -> str:
    failed = [total for total in totals if total.num_failed]
    if not probe.cases:
        return "no answer could be changed, so no scorer was tested"
    if not failed:
        return "all scorers react correctly"
    number = sum(total.num_failed for total in failed)
    names = ", ".join(dict.fromkeys(total.perturbation for total in failed))
    return f"{number} of {len(probe.cases)} reactions are wrong: {names}"


def _table(totals: Sequence[Total]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    for name in ("scorer", "perturbation", "expected", "probed", "failed", "other", "e.g."):
        table.add_column(name, justify="right" if name in ("probed", "failed") else "left", no_wrap=True)
    for total in totals:
        cells = (
            name_of(total.scorer),
            total.perturbation,
            EXPECTED[total.expectation],
            str(total.num_probed),
            str(total.num_failed),
            _others(total),
            "" if total.example is None else one_line(name_of(total.example), _CELL),
        )
        table.add_row(*map(Text, cells), style="red" if total.num_failed else None)
    Console(file=sys.stdout, highlight=False, soft_wrap=True, width=250).print(table)


def _others(total: Total) -> str:
    parts = [
        f"{count} {verdict}" for verdict in ("explained", "told") if (count := total.counts.get(verdict, 0))
    ]
    return ", ".join(parts)
