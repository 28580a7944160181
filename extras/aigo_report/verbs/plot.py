"""`aigo-bridge plot`: draws charts of results for papers and slides."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import typer

from aigo_bridge.cli.options import VERB, verb_command
from aigo_bridge.cli.result_arguments import RESULTS_HELP
from aigo_bridge.codes import Code

app = typer.Typer(**VERB)


@app.command(
    "plot",
    cls=verb_command(
        "aigo-bridge plot out/*.tasklog.json --out metrics.svg",
        "aigo-bridge plot out --chart scores --out scores.png",
        "aigo-bridge plot out --theme dark --out slide.svg",
        exit_codes={"0": "the chart was written", "2": "wrong arguments, or a result cannot be read"},
    ),
)
def plot(
    locations: Annotated[
        list[str],
        typer.Argument(metavar="RESULT…", help=RESULTS_HELP),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Chart file, .svg, .png or .pdf. The numbers are written next to it as .csv.",
        ),
    ],
    name: Annotated[
        str,
        typer.Option(
            "--chart",
            metavar="CHART",
            help="Chart to draw: metrics (values with 95 % intervals), scores (distribution), "
            "stages (failed samples by stage) or tokens (of all model calls).",
        ),
    ] = "metrics",
    theme: Annotated[
        str,
        typer.Option(
            "--theme",
            metavar="THEME",
            help="Colors and sizes: paper, or dark for slides with a dark background.",
        ),
    ] = "paper",
) -> None:
    """Draw a chart of results for a paper or a slide, and write its numbers as CSV."""
    from aigo_bridge.cli.result_arguments import note_missing
    from aigo_bridge.cli.terminal import short_path
    from aigo_bridge.errors import UsageError
    from aigo_report.tables.charts import (
        CHART_NAMES,
        THEME_NAMES,
        ChartName,
        ThemeName,
        chart,
        draw,
        format_of,
    )
    from aigo_report.tables.files import Sheet, write_tables
    from aigo_report.tables.results import results_at

    for kind, value, names in (("chart", name, CHART_NAMES), ("theme", theme, THEME_NAMES)):
        if value not in names:
            raise UsageError(f"no {kind} {value!r}, expected {', '.join(names)}", code=Code.UNKNOWN_CHOICE)
    format_of(out)
    results = results_at(locations)
    drawn = chart(cast("ChartName", name), results)
    draw(drawn, out, cast("ThemeName", theme))
    data = out.with_suffix(".csv")
    write_tables(data, [Sheet(name, drawn.columns, drawn.rows, lambda: None)])
    note_missing(results.missing)
    typer.echo(f"chart  {short_path(out)}\ndata   {short_path(data)}")
