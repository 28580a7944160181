"""`aigo-bridge compare`: what differs between results, on the samples that they have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aigo_bridge.cli.options import VERB
from aigo_bridge.cli.terminal import print_json
from aigo_stats.verbs.stats import ClusterOption, LevelOption

app = typer.Typer(**VERB)


@app.command("compare")
def compare(
    base: Annotated[
        Path,
        typer.Argument(
            metavar="BASE", help="Result log to compare with, or a folder or run file with several."
        ),
    ],
    new: Annotated[
        list[Path],
        typer.Argument(
            metavar="NEW…",
            help="Result logs, or folders or run files with task result logs; results of one name, or of "
            "one task specification key, belong together.",
        ),
    ],
    cluster: ClusterOption = None,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="COLUMN", help="Show differences for each value of a column, too."),
    ] = None,
    by_id: Annotated[
        bool, typer.Option("--by-id", help="Pair samples by their ids alone, also where their rows differ.")
    ] = False,
    flips: Annotated[
        int,
        typer.Option(
            "--flips", min=0, metavar="N", help="Samples that changed between right and wrong to list."
        ),
    ] = 10,
    level: LevelOption = 0.95,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="Write the comparison, too: FILE.html as a page, FILE.json for programs.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a machine-readable comparison instead of tables.")
    ] = False,
) -> None:
    """Compare results on the samples that they have in common: differences with paired intervals and tests,
    and the answers that changed.

    What else differs (task, prompt, scorers, config, model, engine, version) is said before any number.
    P-values are corrected for all numbers of all tasks (Holm). With several NEW every result is compared with
    every other, and ranked. Exit code: 0, whatever differs; 2 wrong use.
    """
    from aigo_bridge.cli.failing import reported
    from aigo_stats.terminal.comparisons import (
        compare_results,
        comparisons_json,
        refuse_other_reports,
        show_comparisons,
        write_comparison,
    )

    with reported():
        if report is not None:
            refuse_other_reports(report)
        compared = compare_results([base, *new], cluster=cluster, by=by, by_id=by_id, level=level)
        if report is not None or as_json:
            content = comparisons_json(compared, level, flips)
            if report is not None:
                write_comparison(report, compared.comparisons, compared.rankings, content, flips)
            if as_json:
                print_json(content)
                return
        show_comparisons(compared, flips)
