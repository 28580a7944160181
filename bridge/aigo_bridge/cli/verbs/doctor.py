"""`aigo-bridge doctor`: what of this installation works."""

from __future__ import annotations

import typer

from aigo_bridge.cli.options import VERB

app = typer.Typer(**VERB)


@app.command("doctor")
def doctor(as_json: bool = typer.Option(False, "--json", help="Print a machine-readable list.")) -> None:
    """Check the engines, their versions and versions that are known not to work together.

    Exit code: 0 at least one engine can run tasks, 1 none can.
    """
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
