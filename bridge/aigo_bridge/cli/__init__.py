"""The command line: one module per verb, imported when the verb is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from aigo_bridge.cli.settings import VERB

VERBS: dict[str, tuple[str, str]] = {
    "run": ("aigo_bridge.cli.run", "Run an AI GO task on an engine and write its evidence."),
    "explain": ("aigo_bridge.cli.explain", "Show every prompt of a task without calling a model."),
    "import": ("aigo_bridge.cli.import_logs", "Turn an engine's logs into AI GO evidence."),
    "export": ("aigo_bridge.cli.export", "Write a task as an engine's files, or a result as its log."),
    "convert": ("aigo_bridge.cli.convert", "Convert task records or a benchmark to an AI GO task."),
    "generate": ("aigo_bridge.cli.generate", "Make the rows of a generated data set."),
    "validate": ("aigo_bridge.cli.validate", "Validate tasks, run files, data sets, models and result logs."),
    "score": ("aigo_bridge.cli.score", "Score stored outputs again, without calling the evaluated model."),
    "schema": ("aigo_bridge.cli.schema", "Print the JSON Schema of a kind of file."),
    "upgrade": ("aigo_bridge.cli.upgrade", "Rewrite old spellings in the current form."),
    "doctor": ("aigo_bridge.cli.doctor", "Check the engines and their versions."),
    "list": ("aigo_bridge.cli.list", "List the tasks that come with aigo-bridge."),
}
"""Verb → (module with a Typer `app` of one command, help line)."""


class LazyGroup(TyperGroup):
    """Knows the verbs by name and imports the module of the one that is used."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Verbs in the order of their table."""
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a verb."""
        if cmd_name not in VERBS:
            return None
        module = import_module(VERBS[cmd_name][0])
        return typer.main.get_command(module.app)

    def invoke(self, ctx: Any) -> Any:
        """Run the verb; ctrl-C is told by the same words and exit code wherever it strikes."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            from aigo_bridge.cli.failing import interrupted

            raise interrupted() from error

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The verbs' help lines, from the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(verb, line) for verb, (_, line) in VERBS.items()])


app = typer.Typer(
    cls=LazyGroup,
    help="AI GO evaluation tasks on Inspect AI and lighteval; engine logs as AI GO evidence.",
    no_args_is_help=True,
    **VERB,
)


def _version(value: bool) -> None:
    if value:
        from aigo_bridge import __version__

        typer.echo(f"aigo-bridge {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Options of the command itself."""


def main() -> None:
    """Entry point of `aigo-bridge`."""
    from aigo_bridge.cli.terminal import hide_secrets

    hide_secrets()
    app()
