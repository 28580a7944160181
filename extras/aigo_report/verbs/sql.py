"""`aigo-bridge sql`: queries results with SQL."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aigo_bridge.cli.options import VERB, verb_command
from aigo_bridge.cli.result_arguments import RESULTS_HELP
from aigo_bridge.codes import Code

if TYPE_CHECKING:
    from aigo_bridge.errors import UsageError

app = typer.Typer(**VERB)


@app.command(
    "sql",
    cls=verb_command(
        "aigo-bridge sql 'SELECT metric, value FROM metrics' out",
        "aigo-bridge sql --schema",
        exit_codes={
            "0": "the query succeeded",
            "2": "wrong arguments, an invalid query or a timeout, or a result cannot be read",
        },
    ),
)
def sql(
    query: Annotated[
        str | None,
        typer.Argument(metavar="QUERY", help="One SELECT statement in DuckDB SQL.", show_default=False),
    ] = None,
    locations: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RESULT]…",
            help=f"{RESULTS_HELP} [default: out]",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="File for the rows (.csv, .jsonl, .parquet or .xlsx), instead of the screen.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    rows: Annotated[
        int, typer.Option("--rows", min=0, metavar="N", help="Maximum number of rows to print; 0 prints all.")
    ] = 100,
    timeout: Annotated[
        float,
        typer.Option("--timeout", min=0.1, metavar="SECONDS", help="Time limit of the query, e.g. 300."),
    ] = 60,
    schema: Annotated[bool, typer.Option("--schema", help="Print the tables and their columns.")] = False,
) -> None:
    """Query results with SQL. The tables are results, metrics, samples, trials, scores and events.

    A query can only read these tables: it has no access to other files or the network.
    """
    from aigo_bridge.cli.result_arguments import note_missing
    from aigo_bridge.cli.tables import print_rows
    from aigo_bridge.cli.terminal import print_json
    from aigo_bridge.errors import UsageError
    from aigo_bridge.hooks import load_hook
    from aigo_bridge.importing.lakes import Lake
    from aigo_report.tables.files import Sheet, format_of, write_tables
    from aigo_report.tables.results import results_at
    from aigo_report.tables.sql import TimeLimit, answered, schema_text
    from aigo_report.terminal import plain_values, print_written

    if schema:
        typer.echo(schema_text())
        return
    if query is None:
        raise UsageError("no query was given, expected one SELECT, or --schema", code=Code.MISSING_ARGUMENT)
    if out is not None:
        format_of(out)
    asked = load_hook("lake", Lake).tables(locations or ["out"])
    if asked is None:
        asked = results_at(locations or ["out"])
        note_missing(asked.missing)
    with answered(query, asked, TimeLimit(timeout, _give_up)) as answer:
        if out is not None:
            sheet = Sheet("query", answer.columns, answer.rows, lambda: answer.schema)
            print_written(out, write_tables(out, [sheet]))
        elif as_json:
            print_json(list(plain_values(answer.rows)))
        else:
            print_rows(answer.columns, answer.rows, rows)


def _give_up(error: UsageError) -> None:
    """End the process during a query. The next process deletes its temporary folder."""
    from aigo_bridge.cli.error_handling import show
    from aigo_bridge.exit_codes import ExitCode

    show(error)
    sys.stderr.flush()
    os._exit(ExitCode.WRONG_USE)
