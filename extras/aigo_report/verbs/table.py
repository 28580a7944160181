"""`aigo-bridge table`: writes results as a table file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import typer

from aigo_bridge.cli.options import VERB, verb_command
from aigo_bridge.cli.result_arguments import RESULTS_HELP
from aigo_report.tables.schema import TABLE_NAMES, TableName

app = typer.Typer(**VERB)


@app.command(
    "table",
    cls=verb_command(
        "aigo-bridge table out --out trials.csv",
        "aigo-bridge table out --table metrics --out metrics.parquet",
        exit_codes={
            "0": "the table was written",
            "2": "wrong arguments, or a result cannot be read; no file is written",
        },
    ),
)
def table(
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
            help="File to write: .csv, .jsonl (also .gz and .zst), .parquet or .xlsx.",
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            "--table",
            metavar="TABLE",
            help=f"Table to write: {', '.join(TABLE_NAMES)}. [default: trials; in .xlsx all "
            "tables except events]",
        ),
    ] = None,
) -> None:
    """Write samples, trials, scores, metrics or events of results as a table.

    In .csv and .xlsx files, an apostrophe is put before texts that a spreadsheet would execute as a
    formula.
    """
    from aigo_bridge.cli.result_arguments import note_missing
    from aigo_report.tables.files import format_of, sheet_of, write_tables
    from aigo_report.tables.results import results_at
    from aigo_report.terminal import print_written

    several = [known for known in TABLE_NAMES if known != "events"]
    default = several if format_of(out) == ".xlsx" else ["trials"]
    names = default if name is None else [name]
    results = results_at(locations)
    sheets = [sheet_of(results.table(cast("TableName", one))) for one in names]
    written = write_tables(out, sheets)
    note_missing(results.missing)
    print_written(out, written)
