"""`aigo-bridge doctor`: check the installation."""

from __future__ import annotations

import typer

from aigo_bridge.cli.options import VERB, verb_command

app = typer.Typer(**VERB)


@app.command(
    "doctor",
    cls=verb_command(exit_codes={"0": "at least one engine can run tasks", "1": "no engine can run tasks"}),
)
def doctor(as_json: bool = typer.Option(False, "--json", help="Print JSON instead of a table.")) -> None:
    """Check engines, versions and plug-ins, and report versions that do not work together."""
    from dataclasses import asdict

    from aigo_bridge.cli.terminal import print_json, printable
    from aigo_bridge.engine.registry import diagnose, usable_engines
    from aigo_bridge.exit_codes import ExitCode

    checks = diagnose()
    usable = usable_engines(checks)
    if as_json:
        shown = {"engines": usable, "checks": [asdict(check) for check in checks]}
        print_json(shown)
    else:
        width = max(len(check.subject) for check in checks)
        for check in checks:
            typer.echo(f"{check.state:<8} {check.subject:<{width}}  {printable(check.found)}")
            if check.remedy is not None:
                typer.echo(f"{'':<8} {'':<{width}}  run: {check.remedy}")
    if not usable:
        raise typer.Exit(ExitCode.FAILED)
