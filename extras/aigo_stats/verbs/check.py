"""`aigo-bridge check`: checks results against rules, for CI."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aigo_bridge.cli.options import VERB, verb_command
from aigo_bridge.cli.result_arguments import RESULTS_HELP
from aigo_bridge.cli.terminal import print_json
from aigo_stats.verbs.stats import ClusterOption

app = typer.Typer(**VERB)


@app.command(
    "check",
    cls=verb_command(
        "aigo-bridge check out/capitals.tasklog.json --rule 'accuracy >= 0.8 at 95%'",
        "aigo-bridge check new.tasklog.json --baseline old.tasklog.json --rule 'no regression beyond 0.02'",
        exit_codes={
            "0": "all rules passed",
            "1": "a rule failed",
            "2": "wrong arguments",
            "4": "no rule failed, but there are not enough samples to decide one",
        },
    ),
)
def check(
    result: Annotated[Path, typer.Argument(metavar="RESULT", help=RESULTS_HELP)],
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline",
            metavar="BASE",
            help="Earlier result for rules about regressions. For several results, name a "
            "folder or run file with the same result names.",
        ),
    ] = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            "--rule",
            metavar="RULE",
            help="Rule to check, e.g. 'accuracy >= 0.8 at 95%' or 'no regression beyond 0.02'. Repeatable.",
        ),
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option("--rules", metavar="FILE", help="YAML file with a list of rules under `rules`."),
    ] = None,
    cluster: ClusterOption = None,
    by_id: Annotated[
        bool, typer.Option("--by-id", help="Pair samples by id only, even if their rows differ.")
    ] = False,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Also write the verdicts as JUnit XML.")
    ] = None,
    github: Annotated[
        bool, typer.Option("--github", help="Also print failed rules as GitHub Actions annotations.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Check results against rules, for example in CI.

    A rule with a confidence level (`at 95%`) passes if the whole interval meets it, and fails if no part of
    the interval does. A regression rule compares the common samples of both results. It passes if the
    regression is smaller than the margin with 95 % confidence.
    """
    from aigo_stats.terminal.checking import (
        annotate,
        check_results,
        exit_code,
        read_rules,
        show_verdicts,
        write_junit,
    )

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
