"""`aigo-bridge compare`: compares results on their common samples."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aigo_bridge.cli.options import VERB, verb_command
from aigo_bridge.cli.terminal import print_json
from aigo_stats.verbs.stats import ClusterOption, LevelOption

app = typer.Typer(**VERB)


@app.command(
    "compare",
    cls=verb_command(
        "aigo-bridge compare old.tasklog.json new.tasklog.json",
        "aigo-bridge compare out-a out-b --by language --report comparison.html",
        exit_codes={
            "0": "the comparison was shown",
            "2": "wrong arguments, or the results cannot be compared",
        },
    ),
)
def compare(
    base: Annotated[
        Path,
        typer.Argument(
            metavar="BASE", help="Result log to compare with, or a folder or run file with several results."
        ),
    ],
    new: Annotated[
        list[Path],
        typer.Argument(
            metavar="NEW…",
            help="Result logs, folders or run files to compare with BASE. Results with the same name or "
            "the same specification key are paired.",
        ),
    ],
    cluster: ClusterOption = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="COLUMN",
            help="Also show differences for each value of this dataset column, e.g. language.",
        ),
    ] = None,
    by_id: Annotated[
        bool, typer.Option("--by-id", help="Pair samples by id only, even if their rows differ.")
    ] = False,
    flips: Annotated[
        int,
        typer.Option(
            "--flips",
            min=0,
            metavar="N",
            help="Number of samples to list that changed between right and wrong.",
        ),
    ] = 10,
    level: LevelOption = 0.95,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="Also write the comparison as a page (FILE.html) or as JSON (FILE.json).",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Compare results on their common samples, with paired intervals, tests and changed answers.

    The output starts with other differences between the runs, such as the prompt, scorers, model or engine
    version. P-values are corrected for multiple comparisons (Holm). With several NEW results, all results
    are compared with each other and ranked.
    """
    from aigo_stats.terminal.comparisons import compare_results, refuse_other_reports, write_comparison

    if report is not None:
        refuse_other_reports(report)
    compared = compare_results([base, *new], cluster=cluster, by=by, by_id=by_id, level=level)
    if report is not None or as_json:
        content = compared.to_json(level, flips)
        if report is not None:
            write_comparison(report, compared, content, flips)
        if as_json:
            print_json(content)
            return
    compared.show(flips)
