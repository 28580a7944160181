"""`aigo-bridge check`: a result held against rules, for CI."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aigo_bridge.cli.looking import RESULTS_HELP
from aigo_bridge.cli.options import VERB
from aigo_bridge.cli.terminal import print_json
from aigo_stats.verbs.stats import ClusterOption

app = typer.Typer(**VERB)


@app.command("check")
def check(
    result: Annotated[Path, typer.Argument(metavar="RESULT", help=RESULTS_HELP)],
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline",
            metavar="BASE",
            help="Result log that rules of regression compare with; of several results a folder or run "
            "file with the same names.",
        ),
    ] = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            "--rule",
            metavar="RULE",
            help="e.g. 'accuracy >= 0.8 at 95%', 'no regression beyond 0.02'. Repeatable.",
        ),
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option("--rules", metavar="FILE", help="YAML file with a list `rules` of such texts."),
    ] = None,
    cluster: ClusterOption = None,
    by_id: Annotated[
        bool, typer.Option("--by-id", help="Pair samples by their ids alone, also where their rows differ.")
    ] = False,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write the verdicts as JUnit XML, too.")
    ] = None,
    github: Annotated[
        bool,
        typer.Option("--github", help="Print rules that do not hold as annotations for GitHub Actions, too."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print machine-readable verdicts instead of lines.")
    ] = False,
) -> None:
    """Hold a result against rules, each decided by the interval of its number.

    A rule with a confidence (`at 95%`) holds where the whole interval does, and does not where none of it
    does. A regression is judged on the samples that both results have: it must be no larger than the margin,
    with 95 % confidence. Exit code: 0 all rules hold, 1 one does not, 2 wrong use, 4 none is broken but one
    cannot be decided with this many samples.
    """
    from aigo_bridge.cli.failing import reported
    from aigo_stats.terminal.checking import (
        annotate,
        check_results,
        exit_code,
        read_rules,
        show_verdicts,
        write_junit,
    )

    with reported():
        parsed = read_rules(rule or [], rules)
        checked = check_results(result, baseline, parsed, cluster=cluster, by_id=by_id)
        if junit is not None:
            write_junit(junit, checked)
    if as_json:
        contents = [one.to_json() for one in checked]
        print_json(contents[0] if len(contents) == 1 else contents)
    for one in checked:
        if not as_json:
            show_verdicts(one, named=len(checked) > 1)
        if github:
            annotate(one)
    raise typer.Exit(exit_code([verdict for one in checked for verdict in one.verdicts]))
